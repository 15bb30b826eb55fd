//! Directives and reasons in words.

use std::collections::BTreeMap;

use metronome_core::model::cluster::{Cluster, Vertex};
use metronome_core::model::id::LinkId;
use metronome_core::traffic::decision_inputs::Why;
use metronome_sim::report::text::short_time;
use serde::Deserialize;
use serde_json::Value;

use super::decisions::Log;

/// A traffic directive as the outcome of a run has it. What is left out has its default, and what is not known here is
/// left alone: directives gain fields.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Directive {
    pub(super) class: u8,
    pub(super) weight: Option<u32>,
    pub(super) follows: Option<String>,
    pub(super) turn: Option<Turn>,
    pub(super) pace: Option<Pace>,
    pub(super) rotation: Option<Rotation>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct Turn {
    pub(super) period: u64,
    pub(super) offset: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct Pace {
    pub(super) turn: Turn,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Rotation {
    pub(super) window_ns: u64,
    pub(super) slots: Vec<Slot>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(default)]
pub(super) struct Slot {
    pub(super) class: u8,
    pub(super) follows: Option<String>,
}

impl Directive {
    pub(super) fn of(value: &Value) -> Self {
        Self::deserialize(value).unwrap_or_default()
    }

    /// The turn that its iterations are to begin at.
    pub(super) fn turn(&self) -> Option<Turn> {
        self.pace.map(|pace| pace.turn).or(self.turn).filter(|turn| turn.period > 0)
    }

    /// The slot of a window that begins at a moment of the world's time.
    pub(super) fn slot_at(&self, ns: u64) -> Option<&Slot> {
        let rotation = self.rotation.as_ref()?;
        let window = ns / rotation.window_ns.max(1);
        rotation.slots.get((window % rotation.slots.len().max(1) as u64) as usize)
    }

    pub(super) fn in_words(&self) -> String {
        let base = match &self.rotation {
            Some(rotation) => rotation.in_words(),
            None => Slot { class: self.class, follows: self.follows.clone() }.in_words(),
        };
        let weight = self.weight.filter(|weight| *weight != 1).map(|weight| format!("weight {weight}"));
        let paced = self.pace.map(|pace| format!("every iteration held until its turn {}", place(pace.turn)));
        let turn = self.turn.map(|turn| format!("held once until its turn {}", place(turn)));
        [Some(base), weight, paced.or(turn)].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

impl Rotation {
    /// Equal windows are counted together.
    fn in_words(&self) -> String {
        let mut counts: BTreeMap<&Slot, usize> = BTreeMap::new();
        self.slots.iter().for_each(|slot| *counts.entry(slot).or_default() += 1);
        let each = counts.iter().map(|(slot, count)| format!("{count} × {}", slot.in_words()));
        let each: Vec<String> = each.collect();
        let (count, window) = (self.slots.len(), short_time(self.window_ns as f64 / 1e9));
        format!("{count} windows of {window}: {}", each.join("; "))
    }
}

impl Slot {
    pub(super) fn in_words(&self) -> String {
        let follows = self.follows.as_deref().map(|follows| match follows {
            "firstCome" => "first come, first served",
            "bytesSent" => "weight grows with bytes sent",
            "bytesLeft" => "rises as fewer bytes are left",
            "partLeft" => "rises as a smaller part is left",
            other => other,
        });
        let class = format!("class {}", self.class);
        [Some(class.as_str()), follows].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

fn place(turn: Turn) -> String {
    let offset = turn.offset % turn.period.max(1);
    format!("at {} of {}", short_time(offset as f64 / 1e9), short_time(turn.period as f64 / 1e9))
}

/// Why directives of running jobs changed.
pub(super) fn reason(why: &Why, log: &Log, cluster: &Cluster) -> String {
    match *why {
        Why::Arrival { job } => format!("{} started on a link that the job crosses", log.name(job)),
        Why::Departure { job } => format!("{} left a link that the job crosses", log.name(job)),
        Why::Link { link, was, is } => {
            format!("{} carries {is} instead of {was}", link_name(cluster, link))
        }
        Why::Profile { job } => format!("the traffic of {} was learned", log.name(job)),
        Why::Drift { job } => format!("the traffic of {} changed", log.name(job)),
        Why::SlowerThanFair { job } => {
            format!("{} was measured to be slower than under fair sharing", log.name(job))
        }
        Why::Priorities => "priorities of jobs changed".to_owned(),
        Why::Room => "a better place became free".to_owned(),
        Why::Fragmentation { job } => format!("{} fits once running jobs are closer together", log.name(job)),
        Why::SlowNode { node } => {
            format!("members on {} are slower than their peers", cluster.node(node).name)
        }
        Why::Drained { node } => format!("{} is drained", cluster.node(node).name),
    }
}

/// `node-0 up`, as in other reports.
pub(super) fn link_name(cluster: &Cluster, link: LinkId) -> String {
    let fabric = &cluster.fabric;
    let Some(ends) = fabric.links().get(link) else { return format!("link {}", link.0) };
    let name = |vertex: Vertex| match vertex {
        Vertex::Node(node) => &*cluster.node(node).name,
        Vertex::Switch(_) => fabric.switch_name(vertex).unwrap_or("a switch"),
    };
    let heights = fabric.elevations();
    let height = |vertex: Vertex| heights.get(&vertex).copied().unwrap_or(0);
    match height(ends.from) < height(ends.to) {
        true => format!("{} up", name(ends.from)),
        false => format!("{} down", name(ends.to)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn directives_are_told_in_words_and_fields_of_later_versions_do_no_harm() {
        let words = |value: Value| Directive::of(&value).in_words();
        assert_eq!(words(json!({"class": 1, "news": [1]})), "class 1");
        let turn = json!({"turn": {"period": 200_000_000, "offset": 230_000_000}});
        assert_eq!(words(turn), "class 0, held once until its turn at 30 ms of 200 ms");
        let paced = json!({"follows": "bytesLeft", "pace": {"turn": {"period": 200_000_000, "offset": 0}}});
        assert_eq!(
            words(paced),
            "class 0, rises as fewer bytes are left, every iteration held until its turn at 0 ms of 200 ms"
        );
        let slots =
            json!([{"class": 1, "follows": "firstCome"}, {"class": 0}, {"class": 1, "follows": "firstCome"}]);
        let rotation = json!({"rotation": {"windowNs": 1_400_000_000_u64, "slots": slots}});
        assert_eq!(
            words(rotation.clone()),
            "3 windows of 1.4 s: 1 × class 0; 2 × class 1, first come, first served"
        );
        let classes = [0, 1_500, 2_800, 4_300]
            .map(|ms| Directive::of(&rotation).slot_at(ms * 1_000_000).unwrap().class);
        assert_eq!(classes, [1, 0, 1, 1]);
    }
}

//! The jobs of an encounter, one row each: what they ask of the link, what they may do there, what came of it.

use metronome_core::traffic::{Follows, TrafficPolicy, Turn};

use super::{Actor, Cast};
use crate::encounter::Course;
use crate::report::text::{count, escape, percent, short_time};
use crate::report::tip;

pub(super) fn of(cast: &Cast) -> String {
    let decided = cast.encounter.decided.as_ref();
    let after = if decided.is_some() { "<th>as decided</th><th>change</th>" } else { "" };
    let rows: String = cast.jobs.iter().enumerate().map(|(at, actor)| row(cast, at, actor)).collect();
    let more = match cast.encounter.more {
        0 => String::new(),
        more => format!(
            "<p class=\"says\">{} more cross it, grey in the pictures.</p>\n",
            count(more as f64, "job")
        ),
    };
    format!(
        "<div class=\"wide\"><table class=\"sharers\">\n<thead><tr><th>job</th><th>priority</th>\
         <th>iteration alone</th><th>sends for</th><th>takes of the link</th><th class=\"lane\">lane</th>\
         <th>shared fairly</th>{after}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table></div>\n{more}"
    )
}

fn row(cast: &Cast, at: usize, actor: &Actor) -> String {
    let sharer = actor.sharer;
    let mean = |course: &Course| course.jobs[at].mean.as_secs_f64();
    let fair = mean(&cast.encounter.fair);
    let decided = cast.encounter.decided.as_ref().map(|course| {
        let change = mean(course) / fair.max(f64::MIN_POSITIVE) - 1.0;
        format!("<td>{}</td><td>{}</td>", short_time(mean(course)), signed(change))
    });
    format!(
        "<tr><th><i class=\"{}\">{}</i>{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td>\
         <td class=\"lane\">{}</td><td>{}</td>{}</tr>\n",
        actor.look(),
        actor.number,
        escape(&actor.name()),
        tip::class(actor.priority()),
        short_time(sharer.period.as_secs_f64()),
        percent(sharer.duty),
        percent(sharer.demand),
        in_words(&sharer.lane),
        short_time(fair),
        decided.unwrap_or_default(),
    )
}

/// A change in percent, with its sign.
fn signed(change: f64) -> String {
    let sign = if change < -0.0005 {
        "−"
    } else if change > 0.0005 {
        "+"
    } else {
        "±"
    };
    format!("{sign}{}", percent(change.abs()))
}

/// What a job may do on links.
pub(super) fn in_words(lane: &TrafficPolicy) -> String {
    if lane.is_default() {
        return "shares fairly".to_owned();
    }
    let class = format!("class {}", lane.class);
    let weight = (lane.weight != 1).then(|| format!("weight {}", lane.weight));
    let follows = match lane.follows {
        Follows::Nothing => None,
        Follows::BytesSent => Some("weight growing with what it has sent"),
        Follows::BytesLeft => Some("rising as less is left to send"),
        Follows::PartLeft => Some("rising as a smaller part is left to send"),
        Follows::FirstCome => Some("first come, first served"),
        Follows::LeastLeft => Some("least left to send first"),
    };
    let turn = lane.turn.map(|turn| format!("turn {}", place(turn)));
    let pace = lane.pace.map(|pace| format!("held every time to its turn {}", place(pace.turn)));
    [Some(class), weight, follows.map(str::to_owned), turn, pace]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(", ")
}

fn place(turn: Turn) -> String {
    let [offset, period] = [turn.offset.0 % turn.period.0.max(1), turn.period.0];
    format!("at {} of {}", short_time(offset as f64 / 1e9), short_time(period as f64 / 1e9))
}

#[cfg(test)]
mod tests {
    use super::*;
    use metronome_core::model::units::Duration;

    #[test]
    fn a_lane_is_told_by_what_is_not_as_for_everybody() {
        assert_eq!(in_words(&TrafficPolicy::default()), "shares fairly");
        let classes = TrafficPolicy { class: 2, follows: Follows::BytesLeft, ..TrafficPolicy::default() };
        assert_eq!(in_words(&classes), "class 2, rising as less is left to send");
        let turn =
            Turn { period: Duration::from_millis(400), offset: Duration::from_millis(500), watch: None };
        let shifted = TrafficPolicy { turn: Some(turn), weight: 3, ..TrafficPolicy::default() };
        assert_eq!(in_words(&shifted), "class 0, weight 3, turn at 100 ms of 400 ms");
    }

    #[test]
    fn a_change_has_a_sign() {
        assert_eq!([signed(-0.123), signed(0.05), signed(0.0)], ["−12 %", "+5 %", "±0 %"]);
    }
}

//! Nodes in groups, laid out over the levels of the topology.

use std::collections::BTreeMap;

use metronome_core::model::cluster::{Cluster, NodeSpec};
use metronome_core::model::units::{Bandwidth, Gpus, Resources};
use serde_saphyr::Spanned;

use super::{links, roles};
use crate::near::{listed, meant_or_known};
use crate::scenario::documents::{ClusterSpec, NodeGroup};
use crate::scenario::error::{Problem, quoted};
use crate::scenario::values::{MOST_NODES, Placed, Text, name, quantity_or_none, some_quantity, whole};

/// The cluster, and the rate within a node, if that is not free.
pub(super) fn cluster(spec: &ClusterSpec) -> Result<(Cluster, Option<Bandwidth>), Problem> {
    let levels = levels(spec.levels.as_deref())?;
    let mut cluster = Cluster::new(&levels).map_err(|error| {
        let place = spec.levels.iter().flatten().next();
        place.map_or_else(|| Problem::whole(error.to_string()), |place| place.problem(error.to_string()))
    })?;
    let mut layout = Layout { domains: vec![0; levels.len()], levels, unnamed: 0, nodes: 0 };
    for group in &spec.nodes {
        layout.add(group, &mut cluster)?;
    }
    if cluster.nodes().is_empty() {
        return Err(Problem::whole("the Cluster has no nodes"));
    }
    let within_node = spec.links.as_ref().map_or(Ok(None), |links| links::lay(links, &mut cluster))?;
    Ok((cluster, within_node))
}

/// The names above the node, outermost first.
fn levels(written: Option<&[Text]>) -> Result<Vec<&str>, Problem> {
    let Some(written) = written else { return Ok(Vec::new()) };
    let Some((last, above)) = written.split_last() else { return Ok(Vec::new()) };
    if last.value != "node" {
        return Err(last.problem(format!("the last level is `node`, not {}", quoted(&last.value))));
    }
    if let Some(early) = above.iter().find(|level| level.value == "node") {
        return Err(early.problem("`node` is the last level and no other"));
    }
    above.iter().map(name).collect()
}

/// How far the numbering of nodes and domains has come.
#[derive(Debug)]
struct Layout<'a> {
    levels: Vec<&'a str>,
    /// For each level the domains in use by earlier groups.
    domains: Vec<u64>,
    unnamed: u64,
    nodes: u64,
}

impl Layout<'_> {
    fn add(&mut self, group: &Spanned<NodeGroup>, cluster: &mut Cluster) -> Result<(), Problem> {
        let shape = &group.value;
        let count = shape.count.as_ref().map_or(Ok(1), |count| whole(count, 1..=MOST_NODES))?;
        if self.nodes + count > MOST_NODES {
            let place = shape.count.as_ref().map_or_else(|| group.at(), Placed::at);
            return Err(place.problem(format!("there are more than {MOST_NODES} nodes")));
        }
        self.check_within(shape)?;
        let per = self.nodes_per_domain(group, count)?;
        let domains: Vec<u64> = per.iter().map(|per| count.div_ceil(*per)).collect();
        let (prefix, first) = self.numbering(shape.name.as_ref(), count)?;
        let mut spec = NodeSpec {
            capacity: capacity(shape)?,
            gpu_type: shape.gpu_type.as_ref().map(name).transpose()?.map(str::to_owned),
            ..NodeSpec::default()
        };
        for index in 0..count {
            spec.name = format!("{prefix}-{}", first + index);
            spec.domains = self.domains_of(index, &per, &shape.within);
            cluster.add_node(&spec).map_err(|error| group.problem(error.to_string()))?;
        }
        self.nodes += count;
        let numbered = self.levels.iter().map(|level| !shape.within.contains_key(*level));
        for ((used, new), _) in self.domains.iter_mut().zip(domains).zip(numbered).filter(|(_, own)| *own) {
            *used += new;
        }
        Ok(())
    }

    /// The name of the group's nodes and the number of its first: groups without a name share `node`.
    fn numbering<'a>(&mut self, given: Option<&'a Text>, count: u64) -> Result<(&'a str, u64), Problem> {
        if let Some(given) = given {
            return Ok((name(given)?, 0));
        }
        self.unnamed += count;
        Ok(("node", self.unnamed - count))
    }

    /// For each level, how many nodes of the group one domain takes; all of them where nothing is said.
    fn nodes_per_domain(&self, group: &Spanned<NodeGroup>, count: u64) -> Result<Vec<u64>, Problem> {
        let shape = &group.value;
        if let Some((level, text)) =
            shape.per.iter().find(|(level, _)| !self.levels.contains(&level.as_str()))
        {
            return Err(self.unknown_level(level, text));
        }
        if let Some(text) = shape.per_rack.as_ref().filter(|_| !self.levels.contains(&"rack")) {
            return Err(self.unknown_level("rack", text));
        }
        let mut per = Vec::with_capacity(self.levels.len());
        let mut outer: Option<u64> = None;
        for level in &self.levels {
            let short = shape.per_rack.as_ref().filter(|_| *level == "rack");
            let general = shape.per.get(*level);
            if let (Some(_), Some(second)) = (short, general) {
                return Err(second.problem("both `perRack` and `per: {rack}` are given"));
            }
            let Some(text) = short.or(general) else {
                per.push(outer.unwrap_or(count));
                continue;
            };
            let nodes = whole(text, 1..=MOST_NODES)?;
            if let Some(outer) = outer.filter(|outer| !outer.is_multiple_of(nodes)) {
                let message =
                    format!("{outer} nodes of the level above are not a multiple of {nodes} per {level}");
                return Err(text.problem(message));
            }
            outer = Some(nodes);
            per.push(nodes);
        }
        Ok(per)
    }

    fn unknown_level(&self, level: &str, text: &Text) -> Problem {
        let hint = match self.levels.is_empty() {
            true => format!("name it first: levels: [{level}, node]"),
            false => meant_or_known(level, self.levels.iter().copied()),
        };
        text.problem(format!("the topology has no level {}", quoted(level))).with_hint(hint)
    }

    fn domains_of(&self, index: u64, per: &[u64], within: &BTreeMap<String, Text>) -> Vec<String> {
        let levels = self.levels.iter().zip(&self.domains).zip(per);
        let domain = |((level, used), per): ((&&str, &u64), &u64)| match within.get(*level) {
            Some(named) => named.value.clone(),
            None => format!("{level}-{}", used + index / per),
        };
        levels.map(domain).collect()
    }

    /// Domains that a group names lie in the topology, and are not numbered as well.
    fn check_within(&self, shape: &NodeGroup) -> Result<(), Problem> {
        for (level, text) in &shape.within {
            name(text)?;
            if !self.levels.contains(&level.as_str()) {
                return Err(self.unknown_level(level, text));
            }
            let numbered = shape.per.contains_key(level) || level == "rack" && shape.per_rack.is_some();
            if numbered {
                return Err(text.problem(format!("the group is in one {level}, and has several by `per`")));
            }
        }
        Ok(())
    }
}

fn capacity(shape: &NodeGroup) -> Result<Resources, Problem> {
    Ok(Resources {
        cpu: quantity_or_none(shape.cpu.as_ref())?,
        memory: quantity_or_none(shape.memory.as_ref())?,
        gpus: quantity_or_none(shape.gpus.as_ref())?,
    })
}

/// The size of a member where nothing is said: a whole node of those with the most GPUs.
pub(super) fn gpus_per_member(written: Option<&Text>, cluster: &Cluster) -> Result<Gpus, Problem> {
    if let Some(written) = written {
        let size: Gpus = some_quantity(written, "the size of a member")?;
        return roles::on_devices(size).map_err(|message| written.problem(message));
    }
    let most = cluster.nodes().values().map(|node| node.capacity.gpus).max().unwrap_or_default();
    if most.is_zero() {
        return Err(Problem::whole("no node has GPUs, so jobs have no size of a member")
            .with_hint("give the nodes `gpus`, or the Workload `gpus: {perMember: 1}`"));
    }
    Ok(most)
}

/// The levels that a job may name.
pub(super) fn known_levels(cluster: &Cluster) -> String {
    let names: Vec<&str> = (0..=cluster.depth().0)
        .map(|level| cluster.level_name(metronome_core::model::cluster::Level(level)))
        .collect();
    listed(names)
}

//! Nodes, and what the engine is told of them: what they have, less what is held by pods that are not its own.

use std::collections::BTreeMap;
use std::sync::Arc;

use metronome_core::engine::Event;
use metronome_core::model::cluster::NodeSpec;
use metronome_core::model::id::{IdVec, NodeId};

use super::Border;
use super::wire::Wire;
use crate::objects::Node;
use crate::rules::load::{Counter, Load};
use crate::rules::request::supply;
use crate::rules::selector::labels_of;

/// The label by which GPUs of one node differ from those of another.
const GPU_TYPE: &str = "nvidia.com/gpu.product";

#[derive(Debug, Default)]
pub(super) struct Nodes {
    levels: Vec<String>,
    ids: BTreeMap<Arc<str>, NodeId>,
    sites: IdVec<NodeId, Site>,
}

#[derive(Debug)]
struct Site {
    name: Arc<str>,
    /// Absent once the node is deleted; its id stays its own, should it come back.
    node: Option<Node>,
    supply: Load,
    told: NodeSpec,
}

impl Nodes {
    pub(super) fn new(levels: Vec<String>) -> Self {
        Self { levels, ids: BTreeMap::new(), sites: IdVec::new() }
    }

    pub(super) fn id(&self, name: &str) -> Option<NodeId> {
        self.ids.get(name).copied()
    }

    pub(super) fn name(&self, id: NodeId) -> &Arc<str> {
        &self.sites[id].name
    }

    pub(super) fn get(&self, id: NodeId) -> Option<&Node> {
        self.sites[id].node.as_ref()
    }

    pub(super) fn present(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        self.sites.iter().filter_map(|(id, site)| Some((id, site.node.as_ref()?)))
    }
}

/// What only rules look at.
fn looks_alike(one: &Node, other: &Node) -> bool {
    one.metadata.labels == other.metadata.labels
        && one.spec == other.spec
        && one.status.declared_features == other.status.declared_features
}

impl Border {
    pub(super) fn node_came(&mut self, wire: &mut Wire<'_>, node: Node) {
        let name: Arc<str> = node.metadata.name.clone().unwrap_or_default().into();
        let supply = supply(&node);
        let spec = self.spec(wire, &name, &node, &supply);
        let Some(id) = self.nodes.id(&name) else {
            return self.node_is_new(wire, Site { name, node: Some(node), supply, told: spec });
        };
        let site = &mut self.nodes.sites[id];
        let was = site.node.replace(node);
        site.supply = supply;
        self.tell_spec(wire, id, spec);
        self.tell_state(wire, id, was.as_ref());
        let is = self.nodes.get(id);
        let is_same = |was: &Node| is.is_some_and(|is| looks_alike(was, is));
        if !was.is_some_and(|was| is_same(&was)) {
            self.judge_node(wire, id);
        }
    }

    fn node_is_new(&mut self, wire: &mut Wire<'_>, site: Site) {
        let name = site.name.clone();
        wire.tell(Event::NodeAdded(site.told.clone()));
        let known = wire.engine.state().cluster.find_node(&name);
        let id = known.expect("an engine with the levels the border was made with takes every node");
        let next = self.nodes.sites.push(site);
        assert_eq!(id, next, "all nodes of the engine come by the border");
        self.nodes.ids.insert(name.clone(), id);
        if self.nodes.get(id).is_some_and(Node::is_drained) {
            wire.tell(Event::NodeDrained { node: id, until: None });
        }
        self.judge_node(wire, id);
        self.count_others_on(wire, &name);
    }

    pub(super) fn node_left(&mut self, wire: &mut Wire<'_>, name: &str) {
        let Some(id) = self.nodes.id(name) else { return };
        if self.nodes.sites[id].node.take().is_some() {
            wire.tell(Event::NodeLost(id));
            self.judge_node(wire, id);
        }
    }

    /// Everything that depends on what a node is.
    fn judge_node(&mut self, wire: &mut Wire<'_>, id: NodeId) {
        self.admit(wire, id);
        self.divide(wire, id);
    }

    /// Others hold more or less of a node, or its drivers say something else.
    pub(super) fn respecify(&mut self, wire: &mut Wire<'_>, name: &str) {
        let Some(id) = self.nodes.id(name) else { return };
        let site = &self.nodes.sites[id];
        let Some(node) = site.node.clone() else { return };
        let (name, supply) = (site.name.clone(), site.supply.clone());
        let spec = self.spec(wire, &name, &node, &supply);
        self.tell_spec(wire, id, spec);
    }

    /// A node is there again, or is to be emptied, or no longer is.
    fn tell_state(&self, wire: &mut Wire<'_>, id: NodeId, was: Option<&Node>) {
        let was_drained = was.is_some_and(Node::is_drained);
        let is_drained = self.nodes.get(id).is_some_and(Node::is_drained);
        if was.is_none() || (was_drained && !is_drained) {
            wire.tell(Event::NodeBack(id));
        }
        if is_drained && !was_drained {
            wire.tell(Event::NodeDrained { node: id, until: None });
        }
    }

    fn tell_spec(&mut self, wire: &mut Wire<'_>, id: NodeId, spec: NodeSpec) {
        let told = &mut self.nodes.sites[id].told;
        if *told != spec {
            told.clone_from(&spec);
            wire.tell(Event::NodeChanged { node: id, spec });
        }
    }

    fn spec(&mut self, wire: &mut Wire<'_>, name: &str, node: &Node, supply: &Load) -> NodeSpec {
        let nothing = Load::default();
        let held = self.others.held(name).unwrap_or(&nothing);
        let mut counters: BTreeMap<_, _> = self.counters.left(wire, supply, held).into_iter().collect();
        for (driver, limit, attached) in self.storage.attach_room(name) {
            let left = limit.saturating_sub(attached) as u64;
            counters.extend(
                self.counters.intern(wire, &Counter::Attached(driver.to_owned())).map(|id| (id, left)),
            );
        }
        let labels = labels_of(&node.metadata);
        let own = || format!("node/{name}");
        let said = |key: &String| labels.get(key).or_else(|| node.tiers.get(key));
        let levels = self.nodes.levels.iter();
        NodeSpec {
            name: name.to_owned(),
            capacity: supply.resources - held.resources,
            counters: counters.into_iter().collect(),
            gpu_type: labels.get(GPU_TYPE).cloned(),
            domains: levels.map(|key| said(key).cloned().unwrap_or_else(own)).collect(),
        }
    }
}

//! Types of GPU that members ask for: one is a property of nodes, several are a set of nodes.

use std::cell::RefCell;

use metronome_core::model::cluster::{Cluster, NodeSet};
use metronome_core::model::id::{GpuTypeId, Id, NodeSetId};
use metronome_core::model::job::Eligibility;

use crate::near::meant_or_known;
use crate::scenario::error::{Problem, quoted};
use crate::scenario::values::Placed;

/// The mixtures of types that jobs have asked for, each once.
#[derive(Debug, Default)]
pub(super) struct GpuTypes {
    mixtures: RefCell<Vec<Vec<GpuTypeId>>>,
}

impl GpuTypes {
    /// Where members may run that ask for one of these types.
    pub(super) fn eligible<'a, P: Placed + 'a>(
        &self,
        cluster: &Cluster,
        names: impl Iterator<Item = (&'a str, P)>,
    ) -> Result<Eligibility, Problem> {
        let mut types = Vec::new();
        for (name, place) in names {
            types.push(find(cluster, name, &place)?);
        }
        types.sort_unstable();
        types.dedup();
        Ok(match types[..] {
            [] => Eligibility::default(),
            [only] => Eligibility { gpu_type: Some(only), set: None },
            _ => Eligibility { gpu_type: None, set: Some(self.mixture(types)) },
        })
    }

    fn mixture(&self, types: Vec<GpuTypeId>) -> NodeSetId {
        let mut known = self.mixtures.borrow_mut();
        let at = known.iter().position(|other| *other == types).unwrap_or(known.len());
        if at == known.len() {
            known.push(types);
        }
        NodeSetId::from_index(at)
    }

    /// Whether GPUs of a type are among those that are asked for.
    pub(super) fn allow(&self, on: Eligibility, gpu_type: Option<GpuTypeId>) -> bool {
        let mixtures = self.mixtures.borrow();
        let in_mixture = |set: NodeSetId| gpu_type.is_some_and(|one| mixtures[set.index()].contains(&one));
        on.gpu_type.is_none_or(|wanted| gpu_type == Some(wanted)) && on.set.is_none_or(in_mixture)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.mixtures.borrow().is_empty()
    }

    /// The nodes of each mixture, in the order of the ids that were given out.
    pub(super) fn into_sets(self, cluster: &Cluster) -> Vec<NodeSet> {
        let nodes_of = |types: &Vec<GpuTypeId>| {
            let nodes = cluster.nodes().iter();
            let of_type = nodes.filter(|(_, node)| node.gpu_type.is_some_and(|one| types.contains(&one)));
            of_type.map(|(id, _)| id).collect()
        };
        self.mixtures.into_inner().iter().map(nodes_of).collect()
    }
}

fn find(cluster: &Cluster, name: &str, place: &impl Placed) -> Result<GpuTypeId, Problem> {
    cluster.find_gpu_type(name).ok_or_else(|| {
        let known: Vec<&str> = cluster.gpu_types().collect();
        let hint = match known.is_empty() {
            true => "say in the Cluster what its GPUs are: nodes: [{gpus: 8, gpuType: a100}]".into(),
            false => meant_or_known(name, known),
        };
        place.problem(format!("no node has GPUs of type {}", quoted(name))).with_hint(hint)
    })
}

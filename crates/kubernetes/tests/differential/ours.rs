//! The border and an engine, fed with the objects of a scene in any order, and with versions of them from before.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use metronome_core::engine::{Engine, Event, Settings};
use metronome_core::model::cluster::Cluster;
use metronome_core::model::id::{IdVec, JobId};
use metronome_core::model::job::{Gang, JobSpec, Role, RoleKind};
use metronome_core::model::policy::Policy;
use metronome_core::model::queue::Queue;
use metronome_core::model::units::{Instant, Resources};
use metronome_kubernetes::border::{Border, Cast, Facts};
use metronome_kubernetes::objects::Pod;
use metronome_kubernetes::rules::Refusal;

use crate::draw::{Dice, RACK, ZONE};
use crate::server::Everything;

const NOW: Instant = Instant::START;

pub(crate) struct Ours {
    border: Border,
    engine: Engine,
    /// Pods that were there before much else was.
    early: BTreeMap<String, (JobId, Arc<Facts>)>,
}

/// Where a pod may go, or why nowhere.
#[derive(Debug)]
pub(crate) struct Verdict {
    pub(crate) nodes: BTreeSet<String>,
    pub(crate) refusal: Option<Refusal>,
}

impl Ours {
    pub(crate) fn of(everything: &Everything, dice: &mut Dice) -> Self {
        let levels = [ZONE, RACK];
        let cluster = Cluster::new(&levels).unwrap();
        let queues: IdVec<_, Queue> = [Queue::open("default")].into_iter().collect();
        let settings = Settings { keeps_hopeless: true, ..Settings::default() };
        let engine = Engine::new(cluster, queues, Policy::named("kubernetes").unwrap(), settings);
        let border = Border::new(levels.map(String::from).to_vec());
        let mut ours = Self { border, engine, early: BTreeMap::new() };
        ours.feed(everything, dice);
        ours
    }

    /// Some pods are asked about before their surroundings are as they will be, and keep their ids until the end.
    fn feed(&mut self, everything: &Everything, dice: &mut Dice) {
        self.feed_once(everything, dice, Draft::Former);
        for pod in everything.pods.iter().filter(|pod| waits(pod)) {
            if dice.percent(50) {
                self.come_early(pod);
            }
        }
        self.feed_once(everything, dice, Draft::Final);
        self.forget_ghosts();
        for job in self.border.outdated() {
            self.reshape(job);
        }
    }

    fn feed_once(&mut self, everything: &Everything, dice: &mut Dice, draft: Draft) {
        type Feeder<'a> = Box<dyn FnOnce(&mut Border, &mut Engine) + 'a>;
        let mut feeders: Vec<Feeder<'_>> = Vec::new();
        macro_rules! feed {
            ($($objects:ident by $apply:ident;)*) => {$(
                for (n, object) in everything.$objects.iter().enumerate() {
                    let n = if draft == Draft::Former { dice.between(0, 2 * n as u64) as usize } else { n };
                    // Before, an object may have been like another of its kind, or not there.
                    let former = everything.$objects.get(n).cloned();
                    if let Some(mut former) = former {
                        former.metadata.name.clone_from(&object.metadata.name);
                        former.metadata.namespace.clone_from(&object.metadata.namespace);
                        former.metadata.uid.clone_from(&object.metadata.uid);
                        feeders.push(Box::new(move |border, engine| border.$apply(engine, NOW, former.into())));
                    }
                }
            )*};
        }
        feed! {
            nodes by node_applied;
            claims by claim_applied;
            volumes by volume_applied;
            classes by class_applied;
            csi_nodes by csi_node_applied;
            drivers by driver_applied;
            attachments by attachment_applied;
        }
        let running: Vec<&Pod> = everything.pods.iter().filter(|pod| !waits(pod)).collect();
        for (n, pod) in running.iter().enumerate() {
            let n =
                if draft == Draft::Former { dice.between(0, running.len() as u64 - 1) as usize } else { n };
            let mut former = running[n].clone();
            former.metadata.uid.clone_from(&pod.metadata.uid);
            feeders.push(Box::new(move |border, engine| border.other_applied(engine, NOW, &former)));
        }
        for namespace in &everything.namespaces {
            let mut former = namespace.clone();
            if draft == Draft::Former && dice.percent(50) {
                former.metadata.labels = None;
            }
            feeders.push(Box::new(move |border, engine| border.namespace_applied(engine, NOW, &former)));
        }
        for capacity in &everything.capacities {
            feeders.push(Box::new(move |border, engine| border.capacity_applied(engine, NOW, capacity)));
        }
        if draft == Draft::Former {
            feeders.push(Box::new(ghosts));
        }
        dice.shuffle(&mut feeders);
        feeders.into_iter().for_each(|feed| feed(&mut self.border, &mut self.engine));
    }

    /// What was there before and is no more.
    fn forget_ghosts(&mut self) {
        self.border.node_deleted(&mut self.engine, NOW, "ghost");
        self.border.other_gone(&mut self.engine, NOW, "ghost");
    }

    fn come_early(&mut self, pod: &Pod) {
        if let Ok(facts) = self.border.facts(&mut self.engine, NOW, pod) {
            let job = self.submit(&facts);
            self.early.insert(pod.metadata.uid.clone().unwrap_or_default(), (job, facts));
        }
    }

    fn spec(&mut self, facts: &Arc<Facts>) -> (JobSpec, Cast) {
        let shaped = self.border.shape(&mut self.engine, NOW, facts);
        let gang = Gang::rigid(1).unwrap();
        let role = Role { kind: RoleKind::Worker, gang, shape: shaped.shape.clone() };
        let spec = JobSpec { roles: vec![role], ..JobSpec::workers("pod", gang, Resources::default()) };
        (spec, Cast { shaped, members: vec![facts.clone()] })
    }

    fn submit(&mut self, facts: &Arc<Facts>) -> JobId {
        let (spec, cast) = self.spec(facts);
        let job = self.engine.submit(NOW, Arc::new(spec));
        self.border.job_joined(&mut self.engine, NOW, job, vec![cast]);
        job
    }

    fn reshape(&mut self, job: JobId) {
        let Some((_, facts)) = self.early.values().find(|(early, _)| *early == job) else { return };
        let facts = facts.clone();
        let (spec, cast) = self.spec(&facts);
        self.engine.observe(NOW, Event::JobChanged { job, spec: Arc::new(spec) });
        self.border.job_joined(&mut self.engine, NOW, job, vec![cast]);
    }

    pub(crate) fn verdict(&mut self, pod: &Pod) -> Verdict {
        let facts = match self.border.facts(&mut self.engine, NOW, pod) {
            Err(refusal) => return Verdict { nodes: BTreeSet::new(), refusal: Some(refusal) },
            Ok(facts) => facts,
        };
        let early = self.early.get(pod.metadata.uid.as_deref().unwrap_or_default()).map(|(job, _)| *job);
        let job = early.unwrap_or_else(|| self.submit(&facts));
        let nodes = self.engine.feasible_nodes(job);
        let nodes = nodes.into_iter().map(|node| self.border.node_name(node).to_string()).collect();
        if early.is_none() {
            self.engine.observe(NOW, Event::JobCancelled(job));
            self.border.job_left(&mut self.engine, NOW, job);
        }
        Verdict { nodes, refusal: None }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Draft {
    Former,
    Final,
}

fn waits(pod: &Pod) -> bool {
    pod.spec.node_name.is_none()
}

/// A node and a pod that will not be there in the end.
fn ghosts(border: &mut Border, engine: &mut Engine) {
    let node = serde_json::json!({
        "metadata": {"name": "ghost", "labels": {ZONE: "z1", RACK: "r1"}},
        "status": {"allocatable": {"cpu": "64", "memory": "64Gi", "pods": "100"}},
    });
    let pod = serde_json::json!({
        "metadata": {"uid": "ghost", "namespace": "red", "labels": {"app": "a", "tier": "x"}},
        "spec": {"nodeName": "node-0", "containers": [{"resources": {"requests": {"cpu": "1"}}}]},
    });
    border.node_applied(engine, NOW, serde_json::from_value(node).unwrap());
    border.other_applied(engine, NOW, &serde_json::from_value(pod).unwrap());
}

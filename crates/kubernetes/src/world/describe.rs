//! What pods ask for together, as a job of the engine.

use std::sync::Arc;

use indexmap::IndexMap;

use metronome_core::model::job::{
    Capabilities, Gang as Size, JobSpec, Priority, Role, RoleKind, Shape, Topology,
};
use metronome_core::model::units::{Instant, Iterations};

use super::World;
use super::consent::{Consent, Saving, shared_cores};
use super::gangs::{self, GangKey, HeldUp};
use super::pods::Uid;
use super::queues::Enrolment;
use super::reports::PERCENT;
use super::wishes::{Cores, Wishes, Words};
use crate::border::{Cast, Facts};
use crate::objects::Pod;

/// A job described to the engine, and the pods of each of its roles.
pub(super) struct Description {
    pub(super) spec: JobSpec,
    pub(super) roles: Vec<Vec<Uid>>,
    pub(super) casts: Vec<Cast>,
    pub(super) cores: Option<Cores>,
}

/// What is known of one role while a job is being described.
struct Part {
    uids: Vec<Uid>,
    cast: Cast,
}

/// Whether a job completes what is there already.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Urgency {
    Usual,
    /// It is found running.
    Runs,
    /// Others of its gang hold nodes and wait for it: it goes first.
    Repair,
}

impl World {
    pub(super) fn describe(
        &mut self,
        now: Instant,
        key: &GangKey,
        uids: &[Uid],
        urgency: Urgency,
    ) -> Result<Description, HeldUp> {
        let parts = self.parts(now, uids)?;
        let pods: Vec<Arc<Pod>> = uids.iter().map(|uid| self.pods[uid].pod.clone()).collect();
        let first = &pods[0];
        let Enrolment { queue, owner, user } = self.enrol(now, key, first, urgency)?;
        let is_alone = pods.len() == 1 && self.gangs[key].pods.len() == 1 && self.least(key) == Ok(1);
        let declared = self.gangs[key].declared.as_ref().map(|group| &group.metadata);
        let wishes = Wishes::of(Words { declared, pod: first }, is_alone);
        let Wishes { deadline, mut work, cores } = wishes.map_err(HeldUp::Refused)?;
        let consent = self.consent_or_complain(key, first);
        if work.iterations.is_none() && self.is_reported_in_percent(first) {
            work.iterations = Some(Iterations(PERCENT));
        }
        let mut spec = JobSpec {
            name: Arc::from(key.name(|| full_name(first))),
            queue,
            priority: Priority(first.spec.priority.unwrap_or(0)),
            user,
            owner,
            roles: parts.iter().map(|((kind, shape), part)| role(*kind, shape, part.uids.len())).collect(),
            work,
            deadline,
            scaling: None,
            topology: self.topology(key, first)?,
            teams: None,
            capabilities: Capabilities {
                evict: true,
                relocate: cores.is_none()
                    && consent.saving.is_some()
                    && pods.iter().all(|pod| gangs::is_owned(pod)),
                throttle: consent.throttle,
                ..Capabilities::START_ONLY
            },
            checkpointing: consent.saving.map(Saving::costs),
            profile: self.profile(key, &pods),
            start_retries: u32::MAX,
            suspended: false,
            budgets: self.budgets.of(&pods),
            preempts: first.spec.preemption_policy.as_deref() != Some("Never"),
            repairs: urgency == Urgency::Repair,
        };
        if consent != Consent::default() {
            spec.work.cpu = shared_cores(&pods, spec.least().cpu);
        }
        let (roles, mut casts): (Vec<Vec<Uid>>, Vec<Cast>) =
            parts.into_values().map(|part| (part.uids, part.cast)).unzip();
        let is_elastic = self.stretch(key, &mut spec.roles, &roles);
        spec.capabilities.rescale = is_elastic && spec.capabilities.relocate;
        if let Some(cores) = &cores {
            casts.push(self.set_cores_apart(&mut spec, cores));
        }
        Ok(Description { spec, roles, casts, cores })
    }

    /// The cores of a pod that may be changed become a role of their own, on whatever node the pod is.
    fn set_cores_apart(&self, spec: &mut JobSpec, cores: &Cores) -> Cast {
        let pod = &mut spec.roles[0].shape;
        pod.each.cpu -= cores.held();
        let role = cores.role(pod);
        let cast = Cast::of_no_pod(role.shape.clone());
        spec.roles.push(role);
        spec.scaling = Some(cores.scaling());
        spec.topology = Topology::Required(self.engine.state().cluster.depth());
        spec.capabilities = Capabilities { resize_in_place: true, ..spec.capabilities };
        cast
    }

    /// Pods that can stand in for each other make up a role. What all of them need is learned first: a pod may be the
    /// reason for rules that hold for the others.
    fn parts(&mut self, now: Instant, uids: &[Uid]) -> Result<IndexMap<(RoleKind, Shape), Part>, HeldUp> {
        let facts = uids.iter().map(|uid| self.facts(now, uid)).collect::<Result<Vec<_>, _>>()?;
        let mut parts: IndexMap<(RoleKind, Shape), Part> = IndexMap::new();
        for (uid, facts) in uids.iter().zip(facts) {
            let shaped = self.border.shape(&mut self.engine, now, &facts);
            let key = (gangs::role(&self.pods[uid].pod), shaped.shape.clone());
            let new = || Part { uids: Vec::new(), cast: Cast { shaped, members: Vec::new() } };
            let part = parts.entry(key).or_insert_with(new);
            part.uids.push(uid.clone());
            part.cast.members.push(facts);
        }
        parts.sort_by(|(one, _), _, (other, _), _| one.cmp(other));
        let (kinds, most) = (parts.len(), usize::from(u8::MAX));
        if kinds > most {
            let why = format!("its pods are of {kinds} kinds, and a gang may have {most}");
            return Err(HeldUp::Refused(why));
        }
        Ok(parts)
    }

    fn facts(&mut self, now: Instant, uid: &Uid) -> Result<Arc<Facts>, HeldUp> {
        if let Some(facts) = &self.pods[uid].facts {
            return Ok(facts.clone());
        }
        let known = &self.pods[uid];
        let mut pod = known.pod.clone();
        if self.may_be_moved(&known.gang, &pod) {
            // Where it is bound is where it is now, not where it asks to be.
            Arc::make_mut(&mut pod).spec.node_name = None;
        }
        let facts =
            self.border.facts(&mut self.engine, now, &pod).map_err(|refusal| match refusal.may_pass() {
                true => HeldUp::ForNow(refusal.to_string()),
                false => HeldUp::Refused(refusal.to_string()),
            })?;
        self.pods.get_mut(uid).expect("it was just there").facts = Some(facts.clone());
        Ok(facts)
    }
}

fn role(kind: RoleKind, shape: &Shape, members: usize) -> Role {
    let gang =
        Size::rigid(members as u64).expect("a role of a gang has at least one pod, and pods are counted");
    Role { kind, gang, shape: shape.clone() }
}

pub(super) fn full_name(pod: &Pod) -> String {
    let part = |text: &Option<String>| text.clone().unwrap_or_default();
    format!("{}/{}", part(&pod.metadata.namespace), part(&pod.metadata.name))
}

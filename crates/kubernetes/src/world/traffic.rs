//! What jobs send in each iteration, and how near to each other their members are to be.
//!
//! | annotation | says |
//! |---|---|
//! | `metronome.dev/traffic` | `{"period":"210ms","phases":[{"offset":"80ms","length":"60ms","rate":"40Gbps"}]}` |
//! | `metronome.dev/model` | a known model such as `resnet50/512`, which sends as it was measured to |
//! | `metronome.dev/topology` | `preferred=rack` or `required=rack`: the level within which all members are to be |
//!
//! The object that declares a gang says what its owner knows of it, as a hint. What a pod says is what was measured, and
//! counts in place of that, also while the job runs: nothing is done to the job by it but that its turns are found anew.

use std::sync::Arc;

use metronome_core::engine::Event;
use metronome_core::model::cluster::Level;
use metronome_core::model::id::JobId;
use metronome_core::model::job::Topology;
use metronome_core::model::profile::{Profile, Traffic};
use metronome_core::model::units::{Duration, Instant};

use super::World;
use super::gangs::{GangKey, HeldUp, annotation};
use super::pods::Uid;
use crate::deed::{About, EventReason, Kind, Telling};
use crate::objects::{HOSTNAME, Pod, TrafficSpec};

pub(crate) const TRAFFIC: &str = "metronome.dev/traffic";
const MODEL: &str = "metronome.dev/model";
const TOPOLOGY: &str = "metronome.dev/topology";

/// A period that differs by more than this part of it is another one.
const PERIOD_DRIFTS: u64 = 200;

/// So does a phase that begins or ends at another part of the period,
const PHASE_DRIFTS: u64 = 100;

/// and one in which so much more or less is sent.
const RATE_DRIFTS: u64 = 20;

impl World {
    /// What a job of these pods sends: as measured on the first of them that says so, as its owner declared, or as its
    /// model is known to.
    pub(super) fn profile(&self, key: &GangKey, pods: &[Arc<Pod>]) -> Option<Arc<Profile>> {
        let measured = pods.iter().find_map(|pod| TrafficSpec::read(annotation(pod, TRAFFIC)?).ok());
        let declared = || TrafficSpec::read(self.said(key, None, TRAFFIC)?).ok();
        if let Some(traffic) = measured.or_else(declared) {
            return Profile::new(Vec::new(), Some(traffic)).ok().map(Arc::new);
        }
        let model = self.settings.models.get(self.said(key, pods.first().map(|pod| &**pod), MODEL)?)?;
        Some(Arc::new(Profile::new(Vec::new(), None).ok()?.reducing(model.clone())))
    }

    /// A pod of ours is new or has changed: perhaps what it sends was measured.
    pub(super) fn read_traffic(&mut self, now: Instant, uid: &Uid) {
        let Some(known) = self.pods.get_mut(uid) else { return };
        let said = annotation(&known.pod, TRAFFIC);
        if said == known.sends.as_deref() {
            return;
        }
        known.sends = said.map(Arc::from);
        let (job, read) = (known.job, said.map(TrafficSpec::read));
        if let Some(Err(why)) = read {
            let about = About::Pod(known.reference());
            let message = format!("its annotation {TRAFFIC} makes no sense and is ignored: {why}");
            self.do_it(Kind::Tell(Telling { about, reason: EventReason::AnnotationIgnored, message }));
        }
        if let Some(job) = job {
            self.learn_what_it_sends(now, job);
        }
    }

    /// Tells the engine what a job sends, where that is not what it knows. A job of which nothing more is said goes on as
    /// it did.
    pub(super) fn learn_what_it_sends(&mut self, now: Instant, job: JobId) {
        let (Some(crew), Some(known)) = (self.crews.get(&job), self.engine.job(job)) else { return };
        let pods = crew.members().filter_map(|member| Some(self.pods.get(&member.uid)?.pod.clone()));
        let pods: Vec<Arc<Pod>> = pods.collect();
        let Some(profile) = self.profile(&crew.gang, &pods) else { return };
        if known.spec.profile.as_ref().is_none_or(|before| is_another(before, &profile)) {
            self.engine.observe(now, Event::LoopMeasured { job, profile });
        }
    }

    /// How near to each other the members of a gang are to be. What is preferred and cannot be is not asked for.
    pub(super) fn topology(&self, key: &GangKey, first: &Pod) -> Result<Topology, HeldUp> {
        let Some(said) = self.said(key, Some(first), TOPOLOGY) else { return Ok(Topology::Anywhere) };
        match said.split_once('=') {
            Some(("preferred", name)) => Ok(self.level(name).map_or(Topology::Anywhere, Topology::Preferred)),
            Some(("required", name)) => self.level(name).map(Topology::Required).ok_or_else(|| {
                let known =
                    self.terrain.labels.iter().map(String::as_str).chain(["node"]).collect::<Vec<_>>();
                HeldUp::Refused(format!("the topology has no level {name}; it has {}", known.join(", ")))
            }),
            _ => Err(HeldUp::Refused(format!(
                "its annotation {TOPOLOGY} is {said:?}, neither preferred=LEVEL nor required=LEVEL"
            ))),
        }
    }

    /// A level by its label, or by what comes last in it.
    fn level(&self, name: &str) -> Option<Level> {
        let cluster = &self.engine.state().cluster;
        let by_last = || {
            let ends_so = |label: &&String| label.rsplit('/').next() == Some(name);
            cluster.find_level(self.terrain.labels.iter().find(ends_so)?)
        };
        match name {
            HOSTNAME => Some(cluster.depth()),
            _ => cluster.find_level(name).or_else(by_last),
        }
    }
}

/// Whether two say something noticeably different: who measures the same twice finds it slightly other.
fn is_another(before: &Profile, after: &Profile) -> bool {
    match (&before.gradients, &after.gradients, &before.traffic, &after.traffic) {
        (None, None, Some(before), Some(after)) => has_drifted(before, after),
        _ => before != after,
    }
}

pub(crate) fn has_drifted(before: &Traffic, after: &Traffic) -> bool {
    let period = before.period();
    let differ = |one: Duration, other: Duration, parts: u64| one.0.abs_diff(other.0) > period.0 / parts;
    let phases = || before.phases().iter().zip(after.phases());
    differ(period, after.period(), PERIOD_DRIFTS)
        || before.phases().len() != after.phases().len()
        || phases().any(|(one, other)| {
            differ(one.offset, other.offset, PHASE_DRIFTS)
                || differ(one.length, other.length, PHASE_DRIFTS)
                || one.rate.0.abs_diff(other.rate.0) > one.rate.0 / RATE_DRIFTS
        })
}

#[cfg(test)]
mod tests {
    use metronome_core::model::profile::Phase;
    use metronome_core::model::units::Bandwidth;

    use super::*;

    fn traffic(period: u64, offset: u64, length: u64, megabits: u64) -> Traffic {
        let ms = Duration::from_millis;
        let rate = Bandwidth(megabits * 1_000_000);
        Traffic::new(ms(period), vec![Phase { offset: ms(offset), length: ms(length), rate }]).unwrap()
    }

    #[test]
    fn noise_is_no_drift() {
        let before = traffic(1000, 500, 200, 40_000);
        for same in [traffic(1005, 500, 200, 40_000), traffic(1000, 510, 195, 41_000)] {
            assert!(!has_drifted(&before, &same), "{same:?}");
        }
        let drifted = [
            traffic(1006, 500, 200, 40_000),
            traffic(1000, 511, 200, 40_000),
            traffic(1000, 500, 180, 40_000),
            traffic(1000, 500, 200, 30_000),
        ];
        for other in drifted {
            assert!(has_drifted(&before, &other), "{other:?}");
        }
    }
}

//! What may be done to pods while they run, by their own word.
//!
//! | annotation | says |
//! |---|---|
//! | `metronome.dev/checkpoint` | `30s`, or `takes=30s,restart=10s,how=signal`: they save their work, and may be moved |
//! | `metronome.dev/throttle` | `allowed`: others on their node may go before them |
//!
//! The object that declares a gang is asked first, then the first of its pods. What makes no sense is told to the pod,
//! which is scheduled as if nothing had been said.

use metronome_core::model::job::Checkpointing;
use metronome_core::model::units::{Cpu, Duration};

use super::World;
use super::gangs::{GangKey, is_owned};
use super::pods::{Uid, uid};
use crate::deed::{About, EventReason, Kind, Telling};
use crate::objects::{Needs, Pod};
use crate::rules::quantity::Amount;

pub(super) const CHECKPOINT: &str = "metronome.dev/checkpoint";
pub(super) const THROTTLE: &str = "metronome.dev/throttle";

/// Saving and starting again may each take so long, and nobody is waited for much longer.
const LONGEST: Duration = Duration(15 * Duration::MINUTE.0);

/// What Kubernetes takes where a pod does not say how long it may take to end.
const USUAL_GRACE: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Consent {
    /// How it saves its work, if it does.
    pub(super) saving: Option<Saving>,
    pub(super) throttle: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Saving {
    pub(super) takes: Duration,
    restart: Duration,
    pub(super) how: How,
}

/// What makes a pod save its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// It is asked to, and says when it has.
    Request,
    /// It does when it is told to end.
    Signal,
}

impl Saving {
    pub(super) fn costs(self) -> Checkpointing {
        Checkpointing { every: None, takes: self.takes, restart: self.restart }
    }

    /// An error says what is wrong, for whoever wrote it.
    fn read(text: &str) -> Result<Self, String> {
        let mut saving = Self { takes: Duration::ZERO, restart: Duration::ZERO, how: How::Request };
        let mut said_how_long = false;
        for part in text.split(',').map(str::trim) {
            match part.split_once('=').unwrap_or(("takes", part)) {
                ("takes", value) => {
                    saving.takes = time(value)?;
                    said_how_long = true;
                }
                ("restart", value) => saving.restart = time(value)?,
                ("how", "request") => saving.how = How::Request,
                ("how", "signal") => saving.how = How::Signal,
                ("how", other) => return Err(format!("how is {other:?}, neither request nor signal")),
                (other, _) => return Err(format!("{other:?} is none of takes, restart and how")),
            }
        }
        if said_how_long { Ok(saving) } else { Err("how long saving takes is not said".into()) }
    }

    /// Whoever saves when it is told to end must be given the time to.
    fn has_time_on(self, pod: &Pod) -> Result<Self, String> {
        let said = pod.spec.termination_grace_period_seconds;
        let grace =
            said.map_or(USUAL_GRACE, |seconds| Duration::from_secs(u64::try_from(seconds).unwrap_or(0)));
        if self.how == How::Signal && grace < self.takes {
            return Err(format!("it takes {} to save, and has {grace} to end", self.takes));
        }
        Ok(self)
    }
}

fn time(text: &str) -> Result<Duration, String> {
    let time = text.trim().parse::<Duration>().map_err(|error| error.to_string())?;
    if time > LONGEST { Err(format!("{time} is longer than {LONGEST}")) } else { Ok(time) }
}

impl World {
    /// What may be done to a gang, or to a pod on its own.
    pub(super) fn consent(&self, key: &GangKey, first: &Pod) -> (Consent, Option<String>) {
        let mut complaint = None;
        let mut wrong = |annotation: &str, why: &str| {
            complaint = Some(format!("its annotation {annotation} makes no sense and is ignored: {why}"));
        };
        let saving = self.said(key, Some(first), CHECKPOINT).map(Saving::read);
        let saving = saving.map(|saving| saving.and_then(|saving| saving.has_time_on(first)));
        let saving = saving.transpose().unwrap_or_else(|why| {
            wrong(CHECKPOINT, &why);
            None
        });
        let throttle = self.said(key, Some(first), THROTTLE);
        if let Some(other) = throttle.filter(|word| *word != "allowed") {
            wrong(THROTTLE, &format!("it is {other:?}, not \"allowed\""));
        }
        (Consent { saving, throttle: throttle == Some("allowed") }, complaint)
    }

    /// Whether a pod saves its work, and somebody makes it anew.
    pub(super) fn may_be_moved(&self, key: &GangKey, pod: &Pod) -> bool {
        is_owned(pod) && self.said(key, Some(pod), CHECKPOINT).is_some()
    }

    /// What may be done to it, and told to the pod where that makes no sense; once, as long as it says the same.
    pub(super) fn consent_or_complain(&mut self, key: &GangKey, first: &Pod) -> Consent {
        let (consent, complaint) = self.consent(key, first);
        let told: Uid = uid(first);
        let Some(known) = self.pods.get_mut(&told).filter(|known| known.complaint != complaint) else {
            return consent;
        };
        known.complaint.clone_from(&complaint);
        let about = About::Pod(known.reference());
        if let Some(message) = complaint {
            self.do_it(Kind::Tell(Telling { about, reason: EventReason::AnnotationIgnored, message }));
        }
        consent
    }
}

/// The most CPU that pods can use together, where that is bounded and more than they ask for: such pods share the cores
/// of their nodes.
pub(super) fn shared_cores(pods: &[impl AsRef<Pod>], asked: Cpu) -> Option<Cpu> {
    let most = pods.iter().map(|pod| most_cores(pod.as_ref())).sum::<Option<u64>>()?;
    Some(Cpu(most)).filter(|most| *most > asked)
}

/// In thousandths, as it is bounded for the pod or else for each of its containers.
fn most_cores(pod: &Pod) -> Option<u64> {
    let limit = |needs: &Option<Needs>| {
        let limits = needs.as_ref()?.limits.as_ref()?;
        Some(Amount::parse(&limits.get("cpu")?.0)?.thousandths())
    };
    limit(&pod.spec.resources)
        .or_else(|| pod.spec.containers.iter().map(|container| limit(&container.resources)).sum())
}

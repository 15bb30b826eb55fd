//! What a job's status says.

use jiff::Timestamp;
use serde_json::{Value, json};

use metronome_core::model::units::Instant;

use crate::objects::{Condition, Member, Phase, RoleStatus, TrainingJob, TrainingJobSpec, TrainingJobStatus};
use crate::world::{Foreseen, OnLinks};

/// How a job that goes on stands.
pub(super) struct Standing<'a> {
    /// Those of this attempt.
    pub(super) members: Vec<&'a Member>,
    pub(super) is_restarting: bool,
    /// What the API server would not take.
    pub(super) refusal: Option<&'a str>,
}

/// What a condition says: its status, its reason and why.
type Says<'a> = (&'a str, &'a str, &'a str);

pub(super) fn refused(job: &TrainingJob, why: &str, now: Instant) -> TrainingJobStatus {
    let mut status = begin(job, Phase::Refused, why);
    status.set("Admitted", ("False", "Refused", why), now);
    status
}

pub(super) fn suspended(
    job: &TrainingJob,
    spec: &TrainingJobSpec,
    why: &str,
    now: Instant,
) -> TrainingJobStatus {
    let mut status = begin(job, Phase::Suspended, why);
    status.roles.clear();
    status.count(spec, &[]);
    status.set("Admitted", ("False", "Suspended", why), now);
    status.set("Placed", ("False", "Suspended", why), now);
    status
}

pub(super) fn restarting(
    job: &TrainingJob,
    spec: &TrainingJobSpec,
    why: &str,
    now: Instant,
) -> TrainingJobStatus {
    // Who has never run only waits.
    let phase = if job.status.start_time.is_some() { Phase::Restarting } else { Phase::Waiting };
    let mut status = begin(job, phase, why);
    status.count(spec, &[]);
    status.set("Placed", ("False", "Restarting", why), now);
    status
}

/// The end of a job, with its last members, the phase it ends in, the reason and why.
pub(super) fn ended(
    job: &TrainingJob,
    spec: &TrainingJobSpec,
    members: &[&Member],
    (phase, reason, why): (Phase, &str, &str),
    now: Instant,
) -> TrainingJobStatus {
    let mut status = begin(job, phase, why);
    status.count(spec, members);
    status.roles.iter_mut().for_each(|role| role.running = 0);
    status.members = format!("0/{}", status.size(spec));
    status.completion_time = Some(text(now));
    let is_good = if phase == Phase::Succeeded { "True" } else { "False" };
    status.set("Completed", (is_good, reason, why), now);
    status
}

pub(super) fn going_on(
    job: &TrainingJob,
    spec: &TrainingJobSpec,
    standing: &Standing<'_>,
    now: Instant,
) -> TrainingJobStatus {
    let placed = standing.members.iter().filter(|member| member.is_placed()).count();
    let is_placed = placed >= job.status.size(spec) as usize;
    let phase = match (is_placed, standing.is_restarting) {
        (true, _) => Phase::Running,
        (false, true) => Phase::Restarting,
        (false, false) => Phase::Waiting,
    };
    let why = standing.why(job, is_placed);
    let mut status = begin(job, phase, &why);
    status.count(spec, &standing.members);
    if standing.refusal.is_some() {
        status.set("Admitted", ("False", "PodRefused", &why), now);
    } else {
        status.set("Admitted", ("True", "Taken", "its pods are made"), now);
    }
    match is_placed {
        true => status.set("Placed", ("True", "Placed", "all of its members are on nodes"), now),
        false => status.set("Placed", ("False", standing.why_not_placed(), &why), now),
    }
    if let Some(condition) = standing.said("metronome.dev/InTime") {
        let reason = condition.reason.as_deref().unwrap_or("Unknown");
        let message = condition.message.as_deref().unwrap_or_default();
        status.set("OnTrack", (&condition.status, reason, message), now);
    }
    if is_placed && status.start_time.is_none() {
        status.start_time = Some(text(now));
    }
    status
}

impl Standing<'_> {
    fn said(&self, condition: &str) -> Option<&crate::objects::MemberCondition> {
        self.members.iter().find_map(|member| member.condition(condition))
    }

    fn why(&self, job: &TrainingJob, is_placed: bool) -> String {
        if let Some(refusal) = self.refusal {
            return format!("the API server does not take its pods: {refusal}");
        }
        if is_placed {
            return "all of its members are on nodes".into();
        }
        if self.is_restarting {
            // What was written when it was decided.
            return job.status.message.clone();
        }
        let waits = self.said("PodScheduled").filter(|condition| condition.status == "False");
        waits.and_then(|condition| condition.message.clone()).unwrap_or_else(|| "its pods are made".into())
    }

    fn why_not_placed(&self) -> &str {
        if self.is_restarting {
            return "Restarting";
        }
        let waits = self.said("PodScheduled").filter(|condition| condition.status == "False");
        waits.and_then(|condition| condition.reason.as_deref()).unwrap_or("Waiting")
    }
}

/// What is known already, under another phase.
fn begin(job: &TrainingJob, phase: Phase, why: &str) -> TrainingJobStatus {
    TrainingJobStatus {
        phase: Some(phase),
        message: why.to_owned(),
        observed_generation: job.metadata.generation,
        ..job.status.clone()
    }
}

impl TrainingJobStatus {
    /// Where it stands in line, and when it will start and end; nothing of a job that is over.
    pub(super) fn foretell(&mut self, foreseen: Option<&Foreseen>) {
        let nothing = Foreseen::default();
        let is_over = self.phase.is_some_and(Phase::is_over);
        let foreseen = foreseen.filter(|_| !is_over).unwrap_or(&nothing);
        self.position = foreseen.position.map(|(place, of)| format!("{place} of {of}"));
        self.starts = foreseen.starts.map(minute);
        self.ends = foreseen.ends.map(|(early, late)| format!("{} to {}", minute(early), minute(late)));
    }

    /// How it stands on links; nothing more is said of one that no longer runs than that.
    pub(super) fn interleave(&mut self, on_links: Option<&OnLinks>, now: Instant) {
        const KIND: &str = "Interleaved";
        let runs = self.phase == Some(Phase::Running);
        match on_links.map(OnLinks::says) {
            Some((status, reason, message)) if runs => self.set(KIND, (status, reason, &message), now),
            _ if !runs && self.conditions.iter().any(|condition| condition.kind == KIND) => {
                self.set(KIND, ("False", "NotRunning", "it does not run"), now);
            }
            // A new leader has not looked yet.
            _ => {}
        }
    }

    /// A condition keeps the time at which it last became what it is.
    fn set(&mut self, kind: &str, (status, reason, message): Says<'_>, now: Instant) {
        let before = self.conditions.iter().find(|condition| condition.kind == kind);
        let since = before.filter(|before| before.status == status);
        let since = since.map_or_else(|| text(now), |before| before.last_transition_time.clone());
        let condition = Condition {
            kind: kind.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message: message.to_owned(),
            last_transition_time: since,
            observed_generation: self.observed_generation,
        };
        match self.conditions.iter_mut().find(|condition| condition.kind == kind) {
            Some(old) => *old = condition,
            None => self.conditions.push(condition),
        }
    }

    fn count(&mut self, spec: &TrainingJobSpec, members: &[&Member]) {
        let roles = spec.all_roles().into_iter().map(|role| {
            let of = || members.iter().filter(|member| member.role() == Some(role.name));
            let many = |is_so: &dyn Fn(&Member) -> bool| of().filter(|member| is_so(member)).count() as u32;
            RoleStatus {
                name: role.name.to_owned(),
                wanted: self.size_of(&role),
                placed: many(&|member| member.is_placed()),
                running: many(&|member| member.is("Running")),
                succeeded: many(&|member| member.is("Succeeded")),
            }
        });
        let roles = roles.collect();
        self.roles = roles;
        let running: u32 = self.roles.iter().map(|role| role.running).sum();
        self.members = format!("{running}/{}", self.size(spec));
    }
}

/// Whether nothing but counts and sentences has changed. That all members run is more than a count: people wait for it.
pub(super) fn differ_in_numbers_alone(one: &TrainingJobStatus, other: &TrainingJobStatus) -> bool {
    let key = |status: &TrainingJobStatus| {
        let conditions: Vec<_> =
            status.conditions.iter().map(|one| (one.kind.clone(), one.status.clone())).collect();
        let all_run = status.roles.iter().all(|role| role.running + role.succeeded >= role.wanted);
        (status.phase, status.attempt, status.restarts, status.observed_generation, all_run, conditions)
    };
    key(one) == key(other)
}

/// What is to be written, with what is no longer said taken back.
pub(super) fn patch(status: &TrainingJobStatus) -> Value {
    let mut patch = json!(status);
    let fields = patch.as_object_mut().expect("a status is an object");
    for field in ["position", "starts", "ends", "notBefore", "startTime", "completionTime", "lastFailure"] {
        fields.entry(field).or_insert(Value::Null);
    }
    patch
}

/// A time in whole seconds, as the API writes it.
pub(super) fn text(at: Instant) -> String {
    let seconds = i64::try_from(at.0 / 1_000_000_000).unwrap_or(i64::MAX);
    Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX).to_string()
}

/// A time as people read it, in Greenwich's.
fn minute(at: Instant) -> String {
    text(at).get(..16).map_or_else(|| text(at), |text| format!("{text}Z"))
}

pub(super) fn instant(text: &str) -> Option<Instant> {
    u64::try_from(text.parse::<Timestamp>().ok()?.as_nanosecond()).ok().map(Instant)
}

//! A trace as data: what `--data` writes, and what the page draws. Times are nanoseconds since the world began.

use metronome_core::model::units::Moment;
use metronome_local::world::Fate;
use serde::Serialize;
use serde_json::Value;

/// The version of the document. Added keys keep it.
pub(crate) const VERSION: u32 = 1;

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Trace {
    pub(crate) version: u32,
    pub(crate) scenario: String,
    pub(crate) policy: String,
    /// All rates and bytes are divided by it.
    pub(crate) scale: u64,
    pub(crate) seed: u64,
    pub(crate) began: Moment,
    pub(crate) sampling: Sampling,
    pub(crate) jobs: Vec<Job>,
    pub(crate) links: Vec<Link>,
    /// Profiles of traffic as the agent learned them, in order of time.
    pub(crate) profiles: Vec<Profile>,
    /// The end of each sample. Sample `n` counts bytes from the end of sample `n - 1` on.
    pub(crate) at_ns: Vec<u64>,
}

/// How the trace was recorded.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Sampling {
    pub(crate) looks: u64,
    /// The mean time between two looks.
    pub(crate) step_ns: u64,
    /// Looks in a sample: more than one where the run was too long for the recorder's memory.
    pub(crate) merged: u32,
    /// The share of one core that the recorder used.
    pub(crate) busy: f64,
    /// Reads that failed: counters that were just being removed.
    pub(crate) failed_reads: u64,
}

/// Bytes by sample.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Counter {
    /// What the counter said when it was first read.
    pub(crate) before: u64,
    /// The sample that the first of `sent` belongs to.
    pub(crate) first_sample: usize,
    pub(crate) sent: Vec<u32>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Job {
    pub(crate) name: String,
    pub(crate) fate: Fate,
    pub(crate) started_ns: Option<u64>,
    pub(crate) ended_ns: Option<u64>,
    pub(crate) members: Vec<Member>,
    pub(crate) directives: Vec<Directive>,
    /// When decisions were first made with a learned profile of its traffic.
    pub(crate) profile_used_ns: Option<u64>,
    /// Bytes that it sends in an iteration over the link that carries most of it, headers included, as this trace shows.
    pub(crate) bytes_per_iteration: Option<f64>,
    pub(crate) iterations: Iterations,
    /// Iterations as the trainer recorded them; empty for other programs.
    pub(crate) recorded: Vec<Iteration>,
    pub(crate) held: Vec<Held>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Member {
    pub(crate) name: String,
    /// Whether the agent learns from it, and holds it.
    pub(crate) leads: bool,
    pub(crate) bytes: Counter,
}

/// Mean lengths of iterations in milliseconds, while at least one other job that shares a link was sending: up to the job's
/// first directive, and from then on.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Iterations {
    pub(crate) before_ms: Option<f64>,
    pub(crate) after_ms: Option<f64>,
    pub(crate) count: Option<u64>,
    /// What they were counted by: the trainer's `record`, or `bytes` on the link that carries most of the job.
    pub(crate) source: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Iteration {
    pub(crate) began_ns: u64,
    /// Before it began it was held for so long by itself.
    pub(crate) held_ns: u64,
    /// From its beginning to the end of compute, and of all.
    pub(crate) computed_ns: u64,
    pub(crate) whole_ns: u64,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Directive {
    pub(crate) at_ns: u64,
    /// Null where the job shares its links fairly from then on.
    pub(crate) directive: Option<Value>,
    pub(crate) in_words: String,
    pub(crate) reason: String,
    /// Training time that all jobs of the change are predicted to save together.
    pub(crate) saves_ns: Option<u64>,
}

/// A time in which a job did not go on because it was early for its turn.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Held {
    #[serde(skip)]
    pub(crate) job: String,
    /// The member that the agent froze; null where the job waited by itself.
    pub(crate) member: Option<String>,
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Link {
    pub(crate) name: String,
    /// As shaped here, divided by the scale.
    pub(crate) rate_bps: u64,
    /// Jobs that crossed it at any time.
    pub(crate) crossed_by: Vec<String>,
    /// What its sending end has sent.
    pub(crate) bytes: Counter,
    /// The part of each job, where several jobs crossed it.
    pub(crate) parts: Vec<Part>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Part {
    /// Null for senders that no job is known for.
    pub(crate) job: Option<String>,
    pub(crate) bytes: Counter,
    pub(crate) standings: Vec<Standing>,
}

/// From a moment on, the priority and the quantum of a job's HTB leaf; null while it has no leaf of its own and shares
/// fairly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Standing {
    pub(crate) at_ns: u64,
    pub(crate) prio: Option<u8>,
    pub(crate) quantum: Option<u32>,
}

/// What the agent learned of the traffic of a job.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Profile {
    pub(crate) at_ns: u64,
    pub(crate) job: String,
    pub(crate) member: String,
    pub(crate) period_ms: f64,
    pub(crate) confidence: f64,
    pub(crate) iterations: u64,
    /// Whether the job had its links to itself.
    pub(crate) is_alone: bool,
    pub(crate) bytes: Option<f64>,
    /// The iteration without other jobs on its links, as the agent derives it.
    pub(crate) uncontended_ms: Option<f64>,
}

impl Trace {
    /// When the last sample ends.
    pub(crate) fn lasts_ns(&self) -> u64 {
        let ends = self.jobs.iter().filter_map(|job| job.ended_ns);
        ends.chain(self.at_ns.last().copied()).max().unwrap_or(0)
    }
}

impl Job {
    pub(crate) fn leader(&self) -> Option<&Member> {
        self.members.iter().find(|member| member.leads).or(self.members.first())
    }

    pub(crate) fn first_directive_ns(&self) -> Option<u64> {
        self.directives.iter().find(|one| one.directive.is_some()).map(|one| one.at_ns)
    }
}

impl Counter {
    pub(crate) fn total(&self) -> u64 {
        self.sent.iter().map(|bytes| u64::from(*bytes)).sum()
    }
}

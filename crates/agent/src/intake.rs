//! What jobs report of themselves, and what was observed, over HTTP on a Unix socket and, if wanted, a port.
//!
//! Whoever may connect may send anything, so everything is bounded: connections, headers and bodies, and how long each may
//! take; reports of a member a second; members that are known. A report is never a reason for a job to fail: what is
//! refused is answered with why, and forgotten.

mod bucket;
mod door;
mod report;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, RwLock};

use crate::members::Roster;
use crate::observed::Observed;

use bucket::Bucket;
pub use door::{Door, serve};
pub(crate) use door::{tcp, unix};

/// What is shared between those who serve and those who watch.
#[derive(Debug, Default)]
pub struct Shared {
    pub observed: Mutex<Observed>,
    jobs: RwLock<BTreeMap<String, Job>>,
    /// What the world itself shows when it asks.
    world: RwLock<String>,
    buckets: Mutex<BTreeMap<(String, String), Bucket>>,
    pub figures: Figures,
}

#[derive(Debug, Default)]
struct Job {
    token: String,
    members: Vec<String>,
    /// Who is meant where a report names no member.
    leads: Option<String>,
}

/// What is counted.
#[derive(Debug, Default)]
pub struct Figures {
    pub samples: AtomicU64,
    pub looks: AtomicU64,
    pub members: AtomicU64,
    pub leaves: AtomicU64,
    pub marked: AtomicU64,
    pub holds: AtomicU64,
    pub faults: AtomicU64,
    pub accepted: AtomicU64,
    pub refused: AtomicU64,
    pub turned_away: AtomicU64,
}

impl Shared {
    /// From now on these members may report, and whoever shows this token may ask.
    pub fn follow(&self, roster: &Roster, world: &str) {
        let mut jobs: BTreeMap<String, Job> = BTreeMap::new();
        for member in &roster.members {
            let job = jobs.entry(member.job.clone()).or_default();
            job.token.clone_from(&member.token);
            job.members.push(member.member.clone());
            if member.leads || job.leads.is_none() {
                job.leads = Some(member.member.clone());
            }
        }
        self.figures.members.store(roster.members.len() as u64, Ordering::Relaxed);
        let is_known =
            |(job, member): &(String, String)| jobs.get(job).is_some_and(|job| job.members.contains(member));
        lock(&self.buckets).retain(|key, _| is_known(key));
        *self.jobs.write().unwrap_or_else(|poisoned| poisoned.into_inner()) = jobs;
        world.clone_into(&mut self.world.write().unwrap_or_else(|poisoned| poisoned.into_inner()));
    }

    /// Everything as Prometheus reads it.
    pub fn metrics(&self) -> String {
        let figures = &self.figures;
        let dropped = lock(&self.observed).dropped;
        let counters = [
            ("samples", "Byte counters read", figures.samples.load(Ordering::Relaxed)),
            (
                "profiles_looked_for",
                "Times that samples were looked at for a profile",
                figures.looks.load(Ordering::Relaxed),
            ),
            ("holds", "Times that a member was frozen until its turn", figures.holds.load(Ordering::Relaxed)),
            (
                "faults",
                "Rosters, counters, ports and files that could not be used",
                figures.faults.load(Ordering::Relaxed),
            ),
            (
                "reports_accepted",
                "Reports of progress that were taken",
                figures.accepted.load(Ordering::Relaxed),
            ),
            (
                "reports_refused",
                "Reports of progress that were refused",
                figures.refused.load(Ordering::Relaxed),
            ),
            (
                "connections_turned_away",
                "Connections beyond the bound",
                figures.turned_away.load(Ordering::Relaxed),
            ),
            ("observations_dropped", "Observations that nobody fetched in time", dropped),
        ];
        let gauges = [
            ("members", "Members on this node", figures.members.load(Ordering::Relaxed)),
            ("leaves", "Leaves for jobs on ports", figures.leaves.load(Ordering::Relaxed)),
            (
                "marked_connections",
                "Connections that bear the mark of a class",
                figures.marked.load(Ordering::Relaxed),
            ),
        ];
        let mut text = String::new();
        for (name, help, value) in counters {
            text += &format!(
                "# HELP metronome_agent_{name}_total {help}.\n# TYPE metronome_agent_{name}_total counter\nmetronome_agent_{name}_total {value}\n"
            );
        }
        for (name, help, value) in gauges {
            text += &format!(
                "# HELP metronome_agent_{name} {help}.\n# TYPE metronome_agent_{name} gauge\nmetronome_agent_{name} {value}\n"
            );
        }
        let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        let seconds = cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9;
        text + &format!(
            "# HELP metronome_agent_cpu_seconds_total Time of all cores that the agent has used.\n# TYPE metronome_agent_cpu_seconds_total counter\nmetronome_agent_cpu_seconds_total {seconds}\n"
        )
    }
}

/// A lock whose holder panicked is as good as any: what it guards is whole at every moment.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

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
use std::fmt::Display;
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
        let counters = [
            ("samples", "Byte counters read", &figures.samples),
            ("profiles_looked_for", "Times that samples were looked at for a profile", &figures.looks),
            ("holds", "Times that a member was frozen until its turn", &figures.holds),
            ("faults", "Rosters, counters, ports and files that could not be used", &figures.faults),
            ("reports_accepted", "Reports of progress that were taken", &figures.accepted),
            ("reports_refused", "Reports of progress that were refused", &figures.refused),
            ("connections_turned_away", "Connections beyond the bound", &figures.turned_away),
        ];
        let gauges = [
            ("members", "Members on this node", &figures.members),
            ("leaves", "Leaves for jobs on ports", &figures.leaves),
            ("marked_connections", "Connections that bear the mark of a class", &figures.marked),
        ];
        let counted = counters.map(|(name, help, value)| counter(name, help, value.load(Ordering::Relaxed)));
        let dropped = lock(&self.observed).dropped;
        let dropped = counter("observations_dropped", "Observations that nobody fetched in time", dropped);
        let there =
            gauges.map(|(name, help, value)| metric(name, "gauge", help, value.load(Ordering::Relaxed)));
        let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        let seconds = cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9;
        let used = counter("cpu_seconds", "Time of all cores that the agent has used", seconds);
        [counted.concat(), dropped, there.concat(), used].concat()
    }
}

fn counter(name: &str, help: &str, value: impl Display) -> String {
    metric(&format!("{name}_total"), "counter", help, value)
}

fn metric(name: &str, kind: &str, help: &str, value: impl Display) -> String {
    let name = format!("metronome_agent_{name}");
    format!("# HELP {name} {help}.\n# TYPE {name} {kind}\n{name} {value}\n")
}

/// A lock whose holder panicked is as good as any: what it guards is whole at every moment.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

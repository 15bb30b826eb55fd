//! The recorder: one thread that looks at all counters every 2 ms while the world runs.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use metronome_agent::members::{Port, Roster, RosterFile};

use super::document::{Held, Sampling};
use super::link_end::Standings;
use super::samples::{Counted, Samples, Series};
use super::sources::Sources;
use crate::failure::Failure;

/// The time between two looks.
const STEP: Duration = Duration::from_millis(2);

/// How often the roster is looked at. It changes when members come and go, and when links do.
const ROSTER_EVERY: Duration = Duration::from_millis(5);

#[derive(Debug)]
pub(crate) struct Recorder {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Recording>,
}

/// What was recorded. Moments are nanoseconds since 1970.
#[derive(Debug, Default)]
pub(crate) struct Recording {
    pub(super) at: Vec<u64>,
    pub(super) series: BTreeMap<Counted, Series>,
    pub(super) standings: Standings,
    pub(super) held: Vec<Held>,
    /// Members that were there at any time: job, member, whether it leads.
    pub(super) members: Vec<(String, String, bool)>,
    /// The sending ends of links that were crossed at any time.
    pub(super) ports: Vec<Port>,
    pub(super) sampling: Sampling,
}

impl Recorder {
    /// Records until it is told to finish. The agent's folder need not be there yet, and a roster that is there before the
    /// world begins is that of an earlier run.
    pub(crate) fn start(agent: &Path) -> Result<Self, Failure> {
        let stop = Arc::new(AtomicBool::new(false));
        let (told, mut roster) = (stop.clone(), RosterFile::new(agent.join("members.json")));
        let _ = roster.changed();
        let named = std::thread::Builder::new().name("recorder".into());
        let thread = named.spawn(move || record(roster, &told));
        let thread = thread.map_err(|error| Failure::world("start a thread").because(&error))?;
        Ok(Self { stop, thread })
    }

    pub(crate) fn finish(self) -> Result<Recording, Failure> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| Failure::world("record: the recorder has panicked"))
    }
}

fn record(mut file: RosterFile, stop: &AtomicBool) -> Recording {
    let (mut sources, mut samples, mut seen) = (Sources::default(), Samples::default(), Seen::default());
    let (mut began, mut busy_before) = (Instant::now(), busy());
    let mut looked = None::<Instant>;
    let (mut looks, mut next) = (0, began);
    while !stop.load(Ordering::Relaxed) {
        if looked.is_none_or(|looked| looked.elapsed() >= ROSTER_EVERY) {
            looked = Some(Instant::now());
            // A roster that cannot be read is being written, and is there at the next look.
            if let Ok(Some(roster)) = file.changed() {
                seen.note(&roster);
                sources.follow(&roster, now());
            }
        }
        if seen.members.is_empty() {
            (began, busy_before) = (Instant::now(), busy());
        } else {
            sources.look(&mut samples, now());
            samples.close(now());
            looks += 1;
        }
        // A look that came late is not made up for: rates follow from the moments as they were.
        next = (next + STEP).max(Instant::now());
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    sources.finish(now());
    let lasted = began.elapsed().as_secs_f64();
    let sampling = Sampling {
        looks,
        step_ns: (lasted * 1e9 / looks.max(1) as f64) as u64,
        merged: samples.merged,
        busy: (busy().saturating_sub(busy_before)) as f64 / 1e9 / lasted.max(1e-9),
        failed_reads: sources.failed,
    };
    let (at, series) = samples.into_series();
    let Sources { standings, held, .. } = sources;
    Recording { at, series, standings, held, members: seen.members, ports: seen.ports, sampling }
}

/// What rosters have named so far.
#[derive(Debug, Default)]
struct Seen {
    members: Vec<(String, String, bool)>,
    ports: Vec<Port>,
}

impl Seen {
    fn note(&mut self, roster: &Roster) {
        for member in &roster.members {
            if !self.members.iter().any(|(job, name, _)| *job == member.job && *name == member.member) {
                self.members.push((member.job.clone(), member.member.clone(), member.leads));
            }
        }
        for port in &roster.ports {
            match self.ports.iter_mut().find(|known| known.link == port.link) {
                Some(known) => {
                    known.rate_bps = port.rate_bps;
                    let new = port.crossed_by.iter().filter(|job| !known.crossed_by.contains(job));
                    let new: Vec<String> = new.cloned().collect();
                    known.crossed_by.extend(new);
                }
                None => self.ports.push(port.clone()),
            }
        }
    }
}

/// Nanoseconds that this thread was on a core; 0 where the kernel does not count them.
fn busy() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|nanos| nanos.parse().ok()).unwrap_or(0)
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_nanos().try_into().unwrap_or(u64::MAX)
}

//! How the compute of an iteration passes: asleep, as on a device of one's own, or on the processor.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use metronome_core::model::profile::Iteration;
use rustix::time::{ClockId, clock_gettime};

use crate::task::{Compute, Task};

/// While the processor computes, so often it is asked how far it is.
const LOOKS_EVERY: Duration = Duration::from_millis(2);

/// A core is given up so often that the cores of a group are shared evenly.
const BURNS_AT_ONCE: u64 = 200_000;

/// The compute of one iteration, under way.
pub(crate) enum Computing<'a> {
    Asleep {
        iteration: &'a Iteration,
        began: Instant,
        stretch: f64,
    },
    OnCores {
        iteration: &'a Iteration,
        work: u64,
        done: Arc<AtomicU64>,
        cores: Vec<JoinHandle<()>>,
    },
    /// Nothing is computed: a server.
    Nothing,
}

impl<'a> Computing<'a> {
    pub(crate) fn begin(task: &'a Task, began: Instant, stretch: f64) -> Self {
        let iteration = &task.iteration;
        match task.compute {
            Compute::Sleeps => Self::Asleep { iteration, began, stretch },
            Compute::Burns { serial, most_cores } => {
                let work = (iteration.compute.0 as f64 * stretch) as u64;
                let done = Arc::new(AtomicU64::new(0));
                let cores = burn(work, serial, most_cores.ceil().max(1.0) as u32, &done);
                Self::OnCores { iteration, work, done, cores }
            }
        }
    }

    /// How many buckets are computed.
    pub(crate) fn ready(&self, now: Instant) -> usize {
        match self {
            Self::Asleep { iteration, began, stretch } => {
                let passed = now.duration_since(*began);
                let is_ready = |ready: u64| stretched(ready, *stretch) <= passed;
                iteration.buckets.iter().take_while(|bucket| is_ready(bucket.ready.0)).count()
            }
            Self::OnCores { iteration, work, done, .. } => {
                let part = done.load(Ordering::Relaxed) as f64 / (*work).max(1) as f64;
                let is_ready = |ready: u64| ready as f64 <= part * iteration.compute.0 as f64;
                iteration.buckets.iter().take_while(|bucket| is_ready(bucket.ready.0)).count()
            }
            Self::Nothing => usize::MAX,
        }
    }

    /// How long to wait at most for something new; nothing, once all is computed.
    pub(crate) fn next(&self, now: Instant) -> Option<Duration> {
        match self {
            Self::Asleep { iteration, began, stretch } => {
                let passed = now.duration_since(*began);
                let ready = iteration.buckets.iter().map(|bucket| bucket.ready.0);
                let coming = ready.chain([iteration.compute.0]).map(|ready| stretched(ready, *stretch));
                coming.filter(|at| *at > passed).min().map(|at| at - passed)
            }
            Self::OnCores { cores, .. } => {
                cores.iter().any(|core| !core.is_finished()).then_some(LOOKS_EVERY)
            }
            Self::Nothing => None,
        }
    }

    /// Panics of a core are those of the member.
    pub(crate) fn end(self) {
        if let Self::OnCores { cores, .. } = self {
            for core in cores {
                core.join().expect("burning cannot fail");
            }
        }
    }
}

fn stretched(nanos: u64, stretch: f64) -> Duration {
    Duration::from_nanos((nanos as f64 * stretch) as u64)
}

/// Uses so much time of cores: the serial part on one, the rest divided among all.
fn burn(work: u64, serial: f64, cores: u32, done: &Arc<AtomicU64>) -> Vec<JoinHandle<()>> {
    let alone = (work as f64 * serial.clamp(0.0, 1.0)) as u64;
    let each = (work - alone) / u64::from(cores);
    let first_part_over = Arc::new(AtomicBool::new(alone == 0));
    let core = |index: u32| {
        let (done, first_part_over) = (done.clone(), first_part_over.clone());
        std::thread::spawn(move || {
            if index == 0 {
                burn_on_this(alone, &done);
                first_part_over.store(true, Ordering::Release);
            }
            while !first_part_over.load(Ordering::Acquire) {
                std::thread::sleep(LOOKS_EVERY / 4);
            }
            burn_on_this(each, &done);
        })
    };
    (0..cores).map(core).collect()
}

fn burn_on_this(nanos: u64, done: &AtomicU64) {
    let (begin, mut noted) = (used(), 0);
    while noted < nanos {
        let passed = (used() - begin).min(nanos);
        done.fetch_add(passed - noted, Ordering::Relaxed);
        noted = passed;
        let until = used() + BURNS_AT_ONCE.min(nanos - noted);
        while used() < until {
            std::hint::spin_loop();
        }
    }
}

/// Time that this thread has had of a core.
fn used() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

//! What scheduling costs: the scheduler's CPU time and memory, the API server's CPU time, and writes.
//!
//! Writes are what the API server counts itself, by verb and resource, less what schedulers do not do: creating and
//! deleting pods, creating groups (both the harness), and what an API server writes by itself about itself. Leases are
//! among the latter, so those of a leader election would not be counted. Every JSON line lists what is left.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use metronome_testcluster::{Companion, Component, Writes};

use crate::stage::Stage;

/// Not a scheduler's.
const OTHERS: [&str; 4] = ["POST pods", "DELETE pods", "POST podgroups", "DELETE podgroups"];
const OTHERS_RESOURCES: [&str; 4] = ["leases", "apiservices", "customresourcedefinitions", "namespaces"];
/// For so long nothing is written by a scheduler that is done.
const QUIET: Duration = Duration::from_secs(1);
/// How often to look. What a scheduler still writes after so long is not about what it has done, but unrest.
const LOOKS: u32 = 15;

/// The counters at one moment.
#[derive(Debug, Clone)]
pub(crate) struct Mark {
    pub(crate) time: Instant,
    cpu: Duration,
    api_cpu: Duration,
    peak_rss_bytes: u64,
    writes: Writes,
}

/// What was used between two moments.
#[derive(Debug, Clone)]
pub(crate) struct Cost {
    pub(crate) cpu: Duration,
    pub(crate) api_cpu: Duration,
    /// Since the start of the scheduler.
    pub(crate) peak_rss_bytes: u64,
    pub(crate) writes: Writes,
}

impl Mark {
    /// Before a scheduler is started.
    pub(crate) async fn before(stage: &Stage) -> Result<Self> {
        let (api_cpu, writes) = of_api_server(stage).await?;
        Ok(Self { time: Instant::now(), cpu: Duration::ZERO, api_cpu, peak_rss_bytes: 0, writes })
    }

    pub(crate) async fn now(stage: &Stage, scheduler: &Companion) -> Result<Self> {
        let (api_cpu, writes) = of_api_server(stage).await?;
        let usage = scheduler.usage()?;
        Ok(Self {
            time: Instant::now(),
            cpu: usage.cpu,
            api_cpu,
            peak_rss_bytes: usage.peak_rss_bytes,
            writes,
        })
    }

    /// When nothing was written any more, or it was enough.
    pub(crate) async fn settled(stage: &Stage, scheduler: &mut Companion) -> Result<Self> {
        let mut mark = Self::now(stage, scheduler).await?;
        for _ in 0..LOOKS {
            tokio::time::sleep(QUIET).await;
            ensure!(scheduler.ended().is_none(), "keep the scheduler up after its work");
            let later = Self::now(stage, scheduler).await?;
            if later.writes == mark.writes {
                break;
            }
            mark = later;
        }
        Ok(mark)
    }

    pub(crate) fn since(self, earlier: Self) -> Cost {
        Cost {
            cpu: self.cpu.saturating_sub(earlier.cpu),
            api_cpu: self.api_cpu.saturating_sub(earlier.api_cpu),
            peak_rss_bytes: self.peak_rss_bytes,
            writes: self.writes - earlier.writes,
        }
    }
}

async fn of_api_server(stage: &Stage) -> Result<(Duration, Writes)> {
    let writes = stage.plane().writes().await?.filter(is_a_schedulers);
    Ok((stage.plane().usage(Component::ApiServer)?.cpu, writes))
}

fn is_a_schedulers(write: &str) -> bool {
    let resource = write.split([' ', '/']).nth(1).unwrap_or_default();
    !OTHERS.contains(&write) && !OTHERS_RESOURCES.contains(&resource)
}

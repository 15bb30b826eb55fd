//! What scheduling costs: the scheduler's CPU time and memory, the API server's CPU time, and requests.
//!
//! Requests are what the API server counts itself, by verb and resource, less what it asks of itself about itself.
//! Writes are those of them that change something, less what schedulers do not do: creating and deleting pods,
//! creating groups (both the harness). Leases are among what is left out, so those of a leader election would not be
//! counted. Every JSON line lists what is left.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use metronome_testcluster::{Component, Requests};

use crate::cast::{self, Bill, Cast};
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
    bill: Bill,
    api_cpu: Duration,
    requests: Requests,
}

/// What was used between two moments.
#[derive(Debug, Clone)]
pub(crate) struct Cost {
    pub(crate) cpu: Duration,
    pub(crate) api_cpu: Duration,
    /// Since the start of the scheduler.
    pub(crate) peak_rss_bytes: u64,
    /// What each process has used since its start.
    pub(crate) bill: Bill,
    pub(crate) requests: Requests,
}

impl Cost {
    /// What schedulers write where they are given pods.
    pub(crate) fn writes(&self) -> Requests {
        self.requests.clone().writes().filter(is_a_schedulers)
    }
}

impl Mark {
    /// Before a scheduler is started.
    pub(crate) async fn before(stage: &Stage) -> Result<Self> {
        let (api_cpu, requests) = of_api_server(stage).await?;
        Ok(Self { time: Instant::now(), bill: Bill::new(), api_cpu, requests })
    }

    pub(crate) async fn now(stage: &Stage, cast: &Cast) -> Result<Self> {
        let (api_cpu, requests) = of_api_server(stage).await?;
        Ok(Self { time: Instant::now(), bill: cast.bill()?, api_cpu, requests })
    }

    /// When nothing was written any more, or it was enough.
    pub(crate) async fn settled(stage: &Stage, cast: &mut Cast) -> Result<Self> {
        Self::settled_within(LOOKS, stage, cast).await
    }

    pub(crate) async fn settled_within(looks: u32, stage: &Stage, cast: &mut Cast) -> Result<Self> {
        let mut mark = Self::now(stage, cast).await?;
        for _ in 0..looks {
            tokio::time::sleep(QUIET).await;
            ensure!(cast.ended().is_none(), "keep the scheduler up after its work");
            let later = Self::now(stage, cast).await?;
            if later.requests.clone().writes() == mark.requests.clone().writes() {
                break;
            }
            mark = later;
        }
        Ok(mark)
    }

    pub(crate) fn since(self, earlier: Self) -> Cost {
        Cost {
            cpu: cast::cpu(&self.bill).saturating_sub(cast::cpu(&earlier.bill)),
            api_cpu: self.api_cpu.saturating_sub(earlier.api_cpu),
            peak_rss_bytes: cast::peak_rss_bytes(&self.bill),
            bill: self.bill,
            requests: self.requests - earlier.requests,
        }
    }
}

async fn of_api_server(stage: &Stage) -> Result<(Duration, Requests)> {
    let requests = stage.plane().requests().await?.filter(is_a_clients);
    Ok((stage.plane().usage(Component::ApiServer)?.cpu, requests))
}

fn is_a_clients(request: &str) -> bool {
    let resource = request.split([' ', '/']).nth(1).unwrap_or_default();
    !OTHERS_RESOURCES.contains(&resource)
}

fn is_a_schedulers(write: &str) -> bool {
    !OTHERS.contains(&write)
}

//! What is measured, each figure with its name in JSON, its heading and how it is printed.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use metronome_testcluster::Requests;

use crate::cast::Bill;
use crate::cost::Cost;
use crate::sightings::Span;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Figure {
    /// Pods a second between the first and the last.
    Rate,
    /// From the start of the clock to the first pod.
    First,
    /// From the start of the clock to the last pod.
    All,
    /// From the last pod to the last write about it.
    Tail,
    /// CPU time of the scheduler.
    Cpu,
    CpuPerPod,
    PeakMemory,
    Writes,
    /// Requests of the contestant for each job.
    CallsPerJob,
    /// CPU time of the API server.
    ApiCpu,
    /// CPU time of the scheduler while there was nothing to do.
    IdleCpu,
    IdleWrites,
}

impl Figure {
    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::Rate => "pods_per_s",
            Self::First => "first_s",
            Self::All => "all_s",
            Self::Tail => "tail_s",
            Self::Cpu => "cpu_s",
            Self::CpuPerPod => "cpu_ms_per_pod",
            Self::PeakMemory => "peak_mib",
            Self::Writes => "writes",
            Self::CallsPerJob => "calls_per_job",
            Self::ApiCpu => "api_server_cpu_s",
            Self::IdleCpu => "idle_cpu_s",
            Self::IdleWrites => "idle_writes",
        }
    }

    pub(crate) fn heading(self) -> &'static str {
        match self {
            Self::Rate => "pods/s",
            Self::First => "first s",
            Self::All => "all s",
            Self::Tail => "tail s",
            Self::Cpu => "CPU s",
            Self::CpuPerPod => "CPU ms/pod",
            Self::PeakMemory => "peak MiB",
            Self::Writes => "writes",
            Self::CallsPerJob => "calls/job",
            Self::ApiCpu => "API CPU s",
            Self::IdleCpu => "idle CPU s",
            Self::IdleWrites => "idle writes",
        }
    }

    pub(crate) fn decimals(self) -> usize {
        match self {
            Self::Rate | Self::PeakMemory | Self::CallsPerJob => 1,
            Self::Writes | Self::IdleWrites => 0,
            Self::First | Self::All | Self::Tail | Self::Cpu | Self::ApiCpu | Self::IdleCpu => 2,
            Self::CpuPerPod => 3,
        }
    }
}

/// The figures of one trial.
#[derive(Debug, Clone, Default)]
pub(crate) struct Figures {
    values: BTreeMap<Figure, f64>,
    /// What was asked of the API server how often.
    pub(crate) requests: Requests,
    /// What each process has used, where there are several.
    pub(crate) bill: Bill,
}

impl Figures {
    pub(crate) fn get(&self, figure: Figure) -> Option<f64> {
        self.values.get(&figure).copied()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Figure, f64)> {
        self.values.iter().map(|(figure, value)| (*figure, *value))
    }

    pub(crate) fn of(cost: &Cost, pods: usize) -> Self {
        let requests = cost.writes();
        let writes = requests.total() as f64;
        Self { values: BTreeMap::new(), requests, bill: cost.bill.clone() }
            .with_seconds(Figure::Cpu, cost.cpu)
            .with(Figure::CpuPerPod, cost.cpu.as_secs_f64() * 1e3 / pods as f64)
            .with(Figure::PeakMemory, mib(cost.peak_rss_bytes))
            .with(Figure::Writes, writes)
            .with_seconds(Figure::ApiCpu, cost.api_cpu)
    }

    /// Where the contestant makes pods itself, all that it asks counts; not what others asked in the meantime.
    #[must_use]
    pub(crate) fn with_calls(mut self, cost: &Cost, jobs: usize, others: u64) -> Self {
        self.requests = cost.requests.clone();
        let calls = cost.requests.total().saturating_sub(others);
        self.with(Figure::CallsPerJob, calls as f64 / jobs as f64)
    }

    /// When the first and the last pod were seen, on a clock that began at some moment.
    #[must_use]
    pub(crate) fn with_span(self, span: Span, begin: Instant) -> Self {
        self.with_seconds(Figure::First, span.first.saturating_duration_since(begin))
            .with_seconds(Figure::All, span.last.saturating_duration_since(begin))
    }

    #[must_use]
    pub(crate) fn with(mut self, figure: Figure, value: f64) -> Self {
        self.values.insert(figure, value);
        self
    }

    #[must_use]
    pub(crate) fn with_seconds(self, figure: Figure, time: Duration) -> Self {
        self.with(figure, time.as_secs_f64())
    }
}

pub(crate) fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

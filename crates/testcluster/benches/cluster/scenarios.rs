//! What schedulers are asked to do.

mod large_gang;
mod restart;
mod rush;
mod training_jobs;
mod unschedulable;

use std::fmt;

use anyhow::{Context, Result};
use clap::ValueEnum;

use crate::figures::{Figure, Figures};
use crate::options::Sizes;
use crate::schedulers::{Contestant, Scheduler};
use crate::stage::Stage;
use crate::work::{Ask, Work};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scenario {
    /// Thousands of single pods wait when the scheduler starts
    Singles,
    /// Hundreds of gangs wait when the scheduler starts
    Gangs,
    /// One large gang is created while the scheduler runs
    LargeGang,
    /// Thousands of pods that fit nowhere wait when the scheduler starts
    Unschedulable,
    /// The scheduler starts in a cluster full of bound pods, and one waits
    Restart,
    /// Thousands of jobs are created at once, whose pods the contestants make themselves
    TrainingJobs,
}

/// Where the trials of a scenario take place.
pub(crate) enum Ground {
    /// Each on a stage of its own.
    Fresh,
    /// All on this one.
    Shared(Box<Stage>),
}

impl Scenario {
    pub(crate) async fn ground(self, sizes: &Sizes, contestants: &[Contestant]) -> Result<Ground> {
        match self {
            Self::Restart => Ok(Ground::Shared(Box::new(restart::stage(sizes, contestants).await?))),
            _ => Ok(Ground::Fresh),
        }
    }

    /// Volcano is held against nobody on single pods, each of which needs a group of its own there: one trial shows it,
    /// and five would take as long as all the rest.
    pub(crate) fn sits_out(self, scheduler: Scheduler, round: usize) -> bool {
        self == Self::Singles && scheduler == Scheduler::Volcano && round > 0
    }

    pub(crate) async fn trial(
        self,
        round: usize,
        ground: &Ground,
        contestant: &Contestant,
        sizes: &Sizes,
    ) -> Result<Figures> {
        let fresh;
        let stage = match ground {
            Ground::Shared(stage) => stage,
            Ground::Fresh => {
                fresh = match self {
                    Self::TrainingJobs => Stage::set_with_kubelets(sizes.nodes, &[contestant]).await?,
                    _ => Stage::set(sizes.nodes, &[contestant]).await?,
                };
                &fresh
            }
        };
        self.act(round, stage, contestant, sizes)
            .await
            .with_context(|| format!("measure {}", contestant.scheduler))
    }

    async fn act(
        self,
        round: usize,
        stage: &Stage,
        contestant: &Contestant,
        sizes: &Sizes,
    ) -> Result<Figures> {
        let scheduler = contestant.scheduler;
        match self {
            Self::Singles => {
                let work = Work::singles(scheduler, "pod", sizes.singles, Ask::Little);
                rush::trial(stage, contestant, &work).await
            }
            Self::Gangs => {
                let work = Work::gangs(scheduler, "gang", sizes.gangs, sizes.members, Ask::Little);
                rush::trial(stage, contestant, &work).await
            }
            Self::LargeGang => large_gang::trial(stage, contestant, sizes).await,
            Self::Unschedulable => unschedulable::trial(stage, contestant, sizes).await,
            Self::Restart => restart::trial(stage, contestant, round).await,
            Self::TrainingJobs => training_jobs::trial(stage, contestant, sizes).await,
        }
    }

    /// What is worth a column.
    pub(crate) fn figures(self) -> &'static [Figure] {
        use Figure::{
            All, ApiCpu, CallsPerJob, Cpu, CpuPerPod, First, IdleCpu, IdleWrites, PeakMemory, Rate, Tail,
            Writes,
        };
        match self {
            Self::Singles | Self::Gangs => {
                &[Rate, First, All, Tail, Cpu, CpuPerPod, PeakMemory, Writes, ApiCpu]
            }
            Self::LargeGang => &[First, All, Cpu, CpuPerPod, PeakMemory, Writes, ApiCpu],
            Self::Unschedulable => {
                &[Rate, First, All, Cpu, CpuPerPod, PeakMemory, Writes, IdleCpu, IdleWrites]
            }
            Self::Restart => &[All, Cpu, PeakMemory, Writes, ApiCpu],
            Self::TrainingJobs => &[First, All, Tail, Cpu, PeakMemory, CallsPerJob, ApiCpu],
        }
    }

    pub(crate) fn describe(self, sizes: &Sizes) -> String {
        let Sizes { singles, gangs, members, large_gang, unschedulable, idle, bound, nodes, .. } = sizes;
        let Sizes { jobs, job_members, .. } = sizes;
        let what = match self {
            Self::Singles => format!("{singles} pods wait when the scheduler starts"),
            Self::Gangs => format!("{gangs} gangs of {members} wait when the scheduler starts"),
            Self::LargeGang => {
                format!("one gang of {large_gang} while the scheduler runs; time from its last pod created")
            }
            Self::Unschedulable => {
                format!("{unschedulable} pods that fit nowhere, then {} s of nothing", idle.as_secs())
            }
            Self::Restart => format!("{bound} bound pods, and one waits when the scheduler starts"),
            Self::TrainingJobs => {
                format!("{jobs} jobs of {job_members} created at once; time from the first")
            }
        };
        format!("{self}: {what}; {nodes} nodes")
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Singles => "singles",
            Self::Gangs => "gangs",
            Self::LargeGang => "large-gang",
            Self::Unschedulable => "unschedulable",
            Self::Restart => "restart",
            Self::TrainingJobs => "training-jobs",
        })
    }
}

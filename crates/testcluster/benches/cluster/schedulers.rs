//! The schedulers that are compared: each a value that says how to run it and how it is told of gangs.

mod kube_scheduler;
mod metronome;
mod volcano;

use std::fmt;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;
use clap::ValueEnum;
use metronome_testcluster::ControlPlane;

use crate::cast::Cast;
use crate::options::Options;
use crate::work::Declaration;

/// The `schedulerName` that each of them serves, one after the other.
pub(crate) const SCHEDULER_NAME: &str = "bench";
/// Requests a second that none of them comes near.
const NO_LIMIT: u32 = 100_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scheduler {
    #[value(name = "kube-scheduler")]
    Kube,
    Volcano,
    Metronome,
}

/// A scheduler whose program is there.
#[derive(Debug)]
pub(crate) struct Contestant {
    pub(crate) scheduler: Scheduler,
    program: PathBuf,
}

/// Those whose programs are there or can be built; who is left out, and why, is said.
pub(crate) fn contestants(options: &Options) -> Vec<Contestant> {
    let contestant = |scheduler: Scheduler| match scheduler.program(options) {
        Ok(program) => Some(Contestant { scheduler, program }),
        Err(error) => {
            eprintln!("left out: {scheduler} (cannot {error:#})");
            None
        }
    };
    options.schedulers().into_iter().filter_map(contestant).collect()
}

impl Contestant {
    /// Gives the API server what the scheduler needs there.
    pub(crate) async fn prepare(&self, plane: &ControlPlane) -> Result<()> {
        match self.scheduler {
            Scheduler::Kube => Ok(()),
            Scheduler::Volcano => volcano::prepare(plane).await,
            Scheduler::Metronome => metronome::prepare(plane).await,
        }
    }

    pub(crate) fn launch(&self, plane: &ControlPlane) -> Result<Cast> {
        let flags = match self.scheduler {
            Scheduler::Kube => kube_scheduler::flags(plane)?,
            Scheduler::Volcano => volcano::flags(plane)?,
            Scheduler::Metronome => metronome::flags(plane),
        };
        let mut command = Command::new(&self.program);
        command.args(flags);
        let name = self.scheduler.to_string();
        let scheduler = plane.accompany(&name, command)?;
        Ok(Cast::of(name, scheduler))
    }

    /// The scheduler, and whoever makes pods of the jobs that it is used with.
    pub(crate) async fn launch_with_controllers(&self, plane: &ControlPlane) -> Result<Cast> {
        let cast = self.launch(plane)?;
        match self.scheduler {
            Scheduler::Kube => kube_scheduler::with_controllers(cast, plane).await,
            Scheduler::Volcano => volcano::with_controllers(cast, plane).await,
            // It makes the pods of its jobs itself.
            Scheduler::Metronome => Ok(cast),
        }
    }
}

impl Scheduler {
    fn program(self, options: &Options) -> Result<PathBuf> {
        match self {
            Self::Kube => kube_scheduler::program(),
            Self::Volcano => volcano::program(),
            Self::Metronome => metronome::program(options.metronome.as_deref()),
        }
    }

    /// Those against which it is held.
    pub(crate) fn rivals(self) -> Vec<Self> {
        match self {
            Self::Kube => Vec::new(),
            Self::Volcano => vec![Self::Kube],
            Self::Metronome => vec![Self::Kube, Self::Volcano],
        }
    }

    /// How it is told that pods belong together.
    pub(crate) fn declaration(self) -> Declaration {
        match self {
            Self::Kube | Self::Metronome => Declaration::Upstream,
            Self::Volcano => Declaration::Volcano,
        }
    }
}

impl fmt::Display for Scheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Kube => "kube-scheduler",
            Self::Volcano => "volcano",
            Self::Metronome => "metronome",
        })
    }
}

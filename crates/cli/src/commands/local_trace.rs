//! `metronome local trace`

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use metronome_core::journal::Journal;
use metronome_core::model::units::Moment;
use metronome_local::rights::Rights;
use metronome_local::world::{self, Fate, Told};

use super::local_run::{say, stopped_by_signals};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::ScenarioFile;
use crate::local::{WorldArgs, setup};
use crate::output_file::OutputFile;
use crate::policies;
use crate::reply::Reply;
use crate::trace::assemble::{Heard, Material};
use crate::trace::decisions::Decisions;
use crate::trace::recorder::{Recorder, Recording};
use crate::trace::{Trace, page};

/// Record one run of a scenario on this machine, and draw what its jobs sent and what was decided about links
///
/// Runs the scenario for real under one policy, as `local run` does. A recorder reads the byte counters of all members
/// and of all sending ends of links every 2 ms. The drawing is one HTML file that needs nothing beside itself: rates of
/// jobs over time, when they compute, send and are held, what each link carried, directives with their reasons, and
/// closer looks before and after the first directive. Prints the paths of the files that it wrote. Needs root.
#[derive(Debug, Args)]
pub(crate) struct LocalTrace {
    #[command(flatten)]
    scenario: ScenarioFile,
    /// Policy to run; `sim policies` lists them
    #[arg(long, value_name = "NAME", default_value = "metronome")]
    policy: String,
    #[command(flatten)]
    world: WorldArgs,
    /// Where to write the drawing, one HTML file
    #[arg(short = 'o', long, value_name = "FILE", default_value = "trace.html")]
    report: PathBuf,
    /// Where to write all that was recorded, one JSON document
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
}

pub(crate) fn run(args: &LocalTrace) -> Result<Reply, Failure> {
    let scenario = args.scenario.read()?;
    needs_counters()?;
    let report = OutputFile::create(&args.report)?;
    let data = args.data.as_deref().map(OutputFile::create).transpose()?;
    let asked = args.world.asked();
    let stop = stopped_by_signals()?;
    let folder = asked.root.join(&asked.world);
    let setup = setup(&scenario, policies::find(&args.policy, &scenario)?, &asked)?;
    let (decisions, mut observer) = (Decisions::default(), Observer::beside(&folder.join("agent"))?);
    let journal = Box::new(decisions.clone()) as Box<dyn Journal + Send>;
    let outcome = world::run(setup.clone(), Some(journal), &stop, &mut |told| observer.hear(&told));
    let (recording, heard) = observer.finish()?;
    let outcome = outcome.map_err(|error| Failure::from_world(&error))?;
    let trace = Trace::of(Material {
        scenario: &scenario.name,
        seed: asked.seed,
        setup: &setup,
        folder,
        outcome: &outcome,
        recording,
        log: &decisions.log(),
        heard: &heard,
    });
    report.write(&page::html(&trace))?;
    let mut written = vec![args.report.display().to_string()];
    if let (Some(file), Some(path)) = (data, &args.data) {
        file.write(&serde_json::to_string(&trace).expect("a trace is plain data"))?;
        written.push(path.display().to_string());
    }
    let is_done = outcome.jobs.iter().all(|job| job.fate == Fate::Completed);
    let reply = Reply::text(written.join("\n") + "\n");
    Ok(if is_done { reply } else { reply.ending(Exit::FellShort) })
}

/// Without network namespaces all members share one set of counters.
fn needs_counters() -> Result<(), Failure> {
    let rights = Rights::look();
    if rights.network {
        return Ok(());
    }
    let missing: Vec<String> =
        rights.missing.iter().map(|missing| format!("{} is missing", missing.what)).collect();
    Err(Failure::world("record byte counters of members: they have no network namespaces of their own")
        .noting(&missing)
        .hint("run the command with sudo"))
}

/// What is heard from the world and recorded beside it while it runs.
struct Observer {
    recorder: Recorder,
    heard: Vec<Heard>,
}

/// Profiles and measurements that are kept. A job tells a few in a minute.
const MOST_HEARD: usize = 10_000;

impl Observer {
    fn beside(agent: &Path) -> Result<Self, Failure> {
        Ok(Self { recorder: Recorder::start(agent)?, heard: Vec::new() })
    }

    fn hear(&mut self, told: &Told<'_>) {
        match told {
            Told::Observed { what } if what.get("progress").is_none() && self.heard.len() < MOST_HEARD => {
                self.heard.push(Heard { at: now(), what: (*what).clone() });
            }
            told => say(told),
        }
    }

    fn finish(self) -> Result<(Recording, Vec<Heard>), Failure> {
        Ok((self.recorder.finish()?, self.heard))
    }
}

fn now() -> Moment {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Moment(since.as_nanos().try_into().unwrap_or(u64::MAX))
}

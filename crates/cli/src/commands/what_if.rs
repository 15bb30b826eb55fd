//! `metronome what-if`

use std::path::{Path, PathBuf};

use clap::Args;

use metronome_core::engine::State;
use metronome_core::engine::forecast::what_if;
use metronome_core::model::policy::Gangs;
use metronome_core::model::units::{Bandwidth, Duration, Instant};
use metronome_sim::scenario::{Arrival, Scenario, Setting};
use metronome_sim::world::{self, RunOptions};
use metronome_words::{what_if_document, what_if_lines};

use crate::failure::Failure;
use crate::journal::Past;
use crate::policies;
use crate::reply::{Format, Reply};
use crate::server::{self, Asked, Behind};

/// Say when a job would start and end if it were submitted, and whom it would delay
///
/// Without `--journal`, `--scenario` and `--server` the scheduler of the cluster is asked, through its API server.
#[derive(Debug, Args)]
pub(crate) struct WhatIf {
    /// File with the one TrainingJob to ask about; `-` reads standard input
    #[arg(short, long, value_name = "JOB")]
    file: PathBuf,
    #[command(flatten)]
    world: World,
    #[command(flatten)]
    behind: Behind,
    /// Policy to simulate the scenario under; metronome, if not given
    #[arg(long, value_name = "NAME", requires = "scenario")]
    policy: Option<String>,
    /// Seed of everything in the scenario that is left to chance; 1, if not given
    #[arg(long, value_name = "N", requires = "scenario")]
    seed: Option<u64>,
    /// Submit it at this time after the beginning, such as 90s or 10m; if not given, at the end of a journal or at the
    /// beginning of a scenario
    #[arg(long, value_name = "TIME")]
    at: Option<Duration>,
    /// How to print the answer
    #[arg(long, value_enum, default_value_t = Format::Human)]
    output: Format,
}

/// Where it would be submitted.
#[derive(Debug, Args)]
#[group(multiple = false)]
struct World {
    /// Ask at a time of a recorded journal
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// Ask at a time of a scenario, simulated up to then
    #[arg(long, value_name = "FILE")]
    scenario: Option<PathBuf>,
    /// Ask now, in the cluster of a running scheduler that listens there, such as http://127.0.0.1:8089
    #[arg(long, value_name = "URL", conflicts_with = "at")]
    server: Option<String>,
}

pub(crate) fn run(args: &WhatIf) -> Result<Reply, Failure> {
    let moment = Moment::of(args)?;
    let Moment { state, now, .. } = &moment;
    let job = moment.read(&args.file)?;
    moment.check(&job)?;
    let (name, answer) = (&*job.spec.name, what_if(state, *now, job.spec.clone()));
    Ok(match args.output {
        Format::Json => Reply::json(&what_if_document(name, *now, &answer, state)),
        Format::Human => Reply::text(what_if_lines(name, *now, &answer, state)),
    })
}

/// When and where the job would be submitted.
struct Moment {
    state: State,
    now: Instant,
    within_node: Option<Bandwidth>,
}

impl Moment {
    fn of(args: &WhatIf) -> Result<Self, Failure> {
        let at = args.at.map(|after| Instant::START + after);
        match &args.world {
            World { journal: Some(journal), .. } => Self::of_journal(journal, at),
            World { scenario: Some(file), .. } => Self::of_scenario(args, file, at.unwrap_or(Instant::START)),
            World { .. } if at.is_some() => Err(Failure::input("ask a running scheduler about another time")
                .hint("`--at` goes with `--journal` or `--scenario`")),
            World { server: Some(server), .. } => Self::of_scheduler(Asked::At(server)),
            World { .. } => Self::of_scheduler(Asked::Behind(&args.behind)),
        }
    }

    fn of_scheduler(asked: Asked<'_>) -> Result<Self, Failure> {
        let state = server::state(asked)?;
        Ok(Self { now: state.now, state, within_node: None })
    }

    /// A journal does not say how fast GPUs of one node talk to each other: that is taken to be free.
    fn of_journal(journal: &Path, at: Option<Instant>) -> Result<Self, Failure> {
        let past = Past::read(journal, at)?;
        Ok(Self { state: past.state().clone(), now: past.now(), within_node: None })
    }

    fn of_scenario(args: &WhatIf, file: &Path, at: Instant) -> Result<Self, Failure> {
        let scenario = Scenario::read(file)?;
        let policy = policies::find(args.policy.as_deref().unwrap_or("metronome"), &scenario)?;
        let options = RunOptions { seed: args.seed.unwrap_or(1), ..RunOptions::new(policy) };
        let state = world::state_at(&scenario, options, at);
        Ok(Self { state, now: at, within_node: scenario.within_node })
    }

    fn read(&self, file: &Path) -> Result<Arrival, Failure> {
        let State { cluster, queues, .. } = &self.state;
        let setting = Setting { cluster, queues, within_node: self.within_node };
        let read = match file == Path::new("-") {
            true => setting.read_job_from(std::io::stdin().lock(), "standard input", self.now),
            false => setting.read_job(file, self.now),
        };
        Ok(read?)
    }

    /// Whether the question makes sense here.
    fn check(&self, job: &Arrival) -> Result<(), Failure> {
        let (policy, name) = (&self.state.policy, &job.spec.name);
        if policy.gangs == Gangs::MemberByMember {
            let failure = Failure::input(format!("look ahead under policy `{}`", policy.name));
            return Err(failure.hint(
                "it places members one by one, and only the world knows which wait for each other; \
                 ask about a policy that places gangs whole",
            ));
        }
        if self.state.jobs.iter().any(|(_, other)| other.spec.name == *name) {
            let failure = Failure::input(format!("submit a second job called `{name}`"));
            return Err(
                failure.hint("`metronome explain` says when the first will start; or rename the second")
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAIR: &str = include_str!("../../tests/cmd/world/what-if.in/pair.yaml");

    #[test]
    fn answers_for_programs_are_what_the_schema_says() {
        let scenario = Scenario::read_from(PAIR.as_bytes(), "pair.yaml", Path::new("")).unwrap();
        let options = RunOptions::new(metronome_core::model::policy::Policy::named("volcano").unwrap());
        let state = world::state_at(&scenario, options, Instant::START);
        let mut spec = (*scenario.arrivals(1)[0].spec).clone();
        spec.priority = metronome_core::model::job::Priority::HIGH;
        let taken = what_if(&state, Instant::START, spec.clone().into());
        spec.roles[0].gang = metronome_core::model::job::Gang::rigid(100).unwrap();
        let refused = what_if(&state, Instant::START, spec.into());
        for answer in [taken, refused] {
            let document = what_if_document("x", Instant::START, &answer, &state);
            crate::schema::assert_conforms("what-if", &document);
        }
    }
}

//! `metronome wait`

use std::io::IsTerminal;
use std::pin::pin;
use std::time::Duration as Span;

use clap::{Args, ValueEnum};
use futures::StreamExt;
use indicatif::ProgressBar;

use metronome_core::model::units::Duration;
use metronome_kubernetes::objects::{Phase, TrainingJob, TrainingJobStatus};

use crate::cluster::{JobArgs, JobRef, wait_for};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::reply::Reply;

/// Wait for a training job in a cluster, and say how it gets on
///
/// Ends with 0 when it has come to what is waited for, with 1 when it never will, with 3 when the time is over.
#[derive(Debug, Args)]
pub(crate) struct Wait {
    #[command(flatten)]
    job: JobArgs,
    /// What to wait for
    #[arg(long = "for", value_name = "WHAT", value_enum, default_value_t = Goal::Completed)]
    goal: Goal,
    /// For how long, such as 90s or 2h; for ever, if not given
    #[arg(long, value_name = "TIME")]
    timeout: Option<Duration>,
}

/// The variants carry no doc comments: clap would make the help twice as long with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Goal {
    // All members have a node.
    Placed,
    // All members run.
    Running,
    // It is done, and well.
    Completed,
    // It is over, one way or the other.
    Ended,
    // It is gone.
    Deleted,
}

pub(crate) fn run(args: &Wait) -> Result<Reply, Failure> {
    wait_for(async {
        let job = args.job.open().await?;
        let first = job.get().await?;
        let mut line = Line::new();
        let outcome = until(&job, &first, args.goal, &mut line);
        let outcome = match args.timeout {
            None => Ok(outcome.await),
            Some(span) => tokio::time::timeout(Span::from_nanos(span.0), outcome).await,
        };
        match outcome {
            Ok(Outcome::Reached(how)) => Ok(Reply::nothing().remarking(format!("{job} {how}"))),
            Ok(Outcome::Never(why)) => {
                Ok(Reply::nothing().remarking(format!("{job} {why}")).ending(Exit::FellShort))
            }
            Err(_) => Err(too_long(&job, args, &line)),
        }
    })
}

fn too_long(job: &JobRef, args: &Wait, line: &Line) -> Failure {
    let span = args.timeout.unwrap_or_default();
    let failure = Failure::world(format!("wait longer than {span} for {job}"));
    match &line.said {
        Some(said) => failure.hint(format!("the last that is known: it {said}")),
        None => failure,
    }
}

/// How the waiting ended, in words that fit after the job's name.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Reached(String),
    Never(String),
}

/// Follows the job until it is decided whether it comes to the goal.
async fn until(job: &JobRef, first: &TrainingJob, goal: Goal, line: &mut Line) -> Outcome {
    let mut seen = pin!(job.watch());
    while let Some(seen) = seen.next().await {
        let now = match seen {
            Ok(now) => now.filter(|now| now.metadata.uid == first.metadata.uid),
            Err(error) => {
                line.say(format!("cannot be looked at, which is tried again: {error}"));
                continue;
            }
        };
        if let Some(outcome) = outcome(now.as_ref(), goal) {
            return outcome;
        }
        line.say(now.map_or_else(String::new, |now| standing(&now)));
    }
    unreachable!("a watch is taken up again for ever")
}

/// Whether it is decided; `None` stands for a job that is gone.
fn outcome(job: Option<&TrainingJob>, goal: Goal) -> Option<Outcome> {
    let reached = |how: &str| Some(Outcome::Reached(how.to_owned()));
    let Some(job) = job else {
        let gone = "is gone".to_owned();
        return Some(if goal == Goal::Deleted { Outcome::Reached(gone) } else { Outcome::Never(gone) });
    };
    let status = &job.status;
    match (goal, status.phase) {
        (Goal::Deleted, _) => None,
        (Goal::Completed | Goal::Ended, Some(Phase::Succeeded)) => reached("has succeeded"),
        (Goal::Ended, Some(Phase::Failed)) => reached(&format!("has failed: {}", status.message)),
        (_, Some(Phase::Failed)) => Some(Outcome::Never(format!("has failed: {}", status.message))),
        (_, Some(Phase::Succeeded)) => Some(Outcome::Never("is over".to_owned())),
        // What is said is about an earlier version of the object.
        _ if status.observed_generation < job.metadata.generation => None,
        (_, Some(Phase::Refused)) => Some(Outcome::Never(format!("is refused: {}", status.message))),
        (Goal::Placed, Some(Phase::Running)) => reached("has all its members on nodes"),
        (Goal::Running, Some(Phase::Running)) if all_run(status) => reached("runs, with all its members"),
        _ => None,
    }
}

fn all_run(status: &TrainingJobStatus) -> bool {
    status.roles.iter().all(|role| role.running + role.succeeded >= role.wanted)
}

/// How it stands, in words that fit after its name.
fn standing(job: &TrainingJob) -> String {
    let status = &job.status;
    let mut said = match status.phase {
        None => return "has not been looked at by a scheduler yet".to_owned(),
        Some(Phase::Running) => format!("runs, {} members", status.members),
        Some(Phase::Waiting) => "waits".to_owned(),
        Some(Phase::Restarting) => "is being started again".to_owned(),
        Some(Phase::Suspended) => "is suspended".to_owned(),
        Some(Phase::Refused) => "is refused".to_owned(),
        Some(Phase::Succeeded) => "has succeeded".to_owned(),
        Some(Phase::Failed) => "has failed".to_owned(),
    };
    if let Some(position) = &status.position {
        said += &format!(", {position} in line");
    }
    if let Some(starts) = &status.starts {
        said += &format!(", starts {starts}");
    }
    if let Some(ends) = &status.ends {
        said += &format!(", ends {ends}");
    }
    if status.phase != Some(Phase::Running) && !status.message.is_empty() {
        said += &format!(": {}", status.message);
    }
    said
}

/// What is said on standard error: one line that changes on a terminal, a line for each change elsewhere.
struct Line {
    said: Option<String>,
    bar: Option<ProgressBar>,
}

impl Line {
    fn new() -> Self {
        let bar = std::io::stderr().is_terminal().then(ProgressBar::new_spinner);
        if let Some(bar) = &bar {
            bar.enable_steady_tick(Span::from_millis(200));
        }
        Self { said: None, bar }
    }

    fn say(&mut self, said: String) {
        if self.said.as_ref() == Some(&said) || said.is_empty() {
            return;
        }
        match &self.bar {
            Some(bar) => bar.set_message(said.clone()),
            None => eprintln!("{said}"),
        }
        self.said = Some(said);
    }
}

/// The line is gone once the waiting is over.
impl Drop for Line {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use kube::api::{ApiResource, DynamicObject};
    use metronome_kubernetes::objects::TrainingJobObject;
    use serde_json::{Value, json};

    use super::*;

    fn job(status: &Value) -> TrainingJob {
        let object = json!({
            "metadata": {"name": "bert", "namespace": "team-a", "generation": 2},
            "spec": {"image": "none"}, "status": status,
        });
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        TrainingJob::read(&ApiResource::erase::<TrainingJobObject>(&()), &object)
    }

    fn phase(phase: &str) -> TrainingJob {
        job(&json!({"phase": phase, "message": "so it is", "observedGeneration": 2}))
    }

    #[test]
    fn who_waits_for_the_end_learns_whether_it_is_a_good_one() {
        let is = |phase_is: &str, goal| outcome(Some(&phase(phase_is)), goal);
        let reached = |how: &str| Some(Outcome::Reached(how.to_owned()));
        let never = |why: &str| Some(Outcome::Never(why.to_owned()));
        assert_eq!(is("Running", Goal::Completed), None);
        assert_eq!(is("Succeeded", Goal::Completed), reached("has succeeded"));
        assert_eq!(is("Failed", Goal::Completed), never("has failed: so it is"));
        assert_eq!(is("Failed", Goal::Ended), reached("has failed: so it is"));
        assert_eq!(is("Refused", Goal::Completed), never("is refused: so it is"));
        assert_eq!(is("Suspended", Goal::Completed), None);
        assert_eq!(is("Succeeded", Goal::Placed), never("is over"));
        assert_eq!(is("Succeeded", Goal::Deleted), None);
        assert_eq!(outcome(None, Goal::Deleted), reached("is gone"));
        assert_eq!(outcome(None, Goal::Completed), never("is gone"));
    }

    #[test]
    fn what_was_said_of_an_earlier_version_counts_for_nothing() {
        let old = job(&json!({"phase": "Refused", "observedGeneration": 1}));
        assert_eq!(outcome(Some(&old), Goal::Completed), None);
    }

    #[test]
    fn a_job_runs_when_all_its_members_do() {
        let with = |running: u32| {
            let roles =
                json!([{"name": "worker", "wanted": 3, "placed": 3, "running": running, "succeeded": 0}]);
            job(&json!({"phase": "Running", "observedGeneration": 2, "roles": roles}))
        };
        assert_eq!(outcome(Some(&with(2)), Goal::Running), None);
        assert!(outcome(Some(&with(2)), Goal::Placed).is_some());
        assert!(outcome(Some(&with(3)), Goal::Running).is_some());
    }

    #[test]
    fn it_is_said_where_it_stands_in_line_and_why_it_waits() {
        let waits = json!({
            "phase": "Waiting", "message": "needs 4 GPUs, 2 are free", "position": "2 of 5",
            "starts": "2026-11-16T14:20Z", "ends": "2026-11-16T16:00Z to 2026-11-16T17:00Z",
        });
        assert_eq!(
            standing(&job(&waits)),
            "waits, 2 of 5 in line, starts 2026-11-16T14:20Z, ends 2026-11-16T16:00Z to 2026-11-16T17:00Z: \
             needs 4 GPUs, 2 are free"
        );
        assert_eq!(standing(&job(&json!({"phase": "Running", "members": "4/4"}))), "runs, 4/4 members");
    }
}

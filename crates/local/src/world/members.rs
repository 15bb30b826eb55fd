//! Members of jobs: how they are looked after, how they fail, leave and complete.

use std::fs;

use metronome_core::engine::{Ending, Event};
use metronome_core::model::cluster::NodeState;
use metronome_core::model::cpu_weight::CpuWeight;
use metronome_core::model::id::NodeId;
use metronome_core::model::plan::{Assignment, StepId};
use metronome_core::model::report::Failure;
use metronome_core::model::units::{Duration, Instant};

use super::course::{Doing, Then, Up};
use super::failures::first_to_fail;
use super::outcome::Fate;
use super::{Told, World};
use crate::error::{LocalError, Result};
use crate::fault::{self, FaultPoint};
use crate::names::MemberNumber;
use crate::process::{How, Status};

/// The least time that a member has to save and leave when it is asked to.
const LEAST_GRACE: Duration = Duration::from_secs(10);

/// After a first failure; doubled for each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The number of tries to remove a member's network, control group and folder before they are left for `local clean`.
const MAX_REMOVAL_TRIES: u32 = 10;

impl World<'_> {
    pub(super) fn look_at_members(&mut self) {
        (0..self.courses.len()).for_each(|index| self.look_at_members_of(index));
    }

    pub(super) fn look_at_members_of(&mut self, index: usize) {
        let looked = match &self.courses[index].doing {
            Doing::Up(_) => self.look_at_those_up(index),
            Doing::Leaving { retry, .. } if retry.at <= self.now() => self.look_at_those_leaving(index),
            Doing::Pausing { until, held } if *until <= self.now() => {
                let held = held.clone();
                self.start(index, &held, None);
                Ok(())
            }
            Doing::Out | Doing::Leaving { .. } | Doing::Pausing { .. } | Doing::Over(_) => Ok(()),
        };
        if let Err(error) = looked {
            self.contain(index, &error);
        }
    }

    /// Keeps an error to its job: a job that runs is started again, and what cannot be removed is tried again a few times,
    /// then left for `local clean`.
    fn contain(&mut self, index: usize, error: &LocalError) {
        let (now, what) = (self.now(), format!("cannot {error}"));
        (self.tell)(Told::Trouble { job: Some(&self.setup.jobs[index].spec.name), what: &what });
        let Doing::Leaving { seats, retry, .. } = &mut self.courses[index].doing else {
            return self.failed(index, None, &what);
        };
        *retry = retry.after_error(now);
        if retry.tries >= MAX_REMOVAL_TRIES {
            let left: Vec<MemberNumber> = seats.drain(..).map(|seat| seat.number).collect();
            left.into_iter().for_each(|number| self.abandon(number, error));
        }
    }

    fn look_at_those_up(&mut self, index: usize) -> Result<()> {
        let Doing::Up(up) = &mut self.courses[index].doing else { return Ok(()) };
        let mut statuses = Vec::new();
        for seat in &mut up.seats {
            statuses.push(seat.member.status()?);
        }
        if let Some(at) = first_to_fail(&statuses) {
            let (node, why) = (up.seats[at].node, how_it_ended(&statuses[at]));
            let kind = self.setup.jobs[index].spec.roles[usize::from(up.seats[at].role)].kind;
            let who = format!("{}-{}", super::rendezvous::word(kind), up.seats[at].index);
            let why = format!("{who} {why}");
            self.report_failure(index, at, &statuses[at], &why);
            self.failed(index, Some(node), &why);
            return Ok(());
        }
        if statuses.iter().all(has_ended_well) {
            return self.completed(index);
        }
        let all_run =
            statuses.iter().all(|status| matches!(status, Status::Running { .. } | Status::Ended(_)));
        if all_run && let Some(step) = up.step.take() {
            let held = up.held.clone();
            self.has_started(index, step, &held);
        }
        Ok(())
    }

    fn has_started(&mut self, index: usize, step: StepId, held: &Assignment) {
        let now = self.now();
        let course = &mut self.courses[index];
        course.tally.started.get_or_insert(now);
        self.changed = true;
        let nodes = held.nodes().map(|node| &*self.setup.cluster.node(node).name).collect();
        (self.tell)(Told::Started { job: &self.setup.jobs[index].spec.name, nodes });
        let job = course.id.expect("it was submitted");
        self.engine.observe(now, Event::StepDone { job, step });
    }

    fn completed(&mut self, index: usize) -> Result<()> {
        let now = self.now();
        self.courses[index].tally.ended.get_or_insert(now);
        let seats = self.courses[index].take_seats();
        self.courses[index].leaves(seats, Then::End(Fate::Completed), now);
        self.look_at_those_leaving(index)
    }

    /// Counts a failure of the present start, once; whether the job has now failed for good.
    pub(super) fn is_given_up(&mut self, index: usize, why: &str) -> bool {
        // A job that has saved something since its last failure makes progress, however slowly.
        let saved = self.last_saved(index);
        let course = &mut self.courses[index];
        if saved > course.saved {
            (course.saved, course.tally.failures) = (saved, 0);
        }
        if course.tally.failed_start != Some(course.tally.starts) {
            course.tally.failed_start = Some(course.tally.starts);
            course.tally.failures += 1;
        }
        course.tally.why = Some(why.to_owned());
        course.tally.failures > self.setup.jobs[index].failures
    }

    /// A member has failed: all others are ended, and all are started again where they were, unless that has been tried
    /// often enough.
    fn failed(&mut self, index: usize, node: Option<NodeId>, why: &str) {
        let now = self.now();
        let spec = self.setup.jobs[index].spec.clone();
        let gives_up = self.is_given_up(index, why);
        if let Some(node) = node.filter(|node| !self.is_lost(*node)) {
            self.engine.observe(now, Event::MemberFailed { node, of: spec.name.clone() });
        }
        let Doing::Up(Up { held, step, .. }) = &self.courses[index].doing else { return };
        let (held, step) = (held.clone(), *step);
        let then = match (gives_up, step, self.courses[index].id) {
            (true, ..) => Then::End(Fate::Failed),
            // Whoever has not run yet may do better elsewhere.
            (false, Some(step), Some(job)) => {
                self.engine.observe(now, Event::StepFailed { job, step, failure: Failure::Other });
                Then::Done(None)
            }
            (false, ..) => Then::Again { held, why: why.to_owned() },
        };
        let seats = self.courses[index].take_seats();
        self.courses[index].leaves(seats, then, now);
        self.changed = true;
    }

    /// When something in the job's folder of checkpoints last changed.
    fn last_saved(&self, index: usize) -> Option<std::time::SystemTime> {
        let folder = self.folder.checkpoints(&self.setup.jobs[index].key()).ok()?;
        let files = fs::read_dir(folder).ok()?.flatten();
        files.filter_map(|file| file.metadata().ok()?.modified().ok()).max()
    }

    fn is_lost(&self, node: NodeId) -> bool {
        self.engine.state().cluster.node(node).state == NodeState::Gone
    }

    /// Asks all members to leave, or ends them at once. A member that cannot be asked is killed.
    pub(super) fn leave(&mut self, index: usize, then: Then, at_once: bool) {
        let now = self.now();
        self.changed = true;
        let takes = self.setup.jobs[index].spec.checkpointing.map(|costs| costs.takes).unwrap_or_default();
        let mut grace = if at_once { Duration::ZERO } else { takes.times(3).max(LEAST_GRACE) };
        let mut seats = self.courses[index].take_seats();
        if !at_once {
            for seat in &mut seats {
                // A member ends its iteration first, within its grace period; the jobs beside it wait for that long.
                if let Some(group) = seat.member.group().filter(|_| self.rights.cpu) {
                    let _ = group.set_cpu_weight(CpuWeight::MOST.get());
                    fault::after(FaultPoint::WeightRaised);
                }
                if seat.member.ask_to_leave().is_err() {
                    grace = Duration::ZERO;
                }
            }
        }
        self.courses[index].leaves(seats, then, now + grace);
    }

    fn look_at_those_leaving(&mut self, index: usize) -> Result<()> {
        let now = self.now();
        let Doing::Leaving { seats, killed_at, then, .. } = &mut self.courses[index].doing else {
            return Ok(());
        };
        let ends = matches!(then, Then::End(_));
        for seat in seats.iter_mut() {
            if !has_ended(&seat.member.status()?) {
                if now < *killed_at {
                    return Ok(());
                }
                seat.member.kill()?;
            }
        }
        if ends && !self.is_end_recorded(index)? {
            return Ok(());
        }
        while let Doing::Leaving { seats, .. } = &mut self.courses[index].doing
            && let Some(mut seat) = seats.pop()
        {
            if let Err(error) = self.clear(&mut seat) {
                if let Doing::Leaving { seats, .. } = &mut self.courses[index].doing {
                    seats.push(seat);
                }
                return Err(error);
            }
        }
        if let Doing::Leaving { then, .. } = std::mem::take(&mut self.courses[index].doing) {
            self.have_left(index, then);
        }
        Ok(())
    }

    /// Whether the state file says that the job is over. Only then may its members go: from then on the job is over,
    /// whatever becomes of this process. A full disk is waited for.
    fn is_end_recorded(&mut self, index: usize) -> Result<bool> {
        if self.courses[index].end_recorded {
            return Ok(true);
        }
        match self.write_book() {
            Err(LocalError::DiskFull { .. }) => Ok(false),
            Err(error) => Err(error),
            Ok(()) => {
                fault::after(FaultPoint::JobEndRecorded);
                self.courses[index].end_recorded = true;
                Ok(true)
            }
        }
    }

    fn have_left(&mut self, index: usize, then: Then) {
        let now = self.now();
        self.changed = true;
        match then {
            Then::Done(step) => {
                self.say_what_is_done(index, now);
                if let (Some(step), Some(job)) = (step, self.courses[index].id) {
                    self.engine.observe(now, Event::StepDone { job, step });
                }
            }
            Then::Start { to, step } => {
                self.say_what_is_done(index, now);
                self.start(index, &to, Some(step));
            }
            Then::Again { held, why } => {
                self.courses[index].tally.restarts += 1;
                (self.tell)(Told::Restarted { job: &self.setup.jobs[index].spec.name, why: &why });
                let doubled = FIRST_PAUSE.times(1 << self.courses[index].tally.failures.min(8));
                let until = now + doubled.min(LONGEST_PAUSE);
                self.courses[index].doing = Doing::Pausing { held, until };
            }
            Then::End(fate) => {
                self.courses[index].end(fate, now);
                let how = if fate == Fate::Completed { Ending::Completed } else { Ending::Failed };
                if let Some(job) = self.courses[index].id {
                    self.engine.observe(now, Event::JobEnded { job, how });
                }
                (self.tell)(Told::Ended { job: &self.setup.jobs[index].spec.name, how: fate.word() });
            }
        }
    }

    /// What was done and saved, where it reports that.
    fn say_what_is_done(&mut self, index: usize, now: Instant) {
        let work = self.setup.jobs[index].spec.work;
        let (Some(all), Some(alone), Some(job)) = (work.iterations, work.alone, self.courses[index].id)
        else {
            return;
        };
        let part = self.courses[index].tally.iterations as f64 / (all.0.max(1)) as f64;
        let executed = Duration((alone.0 as f64 * part.min(1.0)) as u64);
        self.engine.observe(now, Event::Worked { job, executed });
    }
}

fn has_ended(status: &Status) -> bool {
    matches!(status, Status::Ended(_) | Status::Lost)
}

fn has_ended_well(status: &Status) -> bool {
    matches!(status, Status::Ended(ended) if ended.how == How::Exit(0))
}

fn how_it_ended(status: &Status) -> String {
    match status {
        Status::Ended(ended) => match &ended.how {
            How::Exit(code) => format!("ended with {code}"),
            How::Signal(signal) => format!("was killed by signal {signal}"),
            How::NotStarted(why) => format!("was not started: {why}"),
        },
        Status::Lost => "was lost".to_owned(),
        Status::Starting | Status::Running { .. } => "runs".to_owned(),
    }
}

//! Members of jobs: how they come, how they are looked after, how they go.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;

use metronome_core::cluster::NodeState;
use metronome_core::cpu::CpuWeight;
use metronome_core::engine::{Ending, Event};
use metronome_core::id::NodeId;
use metronome_core::job::RoleKind;
use metronome_core::plan::{Assignment, StepId};
use metronome_core::report::Failure;
use metronome_core::units::{Cpu, Duration, Instant, Memory};
use serde_json::json;

use super::course::{Doing, Seat, Then, Up};
use super::failures::first_to_fail;
use super::outcome::Fate;
use super::rendezvous::{Seated, environments, host_identity};
use super::{Told, World};
use crate::error::{LocalError, Result};
use crate::fault::{self, FaultPoint};
use crate::names::MemberNumber;
use crate::process::{HostIdentity, How, Member, Spec, Status};

/// Where members listen that have an address of their own.
const PORT: u16 = 29_400;

/// Whoever is asked to leave has at least so long.
const LEAST_GRACE: Duration = Duration::from_secs(10);

/// After a first failure; doubled for each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// So often it is tried to remove what a member has before it is left for `local clean`.
const MAX_REMOVAL_TRIES: u32 = 10;

impl World<'_> {
    /// Starts all members of a job, or none.
    pub(super) fn start(&mut self, index: usize, to: &Arc<Assignment>, step: Option<StepId>) {
        self.courses[index].tally.starts += 1;
        self.changed = true;
        // The number of an attempt names its logs: it is never used twice. A full disk is no reason not to start.
        let _ = self.write_book();
        fault::after(FaultPoint::AttemptRecorded);
        let mut seats = Vec::new();
        match self.seat_all(index, to, &mut seats) {
            Ok(()) => self.courses[index].doing = Doing::Up(Up { held: to.clone(), seats, step }),
            Err(error) => self.start_failed(index, to, step, seats, &error),
        }
    }

    /// The members that were started are ended. Where the engine asked for the start it decides what comes next.
    fn start_failed(
        &mut self,
        index: usize,
        to: &Arc<Assignment>,
        step: Option<StepId>,
        seats: Vec<Seat>,
        error: &LocalError,
    ) {
        let (now, why) = (self.now(), format!("cannot {error}"));
        (self.tell)(Told::Trouble { job: Some(&self.setup.jobs[index].spec.name), what: &why });
        let then = match (step, self.courses[index].id) {
            (Some(step), Some(job)) => {
                self.courses[index].tally.why = Some(why);
                self.courses[index].tally.log = None;
                self.engine.observe(now, Event::StepFailed { job, step, failure: Failure::Other });
                Then::Done(None)
            }
            _ if self.is_given_up(index, &why) => Then::End(Fate::Failed),
            _ => Then::Again { held: to.clone(), why },
        };
        self.courses[index].leaves(seats, then, now);
    }

    /// Every member that was started is in `seats`, also after an error.
    fn seat_all(&mut self, index: usize, to: &Assignment, seats: &mut Vec<Seat>) -> Result<()> {
        let seated = self.plan_seats(index, to)?;
        // Networks before processes: a member that calls another too early is answered, not left waiting.
        let plugged = seated.iter().try_for_each(|seated| match &mut self.hosts {
            Some(hosts) => hosts.plug(seated.number, seated.node).map(drop),
            None => Ok(()),
        });
        let done = plugged.and_then(|()| self.seat_each(index, to, &seated, seats));
        if done.is_err() {
            let started = seats.len();
            seated[started..].iter().for_each(|seated| self.discard(seated.number));
        }
        done
    }

    fn seat_each(
        &mut self,
        index: usize,
        to: &Assignment,
        seated: &[Seated],
        seats: &mut Vec<Seat>,
    ) -> Result<()> {
        let task = self.write_task(index)?;
        fault::after(FaultPoint::TaskWritten);
        let environments = environments(&self.setup.jobs[index], self.courses[index].tally.starts, seated);
        for (own, mut environment) in seated.iter().zip(environments) {
            let folder = self.folder.member(own.number)?;
            let job = self.setup.jobs[index].key();
            let checkpoints = self.folder.checkpoints(&job)?;
            let record = checkpoints.parent().unwrap_or(&checkpoints).join("iterations.csv");
            let mut say = |name: &str, value: String| environment.insert(name.to_owned(), value);
            say("METRONOME_DIR", folder.display().to_string());
            say("METRONOME_CHECKPOINT_DIR", checkpoints.display().to_string());
            say("METRONOME_RECORD", record.display().to_string());
            if let Some(task) = &task {
                say("METRONOME_TASK", task.display().to_string());
            }
            if let Some(agent) = &self.agent {
                say("METRONOME_SOCKET", agent.socket().display().to_string());
                say("METRONOME_TOKEN", agent.token_of(&job));
            }
            fault::after(FaultPoint::MemberFolderMade);
            let host = host_identity(&self.setup.jobs[index], seated, own);
            let seat = self.seat(index, own, environment, host)?;
            seats.push(seat);
        }
        self.say_size(index, to, seats)?;
        fault::after(FaultPoint::SizeWritten);
        Ok(())
    }

    /// Which member runs on which node, each with a number that is free.
    fn plan_seats(&self, index: usize, to: &Assignment) -> Result<Vec<Seated>> {
        let job = &self.setup.jobs[index];
        let mut wanted: Vec<(u8, NodeId, u32)> = Vec::new();
        let mut counts: BTreeMap<RoleKind, u32> = BTreeMap::new();
        for part in to.parts() {
            let members = if job.is_one_process { u32::from(wanted.is_empty()) } else { part.members };
            for _ in 0..members {
                let count = counts.entry(job.spec.roles[usize::from(part.role)].kind).or_default();
                wanted.push((part.role, part.node, *count));
                *count += 1;
            }
        }
        // Servers before those who work, and a chief before others.
        wanted.sort_by_key(|(role, ..)| job.spec.roles[usize::from(*role)].kind);
        let taken = self.courses.iter().flat_map(|course| course.seats()).map(|seat| seat.number);
        let taken: BTreeSet<MemberNumber> = taken.chain(self.abandoned.iter().copied()).collect();
        let mut free = (0..MemberNumber::MOST).map(MemberNumber).filter(|number| !taken.contains(number));
        let mut seated = Vec::new();
        for (role, node, place) in wanted {
            let number = free.next().ok_or(LocalError::TooMany { most: MemberNumber::MOST })?;
            let address = match &self.hosts {
                Some(_) => SocketAddr::from((number.address(), PORT)),
                None => TcpListener::bind("127.0.0.1:0")
                    .and_then(|listener| listener.local_addr())
                    .map_err(|source| LocalError::Missing(source.to_string()))?,
            };
            let job = &self.setup.jobs[index];
            let kind = job.spec.roles[usize::from(role)].kind;
            let on = self.setup.cluster.node(node).name.to_string();
            seated.push(Seated { number, node, role, kind, index: place, on, address });
        }
        Ok(seated)
    }

    fn seat(
        &mut self,
        index: usize,
        seated: &Seated,
        environment: BTreeMap<String, String>,
        host: Option<HostIdentity>,
    ) -> Result<Seat> {
        let job = &self.setup.jobs[index];
        let each = job.spec.roles[usize::from(seated.role)].shape.each;
        let folder = self.folder.member(seated.number)?;
        let group = self.groups.make(seated.number)?;
        // Who shares cores with others may use more than it asks for, as its weight allows.
        let most = job.spec.work.cpu.map(|most| Cpu(most.0 / u64::from(job.spec.members().max(1))));
        let cores = most.unwrap_or(each.cpu);
        if self.rights.cpu && !cores.is_zero() && !job.is_one_process {
            group.set_cpus(cores)?;
        }
        if self.rights.memory && each.memory > Memory::ZERO {
            group.set_memory(each.memory)?;
        }
        fault::after(FaultPoint::LimitsSet);
        let program = &job.programs[usize::from(seated.role)];
        let namespace = self.hosts.as_ref().and_then(|hosts| hosts.plugged(seated.number));
        let spec = Spec {
            command: program.command.clone(),
            environment,
            namespace: namespace.map(|plug| plug.namespace.path()),
            host,
            entrances: group.entrances(),
            ..Spec::of(&[])
        };
        let member = Member::start(&self.setup.programs.shim, &folder, &spec, Some(group))?;
        let Seated { number, node, role, index, .. } = *seated;
        Ok(Seat { number, node, role, index, member })
    }

    fn write_task(&self, index: usize) -> Result<Option<PathBuf>> {
        let job = &self.setup.jobs[index];
        let Some(task) = &job.task else { return Ok(None) };
        let checkpoints = self.folder.checkpoints(&job.key())?;
        let file = checkpoints.parent().unwrap_or(&checkpoints).join("task.json");
        crate::state::write(&file, task)?;
        Ok(Some(file))
    }

    /// What a member may use is limited, and said to whoever cares.
    pub(super) fn say_size(&self, index: usize, held: &Assignment, seats: &[Seat]) -> Result<()> {
        let is_one_process = self.setup.jobs[index].is_one_process;
        for seat in seats {
            let each = self.setup.jobs[index].spec.roles[usize::from(seat.role)].shape.each;
            let cores = if is_one_process { held.total().cpu } else { each.cpu };
            if is_one_process
                && self.rights.cpu
                && let Some(group) = seat.member.group()
            {
                group.set_cpus(cores)?;
            }
            let size = json!({"cpus": cores.0 as f64 / Cpu::cores(1).0 as f64, "members": seats.len()});
            crate::state::write(&seat.member.folder().join("size.json"), &size)?;
        }
        Ok(())
    }

    /// Removes what a member has, once it has ended. Its log stays with its job. After an error it is called again: what
    /// is gone already is skipped.
    pub(super) fn clear(&mut self, seat: &mut Seat) -> Result<()> {
        if matches!(seat.member.status()?, Status::Starting | Status::Running { .. }) {
            seat.member.kill()?;
        }
        self.remove_pieces(seat.number)
    }

    /// Removes network, control group and folder of a number. A process that left its session ends with the group.
    fn remove_pieces(&mut self, number: MemberNumber) -> Result<()> {
        if let Some(hosts) = &mut self.hosts {
            hosts.unplug(number)?;
        }
        self.groups.find(number).remove()?;
        fault::after(FaultPoint::GroupRemoved);
        self.folder.forget(number)?;
        fault::after(FaultPoint::MemberFolderRemoved);
        Ok(())
    }

    /// Kills and removes whatever there is of a number that belongs to no job.
    pub(super) fn discard(&mut self, number: MemberNumber) {
        let group = self.groups.find(number);
        let folder = self.folder.member(number);
        let ended = folder.and_then(|folder| Member::adopt(&folder, Some(group))?.kill());
        if let Err(error) = ended.and_then(|()| self.remove_pieces(number)) {
            self.abandon(number, &error);
        }
    }

    /// The number is not used again: something of it is left.
    fn abandon(&mut self, number: MemberNumber, error: &LocalError) {
        let what = format!("cannot {error}; `metronome local clean` tries again when the world has ended");
        (self.tell)(Told::Trouble { job: None, what: &what });
        self.abandoned.insert(number);
    }

    /// Members on a host that has vanished are gone with it.
    pub(super) fn lose(&mut self, lost: &[MemberNumber]) {
        for course in &mut self.courses {
            for seat in course.seats_mut().iter_mut().filter(|seat| lost.contains(&seat.number)) {
                if let Err(error) = seat.member.kill() {
                    (self.tell)(Told::Trouble { job: None, what: &format!("cannot {error}") });
                }
            }
        }
    }

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
    fn is_given_up(&mut self, index: usize, why: &str) -> bool {
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
                // A member has to end its iteration first and has only so much time: others train on when it has.
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

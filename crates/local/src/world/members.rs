//! Members of jobs: how they come, how they are looked after, how they go.

use std::collections::BTreeMap;
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
use crate::error::Result;
use crate::names::MemberNumber;
use crate::process::{HostIdentity, How, Member, Spec, Status};

/// Where members listen that have an address of their own.
const PORT: u16 = 29_400;

/// Whoever is asked to leave has at least so long.
const LEAST_GRACE: Duration = Duration::from_secs(10);

/// After a first failure; doubled for each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

impl World<'_> {
    /// Starts all members of a job, or none.
    pub(super) fn start(&mut self, index: usize, to: &Arc<Assignment>, step: Option<StepId>) -> Result<()> {
        self.courses[index].tally.starts += 1;
        self.changed = true;
        let now = self.now();
        let mut seats = Vec::new();
        match self.seat_all(index, to, &mut seats) {
            Ok(()) => {
                self.courses[index].doing = Doing::Up(Up { held: to.clone(), seats, step });
                Ok(())
            }
            Err(error) => {
                self.courses[index].tally.why = Some(format!("cannot {error}"));
                self.courses[index].tally.log = None;
                for seat in seats {
                    self.clear(seat)?;
                }
                self.courses[index].doing = Doing::Out;
                match (step, self.courses[index].id) {
                    (Some(step), Some(job)) => {
                        self.engine.observe(now, Event::StepFailed { job, step, failure: Failure::Other });
                    }
                    _ => self.give_up(index, Fate::Failed)?,
                }
                Ok(())
            }
        }
    }

    /// Everybody who was seated is in `seats`, also if somebody could not be.
    fn seat_all(&mut self, index: usize, to: &Assignment, seats: &mut Vec<Seat>) -> Result<()> {
        let seated = self.plan_seats(index, to)?;
        let task = self.write_task(index)?;
        let environments = environments(&self.setup.jobs[index], self.courses[index].tally.starts, &seated);
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
            let host = host_identity(&self.setup.jobs[index], &seated, own);
            let seat = self.seat(index, own, environment, host)?;
            seats.push(seat);
        }
        self.say_size(index, to, seats)
    }

    /// Who sits where, with numbers that nobody has.
    fn plan_seats(&mut self, index: usize, to: &Assignment) -> Result<Vec<Seated>> {
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
        let mut seated = Vec::new();
        for (role, node, place) in wanted {
            let taken = self.courses.iter().flat_map(|course| course.seats()).map(|seat| seat.number);
            let taken: Vec<MemberNumber> =
                taken.chain(seated.iter().map(|other: &Seated| other.number)).collect();
            let number =
                (0..).map(MemberNumber).find(|number| !taken.contains(number)).expect("some are free");
            let address = match &mut self.hosts {
                Some(hosts) => SocketAddr::from((hosts.plug(number, node)?.address, PORT)),
                None => TcpListener::bind("127.0.0.1:0")
                    .and_then(|listener| listener.local_addr())
                    .map_err(|source| crate::error::LocalError::Missing(source.to_string()))?,
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

    /// Takes away what a member has, once it has ended. What it has written is kept with its job.
    pub(super) fn clear(&mut self, mut seat: Seat) -> Result<()> {
        if matches!(seat.member.status()?, Status::Starting | Status::Running { .. }) {
            seat.member.kill()?;
        }
        if let Some(hosts) = &mut self.hosts {
            hosts.unplug(seat.number)?;
        }
        if let Some(group) = seat.member.group() {
            // Whoever was started and went its own way ends with its group.
            group.kill()?;
            group.remove()?;
        }
        self.folder.forget(seat.number)
    }

    /// Members on a host that has vanished are gone with it.
    pub(super) fn lose(&mut self, lost: &[MemberNumber]) -> Result<()> {
        for course in &mut self.courses {
            let seats = match &mut course.doing {
                Doing::Up(up) => &mut up.seats,
                Doing::Leaving { seats, .. } => seats,
                Doing::Out | Doing::Pausing { .. } | Doing::Over(_) => continue,
            };
            for seat in seats.iter_mut().filter(|seat| lost.contains(&seat.number)) {
                seat.member.kill()?;
            }
        }
        Ok(())
    }

    pub(super) fn look_at_members(&mut self) -> Result<()> {
        (0..self.courses.len()).try_for_each(|index| self.look_at_members_of(index))
    }

    pub(super) fn look_at_members_of(&mut self, index: usize) -> Result<()> {
        match &self.courses[index].doing {
            Doing::Up(_) => self.look_at_those_up(index),
            Doing::Leaving { .. } => self.look_at_those_leaving(index),
            Doing::Pausing { until, held } if *until <= self.now() => {
                let held = held.clone();
                self.start(index, &held, None)
            }
            Doing::Out | Doing::Pausing { .. } | Doing::Over(_) => Ok(()),
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
            return self.failed(index, node, &why);
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
        let seats = self.take_seats(index);
        self.courses[index].end(Fate::Completed, now);
        // From now on it is done, whatever becomes of us.
        self.write_book()?;
        if let Some(job) = self.courses[index].id {
            self.engine.observe(now, Event::JobEnded { job, how: Ending::Completed });
        }
        (self.tell)(Told::Ended { job: &self.setup.jobs[index].spec.name, how: Fate::Completed.word() });
        self.changed = true;
        seats.into_iter().try_for_each(|seat| self.clear(seat))
    }

    /// A member has failed: all others are ended, and all are started again where they were, unless that has been tried
    /// often enough.
    fn failed(&mut self, index: usize, node: NodeId, why: &str) -> Result<()> {
        let now = self.now();
        let spec = self.setup.jobs[index].spec.clone();
        // Whoever has saved something since the last time gets on, however slowly.
        let saved = self.last_saved(index);
        if saved > self.courses[index].saved {
            (self.courses[index].saved, self.courses[index].tally.failures) = (saved, 0);
        }
        self.courses[index].tally.failures += 1;
        self.courses[index].tally.why = Some(why.to_owned());
        let is_node_there = !self.is_lost(node);
        if is_node_there {
            self.engine.observe(now, Event::MemberFailed { node, of: spec.name.clone() });
        }
        let Doing::Up(Up { held, step, .. }) = &self.courses[index].doing else { return Ok(()) };
        let (held, step) = (held.clone(), *step);
        let gives_up = self.courses[index].tally.failures > self.setup.jobs[index].failures;
        let then = match (gives_up, step, self.courses[index].id) {
            (true, ..) => Then::End(Fate::Failed),
            // Whoever has not run yet may do better elsewhere.
            (false, Some(step), Some(job)) => {
                self.engine.observe(now, Event::StepFailed { job, step, failure: Failure::Other });
                Then::Done(None)
            }
            (false, ..) => Then::Again { held, why: why.to_owned() },
        };
        let seats = self.take_seats(index);
        self.courses[index].doing = Doing::Leaving { seats, then, killed_at: now };
        self.changed = true;
        Ok(())
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

    /// Asks all members to leave, or ends them at once.
    pub(super) fn leave(&mut self, index: usize, then: Then, at_once: bool) -> Result<()> {
        let now = self.now();
        self.changed = true;
        let takes = self.setup.jobs[index].spec.checkpointing.map(|costs| costs.takes).unwrap_or_default();
        let grace = if at_once { Duration::ZERO } else { takes.times(3).max(LEAST_GRACE) };
        let mut seats = self.take_seats(index);
        if !at_once {
            for seat in &mut seats {
                // It has to end its iteration first, and only so much time: others train on when it has.
                if let Some(group) = seat.member.group().filter(|_| self.rights.cpu) {
                    group.set_cpu_weight(CpuWeight::MOST.get())?;
                }
                seat.member.ask_to_leave()?;
            }
        }
        self.courses[index].doing = Doing::Leaving { seats, then, killed_at: now + grace };
        Ok(())
    }

    fn take_seats(&mut self, index: usize) -> Vec<Seat> {
        match std::mem::take(&mut self.courses[index].doing) {
            Doing::Up(up) => up.seats,
            Doing::Leaving { seats, .. } => seats,
            Doing::Out | Doing::Pausing { .. } | Doing::Over(_) => Vec::new(),
        }
    }

    fn look_at_those_leaving(&mut self, index: usize) -> Result<()> {
        let now = self.now();
        let Doing::Leaving { seats, killed_at, .. } = &mut self.courses[index].doing else { return Ok(()) };
        for seat in seats.iter_mut() {
            if !has_ended(&seat.member.status()?) {
                if now < *killed_at {
                    return Ok(());
                }
                seat.member.kill()?;
            }
        }
        let Doing::Leaving { seats, then, .. } = std::mem::take(&mut self.courses[index].doing) else {
            return Ok(());
        };
        for seat in seats {
            self.clear(seat)?;
        }
        self.have_left(index, then)
    }

    fn have_left(&mut self, index: usize, then: Then) -> Result<()> {
        let now = self.now();
        self.changed = true;
        match then {
            Then::Done(step) => {
                self.say_what_is_done(index, now);
                if let (Some(step), Some(job)) = (step, self.courses[index].id) {
                    self.engine.observe(now, Event::StepDone { job, step });
                }
                Ok(())
            }
            Then::Start { to, step } => {
                self.say_what_is_done(index, now);
                self.start(index, &to, Some(step))
            }
            Then::Again { held, why } => {
                self.courses[index].tally.restarts += 1;
                (self.tell)(Told::Restarted { job: &self.setup.jobs[index].spec.name, why: &why });
                let doubled = FIRST_PAUSE.times(1 << self.courses[index].tally.failures.min(8));
                let until = now + doubled.min(LONGEST_PAUSE);
                self.courses[index].doing = Doing::Pausing { held, until };
                Ok(())
            }
            Then::End(fate) => self.give_up(index, fate),
        }
    }

    fn give_up(&mut self, index: usize, fate: Fate) -> Result<()> {
        let now = self.now();
        self.courses[index].end(fate, now);
        self.write_book()?;
        if let Some(job) = self.courses[index].id {
            self.engine.observe(now, Event::JobEnded { job, how: Ending::Failed });
        }
        (self.tell)(Told::Ended { job: &self.setup.jobs[index].spec.name, how: fate.word() });
        Ok(())
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

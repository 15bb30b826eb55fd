//! The start of a gang: networks first, then processes; all members or none.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;

use metronome_core::engine::Event;
use metronome_core::model::id::NodeId;
use metronome_core::model::job::RoleKind;
use metronome_core::model::plan::{Assignment, StepId};
use metronome_core::model::report::Failure;
use metronome_core::model::units::{Cpu, Memory};
use serde_json::json;

use super::course::{Doing, Seat, Then, Up};
use super::outcome::Fate;
use super::rendezvous::{Seated, environments, host_identity};
use super::{Told, World};
use crate::error::{LocalError, Result};
use crate::fault::{self, FaultPoint};
use crate::names::MemberNumber;
use crate::process::{HostIdentity, Member, Spec};

/// Where members listen that have an address of their own.
const PORT: u16 = 29_400;

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
        // Parameter servers come first, then a chief, then workers.
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
        // A member that shares cores may use more than it requests, as its weight allows.
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

    /// Limits the cores of each member and writes its size into `size.json`.
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
}

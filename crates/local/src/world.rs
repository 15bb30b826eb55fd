//! The world: carries out the engine's steps on this machine and tells it what happens.
//!
//! One thread looks at everything in turn, many times a second. The state file ([`book`]) lists jobs and their members;
//! everything else that a world has on this machine is found by its name. So a scheduler that comes later goes on where
//! this one was ([`recovery`]): members run on meanwhile. [`fault`] lists every side effect and what a kill right after it
//! leaves behind. An error in one job never stops the world: see `World::contain`.

mod agent;
mod book;
mod course;
mod failures;
mod lanes;
mod members;
mod outcome;
mod recovery;
mod removal;
mod rendezvous;
mod setup;
mod start;
mod steps;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use metronome_core::engine::{Engine, Event, Settings};
use metronome_core::journal::Journal;
use metronome_core::model::id::JobId;
use metronome_core::model::units::{Duration, Instant, Moment};

use crate::cgroup::{Groups, Hierarchies};
use crate::cleanup::clean_but_folder;
use crate::clock;
use crate::error::{LocalError, Result};
use crate::fault::{self, FaultPoint};
use crate::hosts::Hosts;
use crate::names::MemberNumber;
use crate::rights::Rights;
use crate::state::WorldFolder;
use agent::Agent;
use book::Book;
use course::{Course, Doing};
pub use outcome::{Fate, JobOutcome, Outcome};
pub use setup::{Job, Mishap, Program, Programs, Setup};

/// So often everything is looked at.
const TICK: std::time::Duration = std::time::Duration::from_millis(10);

/// What somebody who watches is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told<'a> {
    /// Something that this machine does not let us do, and what follows.
    Missing {
        what: &'a str,
        follows: &'a str,
    },
    /// A world of this name was found running and goes on.
    Adopted {
        jobs: usize,
    },
    Started {
        job: &'a str,
        nodes: Vec<&'a str>,
    },
    /// A member has failed, and its gang ends with it.
    MemberFailed {
        job: &'a str,
        why: &'a str,
        /// Where its log lies; none if nothing was written.
        log: Option<&'a Path>,
        last_lines: &'a [String],
    },
    Restarted {
        job: &'a str,
        why: &'a str,
    },
    Moved {
        job: &'a str,
        nodes: Vec<&'a str>,
    },
    Resized {
        job: &'a str,
        cores: u64,
    },
    Ended {
        job: &'a str,
        how: &'a str,
    },
    AgentRestarted,
    /// What the agent has learned of the traffic of a job, as it says it.
    Observed {
        what: &'a serde_json::Value,
    },
    /// An error that the world goes on from: of one job, or of the world.
    Trouble {
        job: Option<&'a str>,
        what: &'a str,
    },
}

pub struct World<'a> {
    setup: Setup,
    rights: Rights,
    folder: WorldFolder,
    hosts: Option<Hosts>,
    groups: Groups,
    engine: Engine,
    /// When this world began; its time is counted from there, through crashes of its scheduler.
    epoch: Moment,
    courses: Vec<Course>,
    mishaps_over: usize,
    /// Numbers of members of which something could not be removed: they are not used again.
    abandoned: BTreeSet<MemberNumber>,
    agent: Option<Agent>,
    /// Something is to be written down, or told to the agent.
    changed: bool,
    tell: &'a mut dyn FnMut(Told<'_>),
}

impl std::fmt::Debug for World<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World").field("courses", &self.courses).finish_non_exhaustive()
    }
}

/// What jobs of another world of this name have saved is not for ours.
fn forget_the_one_before(folder: &WorldFolder) -> Result<()> {
    for name in ["jobs", "agent", book::FILE] {
        let path = folder.path().join(name);
        let removed =
            if path.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
        match removed {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(LocalError::file(&path, error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Runs all jobs to their end, or until `stop` is set; then nothing is left of the world but what jobs have saved and
/// recorded, unless it is to be kept.
pub fn run(
    setup: Setup,
    journal: Option<Box<dyn Journal + Send>>,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(Told<'_>),
) -> Result<Outcome> {
    let mut world = World::open(setup, journal, tell)?;
    while !world.is_over() && !stop.load(Ordering::Relaxed) {
        world.hear_what_happens();
        world.let_the_engine_act();
        match world.write_down() {
            // What is done goes on, and is written down once there is room again.
            Err(LocalError::DiskFull { .. }) => world.changed = true,
            written => written?,
        }
        std::thread::sleep(TICK);
    }
    Ok(world.close())
}

impl<'a> World<'a> {
    /// Takes over what an earlier scheduler of this world has left running, or begins anew.
    fn open(
        setup: Setup,
        journal: Option<Box<dyn Journal + Send>>,
        tell: &'a mut dyn FnMut(Told<'_>),
    ) -> Result<Self> {
        let rights = Rights::look();
        for missing in &rights.missing {
            tell(Told::Missing { what: missing.what, follows: missing.follows });
        }
        let folder = WorldFolder::open(&setup.root, &setup.world)?;
        let book: Option<Book> = folder.read(book::FILE)?;
        let book = book.filter(|book| book.is_of(&setup));
        if book.is_none() {
            clean_but_folder(&folder)?;
            forget_the_one_before(&folder)?;
        }
        let hierarchies = if rights.cpu || rights.memory || rights.freezer {
            Hierarchies::find()
        } else {
            Hierarchies::none()
        };
        let groups = Groups::of(hierarchies, &setup.world);
        let settings = Settings { spacing: Duration::from_millis(50), ..Settings::default() };
        let settings =
            Settings { step_timeout: setup.longest_step(), back_off: Duration::SECOND, ..settings };
        let mut engine =
            Engine::new(setup.cluster.clone(), setup.queues.clone(), setup.policy.clone(), settings);
        if let Some(journal) = journal {
            engine.keep_journal(journal);
        }
        let courses = setup.jobs.iter().map(|_| Course::default()).collect();
        let mut world = Self {
            rights,
            hosts: None,
            groups,
            engine,
            epoch: book.as_ref().map_or_else(clock::now, Book::epoch),
            courses,
            mishaps_over: 0,
            abandoned: BTreeSet::new(),
            agent: None,
            changed: true,
            tell,
            setup,
            folder,
        };
        match book {
            Some(book) => world.recover(&book)?,
            None => world.begin()?,
        }
        Ok(world)
    }

    fn begin(&mut self) -> Result<()> {
        self.write_book()?;
        fault::after(FaultPoint::StateBegun);
        self.make_hosts()?;
        self.start_agent()
    }

    /// Makes all hosts and links. The world begins when they are there.
    fn make_hosts(&mut self) -> Result<()> {
        if self.rights.network {
            self.hosts = Some(Hosts::set_up(&self.folder, &self.setup.cluster, self.setup.scale)?);
        }
        self.epoch = clock::now();
        self.changed = true;
        self.write_book()?;
        fault::after(FaultPoint::HostsRecorded);
        Ok(())
    }

    fn now(&self) -> Instant {
        clock::now().in_world_since(self.epoch)
    }

    fn is_over(&self) -> bool {
        self.courses.iter().all(|course| matches!(course.doing, Doing::Over(_)))
    }

    fn hear_what_happens(&mut self) {
        self.hear_of_arrivals();
        self.hear_of_mishaps();
        self.look_at_members();
        self.hear_the_agent();
    }

    fn hear_of_arrivals(&mut self) {
        let now = self.now();
        for index in 0..self.courses.len() {
            let (job, course) = (&self.setup.jobs[index], &mut self.courses[index]);
            // Members that were on their way out when an earlier scheduler ended leave first.
            let may_come = course.id.is_none() && matches!(course.doing, Doing::Out);
            if may_come && Instant(job.at.0) <= now {
                course.id = Some(self.engine.submit(now, job.spec.clone()));
                course.tally.submitted.get_or_insert(now);
                self.changed = true;
            }
        }
    }

    /// What was arranged to go wrong.
    fn hear_of_mishaps(&mut self) {
        let now = self.now();
        while let Some((at, mishap)) = self.setup.mishaps.get(self.mishaps_over).copied() {
            if Instant(at.0) > now {
                break;
            }
            self.mishaps_over += 1;
            self.changed = true;
            self.inject(now, mishap);
        }
    }

    /// Injects a fault. A fault that is injected again, after a crash of the scheduler, changes nothing more.
    fn inject(&mut self, now: Instant, mishap: Mishap) {
        if let Err(error) = self.befalls(now, mishap) {
            (self.tell)(Told::Trouble { job: None, what: &format!("cannot {error}") });
        }
    }

    fn befalls(&mut self, now: Instant, mishap: Mishap) -> Result<()> {
        let Some(hosts) = &mut self.hosts else { return Ok(()) };
        match mishap {
            Mishap::Vanishes(node) => {
                let lost = hosts.vanish(node)?;
                fault::after(FaultPoint::HostVanished);
                self.engine.observe(now, Event::NodeLost(node));
                self.lose(&lost);
                fault::after(FaultPoint::MembersLost);
            }
            Mishap::IsBack(node) => {
                hosts.come_back(node)?;
                fault::after(FaultPoint::HostBack);
                self.engine.observe(now, Event::NodeBack(node));
            }
            Mishap::Carries(link, rate) => {
                hosts.set_rate(link, rate)?;
                fault::after(FaultPoint::LinkChanged);
                self.engine.observe(now, Event::LinkChanged { link, rate });
            }
        }
        Ok(())
    }

    fn let_the_engine_act(&mut self) {
        let now = self.now();
        let cycles = self.engine.state().cycles;
        let steps = self.engine.poll(now).into_inner();
        for step in steps {
            self.take(&step);
        }
        if self.engine.state().cycles > cycles {
            self.changed = true;
            self.keep_to_weights();
            self.let_go_of_the_refused();
        }
    }

    /// Whoever the engine has given up on.
    fn let_go_of_the_refused(&mut self) {
        for (id, ended) in &self.engine.state().over {
            let Some(index) = self.courses.iter().position(|course| course.id == Some(*id)) else { continue };
            if matches!(self.courses[index].doing, Doing::Out) {
                let fate = Fate::of(ended);
                (self.tell)(Told::Ended { job: &self.setup.jobs[index].spec.name, how: fate.word() });
                self.courses[index].end(fate, ended.ended);
            }
        }
    }

    fn index_of(&self, id: JobId) -> usize {
        self.courses.iter().position(|course| course.id == Some(id)).expect("the engine knows our jobs alone")
    }

    /// Kills members that still run and removes all that was made. What became of the jobs is returned also if something
    /// cannot be removed.
    fn close(mut self) -> Outcome {
        let outcome = self.outcome();
        self.stop_agent();
        match clean_but_folder(&self.folder) {
            Ok(()) => {
                let _ = std::fs::remove_file(self.folder.path().join(book::FILE));
            }
            Err(error) => {
                let what = format!("cannot {error}; `metronome local clean` tries again");
                (self.tell)(Told::Trouble { job: None, what: &what });
            }
        }
        outcome
    }
}

//! The world: carries out the engine's steps on this machine and tells it what happens.
//!
//! One thread looks at everything in turn, many times a second. Whatever must outlive it is written down before it is
//! done ([`book`]), so a scheduler that comes later goes on where this one was: members run on meanwhile.

mod agent;
mod book;
mod course;
mod failures;
mod lanes;
mod members;
mod outcome;
mod recovery;
mod rendezvous;
mod setup;
mod steps;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use metronome_core::engine::{Engine, Event, Settings};
use metronome_core::id::JobId;
use metronome_core::journal::Journal;
use metronome_core::units::{Duration, Instant, Moment};

use crate::cgroup::{Groups, Hierarchies};
use crate::cleanup::clean_but_folder;
use crate::clock;
use crate::error::{LocalError, Result};
use crate::hosts::Hosts;
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
        world.hear_what_happens()?;
        world.let_the_engine_act()?;
        match world.write_down() {
            // What is done goes on, and is written down once there is room again.
            Err(LocalError::DiskFull { .. }) => world.changed = true,
            written => written?,
        }
        std::thread::sleep(TICK);
    }
    world.close()
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
        self.write_down()?;
        if self.rights.network {
            self.hosts = Some(Hosts::set_up(&self.folder, &self.setup.cluster, self.setup.scale)?);
        }
        // Machines take their time to come up; the world begins when they are there.
        self.epoch = clock::now();
        self.changed = true;
        self.start_agent()
    }

    fn now(&self) -> Instant {
        clock::now().in_world_since(self.epoch)
    }

    fn is_over(&self) -> bool {
        self.courses.iter().all(|course| matches!(course.doing, Doing::Over(_)))
    }

    fn hear_what_happens(&mut self) -> Result<()> {
        self.hear_of_arrivals();
        self.hear_of_mishaps()?;
        self.look_at_members()?;
        self.hear_the_agent()
    }

    fn hear_of_arrivals(&mut self) {
        let now = self.now();
        for index in 0..self.courses.len() {
            let job = &self.setup.jobs[index];
            if self.courses[index].id.is_none() && !self.courses[index].is_over() && Instant(job.at.0) <= now
            {
                let spec = job.spec.clone();
                self.courses[index].id = Some(self.engine.submit(now, spec));
                self.courses[index].tally.submitted = Some(now);
                self.changed = true;
            }
        }
    }

    /// What was arranged to go wrong.
    fn hear_of_mishaps(&mut self) -> Result<()> {
        let now = self.now();
        while let Some((at, mishap)) = self.setup.mishaps.get(self.mishaps_over).copied() {
            if Instant(at.0) > now {
                break;
            }
            self.mishaps_over += 1;
            self.changed = true;
            self.befalls(now, mishap)?;
        }
        Ok(())
    }

    fn befalls(&mut self, now: Instant, mishap: Mishap) -> Result<()> {
        let Some(hosts) = &mut self.hosts else { return Ok(()) };
        match mishap {
            Mishap::Vanishes(node) => {
                let lost = hosts.vanish(node)?;
                self.engine.observe(now, Event::NodeLost(node));
                self.lose(&lost)
            }
            Mishap::IsBack(node) => {
                hosts.come_back(node)?;
                self.engine.observe(now, Event::NodeBack(node));
                Ok(())
            }
            Mishap::Carries(link, rate) => {
                hosts.set_rate(link, rate)?;
                self.engine.observe(now, Event::LinkChanged { link, rate });
                Ok(())
            }
        }
    }

    fn let_the_engine_act(&mut self) -> Result<()> {
        let now = self.now();
        let cycles = self.engine.state().cycles;
        let steps = self.engine.poll(now).into_inner();
        for step in steps {
            self.take(&step)?;
        }
        if self.engine.state().cycles > cycles {
            self.changed = true;
            self.keep_to_weights()?;
            self.let_go_of_the_refused();
        }
        Ok(())
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

    /// Ends whoever still runs and removes all that was made.
    fn close(mut self) -> Result<Outcome> {
        let outcome = self.outcome();
        self.stop_agent();
        if let Some(hosts) = self.hosts.take() {
            drop(hosts);
        }
        clean_but_folder(&self.folder)?;
        let _ = std::fs::remove_file(self.folder.path().join(book::FILE));
        Ok(outcome)
    }
}

//! The world between the API server and the engine: pure, single-threaded, without a clock.
//!
//! Changes of objects come in by `apply`, outcomes of deeds by `heard`; `turn` folds them into the engine, lets it
//! decide, and returns deeds. An index of its own says which pods make up which gang and which gang became which
//! job. What the engine knows as a job are the pods that must start together; pods that joined a gang after it was
//! whole are jobs of one member.

mod budgets;
mod consent;
mod crew;
mod declared;
mod departures;
mod describe;
mod fabrics;
mod foreseen;
mod foretell;
mod gangs;
mod hyper_nodes;
mod interleaved;
mod joins;
mod mishaps;
mod moves;
mod muster;
mod observe;
mod pods;
mod queues;
mod rebuild;
mod reports;
mod resize;
mod roster;
mod sayings;
mod sizes;
mod stalled;
mod steps;
#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "`json!` borrows what reads best as it is given")]
mod tests;
mod traffic;
mod turns;
mod verdicts;
mod weights;
mod wishes;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use metronome_core::engine::{self, Engine};
use metronome_core::journal::Journal;
use metronome_core::model::cluster::Cluster;
use metronome_core::model::id::{IdVec, JobId, NodeId};
use metronome_core::model::policy::Policy;
use metronome_core::model::profile::Iteration;
use metronome_core::model::queue::Queue;
use metronome_core::model::units::{Duration, Instant};

use crate::border::{Border, DEFAULT_QUEUE, Queues};
use crate::deed::{Deed, IntentName, Kind, Ticket};
use crate::objects::{Report, Terrain};
use crate::watch::{Binding, Change, PolicyDocument};

use budgets::Budgets;
use crew::Crew;
use departures::Departure;
use fabrics::Fabrics;
use foretell::Told;
use gangs::{Gang, GangKey};
use moves::Move;
use observe::Observed;
use pods::{Known, Uid};
use queues::Written;
use reports::TrainKey;
use resize::Awaited;
use roster::Rosters;
use sayings::Asked;
use steps::Errand;
use turns::Words;

pub use foreseen::{Foreseen, Foresight};
pub(crate) use gangs::GANG_LABEL;
pub use interleaved::{Interleaved, OnLinks};
pub use observe::Comparison;
pub use rebuild::Initial;
pub(crate) use reports::PROGRESS;
pub use sizes::Sizes;
pub(crate) use traffic::{TRAFFIC, has_drifted};
pub(crate) use turns::TURN;

/// What a world is told once.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Pods that name this scheduler are ours.
    pub scheduler: String,
    pub mode: Mode,
    /// Node labels that name the domains of the topology, outermost first, where no fabric does.
    pub levels: Vec<String>,
    pub policy: Policy,
    /// What an iteration of each known model computes and sends, by its name.
    pub models: Arc<BTreeMap<String, Iteration>>,
    /// How long a gang that lost a member while it was bound may wait for a replacement before the rest, where
    /// somebody owns it, is deleted to be made anew.
    pub repair_patience: Duration,
    /// A gang is not evicted for another's sake before it has run for so long.
    pub min_run: Duration,
    /// A waiting job's condition is written again at most this often while only its numbers change.
    pub refresh: Duration,
    /// The number of times the lead had changed hands when it came to us.
    pub epoch: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Bind,
    /// Decides and explains as if it were in charge, and does nothing.
    Observe,
}

impl Settings {
    pub fn new(scheduler: &str) -> Self {
        Self {
            scheduler: scheduler.to_owned(),
            mode: Mode::Bind,
            levels: Vec::new(),
            policy: Policy::named("metronome").expect("our own policy is in the table").preempting(),
            models: Arc::default(),
            repair_patience: Duration::from_secs(30),
            min_run: Duration::ZERO,
            refresh: Duration::from_secs(60),
            epoch: 0,
        }
    }
}

#[derive(Debug)]
pub struct World {
    settings: Settings,
    engine: Engine,
    border: Border,
    rosters: Rosters,
    /// Pods that are ours and not over.
    pods: BTreeMap<Uid, Known>,
    /// Pods of others that hold something.
    others: BTreeSet<Uid>,
    gangs: BTreeMap<GangKey, Gang>,
    /// The pods that each job of the engine is made of.
    crews: BTreeMap<JobId, Crew>,
    budgets: Budgets,
    fabrics: Fabrics,
    /// Where nodes lie, and what links carry, as the engine was told.
    terrain: Terrain,
    queues: Queues,
    written: Written,
    /// Gangs of which something has changed since they were last looked at.
    changed: BTreeSet<GangKey>,
    /// What is being done, by the ticket under which its outcome comes back.
    errands: BTreeMap<Ticket, Errand>,
    /// What jobs of Kubeflow's Trainer say of their progress.
    train_jobs: BTreeMap<TrainKey, Report>,
    /// What was said of jobs with deadlines.
    told: BTreeMap<JobId, Told>,
    /// Jobs that seem to hang, with since when, of which that was said.
    stalled: BTreeMap<JobId, Instant>,
    /// Nodes that are avoided, of which that was said.
    avoided: BTreeSet<NodeId>,
    /// Cores that kubelets have been asked for.
    awaited: BTreeMap<Uid, Awaited>,
    /// Jobs that are on their way to another place.
    moves: BTreeMap<JobId, Move>,
    sizes: Sizes,
    /// Pods that leave so that others come in their place, by where that is recorded.
    departures: BTreeMap<IntentName, Departure>,
    /// What pods were asked to say, by annotation.
    asked: BTreeMap<(&'static str, Uid), Asked>,
    /// What is said of turns on links.
    turns: Words,
    /// How jobs stand on links, until that is asked.
    interleaved: Option<Interleaved>,
    next_ticket: u64,
    deeds: Vec<Deed>,
    /// Intents of gangs that are being bound.
    open_intents: BTreeSet<IntentName>,
    /// Intents that the API server has, with the plan they come from and since when.
    recorded: BTreeMap<IntentName, (Option<u64>, Instant)>,
    binding: Binding,
    observed: Observed,
    /// When waiting jobs are next asked what they wait for, if anything has happened by then, and if not.
    next_sweep: Instant,
    next_sweep_at_rest: Instant,
    /// Whether anything has happened since they were last asked.
    stirred: bool,
    /// What they said then, until it is measured.
    counted: Option<BTreeMap<&'static str, (usize, usize)>>,
}

/// How often waiting jobs are asked what they wait for.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

/// The same, while nothing happens: what they say then changes only with time.
const SWEEP_AT_REST_EVERY: Duration = Duration::from_secs(10);

impl World {
    fn empty(settings: Settings, fabrics: Fabrics) -> Self {
        let terrain = fabrics.terrain(&settings, None);
        let cluster = cluster(&terrain);
        let queues = IdVec::filled(Queue::open(DEFAULT_QUEUE), 1);
        let turns = Words::of_a_leader(settings.epoch);
        let engine = Engine::new(cluster, queues, settings.policy.clone(), pace(settings.min_run));
        Self {
            border: Border::new(terrain.labels.clone()),
            settings,
            engine,
            rosters: Rosters::default(),
            pods: BTreeMap::new(),
            others: BTreeSet::new(),
            gangs: BTreeMap::new(),
            crews: BTreeMap::new(),
            budgets: Budgets::default(),
            fabrics,
            terrain,
            queues: Queues::default(),
            written: Written::new(),
            changed: BTreeSet::new(),
            errands: BTreeMap::new(),
            train_jobs: BTreeMap::new(),
            told: BTreeMap::new(),
            stalled: BTreeMap::new(),
            avoided: BTreeSet::new(),
            awaited: BTreeMap::new(),
            moves: BTreeMap::new(),
            sizes: Sizes::new(),
            departures: BTreeMap::new(),
            asked: BTreeMap::new(),
            turns,
            interleaved: None,
            next_ticket: 1,
            deeds: Vec::new(),
            open_intents: BTreeSet::new(),
            recorded: BTreeMap::new(),
            binding: Binding::On,
            observed: Observed::default(),
            next_sweep: Instant::START,
            next_sweep_at_rest: Instant::START,
            stirred: true,
            counted: None,
        }
    }

    /// Folds one change into what is known. Nothing is decided here.
    pub fn apply(&mut self, now: Instant, change: Change) {
        self.stirred = true;
        match change {
            Change::Pod(delta) => self.pods_changed(now, delta),
            Change::Node(delta) => self.nodes_changed(now, delta),
            Change::Namespace(delta) => self.namespaces_changed(now, delta),
            Change::Claim(delta) => self.claims_changed(now, delta),
            Change::Volume(delta) => self.volumes_changed(now, delta),
            Change::Class(delta) => self.classes_changed(now, delta),
            Change::CsiNode(delta) => self.csi_nodes_changed(now, delta),
            Change::Driver(delta) => self.drivers_changed(now, delta),
            Change::Capacity(delta) => self.capacities_changed(now, delta),
            Change::Attachment(delta) => self.attachments_changed(now, delta),
            Change::Budget(delta) => self.budgets_changed(now, delta),
            Change::Job(delta) => self.jobs_changed(delta),
            Change::Group(kind, delta) => self.groups_changed(now, kind, delta),
            Change::Queue(kind, delta) => self.queues_changed(now, kind, delta),
            Change::Fabric(delta) => self.fabrics_changed(delta),
            Change::HyperNode(delta) => self.hyper_nodes_changed(now, delta),
            Change::TrainJob(delta) => self.train_jobs_changed(now, delta),
            Change::Intent(delta) => self.intents_changed(now, delta),
            Change::Policy(document) => self.policy_changed(now, document),
            // What jobs declare comes as groups; the rest is for their controller.
            Change::TrainingJob(_) | Change::Member(_) | Change::Synced => {}
        }
    }

    /// Musters what has changed, lets the engine decide, and says what is to be done.
    pub fn turn(&mut self, now: Instant) -> Vec<Deed> {
        self.note_what_is_outdated();
        self.go_on_with_departures();
        self.go_on_with_moves(now);
        self.muster_the_changed(now);
        self.give_up_on_repairs(now);
        if self.binding == Binding::On {
            let cycles = self.engine.state().cycles;
            let steps = self.engine.poll(now);
            self.stirred |= self.engine.state().cycles > cycles || !steps.is_empty();
            self.carry_out(now, steps.into_inner());
            if self.engine.state().cycles > cycles {
                self.say_weights(now);
                self.say_turns_that_changed(now);
            }
        }
        if self.next_sweep <= now {
            self.next_sweep = now + SWEEP_EVERY;
            if self.stirred || self.next_sweep_at_rest <= now {
                self.next_sweep_at_rest = now + SWEEP_AT_REST_EVERY;
                self.forget_what_is_left_over(now);
                self.make_do_with_fewer(now);
                self.complain_of_queues();
                self.judge_fabrics(now);
                let said = self.say_what_waits(now);
                self.say_who_is_in_time(now);
                self.say_who_hangs();
                self.say_what_is_avoided();
                self.say_weights(now);
                if self.binding == Binding::On {
                    self.say_turns(now);
                    self.look_at_links();
                }
                self.stirred = !(self.write_queue_statuses(now) && said);
            }
        }
        let deeds = std::mem::take(&mut self.deeds);
        // Whoever only observes also says nothing: the pods are another's.
        if self.settings.mode == Mode::Bind { deeds } else { Vec::new() }
    }

    /// Whether anything may be done at all.
    pub fn binds(&self) -> bool {
        self.binding == Binding::On
    }

    /// When `turn` has something to do even if nothing comes in.
    pub fn next_wake(&self) -> Instant {
        let decision = self.engine.next_wake().filter(|_| self.binding == Binding::On);
        decision.map_or(self.next_sweep, |at| at.min(self.next_sweep))
    }

    /// From now on everything is recorded, beginning with all that is known.
    pub fn keep_journal(&mut self, journal: Box<dyn Journal + Send>) {
        self.engine.keep_journal(journal);
    }

    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Without a document everything is as it was given on the command line.
    fn policy_changed(&mut self, now: Instant, document: Option<PolicyDocument>) {
        self.binding = document.as_ref().map_or(Binding::On, |document| document.binding);
        let named = document.and_then(|document| Policy::named(&document.policy?));
        let policy = named.map_or_else(|| self.settings.policy.clone(), Policy::preempting);
        if policy != *self.engine.policy() {
            self.engine.observe(now, engine::Event::PolicyChanged(Box::new(policy)));
        }
    }

    fn do_it(&mut self, kind: Kind) -> Ticket {
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        self.deeds.push(Deed { ticket, kind });
        ticket
    }
}

/// Without nodes; links come with them.
fn cluster(terrain: &Terrain) -> Cluster {
    let levels: Vec<&str> = terrain.labels.iter().map(String::as_str).collect();
    let mut cluster = Cluster::new(&levels).expect("levels are checked where they are given");
    if !terrain.rates.is_empty() {
        cluster.connect_as_tree(&terrain.rates).expect("rates are checked where they are given");
    }
    cluster
}

/// Binds are answered by the API server in milliseconds and retried by `act`; the engine only has to catch what is
/// lost for good. A move takes as long as its job takes to save its work, twice at most, and to be made anew.
fn pace(min_run: Duration) -> engine::Settings {
    engine::Settings {
        min_run,
        spacing: Duration::from_millis(5),
        step_timeout: Duration::HOUR,
        back_off: Duration::from_secs(1),
        cool_down: Duration::from_secs(10),
        keeps_hopeless: true,
        ..engine::Settings::default()
    }
}

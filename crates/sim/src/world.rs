//! The world: carries out the engine's steps in virtual time and tells it what happens.
//!
//! All events of one instant come before the engine is polled once; what its steps change at once is heard in the
//! same instant, in a further round. A run ends when no event can change anything any more.

mod agenda;
mod agents;
mod asked;
mod books;
mod cores;
mod dice;
mod encounters;
mod estimates;
mod links;
mod slow;
mod steps;
mod training;
mod watch;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant as WallClock;

use metronome_core::deadlines::DeadlineVerdict;
use metronome_core::engine::{Ending, Engine, Event, Settings, State};
use metronome_core::journal::Journal;
use metronome_core::model::cluster::Name;
use metronome_core::model::id::{IdVec, JobId, LinkId, NodeId};
use metronome_core::model::job::{Gang, JobSpec};
use metronome_core::model::plan::StepId;
use metronome_core::model::policy::{Deadlines, Gangs, Policy};
use metronome_core::model::report::{Reason, State as JobState};
use metronome_core::model::units::{Bandwidth, Duration, Gpus, Instant};
use metronome_core::observe::progress::Sample;
use metronome_core::traffic::decision_inputs::Why;

use crate::model::TrainingModel;
use crate::outcome::{Because, Change, Fate, Outcome, Taken};
use crate::scenario::{Arrival, Departures, Fault, Rounds, Scenario, profile};
use agenda::{Agenda, Happening};
use agents::Agents;
use books::Books;
use dice::Dice;
pub use estimates::Estimates;
use links::Wires;
use training::{Member, Training};
use watch::Watch;

/// How one simulation is run.
pub struct RunOptions {
    pub policy: Policy,
    pub seed: u64,
    pub journal: Option<Box<dyn Journal + Send>>,
    /// The whole plan is checked from nothing at every so-many-th decision.
    pub full_check_every: u64,
    /// A state record is written to the journal after so many others.
    pub state_record_every: u64,
    pub keep: Keep,
    pub estimates: Estimates,
    /// How long after its beginning it is known what a job does that was declared otherwise or not at all; none for never. Of
    /// a job that is not named here it is known after twenty iterations alone.
    pub loops_seen: BTreeMap<Name, Option<Duration>>,
}

/// What is kept of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// What figures are made of.
    Figures,
    /// Also what pictures need: when each job had which nodes, and the load of links over time.
    Pictures,
}

impl RunOptions {
    pub fn new(policy: Policy) -> Self {
        let Settings { full_check_every, state_record_every, .. } = Settings::default();
        Self {
            policy,
            seed: 1,
            journal: None,
            full_check_every,
            state_record_every,
            keep: Keep::Figures,
            estimates: Estimates::Exact,
            loops_seen: BTreeMap::new(),
        }
    }
}

impl std::fmt::Debug for RunOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunOptions")
            .field("policy", &self.policy.name)
            .field("seed", &self.seed)
            .finish_non_exhaustive()
    }
}

/// How far a run has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    pub over: usize,
    pub total: usize,
    pub now: Instant,
}

/// Runs a scenario under one policy from the first submission to the end.
pub fn run(scenario: &Scenario, options: RunOptions, progress: &(dyn Fn(Progress) + Sync)) -> Outcome {
    let mut world = World::new(scenario, options);
    while let Some(now) = world.next_instant() {
        world.pass(now);
        if world.events >= world.next_report {
            world.next_report = world.events + EVENTS_BETWEEN_REPORTS;
            progress(Progress { over: world.over, total: world.trainings.len(), now });
        }
    }
    world.outcome()
}

/// Every start of a job has noise of its own.
const FIRST_START: u64 = 1;

/// What the noise of a job is drawn with at its first start, by its place among the arrivals of a run.
pub fn noise_seed(seed: u64, job: usize) -> u64 {
    (seed << 32) ^ ((job as u64) << 8) ^ FIRST_START
}

/// What the engine of such a run knows at one time, after all that has happened by then.
pub fn state_at(scenario: &Scenario, options: RunOptions, at: Instant) -> State {
    let mut world = World::new(scenario, options);
    while let Some(now) = world.next_instant().filter(|now| *now <= at) {
        world.pass(now);
    }
    world.engine.state().clone()
}

/// Training code reports when it has run for so long where it is.
const REPORTS_AFTER: Duration = Duration::MINUTE;

const EVENTS_BETWEEN_REPORTS: u64 = 2000;

/// An engine that wakes so often without anything happening in the world will do so for ever.
const MOST_IDLE_WAKES: u32 = 10_000;

struct World<'a> {
    scenario: &'a Scenario,
    arrivals: Vec<Arrival>,
    /// What the engine believes of them, and by how much that is more or less than is true of each.
    estimates: Estimates,
    misjudged: Vec<f64>,
    loops_seen: BTreeMap<Name, Option<Duration>>,
    engine: Engine,
    now: Instant,
    agenda: Agenda,
    dice: Dice,
    agents: Agents,
    wires: Wires,
    trainings: Vec<Training>,
    /// For each job of the engine the training it belongs to, and which member of it it is.
    owners: IdVec<JobId, Owner>,
    books: Books,
    gone: IdVec<NodeId, bool>,
    /// Nodes on which members fail that are started there.
    spoilt: IdVec<NodeId, bool>,
    /// How much longer everything takes on each node.
    slowdowns: IdVec<NodeId, f64>,
    policy: String,
    seed: u64,
    split: bool,
    keep: Keep,
    watch: Watch,
    events: u64,
    next_report: u64,
    over: usize,
    idle_wakes: u32,
    arrived: Vec<(usize, JobId)>,
    decision_nanos: Vec<u64>,
    violations: Vec<String>,
}

#[derive(Clone, Copy, Debug)]
struct Owner {
    training: usize,
    member: usize,
    /// The newest step seen for it: older ones are refused.
    newest: StepId,
}

impl<'a> World<'a> {
    fn new(scenario: &'a Scenario, options: RunOptions) -> Self {
        let seen = |arrival| asked::seen_by(options.policy.deadlines, arrival);
        let arrivals: Vec<Arrival> = scenario.arrivals(options.seed).into_iter().map(seen).collect();
        let (round, spacing) = rounds(scenario, options.policy.deadlines);
        let settings = Settings {
            round,
            spacing,
            tick: scenario.tick,
            step_timeout: patience(scenario, &arrivals),
            full_check_every: options.full_check_every,
            state_record_every: options.state_record_every,
            ..Settings::default()
        };
        let policy = options.policy.name.clone();
        let split = options.policy.gangs == Gangs::MemberByMember;
        let wires = Wires::of(scenario, &options.policy, options.keep);
        let mut engine =
            Engine::new(scenario.cluster.clone(), scenario.queues.clone(), options.policy, settings);
        if let Some(journal) = options.journal {
            engine.keep_journal(journal);
        }
        let nodes = scenario.cluster.nodes().len();
        let mut agenda = Agenda::default();
        for (index, arrival) in arrivals.iter().enumerate() {
            agenda.add(arrival.at, Happening::Arrives(index));
        }
        for fault in &scenario.faults {
            foresee(fault, &arrivals, &mut agenda);
        }
        Self {
            scenario,
            engine,
            now: Instant::START,
            agenda,
            dice: Dice::new(options.seed, &scenario.faults),
            agents: Agents::of(&scenario.faults),
            wires,
            trainings: arrivals.iter().map(|arrival| Training::of(arrival, split)).collect(),
            estimates: options.estimates.or(scenario.estimates),
            loops_seen: options.loops_seen,
            misjudged: options.estimates.or(scenario.estimates).factors(options.seed, arrivals.len()),
            arrivals,
            owners: IdVec::new(),
            books: Books::of(nodes),
            gone: IdVec::filled(false, nodes),
            spoilt: IdVec::filled(false, nodes),
            slowdowns: IdVec::filled(1.0, nodes),
            policy,
            seed: options.seed,
            split,
            keep: options.keep,
            watch: Watch::default(),
            events: 0,
            next_report: EVENTS_BETWEEN_REPORTS,
            over: 0,
            idle_wakes: 0,
            arrived: Vec::new(),
            decision_nanos: Vec::new(),
            violations: Vec::new(),
        }
    }

    /// When something happens next; none when nothing ever will. The network is moved on up to then.
    fn next_instant(&mut self) -> Option<Instant> {
        let trainings = &self.trainings;
        // Whoever has few cores for a while would be done in an hour; that is foreseen again and again, and void at once.
        self.agenda.forget_while(|happening| match happening {
            Happening::Finishes { training, epoch } => {
                let training = &trainings[*training];
                training.lesson.is_some() && (training.epoch != *epoch || training.is_over())
            }
            _ => false,
        });
        let happens = self.agenda.next_at();
        let wakes = self.engine.next_wake().map(|wake| wake.max(self.now));
        // Where nobody ever leaves, waiting changes nothing.
        let may_change = happens.is_some() || self.scenario.departures == Departures::WhenDone;
        let wakes = wakes.filter(|wake| may_change || *wake == self.now);
        let foreseen = [happens, wakes].into_iter().flatten().min();
        if self.wires.run_until(foreseen) {
            self.idle_wakes = 0;
            return self.wires.finished_at();
        }
        self.idle_wakes = if happens.is_some() { 0 } else { self.idle_wakes + 1 };
        foreseen.filter(|_| self.idle_wakes <= MOST_IDLE_WAKES)
    }

    fn pass(&mut self, now: Instant) {
        self.now = now;
        self.hear_what_happens();
        self.let_the_engine_act();
        self.wires.look(now);
    }

    fn hear_what_happens(&mut self) {
        while let Some(index) = self.wires.next_finished(self.now) {
            self.events += 1;
            self.completes(index);
        }
        while let Some(happening) = self.agenda.take(self.now) {
            self.events += 1;
            match happening {
                Happening::Arrives(index) => self.arrives(index),
                Happening::Breaks(node) => self.breaks(node),
                Happening::IsBack(node) => self.is_back(node),
                Happening::IsDrained { node, until } => {
                    self.engine.observe(self.now, Event::NodeDrained { node, until: Some(until) });
                }
                Happening::Spoils(node) => self.spoilt[node] = true,
                Happening::IsSound(node) => self.spoilt[node] = false,
                Happening::Slows { node, slowdown } => self.slows(node, slowdown),
                Happening::Hangs(index) => self.hangs(index),
                Happening::Wakes(index) => self.wakes(index),
                Happening::LinkChanges { link, rate } => self.link_changes(link, rate),
                Happening::StepComes(step) => self.step_comes(step),
                Happening::StepEnds { step, tells } => self.step_ends(&step, tells),
                Happening::IsTold(event) => {
                    self.engine.observe(self.now, event);
                    self.agents_have_acted();
                }
                Happening::LinkIsSeen { link, rate, since } => {
                    self.watch.told_of_link(since);
                    self.engine.observe(self.now, Event::LinkChanged { link, rate });
                }
                Happening::LoopIsSeen { training, epoch } => self.loop_is_seen(training, epoch),
                Happening::Reports { training, epoch } => self.reports(training, epoch),
                Happening::Learns { training } => self.tells_what_it_learns(training),
                Happening::MembersTell { training } => self.members_tell(training),
                Happening::Finishes { training, epoch } => self.finishes(training, epoch),
            }
        }
    }

    fn let_the_engine_act(&mut self) {
        let cycles = self.engine.state().cycles;
        let clock = WallClock::now();
        let steps = self.engine.poll(self.now);
        if self.engine.state().cycles > cycles {
            self.decision_nanos.push(u64::try_from(clock.elapsed().as_nanos()).unwrap_or(u64::MAX));
            let reasons = self.engine.state().reconfigured.iter().map(|made| made.why);
            self.watch.decided(self.now, reasons);
            self.note_changes();
            self.note_who_is_taken_on();
            self.keep_to_lanes();
            self.keep_to_weights();
        }
        for step in steps.into_inner() {
            self.hand_over(step);
        }
        for (index, job) in std::mem::take(&mut self.arrived) {
            self.trainings[index].wait_reason = self.engine.verdict(job);
        }
        self.let_go_of_the_refused();
    }

    /// Once taken on, a job counts among those who were, whatever becomes of it.
    fn note_who_is_taken_on(&mut self) {
        for (job, entry) in self.engine.state().plan.timetable().iter() {
            let taken = match entry.verdict {
                DeadlineVerdict::Promised => Taken::Promised,
                DeadlineVerdict::Planned => Taken::Planned,
                DeadlineVerdict::Pending => continue,
            };
            let training = &mut self.trainings[self.owners[job].training];
            training.taken = training.taken.max(Some(taken));
        }
    }

    /// Jobs that were refused, or have failed, by what was just decided.
    fn let_go_of_the_refused(&mut self) {
        let over = self.engine.state().over.iter().rev().take_while(|(_, ended)| ended.ended == self.now);
        let given_up = over.filter_map(|(job, ended)| match (ended.state, &ended.reason) {
            (JobState::Refused, reason) => Some((*job, Fate::Refused, reason.clone())),
            (JobState::Failed, reason @ Some(Reason::DeadlineInfeasible { .. })) => {
                Some((*job, Fate::Failed, reason.clone()))
            }
            _ => None,
        });
        for (job, fate, reason) in given_up.collect::<Vec<_>>() {
            let index = self.owners[job].training;
            if !self.trainings[index].is_over() {
                self.trainings[index].wait_reason = reason;
                self.end(index, fate);
            }
        }
    }

    /// Keeps for the report what was changed for running jobs and why, by name.
    fn note_changes(&mut self) {
        if self.keep == Keep::Figures {
            return;
        }
        let name = |job: JobId| self.arrivals[self.owners[job].training].spec.name.clone();
        let node_name = |node: NodeId| self.scenario.cluster.node(node).name.clone();
        for made in &self.engine.state().reconfigured {
            let because = match made.why {
                Why::Arrival { job } => Because::Arrival(name(job)),
                Why::Departure { job } => Because::Departure(name(job)),
                Why::Link { link, was, is } => {
                    Because::Link { name: self.wires.name(&self.scenario.cluster, link), was, is }
                }
                Why::Profile { job } => Because::Profile(name(job)),
                Why::Drift { job } | Why::SlowerThanFair { job } => Because::Drift(name(job)),
                Why::Priorities => Because::Priorities,
                Why::Room => Because::Room,
                Why::Fragmentation { job } => Because::Fragmentation(name(job)),
                Why::SlowNode { node } => Because::SlowNode(node_name(node)),
                Why::Drained { node } => Because::Drained(node_name(node)),
            };
            let jobs = made.jobs.iter().map(|job| name(*job)).collect();
            let change = Change { at: self.now, because, what: made.what, jobs, saves: made.saves };
            self.watch.changes.push(change);
        }
    }

    /// Links are shaped before anything that was decided with it happens.
    fn keep_to_lanes(&mut self) {
        let lanes = self.engine.state().plan.traffic().iter();
        let in_effect = lanes.map(|(job, lane)| (*job, self.in_effect(*job, *lane)));
        let directed = in_effect.filter(|(_, lane)| !lane.is_default());
        let of_trainings = directed.map(|(job, lane)| (self.owners[job].training, lane)).collect();
        self.wires.keep_to_lanes(self.now, of_trainings);
    }

    fn arrives(&mut self, index: usize) {
        let spec = self.estimates.misjudged(&self.arrivals[index].spec, self.misjudged[index]);
        let members = if self.split { members_of(&spec) } else { vec![spec] };
        for (member, spec) in members.into_iter().enumerate() {
            let job = self.engine.submit(self.now, spec);
            let known = self.owners.push(Owner { training: index, member, newest: StepId(0) });
            assert_eq!(known, job, "the engine numbers jobs in the order of submission");
            self.trainings[index].members[member].job = Some(job);
            if self.engine.life(job).is_none() {
                let (_, ended) = self.engine.state().over.back().expect("a job that is over is remembered");
                self.trainings[index].wait_reason = ended.reason.clone();
                self.end(index, Fate::Refused);
            } else {
                self.arrived.push((index, job));
            }
        }
    }

    fn breaks(&mut self, node: NodeId) {
        self.gone[node] = true;
        let hit: Vec<usize> =
            (0..self.trainings.len()).filter(|index| self.trainings[*index].runs_on(node)).collect();
        for index in hit {
            self.halt(index, Keeping::Saved);
        }
        self.engine.observe(self.now, Event::NodeLost(node));
    }

    /// It holds what it has, and neither trains nor says anything.
    fn hangs(&mut self, index: usize) {
        if self.trainings[index].is_training() {
            self.halt(index, Keeping::Running);
            self.trainings[index].hangs = true;
        }
    }

    fn wakes(&mut self, index: usize) {
        self.trainings[index].hangs = false;
        self.train_if_complete(index);
        self.note(index);
    }

    fn link_changes(&mut self, link: LinkId, rate: Option<Bandwidth>) {
        let rate = self.wires.set_rate(self.now, link, rate);
        let seen = Happening::LinkIsSeen { link, rate, since: self.now };
        self.agenda.add(self.now + watch::LINK_SEEN_AFTER, seen);
    }

    /// A loop that was watched for a while turned out to be other than was declared.
    fn loop_is_seen(&mut self, index: usize, epoch: u64) {
        let training = &mut self.trainings[index];
        let Some(model) = training.model.clone().filter(|_| training.epoch == epoch) else { return };
        training.is_known = true;
        let profile = Arc::new(profile(&model.pattern, self.arrivals[index].spec.members()));
        for job in training.members.iter().filter_map(|member| member.job) {
            self.engine.observe(self.now, Event::LoopMeasured { job, profile: profile.clone() });
        }
    }

    /// Foresees when it is known what a loop does that was declared to be another one.
    fn watch_loop(&mut self, index: usize, model: &TrainingModel) {
        let (training, declared) = (&self.trainings[index], &self.arrivals[index].spec.profile);
        if training.is_known || !watch::is_other(declared.as_deref(), &model.pattern.as_loop()) {
            return;
        }
        let usual = training.iteration_alone.times(watch::ITERATIONS_SEEN);
        let after = self.loops_seen.get(&self.arrivals[index].spec.name).copied().unwrap_or(Some(usual));
        if let Some(after) = after {
            self.agenda
                .add(self.now + after, Happening::LoopIsSeen { training: index, epoch: training.epoch });
        }
    }

    fn is_back(&mut self, node: NodeId) {
        self.gone[node] = false;
        self.engine.observe(self.now, Event::NodeBack(node));
    }

    /// Training is synchronous: it goes on when every member is up.
    fn train_if_complete(&mut self, index: usize) {
        let (now, seed, slowdown) = (self.now, self.seed, self.slowdown_of(index));
        let training = &mut self.trainings[index];
        if training.is_training() || training.hangs || !training.is_complete() {
            return;
        }
        training.go_on(now, &self.arrivals[index].spec, slowdown);
        match training.model.clone() {
            Some(model) => {
                let spec = &self.arrivals[index].spec;
                self.wires.train(now, (index, seed), training, spec, &model, slowdown);
                self.watch_loop(index, &model);
            }
            None if training.lesson.is_some() => self.learn(index),
            None if self.scenario.departures == Departures::Never => {}
            None => {
                let (left, epoch) = (training.time_left(), training.epoch);
                self.agenda.add(now + left, Happening::Finishes { training: index, epoch });
                if self.misjudged[index] != 1.0 {
                    self.agenda.add(now + REPORTS_AFTER, Happening::Reports { training: index, epoch });
                }
            }
        }
        self.listen_to_members(index);
    }

    /// Somebody who shares cores begins to train where it is.
    fn learn(&mut self, index: usize) {
        if !self.trainings[index].tells {
            self.tells_what_it_learns(index);
        }
        let nodes = self.trainings[index].on();
        self.share_cores(&nodes);
    }

    fn halt(&mut self, index: usize, keeping: Keeping) {
        let training = &mut self.trainings[index];
        if training.is_training() {
            let iterations = if training.model.is_some() { self.wires.stop(self.now, index) } else { 0 };
            training.halt(self.now, iterations, keeping);
            let (shares, nodes) = (training.lesson.is_some(), training.on());
            if shares {
                self.share_cores(&nodes);
            }
        } else if keeping != Keeping::Running {
            training.is_shaken();
        }
        self.note(index);
    }

    fn note(&mut self, index: usize) {
        if self.keep == Keep::Pictures {
            self.trainings[index].note(self.now);
        }
    }

    /// Of a job that is other than was said, how many of its iterations are done; again and again where that tells how fast
    /// it is where it is.
    fn reports(&mut self, index: usize, epoch: u64) {
        let training = &self.trainings[index];
        let all = self.arrivals[index].spec.work.iterations;
        let Some(all) = all.filter(|_| training.epoch == epoch && !training.is_over()) else { return };
        let iterations = training.iterations_of(all, self.now);
        let sample = Sample { at: self.now, iterations, loss: None, used: None };
        for job in training.members.iter().filter_map(|member| member.job) {
            self.engine.observe(self.now, Event::Progress { job, sample });
        }
        if matches!(self.estimates, Estimates::Scaling { .. }) {
            self.agenda.add(self.now + REPORTS_AFTER, Happening::Reports { training: index, epoch });
        }
    }

    /// A job without a loop is done, unless it was halted since this was foreseen.
    fn finishes(&mut self, index: usize, epoch: u64) {
        if self.trainings[index].epoch == epoch && !self.trainings[index].is_over() {
            self.completes(index);
        }
    }

    fn completes(&mut self, index: usize) {
        self.halt(index, Keeping::All);
        let jobs: Vec<JobId> = self.trainings[index].members.iter().filter_map(|member| member.job).collect();
        self.end(index, Fate::Completed);
        for job in jobs {
            self.engine.observe(self.now, Event::JobEnded { job, how: Ending::Completed });
        }
    }

    fn end(&mut self, index: usize, fate: Fate) {
        if self.trainings[index].is_over() {
            return;
        }
        for member in 0..self.trainings[index].members.len() {
            self.clear(Owner { training: index, member, newest: StepId(0) }, |_| true);
        }
        self.trainings[index].end(self.now, fate);
        self.note(index);
        self.over += 1;
    }

    fn outcome(mut self) -> Outcome {
        self.give_up_on_failed();
        let (engine, now) = (&self.engine, self.now);
        for training in &mut self.trainings {
            let first = training.members.first().and_then(|member| member.job);
            if !training.is_over() {
                training.wait_reason = first.and_then(|job| engine.verdict(job));
            }
        }
        let (bin, links) = self.wires.loads(&self.scenario.cluster);
        let encounter = self.wires.encounter(&self.scenario.cluster);
        let gpu_capacity: Gpus = self.scenario.cluster.nodes().values().map(|node| node.capacity.gpus).sum();
        Outcome {
            policy: self.policy,
            seed: self.seed,
            gpu_busy: self
                .trainings
                .iter()
                .map(|training| training.gpu_time())
                .fold(Default::default(), |a, b| a + b),
            jobs: self.trainings.into_iter().map(|training| training.outcome(now)).collect(),
            ended: now,
            gpu_capacity,
            gpu_peak: Some(self.books.peak()),
            bin,
            links,
            encounter,
            lane_changes: self.wires.lane_changes(),
            events: self.events + self.wires.events(),
            alarms: self.engine.state().alarms,
            last_alarm: self.engine.state().last_alarm.clone(),
            violations: self.violations,
            decision_nanos: self.decision_nanos,
            link_answers: self.watch.answered,
            reconfigured: self.watch.reconfigured,
            changes: self.watch.changes,
        }
    }

    /// Jobs that the engine has given up on after too many failed starts.
    fn give_up_on_failed(&mut self) {
        for index in 0..self.trainings.len() {
            let given_up = |member: &Member| member.job.is_some_and(|job| self.engine.life(job).is_none());
            if !self.trainings[index].is_over() && self.trainings[index].members.iter().any(given_up) {
                self.trainings[index].end(self.now, Fate::Failed);
            }
        }
    }
}

/// Puts a fault on the agenda. What befalls steps is left to the dice.
fn foresee(fault: &Fault, arrivals: &[Arrival], agenda: &mut Agenda) {
    match *fault {
        Fault::Node { node, at, lasts, notice } => {
            if !notice.is_zero() {
                let said = Instant(at.0.saturating_sub(notice.0));
                agenda.add(said, Happening::IsDrained { node, until: at });
            }
            agenda.add(at, Happening::Breaks(node));
            if let Some(lasts) = lasts {
                agenda.add(at + lasts, Happening::IsBack(node));
            }
        }
        Fault::Spoilt { node, at, lasts } => {
            agenda.add(at, Happening::Spoils(node));
            if let Some(lasts) = lasts {
                agenda.add(at + lasts, Happening::IsSound(node));
            }
        }
        Fault::Slow { node, at, lasts, slowdown } => {
            agenda.add(at, Happening::Slows { node, slowdown });
            if let Some(lasts) = lasts {
                agenda.add(at + lasts, Happening::Slows { node, slowdown: 1.0 });
            }
        }
        Fault::Link { links, at, lasts, rate } => {
            for link in links {
                agenda.add(at, Happening::LinkChanges { link, rate: Some(rate.unwrap_or_default()) });
                if let Some(lasts) = lasts {
                    agenda.add(at + lasts, Happening::LinkChanges { link, rate: None });
                }
            }
        }
        Fault::Hang { ref job, at, lasts } => {
            let named = arrivals.iter().position(|arrival| arrival.spec.name == *job);
            let index = named.expect("faults name jobs that there are");
            agenda.add(at, Happening::Hangs(index));
            if let Some(lasts) = lasts {
                agenda.add(at + lasts, Happening::Wakes(index));
            }
        }
        Fault::Steps { .. } | Fault::Agent { .. } => {}
    }
}

/// What a halted training keeps of its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keeping {
    All,
    /// Only what was saved.
    Saved,
    /// Nothing is stopped: it goes on at once, at another pace.
    Running,
}

/// Every member as a job of its own, for schedulers that know no gangs.
fn members_of(spec: &JobSpec) -> Vec<Arc<JobSpec>> {
    let one = Gang::rigid(1).expect("one member is a gang");
    let mut members = Vec::new();
    for role in &spec.roles {
        for _ in 0..role.gang.min() {
            let mut member = spec.clone();
            member.name = format!("{}-{}", spec.name, members.len()).into();
            member.roles = vec![metronome_core::model::job::Role { gang: one, ..role.clone() }];
            members.push(Arc::new(member));
        }
    }
    members
}

/// Multiples on which decisions fall, and how far they are apart. Who books ahead books for multiples.
fn rounds(scenario: &Scenario, deadlines: Deadlines) -> (Duration, Duration) {
    match scenario.rounds {
        Rounds::FromLastDecision if deadlines != Deadlines::Promised => (Duration::ZERO, scenario.round),
        _ => (scenario.round, Duration::ZERO),
    }
}

/// How long a step may take before it counts as lost: well beyond what any step here takes by itself.
fn patience(scenario: &Scenario, arrivals: &[Arrival]) -> Duration {
    let of_job =
        |spec: &JobSpec| spec.checkpointing.map_or(Duration::ZERO, |costs| costs.takes + costs.restart);
    let slowest = arrivals.iter().map(|arrival| of_job(&arrival.spec)).max().unwrap_or_default();
    let longest = slowest + scenario.costs.start + scenario.costs.stop;
    Settings::default().step_timeout.max(longest.times(4))
}

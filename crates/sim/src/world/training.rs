//! One training job as it really runs: its members, its work, what of it is saved.

use std::sync::Arc;

use metronome_core::model::cluster::Name;
use metronome_core::model::cpu_weight::CpuWeight;
use metronome_core::model::id::{JobId, NodeId};
use metronome_core::model::job::{Binding, Checkpointing, JobSpec, Priority};
use metronome_core::model::plan::Assignment;
use metronome_core::model::report::Reason;
use metronome_core::model::units::{Cpu, Duration, GpuTime, Gpus, Instant, Iterations, Share};
use metronome_core::observe::progress::WorkPace;
use metronome_core::observe::scaling::Speed;

use super::Keeping;
use crate::model::{Pattern, TrainingModel};
use crate::outcome::{CpuUse, Fate, JobOutcome, MILESTONES, Segment, Taken, Use};
use crate::scenario::curve::time_with;
use crate::scenario::quality::Quality;
use crate::scenario::{Arrival, Lesson};

#[derive(Clone, Debug, Default)]
pub(super) struct Member {
    pub(super) job: Option<JobId>,
    /// What it holds in fact.
    pub(super) on: Vec<Arc<Assignment>>,
    pub(super) up: bool,
}

#[derive(Debug)]
pub(super) struct Training {
    name: Name,
    priority: Priority,
    user: Share,
    submit: Instant,
    deadline: Option<Instant>,
    binding: Option<Binding>,
    pub(super) taken: Option<Taken>,
    alone: Duration,
    gpus: Gpus,
    size: u32,
    pub(super) checkpointing: Option<Checkpointing>,
    /// What it does in each iteration; without it, it works for `alone` and sends nothing.
    pub(super) model: Option<Arc<TrainingModel>>,
    /// Where it shares cores: what it learns, how it stands beside others, how often it has told,
    /// and whether it will again.
    pub(super) lesson: Option<Arc<Lesson>>,
    pub(super) weight: CpuWeight,
    pub(super) reported: u64,
    pub(super) tells: bool,
    /// Whether its members tell what they take, and how often they have.
    pub(super) members_tell: bool,
    pub(super) told: u64,
    /// One for the whole gang, or one for each member where they are scheduled apart.
    pub(super) members: Vec<Member>,
    /// When it was worth so much, where it is known what it learns: the work that it takes, and the time.
    milestones: Option<[Milestone; 3]>,
    /// Work done, up to the last halt, and how much of it is saved.
    done: Work,
    saved: Work,
    since: Option<Instant>,
    /// How fast it works where it runs, and on how many GPUs; and whether its end was foreseen at that pace.
    pace: WorkPace,
    is_paced: bool,
    held: Gpus,
    /// Of one process on cores: what it used of them so far, and how many it has.
    cpu: Option<CpuUse>,
    cores: f64,
    /// The cores with which its work is told.
    at_least: u32,
    /// Counts the times it went on or halted: a finish foreseen before is void.
    pub(super) epoch: u64,
    start: Option<Instant>,
    end: Option<(Instant, Fate)>,
    ran: Duration,
    gpu_time: GpuTime,
    /// The time its iterations would have taken alone, where it ran.
    undisturbed: f64,
    /// The time of an iteration alone, where it runs now.
    pub(super) iteration_alone: Duration,
    /// The time of an iteration that sends nothing.
    pub(super) iteration_computed: Duration,
    /// All iterations of its loop that it ever did, also those that were lost.
    iterations: u64,
    /// Whether the engine was told what its loop does.
    pub(super) is_known: bool,
    /// It does and says nothing, though its members are up.
    pub(super) hangs: bool,
    pub(super) nodes: u32,
    pub(super) preemptions: u32,
    pub(super) moves: u32,
    pub(super) resizes: u32,
    pub(super) resizes_in_place: u32,
    pub(super) wait_reason: Option<Reason>,
    segments: Vec<Segment>,
}

/// A share of what it is worth in the end.
#[derive(Clone, Copy, Debug)]
struct Milestone {
    work: Duration,
    reached: Option<Instant>,
}

impl Milestone {
    fn all(quality: &Quality, alone: Duration) -> [Self; 3] {
        MILESTONES.map(|hundredths| {
            let part = quality.reaches(f64::from(hundredths) / 100.0);
            Self { work: Duration((alone.0 as f64 * part) as u64), reached: None }
        })
    }
}

/// Work done: time alone, and whole iterations where the job is a loop of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Work {
    time: Duration,
    iterations: u64,
}

impl Training {
    pub(super) fn of(arrival: &Arrival, split: bool) -> Self {
        let spec = &arrival.spec;
        let members = if split { spec.members() as usize } else { 1 };
        let alone =
            arrival.learning.as_ref().map(|lesson| lesson.alone).or(spec.work.alone).unwrap_or_default();
        Self {
            name: spec.name.clone(),
            priority: spec.priority,
            user: spec.user,
            submit: arrival.at,
            deadline: spec.deadline.map(|deadline| deadline.at),
            binding: spec.deadline.map(|deadline| deadline.binding),
            taken: None,
            alone,
            gpus: spec.gpus(),
            size: spec.members(),
            checkpointing: spec.checkpointing,
            model: arrival.training.clone(),
            lesson: arrival.learning.clone(),
            weight: CpuWeight::USUAL,
            reported: 0,
            tells: false,
            members_tell: false,
            told: 0,
            members: vec![Member::default(); members],
            milestones: arrival.quality.as_ref().map(|quality| Milestone::all(quality, alone)),
            done: Work::default(),
            saved: Work::default(),
            since: None,
            pace: WorkPace::PLAIN,
            is_paced: false,
            held: spec.gpus(),
            cpu: arrival.asks.and_then(|asks| asks.serial).map(CpuUse::none),
            cores: cores(spec.least().cpu),
            at_least: cores(spec.least().cpu) as u32,
            epoch: 0,
            start: None,
            end: None,
            ran: Duration::ZERO,
            gpu_time: GpuTime::default(),
            undisturbed: 0.0,
            iteration_alone: Duration::ZERO,
            iteration_computed: Duration::ZERO,
            iterations: 0,
            is_known: false,
            hangs: false,
            nodes: 0,
            preemptions: 0,
            moves: 0,
            resizes: 0,
            resizes_in_place: 0,
            wait_reason: None,
            segments: Vec::new(),
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.end.is_some()
    }

    pub(super) fn is_training(&self) -> bool {
        self.since.is_some()
    }

    /// Whether it goes on from work that was saved, rather than from the beginning.
    pub(super) fn goes_on(&self) -> bool {
        self.done != Work::default()
    }

    pub(super) fn is_complete(&self) -> bool {
        self.members.iter().all(|member| member.up)
    }

    /// The nodes it is on, each once, in order of id: nodes of one domain are neighbours.
    pub(super) fn on(&self) -> Vec<NodeId> {
        let mut nodes: Vec<NodeId> =
            self.members.iter().flat_map(|member| &member.on).flat_map(|on| on.nodes()).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    pub(super) fn runs_on(&self, node: NodeId) -> bool {
        self.members.iter().flat_map(|member| &member.on).any(|on| on.touches(node))
    }

    /// The part of its members that are on a node.
    pub(super) fn part_on(&self, node: NodeId) -> f64 {
        let parts = || self.members.iter().flat_map(|member| &member.on).flat_map(|on| on.parts());
        let here: u32 = parts().filter(|part| part.node == node).map(|part| part.members).sum();
        let all: u32 = parts().map(|part| part.members).sum();
        f64::from(here) / f64::from(all.max(1))
    }

    /// Work done and kept, as time alone.
    pub(super) fn executed(&self, now: Instant) -> Duration {
        match &self.model {
            Some(model) => self.share_of_work(self.done.iterations, model.iterations),
            None => {
                self.done.time + self.since.map_or(Duration::ZERO, |since| self.pace.work(now.since(since)))
            }
        }
    }

    fn share_of_work(&self, done: u64, of: u64) -> Duration {
        Duration((u128::from(self.alone.0) * u128::from(done) / u128::from(of.max(1))) as u64)
    }

    /// How many of so many iterations that is, where it sends nothing.
    pub(super) fn iterations_of(&self, all: Iterations, now: Instant) -> Iterations {
        let (done, alone) = (u128::from(self.executed(now).0), u128::from(self.alone.0.max(1)));
        Iterations((u128::from(all.0) * done / alone).min(u128::from(all.0)) as u64)
    }

    /// How long it still takes where it runs, if it sends nothing.
    pub(super) fn time_left(&self) -> Duration {
        self.pace.time(self.alone - self.done.time)
    }

    /// How many iterations are left where it runs, of a loop of so many at the size asked for: more members do as many
    /// samples in fewer.
    pub(super) fn iterations_left(&self, of: u64) -> u64 {
        self.pace.time(Duration(of.saturating_sub(self.done.iterations))).0
    }

    /// The GPUs it runs on.
    pub(super) fn held(&self) -> Gpus {
        self.held
    }

    /// Takes note of what a whole gang has: more members do more. Where members are scheduled apart there are as many as
    /// asked for.
    fn measure(&mut self, spec: &JobSpec) {
        if let [Member { on, .. }] = &self.members[..]
            && let [on] = &on[..]
        {
            self.held = on.total().gpus;
            self.cores = cores(on.total().cpu);
            self.pace = match (&self.model, &spec.scaling) {
                // What its gradients cost shows on the links: here only the number of its iterations changes.
                (Some(_), Some(_)) => WorkPace::of(&JobSpec { scaling: None, ..spec.clone() }, on),
                _ => WorkPace::of(spec, on),
            };
        }
    }

    /// Goes on where the slowest of its members takes so many times as long. What a loop computes shows on the links.
    pub(super) fn go_on(&mut self, now: Instant, spec: &JobSpec, slowdown: f64) {
        self.measure(spec);
        if self.model.is_none() && slowdown > 1.0 {
            self.pace = slowed(self.pace, slowdown);
        }
        self.forget_milestones();
        self.is_paced = false;
        self.since = Some(now);
        self.start.get_or_insert(now);
        self.epoch += 1;
    }

    /// Goes on at another pace; false where it is the same, or does not train.
    pub(super) fn repaced(&mut self, now: Instant, pace: WorkPace) -> bool {
        if !self.is_training() || self.pace == pace && self.is_paced {
            return false;
        }
        self.halt(now, 0, Keeping::Running);
        (self.since, self.pace, self.is_paced) = (Some(now), pace, true);
        self.epoch += 1;
        true
    }

    /// The part of all its work that is done.
    pub(super) fn part_done(&self, now: Instant) -> f64 {
        (self.executed(now).0 as f64 / self.alone.0.max(1) as f64).min(1.0)
    }

    /// Stops training after so many iterations of its loop; keeps of its work what it can. A loop saves at the end of the
    /// iteration in which its time to save comes.
    pub(super) fn halt(&mut self, now: Instant, iterations: u64, keeping: Keeping) {
        let Some(since) = self.since.take() else { return };
        let ran = now.since(since);
        self.epoch += 1;
        self.ran += ran;
        self.gpu_time = self.gpu_time + GpuTime::of(self.held, ran);
        self.undisturbed += iterations as f64 * self.iteration_alone.as_secs_f64();
        self.iterations += iterations;
        let before = self.done;
        self.done = Work {
            time: before.time + self.pace.work(ran),
            iterations: before.iterations + self.pace.work(Duration(iterations)).0,
        };
        self.use_cores(ran, self.done.time - before.time);
        self.note_milestones(since, before.time);
        self.saved = match self.checkpointing {
            Some(_) if keeping == Keeping::All => self.done,
            Some(Checkpointing { every: Some(every), .. }) if !every.is_zero() => {
                self.saved_by_itself(every, before)
            }
            _ => self.saved,
        };
        if keeping != Keeping::Running {
            self.done = self.saved;
        }
    }

    /// Those that it came by since then, when it had done so much.
    fn note_milestones(&mut self, since: Instant, before: Duration) {
        let (done, pace) = (self.done.time, self.pace);
        for milestone in self.milestones.iter_mut().flatten() {
            if milestone.reached.is_none() && milestone.work <= done {
                milestone.reached = Some(since + pace.time(milestone.work - before));
            }
        }
    }

    /// Those that it has to come by again, because the work was lost.
    fn forget_milestones(&mut self) {
        let kept = self.done.time;
        for milestone in self.milestones.iter_mut().flatten().filter(|milestone| milestone.work > kept) {
            milestone.reached = None;
        }
    }

    /// It is stopped while it hangs: it could not save, and when it is started anew it goes on from what it had saved.
    pub(super) fn is_shaken(&mut self) {
        if std::mem::take(&mut self.hangs) {
            self.done = self.saved;
        }
    }

    /// Whatever is done by several cores takes one of them as long as all of them together.
    fn use_cores(&mut self, ran: Duration, work: Duration) {
        let (cores, at_least) = (self.cores, self.at_least);
        if let Some(cpu) = &mut self.cpu {
            cpu.held += cores * ran.as_secs_f64();
            cpu.used += work.as_secs_f64() / time_with(at_least, cpu.serial);
        }
    }

    fn saved_by_itself(&self, every: Duration, before: Work) -> Work {
        let time = Duration(self.done.time.0 / every.0 * every.0);
        if time <= before.time {
            return self.saved;
        }
        let (ran, kept) = ((self.done.time - before.time).0, (time - before.time).0);
        let iterations =
            u128::from(self.done.iterations - before.iterations) * u128::from(kept) / u128::from(ran);
        Work { time, iterations: before.iterations + iterations as u64 }
    }

    pub(super) fn end(&mut self, now: Instant, fate: Fate) {
        self.end = Some((now, fate));
    }

    /// Notes for the picture what it does with its nodes from now on.
    pub(super) fn note(&mut self, now: Instant) {
        let nodes = self.on();
        let kind = if self.is_training() { Use::Training } else { Use::Holding };
        if let Some(last) = self.segments.last_mut().filter(|last| last.to == Instant(u64::MAX)) {
            if last.kind == kind && last.nodes == nodes {
                return;
            }
            last.to = now;
            if last.from == now {
                self.segments.pop();
            }
        }
        if !nodes.is_empty() && !self.is_over() {
            self.segments.push(Segment { kind, from: now, to: Instant(u64::MAX), nodes });
        }
    }

    /// GPU-time in which it trained.
    pub(super) fn gpu_time(&self) -> GpuTime {
        self.gpu_time
    }

    fn slowdown(&self) -> Option<f64> {
        (self.undisturbed > 0.0).then(|| self.ran.as_secs_f64() / self.undisturbed)
    }

    /// What is left of the mean iteration beside its compute. Noise may take a little off the compute of all.
    fn exchange(&self) -> Option<f64> {
        let mean = self.ran.as_secs_f64() / self.iterations as f64;
        (self.iterations > 0).then(|| (mean - self.iteration_computed.as_secs_f64()).max(0.0))
    }

    pub(super) fn outcome(mut self, now: Instant) -> JobOutcome {
        let holds = self.members.iter().any(|member| member.up);
        let fate = match self.end {
            Some((_, fate)) => fate,
            // A run ends when nothing can change any more: who holds nodes without training blocks others for ever.
            None if holds && !self.is_training() && !self.hangs => Fate::Deadlocked,
            None => Fate::Unfinished,
        };
        for segment in &mut self.segments {
            segment.to = segment.to.min(now);
        }
        JobOutcome {
            model: self.model.as_ref().and_then(|model| model_name(model)),
            slowdown: self.slowdown(),
            exchange: self.exchange(),
            name: self.name,
            priority: self.priority,
            user: self.user,
            submit: self.submit,
            start: self.start,
            end: self.end.map(|(at, _)| at),
            ran: self.ran + self.since.map_or(Duration::ZERO, |since| now.since(since)),
            alone: self.alone,
            deadline: self.deadline,
            binding: self.binding,
            taken: self.taken,
            cpu: self.cpu,
            gpus: self.gpus,
            members: self.size,
            nodes: self.nodes,
            fate,
            preemptions: self.preemptions,
            moves: self.moves,
            resizes: self.resizes,
            resizes_in_place: self.resizes_in_place,
            reached: self.milestones.map(|all| all.map(|milestone| milestone.reached)),
            wait_reason: self.wait_reason,
            segments: self.segments,
        }
    }
}

/// So many times as slow.
fn slowed(pace: WorkPace, slowdown: f64) -> WorkPace {
    WorkPace::at(Speed(((pace.speed().0 as f64 / slowdown) as u64).max(1)))
}

fn cores(cpu: Cpu) -> f64 {
    cpu.0 as f64 / Cpu::cores(1).0 as f64
}

fn model_name(model: &TrainingModel) -> Option<String> {
    match &model.pattern {
        Pattern::Gradients(model) => Some(model.name.clone()),
        Pattern::Phases(_) => None,
    }
}

//! Whose place a job may take.
//!
//! Victims are running jobs that allow it, whole gangs only:
//! - of the same queue, where queues have shares, and of a lower user or task priority while neither is higher. The aged
//!   score does not count: what waited long goes first, but stops nobody;
//! - of the same queue and no higher priority, if they lose nothing but time and have far more left to do than the job
//!   and the disturbance cost (where the policy looks for such gain);
//! - of a queue that holds more than its own, for one that holds less than its own and will not exceed it.
//!
//! Those of the lowest priority are thought away first, level by level, until the job fits; of those on whose nodes it
//! then lies, each is given back whom it can do without, whoever would lose most first. What is left is as few as will
//! do: with any one of them back, the job would not fit. None of the three relations has a circle, so two jobs never
//! take each other's place in turn.

mod victim_index;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::admit::Rules;
use super::deadlines::leaves_what_is_booked;
use super::draft::{Draft, Reach};
use super::fits::Fits;
use super::order::Ranker;
use super::place::too_little_room;
use super::placement_cost::is_not_worth_taking;
use super::queue_shares::Rights;
use crate::decide::snapshot::Snapshot;
use crate::model::id::{BudgetId, IdVec, JobId, NodeId, QueueId, ShapeId};
use crate::model::job::{Job, Life, Priority, Rule};
use crate::model::plan::Assignment;
use crate::model::policy::Preemption;
use crate::model::queue::{Queue, lineage};
use crate::model::units::{Duration, GpuTime, Instant, Resources, Share};
use victim_index::Field;

/// A cycle gives up after so many searches that found nobody: each looks at every node.
const MOST_SEARCHES_IN_VAIN: usize = 100;

/// And when places were found and not worth taking, after looking at so many nodes for them, or so few places.
const MOST_NODES_FOR_NOTHING: usize = 50_000;
const FEW_PLACES_REFUSED: usize = 8;

/// How often victims are chosen anew because those chosen share a budget that allows fewer.
const MOST_CHOICES: usize = 8;

/// Somebody of equal priority makes room only if it has so much more left to do, in tenths, than the job it makes room
/// for and the disturbance together.
const TIMES_THE_COST: u128 = 15;

/// Among so many victims at least one is chosen, and among such as hold so many times what is needed.
const FEW: usize = 64;
const ENOUGH_TO_CHOOSE_FROM: u64 = 8;

/// Who has waited for so many times its own length makes no more room.
pub(super) const LENGTHS_BEFORE_SPARED: u64 = 30;

pub(super) struct Victims<'a> {
    preemption: Preemption,
    field: Field<'a>,
    /// How many members may still be evicted on account of each budget.
    left: IdVec<BudgetId, u32>,
    /// The draft without all of these: what does not fit there needs no closer look.
    without_all: Option<(Vec<JobId>, Draft<'a>)>,
    /// Who was found not to fit whoever left.
    failures: Vec<Failure>,
    in_vain: usize,
    /// Places that were found and not worth taking.
    refused: usize,
}

/// A job that would not fit if all who may make room for it left. Neither would one that asks for as many members of that
/// shape or more, for whom no others make room.
struct Failure {
    queue: QueueId,
    priority: Priority,
    user: Share,
    service: u128,
    shape: ShapeId,
    members: u64,
}

#[derive(Clone)]
struct Victim<'a> {
    priority: Priority,
    /// It makes room though its priority is no lower: because it has so much more left to do.
    for_gain: bool,
    id: JobId,
    job: &'a Job,
    assignment: Arc<Assignment>,
    /// What the assignment takes.
    held: Resources,
}

/// By what it is decided who makes room for whom.
pub(super) struct Grounds<'s, 'a> {
    pub(super) rules: &'s Rules<'a>,
    pub(super) ranker: &'s Ranker<'a>,
    pub(super) rights: Option<&'s Rights<'a>>,
    /// Who was given a place in this pass and may have to wait instead for one of its own queue: it loses nothing yet.
    pub(super) starting: &'s BTreeSet<JobId>,
}

impl<'a> Victims<'a> {
    pub(super) fn of(rules: &Rules<'a>, ranker: &Ranker<'a>) -> Self {
        let snapshot = rules.snapshot;
        let planned = snapshot.plan.iter().map(|(id, assignment)| (id, &snapshot.jobs[id], assignment));
        let settled = planned.filter(|(_, job, assignment)| may_be_stopped(snapshot, job, assignment));
        let mut running = Vec::with_capacity(snapshot.plan.len());
        running.extend(settled.map(|(id, job, assignment)| Victim::of(id, job, assignment)));
        let field = Field::of(running, ranker.shares().is_some(), snapshot.now);
        let mut left = snapshot.budgets.clone();
        for job in snapshot.displaced.keys().filter_map(|id| snapshot.jobs.get(*id)) {
            let members = job.life.holds().iter().map(|held| held.members()).sum();
            spend(&mut left, job, members);
        }
        Self {
            preemption: rules.preemption,
            field,
            left,
            without_all: None,
            failures: Vec::new(),
            in_vain: 0,
            refused: 0,
        }
    }

    /// Whether anybody in the plan makes room for a job by priority or for gain: for a few who ask, a look at each is
    /// cheaper than sorting all of them.
    pub(super) fn may_yield_to(rules: &Rules<'a>, ranker: &Ranker<'a>, id: JobId) -> bool {
        let jobs = rules.snapshot.jobs;
        let (job, for_gain) = (&jobs[id], rules.preemption == Preemption::ByGain);
        let within = |other: &Job| ranker.shares().is_none() || other.spec.queue == job.spec.queue;
        let yields = |other: &Job| is_below(other, job) || for_gain && gains(rules, job, other);
        rules.snapshot.plan.iter().map(|(other, _)| &jobs[other]).any(|other| within(other) && yields(other))
    }

    /// Whether a job might fit if others left: those who run, or who were given what `starting` comes to in this pass, if
    /// anybody was.
    pub(super) fn may_help(
        &self,
        rules: &Rules<'a>,
        rights: Option<&Rights<'a>>,
        draft: &Draft<'a>,
        id: JobId,
        starting: Option<Resources>,
    ) -> bool {
        let nodes = rules.snapshot.cluster.nodes().len().max(1);
        let most_refused = (MOST_NODES_FOR_NOTHING / nodes).max(FEW_PLACES_REFUSED);
        if self.in_vain >= MOST_SEARCHES_IN_VAIN || self.refused >= most_refused {
            return false;
        }
        let (job, now) = (&rules.snapshot.jobs[id], rules.snapshot.now);
        let (queue, need) = (job.spec.queue, job.spec.least());
        let held = draft.held().by_queue();
        let takes_back = rights.is_some_and(|rights| rights.may_take_back(held, queue, need));
        let theirs = match takes_back {
            true => self.field.total(),
            false => self.field.most(job, self.looks_for_gain(), now),
        };
        let theirs = theirs.into_iter().chain(starting).reduce(|one, other| one + other);
        theirs.is_some_and(|theirs| need.fits_in(draft.total() + theirs))
            && (takes_back || !self.has_failed(job, now))
    }

    fn has_failed(&self, job: &Job, now: Instant) -> bool {
        let Some(new) = Failure::of(job, now) else { return false };
        self.failures.iter().any(|failure| failure.covers(&new))
    }

    /// Tells those to leave whose place a job may take, and gives it to it. Returns who had a place in this draft and has
    /// none any more; nothing if nobody can be told.
    pub(super) fn make_room(
        &mut self,
        decision_inputs: &Grounds<'_, 'a>,
        draft: &mut Draft<'a>,
        id: JobId,
    ) -> Option<Vec<JobId>> {
        let Grounds { rules, starting, .. } = decision_inputs;
        let job = &rules.snapshot.jobs[id];
        // Those who left for it already may yet be enough.
        let awaited = rules.snapshot.displaced.values().any(|beneficiary| *beneficiary == id);
        let is_booked = leaves_what_is_booked(rules, draft, id).is_err();
        if !job.spec.preempts || awaited || is_booked || rules.quota_allows(draft, job).is_err() {
            return None;
        }
        let (victims, assignment) = self.choose(decision_inputs, draft, job)?;
        let gone: Vec<JobId> = victims.iter().map(|victim| victim.id).collect();
        if is_not_worth_taking(rules, draft, id, &assignment, &gone) {
            self.refused += 1;
            return None;
        }
        let (waiting, leaving): (Vec<_>, Vec<_>) =
            victims.into_iter().partition(|victim| starting.contains(&victim.id));
        for victim in &waiting {
            draft.take_back(victim.id, victim.job, &victim.assignment);
        }
        for victim in &leaving {
            draft.evict(victim.id, &victim.job.spec, &victim.assignment);
            draft.report.displaced.push((victim.id, id));
            spend(&mut self.left, victim.job, victim.assignment.members());
        }
        self.without_all = None;
        self.failures.clear();
        draft.settle(id, job, assignment);
        Some(waiting.iter().map(|victim| victim.id).collect())
    }

    fn choose(
        &mut self,
        decision_inputs: &Grounds<'_, 'a>,
        draft: &Draft<'a>,
        job: &'a Job,
    ) -> Option<(Vec<Victim<'a>>, Assignment)> {
        let rules = decision_inputs.rules;
        let few = self.few_of_many(decision_inputs, draft, job);
        if let Some(found) = few.and_then(|few| self.choose_among(&few, rules, draft, job)) {
            return Some(found);
        }
        let all = self.candidates(decision_inputs, draft, job);
        if !self.would_all_do(rules, draft, job, &all) {
            let alone = all.iter().all(|victim| victim.job.spec.queue == job.spec.queue);
            self.failures.extend(Failure::of(job, rules.snapshot.now).filter(|_| alone));
            return None;
        }
        self.choose_among(&all, rules, draft, job)
    }

    fn choose_among(
        &self,
        all: &[Victim<'a>],
        rules: &Rules<'a>,
        draft: &Draft<'a>,
        job: &'a Job,
    ) -> Option<(Vec<Victim<'a>>, Assignment)> {
        let mut spared = BTreeSet::new();
        for _ in 0..MOST_CHOICES {
            let search = Search { rules, draft, job };
            let unspared: Vec<Victim<'a>> =
                all.iter().filter(|victim| !spared.contains(&victim.id)).cloned().collect();
            let wide = search.widen(&unspared)?;
            let (victims, assignment) = search.prune(wide)?;
            match self.past_budget(&victims) {
                Some(id) => spared.insert(id),
                None => return Some((victims, assignment)),
            };
        }
        None
    }

    /// Where very many would make room by priority or give back, the first of them who hold many times what the job needs:
    /// thinking all away would cost more than a somewhat better choice is worth.
    fn few_of_many(
        &self,
        decision_inputs: &Grounds<'_, 'a>,
        draft: &Draft<'a>,
        job: &Job,
    ) -> Option<Vec<Victim<'a>>> {
        let (ranker, now) = (decision_inputs.ranker, decision_inputs.rules.snapshot.now);
        let wanted = job.spec.least().times(ENOUGH_TO_CHOOSE_FROM);
        let mut surplus = self.surplus(decision_inputs, draft, job);
        let all = surplus.is_some().then(|| self.field.all().iter()).into_iter().flatten();
        let below = surplus.is_none().then(|| self.field.below(job)).into_iter().flatten();
        let (mut few, mut theirs) = (Vec::new(), Resources::NONE);
        for victim in all.chain(below).filter(|victim| self.stays(draft, victim)) {
            if few.len() >= FEW && wanted.fits_in(theirs) {
                return Some(few);
            }
            let yields = match &mut surplus {
                Some(surplus) if victim.job.spec.queue != job.spec.queue => surplus.claim(victim),
                _ => is_below(victim.job, job) && !is_spared(victim.job, ranker, now),
            };
            if yields {
                theirs = theirs + victim.held;
                few.push(victim.clone());
            }
        }
        None
    }

    /// What other queues hold beyond their own, if the job's may take any of it back.
    fn surplus<'s>(
        &self,
        decision_inputs: &Grounds<'s, 'a>,
        draft: &Draft<'a>,
        job: &Job,
    ) -> Option<Surplus<'s, 'a>> {
        let held = draft.held().by_queue();
        let takes_back = |rights: &&Rights<'a>| rights.may_take_back(held, job.spec.queue, job.spec.least());
        decision_inputs.rights.filter(takes_back).map(|rights| Surplus::of(rights, draft, job))
    }

    /// Whether nothing was decided about a victim yet, and no budget protects it.
    fn stays(&self, draft: &Draft<'_>, victim: &Victim<'_>) -> bool {
        let members = victim.assignment.members();
        let budgets_allow = victim.job.spec.budgets.iter().all(|budget| members <= self.left(*budget));
        budgets_allow && !draft.is_changed(victim.id) && !draft.timetable.governs(victim.id)
    }

    /// Whether the job would fit if all these left. Jobs with the same candidates share the answer's costly part.
    fn would_all_do(
        &mut self,
        rules: &Rules<'a>,
        draft: &Draft<'a>,
        job: &'a Job,
        all: &[Victim<'a>],
    ) -> bool {
        let theirs: Resources = all.iter().map(|victim| victim.held).sum();
        let enough = job.spec.least().fits_in(draft.total() + theirs);
        if all.is_empty() || !enough || has_too_few_places(draft, job, all) {
            return false;
        }
        let ids = || all.iter().map(|victim| victim.id);
        if self.without_all.as_ref().is_none_or(|(shared, _)| !ids().eq(shared.iter().copied())) {
            let mut trial = draft.trial();
            all.iter().for_each(|victim| trial.release(victim.job, &victim.assignment));
            self.without_all = Some((ids().collect(), trial));
        }
        let (_, trial) = self.without_all.as_mut().expect("it was just made");
        if too_little_room(trial, job, rules.sizes).is_some() {
            return false;
        }
        let mark = trial.mark();
        let fits = rules.leaves_what_is_kept(draft, job.spec.queue, job.spec.least(), trial.total())
            && rules.placer.place(trial, job, rules.sizes, Reach::Claimed).is_ok();
        trial.rollback(mark);
        self.in_vain += usize::from(!fits);
        fits
    }

    /// Those whose place the job may take and whom no budget protects.
    fn candidates(&self, decision_inputs: &Grounds<'_, 'a>, draft: &Draft<'a>, job: &Job) -> Vec<Victim<'a>> {
        let Grounds { rules, ranker, starting, .. } = *decision_inputs;
        let Snapshot { jobs, now, .. } = *rules.snapshot;
        let queue = job.spec.queue;
        let mut surplus = self.surplus(decision_inputs, draft, job);
        let running: Vec<&Victim<'a>> = match surplus {
            Some(_) => self.field.all().iter().collect(),
            None => self.field.may_yield(job, self.looks_for_gain(), now),
        };
        let running = running.into_iter().filter(|victim| self.stays(draft, victim));
        let own = starting.iter().filter(|id| jobs[**id].spec.queue == queue);
        let placed = own.filter_map(|id| Some(Victim::of(*id, &jobs[*id], draft.assigned(*id)?)));
        let placed: Vec<Victim<'a>> = placed.collect();
        let mut yielding: Vec<Victim<'a>> = Vec::new();
        for victim in placed.iter().chain(running) {
            let (lower, gain) = match &mut surplus {
                Some(surplus) if victim.job.spec.queue != queue => (surplus.claim(victim), false),
                _ if is_spared(victim.job, ranker, now) => (false, false),
                _ => (is_below(victim.job, job), self.looks_for_gain() && gains(rules, job, victim.job)),
            };
            if lower || gain {
                yielding.push(Victim { for_gain: !lower, ..victim.clone() });
            }
        }
        // Those first who lose nothing yet, then by priority; whoever has most left to do is the first of those who make
        // room for gain.
        let left = |victim: &Victim<'_>| victim.job.remaining(now);
        yielding.sort_by_key(|victim| (victim.for_gain, victim.for_gain.then(|| Reverse(left(victim)))));
        yielding
    }

    fn looks_for_gain(&self) -> bool {
        self.preemption == Preemption::ByGain
    }

    fn left(&self, budget: BudgetId) -> u32 {
        self.left.get(budget).copied().unwrap_or(0)
    }

    /// Somebody among the victims who is one too many for a budget they share; the last of them.
    fn past_budget(&self, victims: &[Victim<'_>]) -> Option<JobId> {
        let mut left = self.left.clone();
        victims.iter().find_map(|victim| {
            let members = victim.assignment.members();
            let budgets = victim.job.spec.budgets.iter();
            let short = budgets.filter_map(|budget| left.get(*budget)).any(|left| *left < members);
            spend(&mut left, victim.job, members);
            short.then_some(victim.id)
        })
    }
}

/// Whether the nodes of these, were they gone, take too few members: told by amounts alone, without a trial.
fn has_too_few_places(draft: &Draft<'_>, job: &Job, gone: &[Victim<'_>]) -> bool {
    let (Some(fits), Some(shape)) = (Fits::of(job), job.shapes.first()) else { return false };
    let mut freed: BTreeMap<NodeId, Resources> = BTreeMap::new();
    for (node, held) in gone.iter().flat_map(|victim| victim.assignment.takes()) {
        let sum = freed.entry(*node).or_default();
        *sum = *sum + *held;
    }
    let more = freed.into_iter().map(|(node, freed)| fits.at_most_more(draft, node, freed));
    draft.fits(*shape).saturating_add(more.sum()) < fits.wanted
}

impl Failure {
    /// None for jobs about which more decides than how many members fit.
    fn of(job: &Job, now: Instant) -> Option<Self> {
        let members = Fits::of(job)?.wanted;
        let service = job.remaining(now).map_or(u128::MAX, |left| service(job, left));
        let (queue, priority, user) = (job.spec.queue, job.spec.priority, job.spec.user);
        Some(Self { queue, priority, user, service, shape: *job.shapes.first()?, members })
    }

    fn covers(&self, other: &Self) -> bool {
        self.queue == other.queue
            && self.shape == other.shape
            && self.priority >= other.priority
            && self.user >= other.user
            && self.service <= other.service
            && self.members <= other.members
    }
}

impl<'a> Victim<'a> {
    fn of(id: JobId, job: &'a Job, assignment: &Arc<Assignment>) -> Self {
        let (assignment, held) = (Arc::clone(assignment), assignment.total());
        Self { priority: job.spec.priority, for_gain: false, id, job, assignment, held }
    }
}

/// Whether somebody has waited for so long that it makes no more room for others of its queue: neither a stream of short
/// jobs nor one of urgent ones keeps it from ending. Of a job whose length is unknown nobody can say what is long.
pub(super) fn is_spared(job: &Job, ranker: &Ranker<'_>, now: Instant) -> bool {
    let waited = now.since(job.submitted) - job.progress.ran(now);
    let enough = |alone: Duration| ranker.window(job.spec.queue).max(alone.times(LENGTHS_BEFORE_SPARED));
    job.spec.work.alone.is_some_and(|alone| waited >= enough(alone))
}

/// Whether a job had better go first, and somebody of no higher priority who has far more left to do, and loses only
/// time by it, later.
pub(super) fn gains(rules: &Rules<'_>, first: &Job, later: &Job) -> bool {
    let now = rules.snapshot.now;
    let (Some(left), Some(margin)) = (first.remaining(now), margin(later, now)) else { return false };
    later.spec.priority <= first.spec.priority
        && later.spec.user <= first.spec.user
        && margin > service(first, left) as Margin * TIMES_THE_COST as Margin
}

/// How much more a job has left to do than stopping it costs, as far as that counts: whose service, times the cost, is less
/// gains if the job goes later. None of a job that loses more than time, or of which nobody knows.
type Margin = i128;

fn margin(later: &Job, now: Instant) -> Option<Margin> {
    let left = later.remaining(now).filter(|_| later.spec.capabilities.suspend)?;
    let cost = service(later, loss(later, now)) * TIMES_THE_COST;
    Some(service(later, left) as Margin * 10 - cost as Margin)
}

fn service(job: &Job, time: Duration) -> u128 {
    GpuTime::of(job.spec.gpus(), time).0
}

/// Time that stopping a job costs: what it did since it last could go on from, and what it takes to save and resume.
fn loss(job: &Job, now: Instant) -> Duration {
    match job.spec.checkpointing {
        Some(saving) if job.spec.capabilities.suspend => saving.takes + saving.restart,
        _ if job.spec.capabilities.suspend => Duration::ZERO,
        _ => job.runs_since.map_or(Duration::ZERO, |since| now.since(since)),
    }
}

/// Whether one job has the lower priority of its user or its own, and neither is higher.
fn is_below(one: &Job, other: &Job) -> bool {
    let (one, other) = (&one.spec, &other.spec);
    let neither_higher = one.priority <= other.priority && one.user <= other.user;
    neither_higher && (one.priority < other.priority || one.user < other.user)
}

/// What other queues hold beyond their own, while victims are picked from them.
struct Surplus<'s, 'a> {
    rights: &'s Rights<'a>,
    queues: &'a IdVec<QueueId, Queue>,
    held: IdVec<QueueId, Resources>,
    claim: (QueueId, Resources),
}

impl<'s, 'a> Surplus<'s, 'a> {
    fn of(rights: &'s Rights<'a>, draft: &Draft<'a>, job: &Job) -> Self {
        let held = draft.held().by_queue().clone();
        Self { rights, queues: draft.queues(), held, claim: (job.spec.queue, job.spec.least()) }
    }

    /// Whether a job of another queue is beyond what that queue may call its own, those claimed before aside.
    fn claim(&mut self, victim: &Victim<'_>) -> bool {
        let holder = victim.job.spec.queue;
        let yields = self.rights.yields(&self.held, self.claim, holder);
        for queue in lineage(self.queues, holder).filter(|_| yields) {
            self.held[queue] = self.held[queue] - victim.held;
        }
        yields
    }
}

/// Whether a planned job runs where it is planned, has done so long enough, and lets itself be stopped.
fn may_be_stopped(snapshot: &Snapshot<'_>, job: &Job, assignment: &Arc<Assignment>) -> bool {
    let runs = matches!(&job.life, Life::Running(held) if held == assignment);
    let ripe = job.ripe(snapshot.min_run).is_none_or(|ripe| ripe <= snapshot.now);
    runs && ripe && job.spec.capabilities.makes_room() && job.not_before <= snapshot.now
}

fn spend(left: &mut IdVec<BudgetId, u32>, job: &Job, members: u32) {
    for budget in &job.spec.budgets {
        if let Some(left) = left.get_mut(*budget) {
            *left = left.saturating_sub(members);
        }
    }
}

/// One job looking for whose place to take.
struct Search<'s, 'a> {
    rules: &'s Rules<'a>,
    draft: &'s Draft<'a>,
    job: &'a Job,
}

impl<'a> Search<'_, 'a> {
    /// Thinks victims away until the job fits, one level of priority after another, and those who make room for gain
    /// one by one; returns those among them that lie in its way there.
    fn widen(&self, candidates: &[Victim<'a>]) -> Option<Vec<Victim<'a>>> {
        let mut trial = self.draft.trial();
        let counted = Fits::of(self.job);
        let mut fit = counted.map(|fits| fits.everywhere(&trial));
        let mut gone = 0;
        for level in candidates.chunk_by(|one, next| !next.for_gain && one.priority == next.priority) {
            for victim in level {
                let before = counted.map_or(0, |fits| fits.around(&trial, &victim.assignment));
                trial.release(victim.job, &victim.assignment);
                let after = counted.map_or(0, |fits| fits.around(&trial, &victim.assignment));
                fit = fit.map(|fit| fit - before + after);
            }
            gone += level.len();
            let may_fit = counted.is_none_or(|fits| fit.is_some_and(|fit| fit >= fits.wanted));
            if let Some(assignment) = may_fit.then(|| self.place(&mut trial)).flatten() {
                // Where others keep what is free, it may not be the place that is lacking.
                let lacks_a_place = self.leaves_what_is_kept(self.draft);
                let in_the_way =
                    |victim: &&Victim<'a>| !lacks_a_place || self.is_in_the_way(victim, &assignment);
                return Some(candidates[..gone].iter().filter(in_the_way).cloned().collect());
            }
        }
        None
    }

    /// Where the job fits in a trial, which stays as it was.
    fn place(&self, trial: &mut Draft<'a>) -> Option<Assignment> {
        if !self.leaves_what_is_kept(trial) {
            return None;
        }
        trial.forget_fits();
        let mark = trial.mark();
        let placed = self.rules.placer.place(trial, self.job, self.rules.sizes, Reach::Claimed).ok();
        trial.rollback(mark);
        placed
    }

    fn leaves_what_is_kept(&self, trial: &Draft<'_>) -> bool {
        let spec = &self.job.spec;
        self.rules.leaves_what_is_kept(self.draft, spec.queue, spec.least(), trial.total())
    }

    /// Whether a victim lies on one of the nodes, or counts in a group that the job's rules look at.
    fn is_in_the_way(&self, victim: &Victim<'_>, assignment: &Assignment) -> bool {
        let watched = self.job.spec.roles.iter().flat_map(|role| &*role.shape.rules).flat_map(Rule::groups);
        let counts = |group| victim.job.spec.roles.iter().any(|role| role.shape.groups.contains(group));
        victim.assignment.nodes().any(|node| assignment.touches(node)) || watched.into_iter().any(counts)
    }

    /// Gives back whom the job can do without, and places it with the rest gone.
    fn prune(&self, mut victims: Vec<Victim<'a>>) -> Option<(Vec<Victim<'a>>, Assignment)> {
        let mut trial = self.draft.trial();
        victims.iter().for_each(|victim| trial.release(victim.job, &victim.assignment));
        // Those are left that lose least, few large gangs rather than many small ones, those that have most left to do.
        let snapshot = self.rules.snapshot;
        victims.sort_unstable_by_key(|victim| {
            let left = victim.job.remaining(snapshot.now);
            let cost = (Reverse(victim.priority), Reverse(loss(victim.job, snapshot.now)));
            (cost, !victim.for_gain, victim.assignment.members(), left, victim.job.runs_since, victim.id)
        });
        let counted = Fits::of(self.job);
        let mut fit = counted.map(|fits| fits.everywhere(&trial));
        victims.retain(|victim| {
            let before = counted.map_or(0, |fits| fits.around(&trial, &victim.assignment));
            trial.reclaim(victim.job, &victim.assignment);
            let after = counted.map_or(0, |fits| fits.around(&trial, &victim.assignment));
            let needed = match (fit, counted) {
                _ if !self.leaves_what_is_kept(&trial) => true,
                (Some(fit), Some(fits)) => fit - before + after < fits.wanted,
                _ => self.place(&mut trial).is_none(),
            };
            if needed {
                trial.release(victim.job, &victim.assignment);
            } else {
                fit = fit.map(|fit| fit - before + after);
            }
            needed
        });
        Some((victims, self.place(&mut trial)?))
    }
}

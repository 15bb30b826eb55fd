//! Running jobs are evicted for a waiting job that fits then.
//!
//! Victims are running jobs that allow it, whole gangs only:
//!
//! - of the same queue, where queues have shares, and of a lower user or task priority while neither is higher. The
//!   aged score does not count: a job that has waited long goes first, but evicts none for that;
//! - of the same queue and no higher priority, if they lose nothing but time and have far more left to do than the job
//!   and the disturbance cost (`Preemption::ByGain`);
//! - of a queue that holds more than its own, for a job of one that holds less than its own and will not exceed it.
//!
//! Victims of the lowest priority are released first, level by level in a trial, until the job fits. Of those on whose
//! nodes it then lies, each is given back if the job fits without its eviction, the one that would lose most first.
//! The remaining set is minimal: with any one of them back, the job would not fit. None of the three relations has a cycle,
//! so two jobs never evict each other in turn.

mod search;
mod victim;
mod victim_index;

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::decide::draft::{Draft, Reach};
use crate::decide::gang_size::GangSize;
use crate::decide::ledger::{Entry, Ledger, Proposal, Request, Room, Serves, head_blocks, lacks_capacity};
use crate::decide::link_cost::is_not_worth_taking;
use crate::decide::order::QueueCursor;
use crate::decide::placement;
use crate::decide::preemption_rules::{gains, is_below, is_exempt};
use crate::decide::proposer::Proposer;
use crate::decide::queue_shares::Rights;
use crate::decide::snapshot::Snapshot;
use crate::decide::view::View;
use crate::model::id::{BudgetId, ClassId, IdVec, JobId};
use crate::model::job::Job;
use crate::model::plan::Assignment;
use crate::model::policy::Preemption;
use crate::model::report::Reason;
use crate::model::units::Resources;
use search::{Search, has_too_few_places};
use victim::{Failure, Surplus, Victim, may_be_stopped, spend};
use victim_index::VictimIndex;

/// Evicts running jobs for the first waiting job that fits then.
#[derive(Default)]
pub(in crate::decide) struct Preempt<'a> {
    victims: Option<Victims<'a>>,
}

impl<'a> Proposer<'a> for Preempt<'a> {
    fn propose(&mut self, view: &View<'a>, ledger: &mut Ledger<'a>) -> Option<Proposal> {
        if !view.policy.preemption.makes_room() {
            return None;
        }
        if head_blocks(view) {
            let head = ledger.requests.refused.last()?.request;
            return if is_spent(view, ledger) { None } else { self.propose_for(view, ledger, head) };
        }
        if is_spent(view, ledger) {
            return None;
        }
        recheck_bandwidth_waiters(view, ledger);
        let mut queue = self.untried(view, ledger);
        while let Some((job, class)) = queue.pop(ledger.draft.held().by_queue()) {
            if let Some(proposal) = self.propose_for(view, ledger, Request { job, class }) {
                return Some(proposal);
            }
        }
        None
    }
}

fn is_spent(view: &View<'_>, ledger: &mut Ledger<'_>) -> bool {
    ledger.report.cut_short |=
        ledger.work.beneficiaries >= view.snapshot.tuning.decide.max_beneficiaries_per_decision;
    ledger.report.cut_short
}

/// Finds out whether jobs that prefer to wait for a better place on links still have a place: others were placed since.
fn recheck_bandwidth_waiters<'a>(view: &View<'a>, ledger: &mut Ledger<'a>) {
    let Ledger { requests, draft, .. } = ledger;
    for refused in &mut requests.refused {
        if matches!(refused.reason, Reason::BandwidthContended { .. }) {
            let job = &view.snapshot.jobs[refused.request.job];
            let placed = placement::fit(view, draft, job, GangSize::Minimum, Reach::Unclaimed);
            refused.reason = placed.err().unwrap_or_else(|| refused.reason.clone());
        }
    }
}

impl<'a> Preempt<'a> {
    /// The refused requests for which jobs might be evicted: counts alone tell.
    fn untried(&mut self, view: &View<'a>, ledger: &mut Ledger<'a>) -> QueueCursor<'a> {
        let refused = ledger.requests.refused.iter();
        let untried = refused.filter(|refused| {
            let chances = ledger.preemption_chances(view, refused.request.class);
            lacks_capacity(&refused.reason) && refused.tried != Some(chances)
        });
        let untried: Vec<Request> = untried.map(|refused| refused.request).collect();
        let few = untried.len() <= view.snapshot.tuning.decide.linear_scan_max_requesters;
        let mut queue = QueueCursor::empty(view.ranker);
        for Request { job, class } in untried {
            if (!few || self.may_have_victims(view, ledger, job)) && self.may_help(view, ledger, job) {
                queue.stand(job, class);
            } else {
                note_tried(view, ledger, class);
            }
        }
        queue
    }

    /// Whether any job at all might be evicted for a job.
    fn may_have_victims(&self, view: &View<'a>, ledger: &Ledger<'a>, job: JobId) -> bool {
        let spec = &view.snapshot.jobs[job].spec;
        let held = ledger.draft.held().by_queue();
        let reclaims = |rights: &Rights<'_>| rights.may_reclaim(held, spec.queue, spec.least());
        self.victims.is_some()
            || !ledger.requests.last_started.is_empty()
            || ledger.requests.rights.as_ref().is_some_and(reclaims)
            || yields_any(view, job)
    }

    /// Whether evictions might free enough for a job, told without a look at each running job.
    fn may_help(&mut self, view: &View<'a>, ledger: &Ledger<'a>, job: JobId) -> bool {
        self.victims.get_or_insert_with(|| Victims::of(view)).may_help(view, ledger, job)
    }

    fn propose_for(
        &mut self,
        view: &View<'a>,
        ledger: &mut Ledger<'a>,
        request: Request,
    ) -> Option<Proposal> {
        // A search for a job ahead of this one may have used up the budget of searches.
        let found = if self.may_help(view, ledger, request.job) {
            self.victims.as_mut()?.find(view, ledger, request)
        } else {
            None
        };
        if found.is_none() {
            note_tried(view, ledger, request.class);
        }
        found
    }
}

fn note_tried(view: &View<'_>, ledger: &mut Ledger<'_>, class: ClassId) {
    let chances = ledger.preemption_chances(view, class);
    let refused = ledger.requests.refused.iter_mut().find(|refused| refused.request.class == class);
    refused.into_iter().for_each(|refused| refused.tried = Some(chances));
}

/// Whether some job in the plan yields to a job by priority or for gain. For a few requests, a scan of the plan costs less
/// than the index.
fn yields_any(view: &View<'_>, id: JobId) -> bool {
    let jobs = view.snapshot.jobs;
    let (job, for_gain) = (&jobs[id], view.policy.preemption == Preemption::ByGain);
    let within = |other: &Job| view.ranker.shares().is_none() || other.spec.queue == job.spec.queue;
    let yields = |other: &Job| is_below(other, job) || for_gain && gains(view, job, other);
    view.snapshot.plan.iter().map(|(other, _)| &jobs[other]).any(|other| within(other) && yields(other))
}

/// What this decision knows of running jobs that may be evicted.
struct Victims<'a> {
    index: VictimIndex<'a>,
    /// How many members each disruption budget still allows to evict.
    left: IdVec<BudgetId, u32>,
    /// A trial without these jobs: what does not fit there needs no closer look.
    without_all: Option<(Vec<JobId>, Draft<'a>)>,
    /// Jobs that do not fit whichever jobs leave.
    failures: Vec<Failure>,
}

/// What decides which jobs make room for a job.
struct Grounds<'s, 'a> {
    view: &'s View<'a>,
    ledger: &'s Ledger<'a>,
    /// Jobs that were started in this decision and may wait instead for a job of their queue: they lose nothing yet.
    starting: BTreeSet<JobId>,
}

impl<'a> Victims<'a> {
    fn of(view: &View<'a>) -> Self {
        let snapshot = view.snapshot;
        let planned = snapshot.plan.iter().map(|(id, assignment)| (id, &snapshot.jobs[id], assignment));
        let settled = planned.filter(|(_, job, assignment)| may_be_stopped(snapshot, job, assignment));
        let mut running = Vec::with_capacity(snapshot.plan.len());
        running.extend(settled.map(|(id, job, assignment)| Victim::of(id, job, assignment)));
        let index = VictimIndex::of(snapshot, running, view.ranker.shares().is_some());
        let mut left = snapshot.budgets.clone();
        for job in snapshot.displaced.keys().filter_map(|id| snapshot.jobs.get(*id)) {
            let members = job.life.holds().iter().map(|held| held.members()).sum();
            spend(&mut left, job, members);
        }
        Self { index, left, without_all: None, failures: Vec::new() }
    }

    fn may_help(&self, view: &View<'a>, ledger: &Ledger<'a>, id: JobId) -> bool {
        let tuning = &view.snapshot.tuning.decide;
        let nodes = view.snapshot.cluster.nodes().len().max(1);
        let max_rejected = (tuning.max_nodes_searched_in_vain / nodes).max(tuning.min_rejected_places);
        let vain = ledger.work.vain_preemption_searches.get();
        if vain >= tuning.max_vain_preemption_searches || ledger.work.rejected_places >= max_rejected {
            return false;
        }
        let (job, now) = (&view.snapshot.jobs[id], view.snapshot.now);
        let (queue, need) = (job.spec.queue, job.spec.least());
        let (draft, requests) = (&ledger.draft, &ledger.requests);
        let held = draft.held().by_queue();
        let reclaims = requests.rights.as_ref().is_some_and(|rights| rights.may_reclaim(held, queue, need));
        let theirs = match reclaims {
            true => self.index.total(),
            false => self.index.most(job, looks_for_gain(view), now),
        };
        let starting = requests.started.get(&queue).filter(|_| !requests.last_started.is_empty()).copied();
        let theirs = theirs.into_iter().chain(starting).reduce(|one, other| one + other);
        theirs.is_some_and(|theirs| need.fits_in(draft.total() + theirs))
            && (reclaims || !self.has_failed(job, view))
    }

    fn has_failed(&self, job: &Job, view: &View<'a>) -> bool {
        let Some(new) = Failure::of(job, view.snapshot.now) else { return false };
        self.failures.iter().any(|failure| failure.covers(&new))
    }

    /// The evictions by which a job fits, and its place.
    fn find(&mut self, view: &View<'a>, ledger: &mut Ledger<'a>, request: Request) -> Option<Proposal> {
        let id = request.job;
        let job = &view.snapshot.jobs[id];
        // The jobs that leave for it already may be enough.
        let awaited = view.snapshot.displaced.values().any(|beneficiary| *beneficiary == id);
        let is_booked = ledger.bookings_allow(view, id).is_err();
        if !job.spec.preempts || awaited || is_booked || view.quota_allows(&ledger.draft, job).is_err() {
            return None;
        }
        let starting = starting(view, ledger, request.class);
        let (victims, place) = self.choose(&Grounds { view, ledger, starting: starting.clone() }, job)?;
        let gone: Vec<JobId> = victims.iter().map(|victim| victim.id).collect();
        if is_not_worth_taking(view, &ledger.draft, id, &place, &gone) {
            ledger.work.rejected_places += 1;
            return None;
        }
        let (waiting, leaving): (Vec<_>, Vec<_>) =
            victims.into_iter().partition(|victim| starting.contains(&victim.id));
        leaving.iter().for_each(|victim| spend(&mut self.left, victim.job, victim.assignment.members()));
        self.without_all = None;
        self.failures.clear();
        let withdraw = |victim: Victim<'a>| Entry::Withdraw { job: victim.id, place: victim.assignment };
        let evict = |victim: Victim<'a>| Entry::Evict {
            job: victim.id,
            place: victim.assignment,
            beneficiary: Some(id),
        };
        let mut entries: Vec<Entry> = waiting.into_iter().map(withdraw).collect();
        entries.extend(leaving.into_iter().map(evict));
        entries.push(Entry::Start { job: id, place, room: Room::Free });
        entries.push(Entry::ReleaseReservation(id));
        Some(Proposal { serves: Some((request, Serves::ByEviction)), entries })
    }

    fn choose(&mut self, grounds: &Grounds<'_, 'a>, job: &'a Job) -> Option<(Vec<Victim<'a>>, Assignment)> {
        let few = self.few_of_many(grounds, job);
        if let Some(found) = few.and_then(|few| self.choose_among(&few, grounds, job)) {
            return Some(found);
        }
        let all = self.candidates(grounds, job);
        if !self.would_all_do(grounds, job, &all) {
            let alone = all.iter().all(|victim| victim.job.spec.queue == job.spec.queue);
            self.failures.extend(Failure::of(job, grounds.view.snapshot.now).filter(|_| alone));
            return None;
        }
        self.choose_among(&all, grounds, job)
    }

    fn choose_among(
        &self,
        all: &[Victim<'a>],
        grounds: &Grounds<'_, 'a>,
        job: &'a Job,
    ) -> Option<(Vec<Victim<'a>>, Assignment)> {
        let mut spared = BTreeSet::new();
        for _ in 0..grounds.view.snapshot.tuning.decide.max_victim_choices {
            let search = Search { view: grounds.view, draft: &grounds.ledger.draft, job };
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

    /// The first candidates, where very many jobs yield by priority or share and these hold many times what the job
    /// needs: releasing all would cost more than a somewhat better choice is worth.
    fn few_of_many(&self, grounds: &Grounds<'_, 'a>, job: &Job) -> Option<Vec<Victim<'a>>> {
        let tuning = &grounds.view.snapshot.tuning.decide;
        let (ranker, now) = (grounds.view.ranker, grounds.view.snapshot.now);
        let wanted = job.spec.least().times(tuning.min_candidate_surplus);
        let mut surplus = surplus(grounds, job);
        let all = surplus.is_some().then(|| self.index.all().iter()).into_iter().flatten();
        let below = surplus.is_none().then(|| self.index.below(job)).into_iter().flatten();
        let (mut few, mut theirs) = (Vec::new(), Resources::NONE);
        for victim in all.chain(below).filter(|victim| self.may_leave(grounds.ledger, victim)) {
            if few.len() >= tuning.min_victim_candidates && wanted.fits_in(theirs) {
                return Some(few);
            }
            let yields = match &mut surplus {
                Some(surplus) if victim.job.spec.queue != job.spec.queue => surplus.claim(victim),
                _ => is_below(victim.job, job) && !is_exempt(victim.job, ranker, now),
            };
            if yields {
                theirs = theirs + victim.held;
                few.push(victim.clone());
            }
        }
        None
    }

    /// Whether a victim was not changed in this decision, and no budget protects it.
    fn may_leave(&self, ledger: &Ledger<'_>, victim: &Victim<'_>) -> bool {
        let members = victim.assignment.members();
        let budgets_allow = victim.job.spec.budgets.iter().all(|budget| members <= self.left(*budget));
        budgets_allow && !ledger.draft.is_changed(victim.id) && !ledger.bookings.govern(victim.id)
    }

    /// Whether the job would fit if all these left. Jobs with the same candidates share the costly part of the answer.
    fn would_all_do(&mut self, grounds: &Grounds<'_, 'a>, job: &'a Job, all: &[Victim<'a>]) -> bool {
        let Grounds { view, ledger, .. } = *grounds;
        let draft = &ledger.draft;
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
        if placement::shortage(trial, job).is_some() {
            return false;
        }
        let fits = view.leaves_unlent_quota(draft, job.spec.queue, job.spec.least(), trial.total())
            && placement::fit(view, trial, job, GangSize::Minimum, Reach::Claimed).is_ok();
        let vain = &ledger.work.vain_preemption_searches;
        vain.set(vain.get() + usize::from(!fits));
        fits
    }

    /// The jobs that may be evicted for the job and that no budget protects.
    fn candidates(&self, grounds: &Grounds<'_, 'a>, job: &Job) -> Vec<Victim<'a>> {
        let Grounds { view, ledger, starting } = grounds;
        let Snapshot { jobs, now, .. } = *view.snapshot;
        let (queue, for_gain) = (job.spec.queue, looks_for_gain(view));
        let mut surplus = surplus(grounds, job);
        let running: Vec<&Victim<'a>> = match surplus {
            Some(_) => self.index.all().iter().collect(),
            None => self.index.may_yield(job, for_gain, now),
        };
        let running = running.into_iter().filter(|victim| self.may_leave(grounds.ledger, victim));
        let own = starting.iter().filter(|id| jobs[**id].spec.queue == queue);
        let placed = own.filter_map(|id| Some(Victim::of(*id, &jobs[*id], ledger.draft.assigned(*id)?)));
        let placed: Vec<Victim<'a>> = placed.collect();
        let mut yielding: Vec<Victim<'a>> = Vec::new();
        for victim in placed.iter().chain(running) {
            let (lower, gain) = match &mut surplus {
                Some(surplus) if victim.job.spec.queue != queue => (surplus.claim(victim), false),
                _ if is_exempt(victim.job, view.ranker, now) => (false, false),
                _ => (is_below(victim.job, job), for_gain && gains(view, job, victim.job)),
            };
            if lower || gain {
                yielding.push(Victim { for_gain: !lower, ..victim.clone() });
            }
        }
        // Jobs that lose nothing yet come first, then jobs by priority; of those that yield for gain, the one with
        // most left to do.
        let left = |victim: &Victim<'_>| victim.job.remaining(now);
        yielding.sort_by_key(|victim| (victim.for_gain, victim.for_gain.then(|| Reverse(left(victim)))));
        yielding
    }

    fn left(&self, budget: BudgetId) -> u32 {
        self.left.get(budget).copied().unwrap_or(0)
    }

    /// The first victim that is one too many for a budget it shares with others.
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

/// The jobs that were started in this decision and may wait instead for a job of another class: those ahead in its own
/// class stay ahead.
fn starting(view: &View<'_>, ledger: &Ledger<'_>, class: ClassId) -> BTreeSet<JobId> {
    let others =
        ledger.requests.last_started.iter().filter(|(other, _)| **other != class && !head_blocks(view));
    others.map(|(_, started)| *started).collect()
}

/// What other queues hold beyond their own, where the job's queue may reclaim any of it.
fn surplus<'s, 'a>(grounds: &Grounds<'s, 'a>, job: &Job) -> Option<Surplus<'s, 'a>> {
    let Ledger { draft, requests, .. } = grounds.ledger;
    let held = draft.held().by_queue();
    let reclaims = |rights: &&Rights<'a>| rights.may_reclaim(held, job.spec.queue, job.spec.least());
    requests.rights.as_ref().filter(reclaims).map(|rights| Surplus::of(rights, draft, job))
}

fn looks_for_gain(view: &View<'_>) -> bool {
    view.policy.preemption == Preemption::ByGain
}

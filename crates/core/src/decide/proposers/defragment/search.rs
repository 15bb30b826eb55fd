//! Which jobs to move for one waiting job, and where to.
//!
//! On each node the jobs that cost least are counted, until one more of what the waiting job asks for would fit there:
//! all of it, where it must be on one node, else one of its members. Of the domains in which the job could be, those
//! are tried first in which that costs least. There the jobs are released in a *trial*, each that the waiting job can
//! do without is given back, and the rest are placed anew beside it. The first domain in which that pays is taken.

use std::collections::BTreeMap;

use super::movers::{MovePlan, Mover};
use crate::decide::draft::{Draft, Reach};
use crate::decide::link_cost::{self, cost_at, is_not_worth_taking, priority_weight};
use crate::decide::movable::takes;
use crate::decide::placement;
use crate::decide::reservations::reserve;
use crate::decide::view::View;
use crate::model::allocated::is_eligible;
use crate::model::cluster::NodeState;
use crate::model::id::{DomainId, JobId, NodeId};
use crate::model::job::{Job, Role, Topology};
use crate::model::plan::Assignment;
use crate::model::units::{Duration, Instant, Resources};

pub(super) struct Search<'s, 'a> {
    view: &'s View<'a>,
    draft: &'s Draft<'a>,
    id: JobId,
    job: &'a Job,
    movers: &'s [Mover<'a>],
}

/// The domain, or the node, in which the whole job must be; none where it need not.
type Within = (Option<DomainId>, Option<NodeId>);

/// Jobs that leave a node together so that more fits there.
struct Step {
    costs: f64,
    node: NodeId,
    gives: u64,
    movers: Vec<usize>,
}

impl<'s, 'a> Search<'s, 'a> {
    pub(super) fn of(view: &'s View<'a>, draft: &'s Draft<'a>, id: JobId, movers: &'s [Mover<'a>]) -> Self {
        Self { view, draft, id, job: &view.snapshot.jobs[id], movers }
    }

    /// The best moves; none where too few jobs can be moved, where the time is unknown at which the job would fit
    /// otherwise, or where it does not pay.
    pub(super) fn best(&self) -> Option<MovePlan> {
        let mut choices: Vec<(f64, Within, Vec<Step>)> = self
            .steps()
            .into_iter()
            .filter_map(|(within, steps)| Some((self.estimate(within, &steps)?, within, steps)))
            .collect();
        if choices.is_empty() {
            return None;
        }
        let waits = self.fits_from()?.since(self.view.snapshot.now);
        choices.retain(|(costs, _, _)| {
            self.gains(waits) > self.view.snapshot.tuning.decide.min_move_gain * costs
        });
        choices.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
        choices.truncate(self.view.snapshot.tuning.decide.max_domains_defragmented);
        choices.iter().find_map(|(_, within, steps)| self.plan_moves(*within, steps, waits))
    }

    /// When the job is expected to fit if no job is moved for it.
    fn fits_from(&self) -> Option<Instant> {
        let kept = self.draft.reservations.iter().find(|kept| kept.job == self.id).map(|kept| kept.from);
        kept.or_else(|| reserve(self.view, self.draft, self.id).map(|kept| kept.from))
    }

    /// Seconds that the job wins if it starts this much earlier, weighted by its priority.
    fn gains(&self, earlier: Duration) -> f64 {
        priority_weight(self.view.snapshot, self.job) * earlier.as_secs_f64()
    }

    /// The unit that is counted on each node: all that the job needs, where that must be on one; else its largest
    /// member.
    fn unit(&self) -> (Resources, u64) {
        let largest = self.largest();
        match self.job.spec.topology {
            Topology::Required(level) if level == self.draft.snapshot.cluster.depth() => {
                (self.job.spec.least(), 1)
            }
            _ => (largest.shape.each, u64::from(largest.gang.min())),
        }
    }

    fn largest(&self) -> &'a Role {
        let size = |role: &&Role| (role.shape.each.gpus, role.shape.each.cpu, role.gang.min());
        self.job.spec.roles.iter().max_by_key(size).expect("a job has at least one role")
    }

    /// The domain of a job that is on a node, where it must be in one.
    fn within(&self, node: NodeId) -> Within {
        let cluster = self.draft.snapshot.cluster;
        match self.job.spec.topology {
            Topology::Required(level) if level == cluster.depth() => (None, Some(node)),
            Topology::Required(level) => {
                (cluster.node(node).domains.get(usize::from(level.0)).copied(), None)
            }
            Topology::Anywhere | Topology::Preferred(_) => (None, None),
        }
    }

    /// For each domain the jobs that would leave, the cheapest first.
    fn steps(&self) -> BTreeMap<Within, Vec<Step>> {
        let mut by_node: BTreeMap<NodeId, Vec<usize>> = BTreeMap::new();
        for (at, mover) in self.movers.iter().enumerate() {
            let stays = self.draft.is_changed(mover.id);
            mover.held.nodes().filter(|_| !stays).for_each(|node| by_node.entry(node).or_default().push(at));
        }
        let mut steps: BTreeMap<Within, Vec<Step>> = BTreeMap::new();
        for (node, movers) in by_node.into_iter().filter(|(node, _)| self.may_use(*node)) {
            steps.entry(self.within(node)).or_default().extend(self.steps_on(node, &movers));
        }
        for steps in steps.values_mut() {
            steps.sort_by(|one, other| one.costs.total_cmp(&other.costs).then(one.node.cmp(&other.node)));
        }
        steps
    }

    fn may_use(&self, node: NodeId) -> bool {
        let cluster = self.draft.snapshot.cluster;
        let is_ready = cluster.node(node).state == NodeState::Ready;
        is_ready && is_eligible(cluster, node, self.largest().shape.on)
    }

    fn steps_on(&self, node: NodeId, movers: &[usize]) -> Vec<Step> {
        let (unit, _) = self.unit();
        let mut room = self.draft.free_on(node, Reach::Claimed);
        let mut fit = unit.count_in(room);
        let (mut steps, mut together, mut costs) = (Vec::new(), Vec::new(), 0.0);
        for at in movers.iter().take(self.view.snapshot.tuning.decide.max_movers_on_node) {
            let mover = &self.movers[*at];
            let held = mover.held.takes().iter().find(|(held, _)| *held == node);
            room = room + held.map_or(Resources::NONE, |(_, held)| *held);
            together.push(*at);
            costs += mover.costs;
            let then = unit.count_in(room);
            if then > fit {
                let gives = u64::from(then - fit);
                steps.push(Step { costs, node, gives, movers: std::mem::take(&mut together) });
                (fit, costs) = (then, 0.0);
            }
        }
        steps
    }

    /// The cost of as many moves as amounts ask for, if there are enough.
    fn estimate(&self, within: Within, steps: &[Step]) -> Option<f64> {
        let enough = self.enough(within, steps)?;
        Some(steps[..enough].iter().map(|step| step.costs).sum())
    }

    /// The number of steps after which the job would fit, as far as amounts tell; none where more than amounts is
    /// lacking.
    fn enough(&self, within: Within, steps: &[Step]) -> Option<usize> {
        let (unit, wanted) = self.unit();
        let cluster = self.draft.snapshot.cluster;
        let fit =
            |node: NodeId| u64::from(unit.count_in(self.draft.free_on(node, Reach::Claimed))).min(wanted);
        let may_use = |node: &NodeId| self.may_use(*node);
        let fits: u64 = match within {
            (_, Some(node)) => fit(node),
            (Some(domain), _) => cluster.nodes_in(domain).iter().copied().filter(may_use).map(fit).sum(),
            (None, None) => cluster.nodes().ids().filter(may_use).map(fit).sum(),
        };
        let mut lacking = wanted.checked_sub(fits).filter(|lacking| *lacking > 0)?;
        for (at, step) in steps.iter().enumerate() {
            lacking = lacking.saturating_sub(step.gives);
            if lacking == 0 {
                return Some(at + 1);
            }
        }
        None
    }

    /// The moves by which the job fits there, if they pay for a job that would wait this long otherwise.
    fn plan_moves(&self, within: Within, steps: &[Step], waits: Duration) -> Option<MovePlan> {
        let enough = self.enough(within, steps)?;
        let gone = self.widen(steps, enough)?;
        let (gone, place) = self.prune(gone)?;
        let ids: Vec<JobId> = gone.iter().map(|mover| mover.id).collect();
        if gone.len() > self.view.snapshot.tuning.decide.max_moves_per_gang
            || is_not_worth_taking(self.view, self.draft, self.id, &place, &ids)
        {
            return None;
        }
        let (moves, costs) = self.settle_anew(&gone, &place)?;
        let starts = gone.iter().map(|mover| takes(mover.job)).max().unwrap_or(Duration::ZERO);
        let gains = self.gains(waits - starts);
        let saves = Duration(((gains - costs).max(0.0) * 1e9) as u64);
        (gains > self.view.snapshot.tuning.decide.min_move_gain * costs.max(0.0)).then_some(MovePlan {
            place,
            moves,
            saves,
        })
    }

    /// A trial that leaves the reservations of other jobs alone.
    fn trial(&self) -> Draft<'a> {
        let mut trial = self.draft.trial();
        trial.reservations.clone_from(&self.draft.reservations);
        trial.enforce_reservations(|kept| kept.job != self.id);
        trial
    }

    /// Releases as many jobs as amounts ask for, and a few more, until the job fits; returns those on whose nodes it
    /// is then.
    fn widen(&self, steps: &[Step], enough: usize) -> Option<Vec<Mover<'a>>> {
        let mut trial = self.trial();
        let mut gone: BTreeMap<JobId, Mover<'a>> = BTreeMap::new();
        for (at, step) in steps
            .iter()
            .take(enough + self.view.snapshot.tuning.decide.further_defragmentation_steps)
            .enumerate()
        {
            for mover in step.movers.iter().map(|at| self.movers[*at]) {
                if gone.insert(mover.id, mover).is_none() {
                    trial.release(mover.job, mover.held);
                }
            }
            let place = (at + 1 >= enough).then(|| self.place(&mut trial)).flatten();
            if let Some(place) = place {
                gone.retain(|_, mover| mover.held.nodes().any(|node| place.touches(node)));
                return Some(gone.into_values().collect());
            }
        }
        None
    }

    /// Where the job fits in a trial, which stays as it was.
    fn place(&self, trial: &mut Draft<'a>) -> Option<Assignment> {
        placement::fit_released(self.view, trial, self.job)
    }

    /// Gives back the jobs that the waiting job can do without, those first that cost most, and places it without the
    /// rest.
    fn prune(&self, mut gone: Vec<Mover<'a>>) -> Option<(Vec<Mover<'a>>, Assignment)> {
        let mut trial = self.trial();
        gone.iter().for_each(|mover| trial.release(mover.job, mover.held));
        gone.sort_by(|one, other| {
            let members = one.held.members().cmp(&other.held.members());
            other.costs.total_cmp(&one.costs).then(members).then(one.id.cmp(&other.id))
        });
        gone.retain(|mover| {
            trial.reclaim(mover.job, mover.held);
            let needed = self.place(&mut trial).is_none();
            if needed {
                trial.release(mover.job, mover.held);
            }
            needed
        });
        Some((gone, self.place(&mut trial)?))
    }

    /// The new places of moved jobs, beside the waiting job and the places they leave, with what that costs in all;
    /// the largest job first.
    fn settle_anew(&self, gone: &[Mover<'a>], place: &Assignment) -> Option<(Vec<(JobId, Assignment)>, f64)> {
        let mut trial = self.trial();
        trial.contention = self.draft.contention.clone();
        for mover in gone {
            trial.release(mover.job, mover.held);
            if trial.contention.flow(mover.id).is_some() {
                trial.contention.to_mut().leave(mover.id);
            }
        }
        trial.forget_fits();
        trial.settle(self.id, self.job, place.clone());
        let mut gone = gone.to_vec();
        gone.sort_by_key(|mover| (std::cmp::Reverse(mover.held.total().gpus), mover.id));
        let (mut moves, mut costs) = (Vec::new(), 0.0);
        for mover in gone {
            let (to, more) = self.elsewhere(&mut trial, &mover)?;
            trial.settle(mover.id, mover.job, to.clone());
            moves.push((mover.id, to));
            costs += mover.costs + more;
        }
        Some((moves, costs))
    }

    /// A place in capacity that is free and not reserved: the best on links, where something is known of them, with
    /// what all jobs lose there beyond what they lose where the job is.
    fn elsewhere(&self, trial: &mut Draft<'a>, mover: &Mover<'a>) -> Option<(Assignment, f64)> {
        let snapshot = self.view.snapshot;
        let places = placement::options(self.view, trial, mover.job).ok()?;
        if !link_cost::is_weighed(self.view, self.draft, mover.job) {
            return Some((places.into_iter().next()?, 0.0));
        }
        let here = cost_at(snapshot, self.draft, mover.id, mover.held, &[]).loss;
        let compared =
            places.into_iter().map(|place| (cost_at(snapshot, trial, mover.id, &place, &[]).loss, place));
        let (there, place) = compared.min_by(|(one, _), (other, _)| one.total_cmp(other))?;
        Some((place, there - here))
    }
}

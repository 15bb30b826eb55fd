//! The rules of what a decision says beside assignments: traffic policies, CPU weights and backfill reservations.

use std::collections::BTreeSet;

use super::Violation;
use crate::decide::snapshot::Snapshot;
use crate::model::cpu_weight::CpuWeight;
use crate::model::id::JobId;
use crate::model::plan::{Amendment, Reservation};
use crate::model::units::Resources;
use crate::traffic::{Rotation, TrafficPolicy, Turn};

/// A decision without its assignments: changes of traffic policies and CPU weights, and all reservations.
#[derive(Clone, Copy, Debug, Default)]
pub struct Directives<'d> {
    pub traffic: &'d [(JobId, TrafficPolicy)],
    pub weights: &'d [(JobId, CpuWeight)],
    pub reservations: &'d [Reservation],
}

/// The part of a traffic policy that makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrafficFault {
    /// A class of which links have no queue.
    Class(u8),
    Weight(u32),
    /// A phase offset beyond its period, or an empty period.
    Offset,
    /// A rotation whose windows take no time.
    Window,
}

/// Queues of a link: classes count from 0.
const CLASSES: u8 = 8;

const MAX_TRAFFIC_WEIGHT: u32 = 65_536;

/// Passes directives of jobs that run by the amended plan, with every value in its range, and reservations of jobs that wait
/// for nodes of the cluster.
pub(super) fn keeps_rules_of_directives(
    snapshot: &Snapshot<'_>,
    amendment: &Amendment,
    directives: Directives<'_>,
) -> Result<(), Violation> {
    if amendment.generation < snapshot.plan.generation() {
        return Err(Violation::GenerationFalls);
    }
    let runs = |job: JobId| match amendment.changes.get(&job) {
        Some(change) => change.is_some(),
        None => snapshot.plan.get(job).is_some(),
    };
    let changed: BTreeSet<JobId> = directives.traffic.iter().map(|(job, _)| *job).collect();
    let kept = snapshot.traffic.keys().filter(|job| !changed.contains(job)).copied();
    let directed =
        directives.traffic.iter().filter(|(_, traffic)| !traffic.is_default()).map(|(job, _)| *job);
    let weighted = directives.weights.iter().filter(|(_, weight)| !weight.is_default()).map(|(job, _)| *job);
    if let Some(job) = kept.chain(directed).chain(weighted).find(|job| !runs(*job)) {
        return Err(Violation::DirectiveWithoutRunningJob(job));
    }
    for (job, traffic) in directives.traffic {
        lane_makes_sense(traffic).map_err(|fault| Violation::Traffic(*job, fault))?;
    }
    let is_weight = |weight: CpuWeight| (1..=CpuWeight::MOST.get()).contains(&weight.get());
    if let Some((job, _)) = directives.weights.iter().find(|(_, weight)| !is_weight(*weight)) {
        return Err(Violation::CpuWeight(*job));
    }
    directives.reservations.iter().try_for_each(|reservation| {
        let job = reservation.job;
        if snapshot.jobs.get(job).is_none() || runs(job) {
            return Err(Violation::ReservationWithoutWaitingJob(job));
        }
        let capacity = |node| snapshot.cluster.nodes().get(node).map(|described| described.capacity);
        let is_there = |node, spare: &Resources| capacity(node).is_some_and(|all| spare.fits_in(all));
        let mut beyond = reservation.spare.iter().filter(|(node, spare)| !is_there(**node, spare));
        beyond.next().map_or(Ok(()), |(node, _)| Err(Violation::ReservedBeyond(job, *node)))
    })
}

fn lane_makes_sense(traffic: &TrafficPolicy) -> Result<(), TrafficFault> {
    let rotating = traffic.rotation.iter().flat_map(|rotation| rotation.slots.map(|slot| slot.class));
    if let Some(class) = rotating.chain([traffic.class]).find(|class| *class >= CLASSES) {
        return Err(TrafficFault::Class(class));
    }
    if !(1..=MAX_TRAFFIC_WEIGHT).contains(&traffic.weight) {
        return Err(TrafficFault::Weight(traffic.weight));
    }
    // Published baselines place watched turns on a circle that stretches periods, so these may lie beyond their own.
    let is_beyond = |turn: Turn| turn.period.is_zero() || turn.watch.is_none() && turn.offset >= turn.period;
    if traffic.turn.into_iter().chain(traffic.pace.map(|pace| pace.turn)).any(is_beyond) {
        return Err(TrafficFault::Offset);
    }
    match traffic.rotation {
        Some(Rotation { window, .. }) if window.is_zero() => Err(TrafficFault::Window),
        _ => Ok(()),
    }
}

//! The rules of what a plan says of running jobs beside their nodes: traffic policies, CPU weights and predicted slowdowns.

use super::Violation;
use crate::decide::snapshot::Snapshot;
use crate::model::cpu_weight::CpuWeight;
use crate::model::id::JobId;
use crate::model::plan::Amendment;
use crate::model::units::Share;
use crate::traffic::{Rotation, TrafficPolicy, Turn};

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

/// The largest iteration time of a highest-priority job under traffic policies, relative to fair sharing, as predicted. Rotations
/// are chosen within one percent of fair sharing, and all other policies within half a percent.
const MAX_SLOWDOWN_VS_FAIR: Share = Share(1_010_000);

/// Passes directives of jobs that run by the amended plan, with every value in its range.
pub(super) fn keeps_rules_of_directives(
    snapshot: &Snapshot<'_>,
    amendment: &Amendment,
) -> Result<(), Violation> {
    let plan = snapshot.plan;
    let runs = |job: JobId| super::runs(snapshot, amendment, job);
    let mut kept = plan.traffic().keys().filter(|job| !amendment.traffic.contains_key(job));
    let mut kept_weights = plan.weights().keys().filter(|job| !amendment.weights.contains_key(job));
    let mut kept_slowdowns = plan.slowdowns().keys().filter(|job| !amendment.slowdowns.contains_key(job));
    let directed = amendment.traffic.iter().filter(|(_, traffic)| !traffic.is_default());
    let weighted = amendment.weights.iter().filter(|(_, weight)| !weight.is_default());
    let predicted = amendment.slowdowns.iter().filter(|(_, slowdown)| slowdown.is_some());
    let changed =
        directed.map(|(job, _)| job).chain(weighted.map(|(job, _)| job)).chain(predicted.map(|(job, _)| job));
    let idle = |job: &&JobId| !runs(**job);
    let astray = kept.find(idle).or_else(|| kept_weights.find(idle)).or_else(|| kept_slowdowns.find(idle));
    if let Some(job) = astray.or_else(|| changed.into_iter().find(idle)) {
        return Err(Violation::DirectiveWithoutRunningJob(*job));
    }
    for (job, traffic) in &amendment.traffic {
        is_in_range(traffic).map_err(|fault| Violation::Traffic(*job, fault))?;
    }
    let is_weight = |weight: CpuWeight| (1..=CpuWeight::MOST.get()).contains(&weight.get());
    if let Some((job, _)) = amendment.weights.iter().find(|(_, weight)| !is_weight(**weight)) {
        return Err(Violation::CpuWeight(*job));
    }
    let is_slower = |slowdown: &Option<Share>| slowdown.is_some_and(|by| by > MAX_SLOWDOWN_VS_FAIR);
    match amendment.slowdowns.iter().find(|(_, slowdown)| is_slower(slowdown)) {
        Some((job, _)) => Err(Violation::SlowerThanFair(*job)),
        None => Ok(()),
    }
}

fn is_in_range(traffic: &TrafficPolicy) -> Result<(), TrafficFault> {
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

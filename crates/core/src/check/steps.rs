//! Whether steps may be carried out now.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::amounts::{Counts, amounts, counts};
use super::devices::{self, Shares, lies_on_devices, shares};
use super::{Checked, Touched, Violation, is_whole};
use crate::model::cluster::Cluster;
use crate::model::id::{CounterId, DeviceId, IdVec, JobId, NodeId};
use crate::model::job::JobSpec;
use crate::model::plan::{Action, Step};
use crate::model::units::{Gpus, Resources};

/// Steps of which one breaks a rule: always a bug of the scheduler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    pub steps: Vec<Step>,
    /// The place of the step that breaks the rule.
    pub at: usize,
    pub violation: Violation,
}

/// Passes steps if all they take is counted as held and no node to which they add then holds more than it has.
/// `occupied`, `counted` and `shared` are what jobs hold in fact once these steps are under way; a step that frees room has freed
/// it only when the world says so.
pub fn check_steps<'a>(
    cluster: &Cluster,
    jobs: impl Fn(JobId) -> Option<Arc<JobSpec>>,
    occupied: &IdVec<NodeId, Resources>,
    counted: impl Fn(NodeId, CounterId) -> u64,
    shared: impl Fn(NodeId) -> &'a [(DeviceId, Gpus)],
    steps: Vec<Step>,
) -> Result<Checked<Vec<Step>>, Rejected> {
    let mut taken: BTreeMap<NodeId, Resources> = BTreeMap::new();
    let mut counters = Counts::new();
    let mut on_devices = Shares::new();
    let mut check = |step: &Step| {
        let to = match &step.action {
            Action::Start(to) | Action::Move { to, .. } => to,
            Action::Rescale { to, .. } | Action::ResizeInPlace { to, .. } => to,
            Action::Stop | Action::Suspend | Action::Preempt { .. } | Action::Direct { .. } => return Ok(()),
        };
        let spec = jobs(step.job).ok_or(Violation::NotToRun(step.job))?;
        is_whole(step.job, &spec, to)?;
        if let Some(node) = to.nodes().find(|node| cluster.nodes().get(*node).is_none()) {
            return Err(Violation::NotEligible(step.job, node));
        }
        lies_on_devices(step.job, &spec, to)?;
        let Some(assignment) = step.action.takes() else { return Ok(()) };
        for (node, amount) in amounts(&spec, assignment) {
            let used = taken.entry(node).or_default();
            *used = *used + amount;
            let is_counted = used.fits_in(occupied[node]);
            let after = Touched { used: occupied[node], added: amount };
            let loads = shared(node).iter().map(|(_, used)| used.0);
            let fit = amount.gpus.is_zero() || devices::suffice(cluster, node, occupied[node].gpus, loads);
            if !is_counted || !fit || after.exceeds(cluster.node(node).capacity) {
                return Err(Violation::RoomNotFree(step.job));
            }
        }
        for ((node, device), share) in shares(&spec, assignment) {
            let used = on_devices.entry((node, device)).or_default();
            *used += share;
            let held = shared(node).iter().find(|(other, _)| *other == device);
            if held.is_none_or(|(_, held)| *used > held.0 || *held > Gpus::whole(1)) {
                return Err(Violation::RoomNotFree(step.job));
            }
        }
        for ((counter, node), amount) in counts(&spec, assignment) {
            let used = counters.entry((counter, node)).or_default();
            *used += amount;
            let held = counted(node, counter);
            if *used > held || amount > 0 && held > cluster.count(node, counter) {
                return Err(Violation::RoomNotFree(step.job));
            }
        }
        Ok(())
    };
    let mut each = steps.iter().enumerate();
    match each.find_map(|(at, step)| Some((at, check(step).err()?))) {
        None => Ok(Checked(steps)),
        Some((at, violation)) => Err(Rejected { steps, at, violation }),
    }
}

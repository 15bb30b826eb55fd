//! One-shot phase offsets: a job that comes to meet others waits once, until its bursts fall between theirs, and is
//! left alone from then on.

use std::collections::BTreeMap;

use crate::decide::draft::Draft;
use crate::model::id::JobId;
use crate::model::units::{Duration, Share};
use crate::traffic::contention_graph::{ContentionGraph, Flow};
use crate::traffic::phase_solver::harmonise::{Beat, Harmony, Rhythm, Terms, harmonise};
use crate::traffic::phase_solver::wheel::{Wheel, WheelLoop};
use crate::traffic::{TrafficPolicy, Turn};
use crate::tuning::TrafficTuning;

/// Jobs with an offset keep it; a job that has none and meets others gets one, in the order of submission.
pub(super) fn turns(draft: &Draft<'_>) -> BTreeMap<JobId, TrafficPolicy> {
    let mut turns = BTreeMap::new();
    for jobs in draft.contention.components() {
        let kept = |job: &JobId| Some((*job, draft.snapshot.plan.traffic().get(job)?.turn?));
        let mut those: BTreeMap<JobId, Turn> = jobs.iter().filter_map(kept).collect();
        if those.len() < jobs.len() {
            add_newcomers(&draft.snapshot.tuning.traffic, &draft.contention, &jobs, &mut those);
        }
        turns.extend(those);
    }
    let traffic = |turn: Turn| TrafficPolicy { turn: Some(turn), ..TrafficPolicy::default() };
    turns.into_iter().map(|(job, turn)| (job, traffic(turn))).collect()
}

/// Adds offsets for new jobs; none where the periods have no circle in common.
fn add_newcomers(
    tuning: &TrafficTuning,
    contention: &ContentionGraph,
    jobs: &[JobId],
    turns: &mut BTreeMap<JobId, Turn>,
) {
    let flows: Vec<&Flow> = jobs.iter().filter_map(|job| contention.flow(*job)).collect();
    let rhythms: Vec<Rhythm> = flows.iter().map(|flow| rhythm(flow)).collect();
    let Ok(Harmony { circle, beats }) = harmonise(&rhythms, &Terms::of(tuning)) else { return };
    let spoke = |(flow, beat): (&&Flow, &Beat)| spoke(contention, flow, *beat);
    let spokes: Vec<WheelLoop> = flows.iter().zip(&beats).map(spoke).collect();
    let mut wheel = Wheel::new(circle);
    for (job, spoke) in jobs.iter().zip(&spokes) {
        if let Some(turn) = turns.get(job) {
            wheel.put(spoke, turn.offset);
        }
    }
    for ((job, spoke), beat) in jobs.iter().zip(&spokes).zip(beats) {
        if !turns.contains_key(job) {
            let offset = wheel.best(spoke);
            wheel.put(spoke, offset);
            turns.insert(*job, Turn { period: beat.period, offset, watch: None });
        }
    }
}

/// A shift is made once and costs nothing more, so any circle will do that is near enough.
fn rhythm(flow: &Flow) -> Rhythm {
    Rhythm { period: flow.alone, noise: Duration::ZERO, weight: 1, loss: Share::WHOLE }
}

fn spoke(contention: &ContentionGraph, flow: &Flow, beat: Beat) -> WheelLoop {
    let links = contention.demands(flow);
    WheelLoop { sends: contention.sends(flow), links, appearances: beat.appearances }
}

//! What jobs report of their training, and what is done about their CPU.

use super::Engine;
use crate::model::cpu_weight::CpuWeight;
use crate::model::id::JobId;
use crate::model::job::Life;
use crate::model::policy::Moving;
use crate::model::report::LearningReport;
use crate::model::units::{Cpu, Duration, Instant, Share};
use crate::observe::progress::{CategoryBounds, ReportContext, Sample};

impl Engine {
    pub(super) fn reported(&mut self, id: JobId, sample: Sample) {
        let (now, (of, bounds)) = (self.state.now, self.beside(id));
        let tuning = &self.state.policy.tuning;
        let context = ReportContext { of, bounds, tuning: &tuning.observe };
        let Some(job) = self.state.jobs.get_mut(id) else { return };
        let (spec, before) = (job.spec.clone(), job.progress.latest);
        let (hung, expected) = (job.progress.silent_since(now).is_some(), job.progress.stalled_from());
        job.progress.record_report(now, sample, &spec, context);
        self.index.fading.extend(job.progress.stalled_from().map(|hangs| (hangs, id)));
        if let Some(expected) = expected.filter(|expected| job.progress.stalled_from() != Some(*expected)) {
            self.index.fading.remove(&(expected, id));
        }
        self.state.dirty |= hung && job.progress.silent_since(now).is_none();
        self.state.dirty |= job.record_core_usage(before, &tuning.model);
        if job.record_speed(now, before, &tuning.observe) && self.index.timed.contains(&id) {
            self.state.plan.timetable.invalidate_bookings();
            self.state.dirty = true;
        }
    }

    /// A job on its way elsewhere, or to its end, reports nothing: that does not mean that it hangs.
    pub(super) fn expect_no_report_of(&mut self, id: JobId) {
        let (now, job) = (self.state.now, &mut self.state.jobs[id]);
        let expected = job.progress.stalled_from();
        job.progress.stop_expecting_reports(now);
        if let Some(expected) = expected.filter(|_| job.progress.stalled_from().is_none()) {
            self.index.fading.remove(&(expected, id));
        }
    }

    /// Takes note of jobs of which nothing was heard for so long that they seem to hang; true if there were any.
    pub(super) fn miss_the_silent(&mut self) -> bool {
        let mut any = false;
        while let Some((at, id)) = self.index.fading.first().copied().filter(|(at, _)| *at <= self.state.now)
        {
            self.index.fading.remove(&(at, id));
            any |= self.state.jobs.get(id).is_some_and(|job| job.progress.stalled_from() == Some(at));
        }
        self.state.dirty |= any;
        any
    }

    /// Jobs that run and seem to hang, with since when nothing was heard of them.
    pub fn stalled(&self) -> impl Iterator<Item = (JobId, Instant)> {
        let running = self.state.jobs.iter().filter(|(_, job)| matches!(job.life, Life::Running(_)));
        running.filter_map(|(id, job)| Some((id, job.progress.silent_since(self.state.now)?)))
    }

    /// CPU capacity of a job's nodes, and the bounds between learning categories.
    fn beside(&self, id: JobId) -> (Cpu, CategoryBounds) {
        let tuning = &self.state.policy.tuning.observe;
        let held = self.state.jobs.get(id).map(|job| &job.life);
        let of: Cpu = match held {
            Some(Life::Running(held)) => {
                held.nodes().map(|node| self.state.cluster.node(node).capacity.cpu).sum()
            }
            _ => Cpu::ZERO,
        };
        let bounds = match (self.state.policy.moving, self.state.usual_learning) {
            (Moving::Speculative, _) => CategoryBounds::published(tuning),
            (_, Some(usual)) => CategoryBounds::relative_to(usual, tuning),
            (_, None) => CategoryBounds::relative_to(0.0, tuning),
        };
        (of, bounds)
    }

    /// The CPU weight of a job beside others on its nodes, as of the last decision.
    pub fn weight(&self, job: JobId) -> CpuWeight {
        self.state.plan.weight(job)
    }

    /// What a job has reported, and where that leads.
    pub(super) fn learned(&self, id: JobId) -> Option<LearningReport> {
        let (now, job) = (self.state.now, self.state.jobs.get(id)?);
        let (latest, tuning) = (job.progress.latest?, &self.state.policy.tuning.observe);
        let in_an_hour = job.progress.iterations_in(Duration::HOUR)?;
        let gains = job.progress.learning.predicted_gain(latest.iterations, in_an_hour, tuning);
        Some(LearningReport {
            category: job.progress.learning.category(),
            left: job.foreseen(now).filter(|_| job.progress.silent_since(now).is_none()),
            gains_in_an_hour: gains
                .map(|part| Share((part.clamp(0.0, 1.0) * f64::from(Share::WHOLE.0)) as u32)),
            is_believed: !job.progress.is_doubted(now, tuning),
            odd: job.progress.learning.odd(),
        })
    }

    /// What the job in the middle learns, of those that say so: what is little and what is much is judged by it.
    pub(super) fn note_usual_learning(&mut self) {
        let interval = self.state.policy.tuning.observe.evaluation_interval;
        let looks = |at: Instant| at.0 / interval.0;
        if self.state.last_pass.map(looks) == Some(looks(self.state.now)) {
            return;
        }
        let jobs = self.state.jobs.iter().map(|(_, job)| job);
        let mut learns: Vec<f64> = jobs.filter_map(|job| job.progress.learning.learns()).collect();
        learns.sort_unstable_by(f64::total_cmp);
        self.state.usual_learning = learns.get(learns.len() / 2).copied();
    }
}

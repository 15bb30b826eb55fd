//! Speed of a job by its number of members: declared, and measured.

use std::borrow::Cow;

use super::{Job, Life};
use crate::model::plan::{Assignment, Part};
use crate::model::units::{Instant, Iterations};
use crate::observe::progress::{Sample, WorkPace};
use crate::observe::scaling::{Fit, Scaling, Speed};
use crate::tuning::ObserveTuning;

impl Job {
    /// Scaling fitted to the measurements; `None` without measurements.
    pub fn fit(&self) -> Option<Fit<'_>> {
        if self.measured.is_nothing() { None } else { Fit::of(&self.spec, &self.measured) }
    }

    /// Speeds for declared sizes, corrected by measurements.
    pub fn corrected_by_measurements(&self, declared: Vec<(u32, Speed)>) -> Vec<(u32, Speed)> {
        match self.fit() {
            Some(fit) => fit.speeds_for(&declared),
            None => declared,
        }
    }

    /// Declared sizes with measured speeds; declared speeds where nothing was measured or the fit is invalid.
    pub fn scaling(&self) -> Option<Cow<'_, Scaling>> {
        let declared = self.spec.scaling.as_deref()?;
        let measured = self.fit().and_then(|fit| Scaling::new(fit.speeds_for(declared.sizes())).ok());
        Some(measured.map_or(Cow::Borrowed(declared), Cow::Owned))
    }

    /// Pace on these nodes.
    pub fn pace_on(&self, held: &Assignment) -> WorkPace {
        let members = self.elastic_members(held);
        match self.fit().filter(|_| members > 0) {
            Some(fit) => WorkPace::at(fit.speed(members)),
            None => WorkPace::of(&self.spec, held),
        }
    }

    /// Records the speed between two reports and corrects the progress estimate. Returns whether the fitted speed
    /// changed noticeably.
    pub(crate) fn record_speed(
        &mut self,
        now: Instant,
        before: Option<Sample>,
        tuning: &ObserveTuning,
    ) -> bool {
        let Some((members, before, latest)) = self.interval_at_constant_size(before) else { return false };
        let done = Iterations(latest.iterations.0 - before.iterations.0);
        self.measured.note(members, done, latest.at.since(before.at), tuning);
        let spec = self.spec.clone();
        let Some(fit) = Fit::of(&spec, &self.measured) else { return false };
        self.progress.set_from_measurement(
            now,
            fit.work(latest.iterations),
            WorkPace::at(fit.speed(members)),
        );
        self.measured.is_news(fit.thousand_iterations(), tuning)
    }

    /// Members and reports of an interval with a constant size; `None` otherwise, and for jobs that share cores,
    /// whose speed depends on other jobs.
    fn interval_at_constant_size(&self, before: Option<Sample>) -> Option<(u32, Sample, Sample)> {
        let (before, latest) = (before?, self.progress.latest?);
        let Life::Running(held) = &self.life else { return None };
        let members = self.elastic_members(held);
        let at_this_size = self.runs_since.is_some_and(|since| since <= before.at);
        let counts = self.spec.work.cpu.is_none() && self.progress.all_work(&self.spec).is_some();
        (latest.at > before.at && members > 0 && at_this_size && counts).then_some((members, before, latest))
    }

    /// Members of elastic roles.
    pub(super) fn elastic_members(&self, held: &Assignment) -> u32 {
        let role = |role: u8| self.spec.roles.get(usize::from(role));
        let elastic = |part: &&Part| role(part.role).is_some_and(|role| role.gang.is_elastic());
        held.parts().iter().filter(elastic).map(|part| part.members).sum()
    }
}

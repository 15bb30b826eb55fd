//! How fast a job is with so many members: as declared, and as its reports tell.

use std::borrow::Cow;

use super::{Job, Life};
use crate::model::plan::{Assignment, Part};
use crate::model::units::{Instant, Iterations};
use crate::observe::progress::{Pace, Sample};
use crate::observe::scaling::{Fit, Scaling, Speed};

impl Job {
    /// How it scales by what was measured; nothing where nothing was.
    pub fn fit(&self) -> Option<Fit<'_>> {
        if self.measured.is_nothing() { None } else { Fit::of(&self.spec, &self.measured) }
    }

    /// What was declared of these sizes, as far as was not measured to be otherwise.
    pub fn as_measured(&self, declared: Vec<(u32, Speed)>) -> Vec<(u32, Speed)> {
        match self.fit() {
            Some(fit) => fit.speeds_for(&declared),
            None => declared,
        }
    }

    /// The sizes for which it was said how fast it is with them, each as fast as it was measured to be; as declared, where
    /// nothing was measured or that makes no sense.
    pub fn scaling(&self) -> Option<Cow<'_, Scaling>> {
        let declared = self.spec.scaling.as_deref()?;
        let measured = self.fit().and_then(|fit| Scaling::new(fit.speeds_for(declared.sizes())).ok());
        Some(measured.map_or(Cow::Borrowed(declared), Cow::Owned))
    }

    /// How fast it works there.
    pub fn pace_on(&self, held: &Assignment) -> Pace {
        let members = self.elastic_members(held);
        match self.fit().filter(|_| members > 0) {
            Some(fit) => Pace::at(fit.speed(members)),
            None => Pace::of(&self.spec, held),
        }
    }

    /// A report came after another one: takes note of how fast it was between them, and of what is done by that. Whether it
    /// is faster or slower than was believed.
    pub(crate) fn note_speed(&mut self, now: Instant, before: Option<Sample>) -> bool {
        let Some((members, before, latest)) = self.watched(before) else { return false };
        let done = Iterations(latest.iterations.0 - before.iterations.0);
        self.measured.note(members, done, latest.at.since(before.at));
        let spec = self.spec.clone();
        let Some(fit) = Fit::of(&spec, &self.measured) else { return false };
        self.progress.counted(now, fit.work(latest.iterations), Pace::at(fit.speed(members)));
        self.measured.is_news(fit.thousand_iterations())
    }

    /// With how many members it ran from one report to the next, if that was the same all the time. Who shares cores is as
    /// fast as others let it be, whatever its size.
    fn watched(&self, before: Option<Sample>) -> Option<(u32, Sample, Sample)> {
        let (before, latest) = (before?, self.progress.latest?);
        let Life::Running(held) = &self.life else { return None };
        let members = self.elastic_members(held);
        let at_this_size = self.runs_since.is_some_and(|since| since <= before.at);
        let counts = self.spec.work.cpu.is_none() && self.progress.all_work(&self.spec).is_some();
        (latest.at > before.at && members > 0 && at_this_size && counts).then_some((members, before, latest))
    }

    /// The members of roles that may have more than they ask for.
    pub(super) fn elastic_members(&self, held: &Assignment) -> u32 {
        let role = |role: u8| self.spec.roles.get(usize::from(role));
        let elastic = |part: &&Part| role(part.role).is_some_and(|role| role.gang.is_elastic());
        held.parts().iter().filter(elastic).map(|part| part.members).sum()
    }
}

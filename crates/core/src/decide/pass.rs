//! One pass over the line: from what is free, and then, where the policy says so, from what others can be made to
//! leave.
//!
//! When the first of a class does not fit, its whole class is passed over: room only shrinks from there on. But
//! whoever looks at others may fit once those are placed, and everybody may once somebody was told to leave. They are
//! looked at again in the same pass, so that another pass would find nothing to do.

use super::admit::Rules;
use super::draft::{Draft, Reach};
use super::order::{Line, Ranker};
use super::preempt::Victims;
use crate::id::{ClassId, Id, JobId};
use crate::policy::{Preemption, Queueing};
use crate::report::Reason;
use crate::snapshot::Class;

/// A cycle starts at most so many jobs; the next goes on from there.
const MOST_STARTS_PER_CYCLE: usize = 10_000;

/// A cycle makes room for at most so many jobs; the next goes on from there.
const MOST_BENEFICIARIES_PER_CYCLE: usize = 100;

pub(super) fn fill_what_is_free<'a>(rules: &Rules<'a>, ranker: &'a Ranker<'a>) -> Draft<'a> {
    let mut pass = Pass::new(rules, ranker);
    let mut line = Line::new(ranker, |class| pass.may_be_served(class));
    loop {
        pass.serve(&mut line);
        pass.look_again(&mut line);
        if line.is_empty() && !pass.make_room(&mut line) {
            return pass.finish();
        }
    }
}

struct Pass<'a, 'r> {
    rules: &'r Rules<'a>,
    ranker: &'a Ranker<'a>,
    draft: Draft<'a>,
    refused: Vec<Refused>,
    /// Whether each class was looked at.
    looked: Vec<bool>,
    victims: Option<Victims<'a>>,
    starts: usize,
    beneficiaries: usize,
}

/// A class whose first could not be placed.
#[derive(Clone)]
struct Refused {
    job: JobId,
    class: ClassId,
    reason: Reason,
    /// The draft's stamp then.
    stamp: u64,
    /// How much the groups it looks at had changed when nobody was found who could make room for it.
    tried: Option<u64>,
}

impl<'a, 'r> Pass<'a, 'r> {
    fn new(rules: &'r Rules<'a>, ranker: &'a Ranker<'a>) -> Self {
        Self {
            rules,
            ranker,
            draft: Draft::beside_the_plan(rules.snapshot),
            refused: Vec::new(),
            looked: vec![false; rules.snapshot.waiting.slots()],
            victims: None,
            starts: 0,
            beneficiaries: 0,
        }
    }

    fn in_order(&self) -> bool {
        self.rules.queueing == Queueing::HeadBlocks
    }

    fn class(&self, id: ClassId) -> &'a Class {
        self.rules.snapshot.waiting.class(id).expect("the class of a waiting job")
    }

    fn was_closed(&self, class: &Class) -> bool {
        class.is_closed(self.rules.snapshot.stamp(class))
    }

    /// Whether a class is open, or may become so in the course of the pass.
    fn may_be_served(&self, class: &Class) -> bool {
        self.in_order() || !self.was_closed(class) || !class.watches.is_empty()
    }

    /// Whether nothing has happened since a class was closed.
    fn is_closed(&self, class: &Class) -> bool {
        !self.in_order() && self.was_closed(class) && self.draft.stamp(class) == 0
    }

    /// Serves the line until nobody stands in it, or the first that is refused holds up everybody.
    fn serve(&mut self, line: &mut Line<'a>) {
        while let Some((job, class)) = line.pop() {
            if self.is_closed(self.class(class)) {
                continue;
            }
            if self.admit(job, class) || self.in_order() && self.make_room_for_the_head() {
                line.step_up(job, class);
            } else if self.in_order() {
                self.draft.report.blocked_by = Some(job);
                line.clear();
            }
            if self.starts >= MOST_STARTS_PER_CYCLE {
                self.draft.report.cut_short = true;
                line.clear();
            }
        }
    }

    /// Places the first of a class, or notes why not.
    fn admit(&mut self, job: JobId, class: ClassId) -> bool {
        self.looked[class.index()] = true;
        let admitted = self.rules.admit_one(&mut self.draft, job, Reach::Unclaimed);
        match admitted {
            Ok(()) => self.starts += 1,
            Err(reason) => {
                let stamp = self.draft.stamp(self.class(class));
                self.refused.push(Refused { job, class, reason, stamp, tried: None });
                return false;
            }
        }
        true
    }

    /// Lets those stand in line again about whom something has changed since they were looked at.
    fn look_again(&mut self, line: &mut Line<'a>) {
        if self.in_order() || self.draft.report.cut_short {
            return;
        }
        let (snapshot, draft) = (self.rules.snapshot, &self.draft);
        let stamp = |id: ClassId| snapshot.waiting.class(id).map_or(0, |class| draft.stamp(class));
        self.refused.retain(|refused| {
            let unchanged = refused.stamp == stamp(refused.class);
            if !unchanged {
                line.stand(refused.job, refused.class);
            }
            unchanged
        });
        if draft.has_changed_for_others() {
            let unseen = snapshot.waiting.classes().filter(|(id, _)| !self.looked[id.index()]);
            for (id, class) in unseen.filter(|(id, _)| stamp(*id) != 0) {
                class.line.first().into_iter().for_each(|place| line.stand(place.job, id));
            }
        }
    }

    /// Has others leave for the first who can be helped by it; true if there was one.
    fn make_room(&mut self, line: &mut Line<'a>) -> bool {
        if self.rules.preemption != Preemption::ByPriority || self.in_order() || self.is_spent() {
            return false;
        }
        let mut lacking = Line::empty(self.ranker);
        for refused in self.refused.iter().filter(|refused| self.is_untried(refused)) {
            lacking.stand(refused.job, refused.class);
        }
        while let Some((job, class)) = lacking.pop() {
            let at = self.refused.iter().position(|refused| refused.class == class);
            if self.make_room_for(at.expect("whoever stands here was refused")) {
                line.step_up(job, class);
                return true;
            }
        }
        false
    }

    fn make_room_for_the_head(&mut self) -> bool {
        let preempts = self.rules.preemption == Preemption::ByPriority && !self.is_spent();
        preempts && self.make_room_for(self.refused.len() - 1)
    }

    fn is_spent(&mut self) -> bool {
        self.draft.report.cut_short |= self.beneficiaries >= MOST_BENEFICIARIES_PER_CYCLE;
        self.draft.report.cut_short
    }

    fn is_untried(&self, refused: &Refused) -> bool {
        let room = matches!(
            refused.reason,
            Reason::InsufficientResources { .. }
                | Reason::TopologyUnsatisfied { .. }
                | Reason::AffinityUnsatisfied { .. }
                | Reason::AntiAffinityUnsatisfied { .. }
                | Reason::SpreadUnsatisfied { .. }
        );
        room && refused.tried != Some(self.draft.counts.changes(&self.class(refused.class).watches))
    }

    /// Tells those to leave whose place a refused job may take, and gives it to it.
    fn make_room_for(&mut self, at: usize) -> bool {
        let Refused { job, class, .. } = self.refused[at];
        let victims = self.victims.get_or_insert_with(|| Victims::of(self.rules.snapshot));
        if !victims.make_room(self.rules, &mut self.draft, job) {
            self.refused[at].tried = Some(self.draft.counts.changes(&self.class(class).watches));
            return false;
        }
        self.refused.remove(at);
        self.beneficiaries += 1;
        self.starts += 1;
        true
    }

    fn finish(mut self) -> Draft<'a> {
        let refused = self.refused.into_iter().map(|refused| (refused.class, refused.reason));
        self.draft.report.waiting.extend(refused);
        self.draft
    }
}

//! Places for a gang that differ in the links they cross.
//!
//! A gang on one node crosses none, and there is nothing to choose. Otherwise every domain that holds the gang is a
//! candidate, and beyond the innermost level pairs of domains and the place that the policy takes by itself: the
//! tightest place is not always the quietest.

use std::cmp::Reverse;

use super::{Placer, Range, Requests, Scope, Search, shortage, whole};
use crate::decide::draft::{Draft, Reach};
use crate::decide::gang_size::GangSize;
use crate::model::cluster::Level;
use crate::model::id::DomainId;
use crate::model::job::Job;
use crate::model::plan::Assignment;
use crate::model::report::Reason;

impl Placer {
    /// Places for the whole gang, of which none is taken; the first is the one that `place` would take.
    pub(in crate::decide::placement) fn alternatives<'a>(
        self,
        draft: &mut Draft<'a>,
        job: &'a Job,
        sizes: GangSize,
    ) -> Result<Vec<Assignment>, Reason> {
        if let Some(reason) = shortage(draft, job, sizes) {
            return Err(reason);
        }
        let requests = Requests::around(draft, self.rule);
        let crowds = super::crowds(draft, job, self.rule);
        let search = Search { rule: self.rule, job, sizes, reach: Reach::Unclaimed, requests, crowds };
        let found = draft.prefer_healthy_nodes(|draft| search.all(draft));
        found.ok_or_else(|| search.why_not(draft))
    }
}

impl<'a> Search<'a> {
    /// All places that are tried, if there is any.
    fn all(&self, draft: &mut Draft<'a>) -> Option<Vec<Assignment>> {
        let mut found: Vec<Assignment> = Vec::new();
        for range in self.ranges(draft) {
            found.extend(self.tried(draft, |search, draft| search.place_in(draft, range)));
            if !found.is_empty() && range == Range::Within(draft.snapshot.cluster.depth()) {
                break;
            }
            for scope in self.further_scopes(draft, range) {
                found.extend(self.tried(draft, |search, draft| search.place_within(draft, scope)));
            }
        }
        Some(found).filter(|found| !found.is_empty())
    }

    /// A place that is found and not taken.
    fn tried(
        &self,
        draft: &mut Draft<'a>,
        place: impl Fn(&Self, &mut Draft<'a>) -> Option<Vec<super::Part>>,
    ) -> Option<Assignment> {
        let mark = draft.mark();
        let parts = place(self, draft);
        draft.rollback(mark);
        parts.map(|parts| whole(self.job, parts))
    }

    /// Where else to look beside the first choice of a range.
    fn further_scopes(&self, draft: &Draft<'a>, range: Range) -> Vec<Scope> {
        let innermost = draft.snapshot.cluster.depth();
        match range {
            Range::Within(level) if level == innermost => Vec::new(),
            Range::Within(level) => self
                .scopes_at(draft, level)
                .into_iter()
                .skip(1)
                .take(draft.snapshot.tuning.decide.max_compared_domains)
                .collect(),
            Range::Everywhere if innermost.0 == 0 => Vec::new(),
            Range::Everywhere => self.pairs(draft, Level(innermost.0 - 1)),
        }
    }

    /// Pairs of domains of a level that hold the gang together.
    fn pairs(&self, draft: &Draft<'a>, level: Level) -> Vec<Scope> {
        let fit = |domain: &DomainId| -> u64 {
            let roles = self.job.spec.roles.iter();
            roles.map(|role| self.fit_in(draft, Scope::Domain(*domain), &role.shape)).sum()
        };
        let mut domains: Vec<DomainId> = draft.snapshot.cluster.domains_at(level).collect();
        domains.sort_by_cached_key(|domain| (Reverse(fit(domain)), *domain));
        domains.truncate(draft.snapshot.tuning.decide.max_paired_domains);
        let pairs = domains
            .iter()
            .enumerate()
            .flat_map(|(at, one)| domains[at + 1..].iter().map(|other| Scope::Pair(*one, *other)));
        pairs.filter(|pair| self.slack(draft, *pair).is_some()).collect()
    }
}

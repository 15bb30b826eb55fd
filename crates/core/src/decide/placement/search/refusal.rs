//! Why a gang was not placed.

use std::cmp::Reverse;

use super::{Scope, Search, insufficient};
use crate::decide::draft::{Draft, Reach};
use crate::decide::group_counts::RuleKind;
use crate::model::cluster::Level;
use crate::model::job::{Role, Shape, Topology};
use crate::model::policy::Placement;
use crate::model::report::Reason;

impl<'a> Search<'a> {
    /// The role that lacks most; or, where all have room, the level or the rule that is in the way.
    pub(super) fn why_not(&self, draft: &mut Draft<'a>) -> Reason {
        let mut scarcest: Option<(u64, u64, &Role)> = None;
        for (role, shape) in
            self.job.spec.roles.iter().zip(&self.job.shapes).filter(|(role, _)| self.size(role) > 0)
        {
            let mut fit = self.fit_in(draft, Scope::Everywhere, &role.shape);
            if self.reach == Reach::Claimed {
                draft.limit_fits(*shape, fit);
            }
            if let Some(teams) = self.teams_of(role) {
                fit = self.fit_in_teams(draft, Scope::Everywhere, role, teams);
            }
            let covered = fit.saturating_mul(1000) / u64::from(self.size(role));
            if scarcest.is_none_or(|(least, _, _)| covered < least) {
                scarcest = Some((covered, fit, role));
            }
        }
        let (_, fit, role) = scarcest.expect("a job has at least one role with members");
        let members = self.size(role);
        if fit < u64::from(members) {
            return insufficient(role, self.sizes, u32::try_from(fit).unwrap_or(u32::MAX));
        }
        if let Topology::Required(level) = self.job.spec.topology {
            let best = self.best_at(draft, level, &role.shape);
            if best < members || !self.has_rules() {
                return Reason::TopologyUnsatisfied { level, members, best };
            }
        }
        let forbidden = self.forbidden(draft);
        if forbidden.is_none() && self.rule == Placement::Nearest {
            // Room for all, and no rule in the way: it is the links of nodes that are used up.
            return Reason::BandwidthContended { patience: None };
        }
        forbidden.unwrap_or_else(|| insufficient(role, self.sizes, u32::try_from(fit).unwrap_or(u32::MAX)))
    }

    fn has_rules(&self) -> bool {
        self.job.spec.roles.iter().any(|role| !role.shape.rules.is_empty())
    }

    /// The rule that keeps the first role off the nodes which have room for it, if one does.
    fn forbidden(&self, draft: &mut Draft<'a>) -> Option<Reason> {
        if !self.has_rules() {
            return None;
        }
        let mark = draft.mark();
        let stuck = self.in_placing_order().into_iter().find_map(|numbered @ (_, role)| {
            let placed = self.place_role(draft, Scope::Everywhere, numbered).err()?;
            Some((role, placed))
        });
        let reason = stuck.and_then(|(role, fit)| {
            let members = self.size(role);
            Some(match self.strictest(draft, &role.shape)? {
                RuleKind::Together => Reason::AffinityUnsatisfied { members, fit },
                RuleKind::Apart => Reason::AntiAffinityUnsatisfied { members, fit },
                RuleKind::Spread => Reason::SpreadUnsatisfied { members, fit },
            })
        });
        draft.rollback(mark);
        reason
    }

    /// The kind of rule that forbids most of the nodes which have room.
    fn strictest(&self, draft: &Draft<'a>, shape: &Shape) -> Option<RuleKind> {
        let candidates = self.candidates(draft, Scope::Everywhere, shape);
        let kinds = candidates.iter().filter_map(|(node, _)| draft.forbid(shape, *node));
        let mut forbids = [0u32; 3];
        kinds.for_each(|kind| forbids[kind as usize] += 1);
        let kinds = [RuleKind::Together, RuleKind::Apart, RuleKind::Spread];
        let most = kinds.into_iter().max_by_key(|kind| (forbids[*kind as usize], Reverse(*kind)))?;
        (forbids[most as usize] > 0).then_some(most)
    }

    /// The most members that any one place of a level takes.
    fn best_at(&self, draft: &Draft<'_>, level: Level, shape: &Shape) -> u32 {
        let cluster = draft.snapshot.cluster;
        let best = if level == cluster.depth() {
            cluster.nodes().ids().map(|node| self.fit_in(draft, Scope::Node(node), shape)).max()
        } else {
            cluster.domains_at(level).map(|domain| self.fit_in(draft, Scope::Domain(domain), shape)).max()
        };
        u32::try_from(best.unwrap_or(0)).unwrap_or(u32::MAX)
    }
}

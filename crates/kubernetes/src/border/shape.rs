//! A pod's needs, told in the core's terms.

use metronome_core::model::id::{CounterId, GroupId, NodeSetId};
use metronome_core::model::job::{Eligibility, Rule, Shape};
use metronome_core::model::units::Resources;

use super::Border;
use super::groups::Group;
use super::jobs::Shaped;
use super::kinds::KindId;
use super::pool::Hold;
use super::wire::Wire;
use crate::objects::Pod;
use crate::rules::Refusal;
use crate::rules::division::Division;
use crate::rules::load::Counter;
use crate::rules::place::Where;
use crate::rules::request::wanted;
use crate::rules::storage::ClaimUse;
use crate::rules::terms::{Demands, Spread, Term};
use crate::rules::traits::{Question, Traits, claims};

/// A pod as the core is told of it. As long as somebody has it, what it names stays in use.
#[derive(Debug)]
pub struct Facts {
    each: Resources,
    counters: Vec<(CounterId, u64)>,
    set: Hold<NodeSetId>,
    pub(super) kind: Hold<KindId>,
    pub(super) uses: Vec<ClaimUse>,
    rules: Vec<Rule>,
    holds: Vec<Hold<GroupId>>,
}

impl Border {
    pub(super) fn learn(&mut self, wire: &mut Wire<'_>, pod: &Pod) -> Result<Facts, Refusal> {
        refuse_devices(pod)?;
        let (place, traits, demands) = (Where::of(pod)?, Traits::of(pod)?, Demands::of(pod)?);
        self.storage.wanted(&place.claims)?;
        let load = wanted(pod)?;
        let counters = self.counters.wanted(wire, &load)?;
        let uses = place.claims.clone();
        let Rules { rules, holds } = self.rules(wire, &traits, demands);
        let set = self.set(wire, place);
        let kind = self.meet(traits);
        Ok(Facts { each: load.resources, counters, set, kind, uses, rules, holds })
    }

    /// The rules that follow from the pod itself, and the groups they look at.
    fn rules(&mut self, wire: &mut Wire<'_>, traits: &Traits, demands: Demands) -> Rules {
        let mut rules = Rules::default();
        rules.together(self, wire, traits, &demands.together);
        for term in demands.apart {
            let (question, division) = (Question::among([term.pods]), Division::Label(term.key));
            rules.apart(self.group(wire, Group { question, division }));
        }
        for spread in demands.spread {
            rules.spread(self, wire, &traits.namespace, spread);
        }
        rules
    }

    /// A pod's needs as of now: also whom it must keep away from because they or its claims want it so, and the groups
    /// it is in.
    pub(super) fn shape_now(&mut self, wire: &mut Wire<'_>, facts: &Facts) -> Shaped {
        let mut rules = Rules { rules: facts.rules.clone(), holds: facts.holds.clone() };
        for claim in claims(&facts.uses) {
            if self.storage.is_for_one_pod(&claim) {
                rules.apart(self.group(wire, Group::of_users(claim)));
            }
        }
        for term in self.repelling(facts.kind.id()) {
            rules.apart(self.group(wire, Group::of_carriers(term)));
        }
        rules.rules.sort();
        rules.rules.dedup();
        let groups: Vec<GroupId> = self.kinds.kind(facts.kind.id()).groups.iter().copied().collect();
        rules.holds.extend(groups.iter().filter_map(|group| self.groups.hold(*group)));
        let shape = Shape {
            each: facts.each,
            on: Eligibility { gpu_type: None, set: Some(facts.set.id()) },
            counters: self.with_volumes(wire, facts).into(),
            groups: groups.into(),
            rules: rules.rules.into(),
        };
        Shaped { shape, holds: rules.holds }
    }

    /// What a pod takes of counters, and the volumes that have to be attached for it.
    fn with_volumes(&mut self, wire: &mut Wire<'_>, facts: &Facts) -> Vec<(CounterId, u64)> {
        let mut counters = facts.counters.clone();
        for (driver, volumes) in self.storage.brought(&facts.uses) {
            counters.extend(self.counters.intern(wire, &Counter::Attached(driver)).map(|id| (id, volumes)));
        }
        counters.sort_unstable();
        counters
    }

    /// The terms by which others keep pods of this kind away.
    fn repelling(&self, kind: KindId) -> Vec<Term> {
        let traits = self.kinds.traits(kind);
        let labels = self.namespaces.get(&traits.namespace);
        let about = |term: &&Term| term.pods.contain(&traits.namespace, &traits.labels, labels);
        self.kinds.carried_against(traits).filter(about).cloned().collect()
    }
}

#[derive(Default)]
struct Rules {
    rules: Vec<Rule>,
    holds: Vec<Hold<GroupId>>,
}

impl Rules {
    fn apart(&mut self, group: Hold<GroupId>) {
        self.rules.push(Rule::Apart(group.id()));
        self.holds.push(group);
    }

    /// One and the same pod has to match all terms; the first of its kind may go anywhere if it matches itself.
    fn together(&mut self, border: &mut Border, wire: &mut Wire<'_>, traits: &Traits, terms: &[Term]) {
        if terms.is_empty() {
            return;
        }
        let question = Question::among(terms.iter().map(|term| term.pods.clone()));
        let or_first = question.holds(traits, border.namespaces.get(&traits.namespace));
        let mut keys: Vec<&String> = terms.iter().map(|term| &term.key).collect();
        keys.sort();
        keys.dedup();
        let mut group = |key: &String| {
            let (question, division) = (question.clone(), Division::Label(key.clone()));
            border.group(wire, Group { question, division })
        };
        let groups: Vec<Hold<GroupId>> = keys.into_iter().map(&mut group).collect();
        self.rules.push(Rule::Together { groups: groups.iter().map(Hold::id).collect(), or_first });
        self.holds.extend(groups);
    }

    fn spread(&mut self, border: &mut Border, wire: &mut Wire<'_>, namespace: &str, spread: Spread) {
        let Spread { like, over, skew, least_domains, own } = spread;
        let question = Question::Spread { namespace: namespace.to_owned(), like };
        let group = border.group(wire, Group { question, division: over });
        self.rules.push(Rule::Spread { group: group.id(), skew, own, least_domains });
        self.holds.push(group);
    }
}

fn refuse_devices(pod: &Pod) -> Result<(), Refusal> {
    let spec = &pod.spec;
    let containers = spec.containers.iter().chain(spec.init_containers.iter().flatten());
    let needs = containers.filter_map(|container| container.resources.as_ref()).chain(&spec.resources);
    let mut claims = needs.filter_map(|needs| needs.claims.as_ref());
    let claimed = claims.any(|claims| !claims.is_empty());
    let listed = spec.resource_claims.as_ref().is_some_and(|claims| !claims.is_empty());
    if claimed || listed { Err(Refusal::DeviceClaims) } else { Ok(()) }
}

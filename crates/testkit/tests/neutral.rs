//! Truths about every decision where jobs count in groups, look at each other and make room for each other, and the
//! world changes nodes, sets, domains and budgets under them. The oracle recounts with loops what the scheduler keeps
//! by differences.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use metronome_core::decide::decide;
use metronome_core::engine::{Engine, State};
use metronome_core::journal::{Record, Replay};
use metronome_core::model::cluster::NodeState;
use metronome_core::model::id::{
    BudgetId, CounterId, DeviceId, GroupId, JobId, NodeId, NodeSetId, PartitionId,
};
use metronome_core::model::job::{Capabilities, Gang, JobSpec, Priority, Role, RoleKind, Rule, Shape};
use metronome_core::model::plan::Assignment;
use metronome_core::model::policy::{Policy, Preemption};
use metronome_core::model::units::{Duration, Instant};
use metronome_testkit::build::{gpus, policy, racks, share};
use metronome_testkit::drive::{Driver, Op};
use metronome_testkit::lines::Lines;
use proptest::prelude::*;

const NODES: u32 = 6;

/// Six nodes with three slots each, two sets of them, two partitions and three groups, two budgets.
fn world(policy: Policy) -> Driver {
    let mut driver = Driver::patient(racks(2, 3, 4), policy);
    let (engine, now) = (&mut driver.engine, Instant::START);
    let node = |node| NodeId(node);
    engine.add_counter(now, "slots", 3);
    engine.add_node_set(now, (0..4).map(node).collect());
    engine.add_node_set(now, (2..NODES).map(node).collect());
    engine.add_partition(now, (0..NODES).map(|at| (NodeId(at), at)).collect());
    engine.add_partition(now, (0..NODES - 1).map(|at| (NodeId(at), at / 2)).collect());
    engine.add_group(now, PartitionId(0), vec![], vec![]);
    engine.add_group(now, PartitionId(1), vec![(NodeId(0), 1)], vec![]);
    engine.add_group(now, PartitionId(1), vec![], vec![]);
    engine.add_budget(now, 2);
    engine.add_budget(now, 1);
    driver
}

/// Every policy, and each that fills what is free also with room made by priority.
fn policies() -> impl Strategy<Value = Policy> {
    let plain = Policy::names().map(policy);
    let preempting = Policy::names().map(policy).filter(fills).map(Policy::preempting);
    prop::sample::select(plain.chain(preempting).collect::<Vec<_>>())
}

/// Those that look at what is free, and do not hand out everything anew.
fn filling() -> impl Strategy<Value = Policy> {
    policies().prop_filter("it fills what is free", fills)
}

fn fills(policy: &Policy) -> bool {
    policy.preemption != Preemption::ByRank
}

fn group() -> impl Strategy<Value = GroupId> {
    (0u32..3).prop_map(GroupId)
}

fn rule() -> impl Strategy<Value = Rule> {
    prop_oneof![
        group().prop_map(Rule::Apart),
        (prop::collection::vec(group(), 1..3), any::<bool>())
            .prop_map(|(groups, or_first)| Rule::Together { groups, or_first }),
        (group(), 0u32..3, any::<bool>(), 0u32..4).prop_map(|(group, skew, own, least_domains)| {
            Rule::Spread { group, skew, own, least_domains }
        }),
    ]
}

fn shape() -> impl Strategy<Value = Shape> {
    let groups = prop::collection::btree_set(group(), 0..3);
    let rules = prop_oneof![3 => Just(vec![]), 2 => prop::collection::vec(rule(), 1..3)];
    let set = prop_oneof![2 => Just(None), 1 => (0u32..2).prop_map(|set| Some(NodeSetId(set)))];
    let each =
        prop_oneof![3 => (0u64..4).prop_map(gpus), 1 => (1u64..10).prop_map(|tenths| share(100 * tenths))];
    (each, 0u64..3, set, groups, rules).prop_map(|(each, slots, set, groups, rules)| {
        let mut shape = Shape::of(each);
        shape.on.set = set;
        shape.counters = (slots > 0).then_some((CounterId(0), slots)).into_iter().collect();
        shape.groups = groups.into_iter().collect();
        shape.rules = rules.into_iter().collect();
        shape
    })
}

/// Jobs of one role, and of two where the second may get in the way of the first.
fn jobs() -> impl Strategy<Value = JobSpec> {
    jobs_with(shape())
}

/// The same, but second roles take nothing and mind nobody: roles are placed one after the other, so a gang may be
/// refused that the same room would hold, and fit when somebody else has taken some of it.
fn simple_jobs() -> impl Strategy<Value = JobSpec> {
    jobs_with(shape().prop_map(|shape| Shape { on: shape.on, ..Shape::default() }))
}

fn jobs_with(server: impl Strategy<Value = Shape>) -> impl Strategy<Value = JobSpec> {
    let server = prop_oneof![3 => Just(None), 1 => server.prop_map(Some)];
    let budgets = prop::collection::btree_set(0u32..2, 0..2);
    (shape(), server, 1u64..4, 0u64..2, -1i32..2, any::<(bool, bool, bool)>(), budgets).prop_map(
        |(shape, server, members, more, priority, (evict, suspend, preempts), budgets)| {
            let gang = Gang::elastic(members, members + more).unwrap();
            let mut spec = JobSpec::workers("job", gang, gpus(0));
            spec.roles[0].shape = shape;
            let one = Gang::rigid(1).unwrap();
            spec.roles.extend(server.map(|shape| Role { kind: RoleKind::Ps, gang: one, shape }));
            spec.priority = Priority(priority);
            spec.capabilities = Capabilities { evict, suspend, ..Capabilities::START_ONLY };
            spec.budgets = budgets.into_iter().map(BudgetId).collect();
            spec.preempts = preempts;
            spec
        },
    )
}

fn ops<S: Strategy<Value = JobSpec> + 'static>(jobs: fn() -> S) -> impl Strategy<Value = Op> {
    let which = || 0usize..8;
    prop_oneof![
        8 => jobs().prop_map(|spec| Op::Submit(Box::new(spec))),
        1 => which().prop_map(Op::Cancel),
        1 => which().prop_map(Op::Suspend),
        1 => which().prop_map(Op::Resume),
        3 => which().prop_map(Op::End),
        10 => which().prop_map(Op::StepSucceeds),
        2 => which().prop_map(Op::StepFails),
        1 => which().prop_map(Op::NodeGoes),
        2 => which().prop_map(Op::NodeComes),
        2 => (0u64..120).prop_map(|seconds| Op::Pass(Duration::from_secs(seconds))),
        2 => (jobs(), which()).prop_map(|(spec, first)| Op::Found(Box::new(spec), first)),
        2 => (which(), which()).prop_map(|(which, part)| Op::MembersLeave(which, part)),
        2 => (which(), jobs()).prop_map(|(which, spec)| Op::JobChanges(which, Box::new(spec))),
        2 => (which(), 0u64..6, 0u64..5).prop_map(|(node, gpus, slots)| Op::NodeChanges(node, gpus, slots)),
        2 => (0u32..2, which(), any::<bool>()).prop_map(|(set, node, allowed)| Op::SetChanges(set, node, allowed)),
        1 => (0u32..2, which(), prop::option::of(0u32..4)).prop_map(|(partition, node, domain)| {
            Op::DomainChanges(partition, node, domain)
        }),
        2 => (0u32..3, which(), 0u32..3).prop_map(|(group, node, count)| Op::OthersChange(group, node, count)),
        1 => (0u32..3, which()).prop_map(|(group, which)| Op::Joins(group, which)),
        1 => (0u32..2, 0u32..4).prop_map(|(budget, allowed)| Op::BudgetChanges(budget, allowed)),
    ]
}

type Plan = BTreeMap<JobId, Arc<Assignment>>;

fn plan(engine: &Engine) -> Plan {
    engine.plan().iter().map(|(id, planned)| (id, planned.clone())).collect()
}

/// What one decision made of a plan.
struct Decided<'a> {
    state: &'a State,
    before: &'a Plan,
    after: Plan,
}

impl Decided<'_> {
    fn placed(&self) -> impl Iterator<Item = (JobId, &Arc<Assignment>)> {
        self.after.iter().filter(|(id, now)| self.before.get(id) != Some(now)).map(|(id, now)| (*id, now))
    }

    fn shape(&self, job: JobId, role: u8) -> &Shape {
        &self.state.jobs[job].spec.roles[usize::from(role)].shape
    }

    /// Whether a job's place was changed.
    fn moved(&self, job: JobId) -> bool {
        self.before.get(&job) != self.after.get(&job)
    }

    /// How many of a group are in each domain: others, who is planned, and who still holds nodes.
    fn count(&self, group: GroupId, counts: impl Fn(JobId, bool) -> bool) -> BTreeMap<u32, u32> {
        let described = &self.state.groups.groups[group];
        let partition = &self.state.groups.partitions[described.partition];
        let mut totals: BTreeMap<u32, u32> = partition.iter().map(|(_, domain)| (domain, 0)).collect();
        let mut add = |node: NodeId, members: u32| {
            if let Some(domain) = partition.domain(node) {
                *totals.entry(domain).or_default() += members;
            }
        };
        described.others.iter().for_each(|(node, others)| add(*node, *others));
        for (id, job) in self.state.jobs.iter() {
            let mut places: Vec<(Arc<Assignment>, bool)> =
                job.life.holds().into_iter().map(|held| (held, false)).collect();
            if let Some(planned) = self.after.get(&id) {
                places.retain(|(held, _)| held != planned);
                places.push((planned.clone(), true));
            }
            for (place, _) in places.iter().filter(|(_, planned)| counts(id, *planned)) {
                for part in
                    place.parts().iter().filter(|part| self.shape(id, part.role).groups.contains(&group))
                {
                    add(part.node, part.members);
                }
            }
        }
        totals
    }

    fn here(&self, group: GroupId, node: NodeId, counts: &BTreeMap<u32, u32>) -> Option<u32> {
        self.state.groups.domain(group, node).map(|domain| counts[&domain])
    }

    fn assert_eligible(&self) {
        for (job, assignment) in self.placed() {
            for part in assignment.parts() {
                let node = self.state.cluster.node(part.node);
                assert_eq!(node.state, NodeState::Ready, "{job:?} on {:?}", part.node);
                let set = self.shape(job, part.role).on.set;
                assert!(set.is_none_or(|set| self.state.cluster.in_set(part.node, set)));
            }
        }
    }

    /// Whatever was added to is not too full.
    fn assert_room(&self) {
        for (_, assignment) in self.placed() {
            for (node, amount) in assignment.takes().iter().filter(|(_, amount)| amount.gpus.0 > 0) {
                let used: u64 = self
                    .after
                    .values()
                    .flat_map(|held| held.takes())
                    .filter(|(on, _)| on == node)
                    .map(|(_, amount)| amount.gpus.0)
                    .sum();
                assert!(used <= self.state.cluster.node(*node).capacity.gpus.0, "{node:?}, {amount:?}");
                self.assert_devices(*node, used, assignment);
            }
            for (node, counter, _) in assignment.counters() {
                let taken = self.after.values().flat_map(|held| held.counters());
                let used: u64 = taken
                    .filter(|(on, of, _)| (on, of) == (node, counter))
                    .map(|(_, _, amount)| amount)
                    .sum();
                assert!(used <= self.state.cluster.count(*node, *counter), "{counter:?} on {node:?}");
            }
        }
    }

    /// Every share lies on one device of the node, none to which one was added is too full, and beside those that are
    /// shared there are enough for the rest.
    fn assert_devices(&self, node: NodeId, used: u64, added: &Assignment) {
        let devices = self.state.cluster.node(node).capacity.gpus.0 / 1000;
        let mut shared: BTreeMap<DeviceId, u64> = BTreeMap::new();
        for (id, held) in &self.after {
            for part in held.parts().iter().filter(|part| part.node == node) {
                let each = self.shape(*id, part.role).each.gpus.0;
                assert_eq!(part.device.is_some(), !each.is_multiple_of(1000), "{id:?} on {node:?}");
                if let Some(device) = part.device {
                    *shared.entry(device).or_default() += each * u64::from(part.members);
                }
            }
        }
        let mut named = added.shares().iter().filter(|(on, ..)| *on == node);
        assert!(named.all(|(_, device, _)| shared[device] <= 1000), "{node:?}: {shared:?}");
        let whole = (used - shared.values().sum::<u64>()) / 1000;
        assert!(whole + shared.len() as u64 <= devices, "{node:?}: {whole} and {shared:?}");
    }

    fn assert_rules(&self) {
        let alone = self.placed().map(|(_, assignment)| assignment.members()).sum::<u32>() == 1;
        for (job, assignment) in self.placed() {
            for part in assignment.parts() {
                let shape = self.shape(job, part.role);
                for rule in &*shape.rules {
                    self.assert_rule(job, shape, rule, part.node, alone);
                }
            }
        }
    }

    fn assert_rule(&self, job: JobId, shape: &Shape, rule: &Rule, node: NodeId, alone: bool) {
        let itself = |group: &GroupId| u32::from(shape.groups.contains(group));
        match rule {
            Rule::Apart(group) => {
                // Of others that came in the same decision it is not known who came first.
                let counts = self.count(*group, |id, planned| !self.moved(id) || id == job && planned);
                let here = self.here(*group, node, &counts);
                assert!(here.is_none_or(|count| count <= itself(group)), "{job:?} on {node:?}: {rule:?}");
            }
            Rule::Together { groups, or_first } => {
                let beside = |group: &GroupId| {
                    let here = self.here(*group, node, &self.count(*group, |_, _| true));
                    here.is_some_and(|count| count > itself(group))
                };
                let first = |group: &GroupId| {
                    let counts = self.count(*group, |id, _| !self.moved(id));
                    self.here(*group, node, &counts).is_some() && counts.values().all(|count| *count == 0)
                };
                let kept = groups.iter().all(beside) || (*or_first && groups.iter().all(first));
                assert!(kept, "{job:?} on {node:?}: {rule:?}");
            }
            Rule::Spread { group, skew, own, least_domains } => {
                let counts = self.count(*group, |id, planned| planned || !self.moved(id));
                let here = self.here(*group, node, &counts).expect("only nodes with a domain");
                let few = (counts.len() as u32) < *least_domains;
                let least = counts.iter().map(|(domain, count)| {
                    let mine = self.state.groups.domain(*group, node) == Some(*domain);
                    count - if mine { itself(group) } else { 0 }
                });
                let least = if few { 0 } else { least.min().unwrap_or(0) };
                // Only where one member was placed and nobody left is it known what it saw.
                if alone && self.before.keys().all(|id| self.after.contains_key(id)) {
                    let seen = here - itself(group);
                    assert!(seen + u32::from(*own) <= least + skew, "{job:?} on {node:?}: {rule:?}");
                }
            }
        }
    }

    /// Whoever leaves for another has lower priority, allows it, and is within every budget.
    fn assert_displaced_fairly(&self, earlier: &BTreeMap<JobId, JobId>) {
        let mut spent: BTreeMap<BudgetId, u32> = BTreeMap::new();
        for (victim, beneficiary) in &self.state.displaced {
            let spec = &self.state.jobs[*victim].spec;
            for budget in &spec.budgets {
                *spent.entry(*budget).or_default() += spec.members();
            }
            if !earlier.contains_key(victim) {
                assert!(spec.priority < self.state.jobs[*beneficiary].spec.priority);
                assert!(spec.capabilities.evict || spec.capabilities.suspend);
                assert!(self.state.jobs[*beneficiary].spec.preempts);
                for budget in &spec.budgets {
                    assert!(spent[budget] <= self.state.budgets[*budget], "{budget:?} is overdrawn");
                }
            }
        }
    }
}

/// An engine that knows the same and has everything still to find out.
fn restored(engine: &Engine) -> Engine {
    let text = serde_json::to_string(engine.state()).unwrap();
    Engine::restore(serde_json::from_str::<State>(&text).unwrap())
}

/// `METRONOME_CASES` asks for a longer search.
fn cases() -> u32 {
    std::env::var("METRONOME_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(2000)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn every_plan_keeps_room_and_rules_whatever_the_world_does(
        policy in policies(), ops in prop::collection::vec(ops(jobs), 1..80)
    ) {
        let mut driver = world(policy);
        for op in &ops {
            driver.apply(op);
            let (before, displaced) = (plan(&driver.engine), driver.engine.state().displaced.clone());
            driver.poll();
            let state = driver.engine.state();
            prop_assert_eq!(state.alarms, 0, "{:?} after {:?}", state.last_alarm, op);
            let decided = Decided { state, before: &before, after: plan(&driver.engine) };
            decided.assert_eligible();
            decided.assert_room();
            decided.assert_rules();
            decided.assert_displaced_fairly(&displaced);
        }
    }

    #[test]
    fn deciding_again_changes_nothing(
        policy in filling(), ops in prop::collection::vec(ops(simple_jobs), 1..60)
    ) {
        let mut driver = world(policy);
        for op in &ops {
            driver.apply(op);
            driver.poll();
            let again = decide(&driver.engine.snapshot(), driver.engine.policy());
            prop_assert_eq!(again.amendment.assignments.len(), 0, "{:?}", again.amendment);
        }
    }

    #[test]
    fn looking_only_at_what_changed_decides_as_looking_at_everything(
        policy in filling(), ops in prop::collection::vec(ops(simple_jobs), 1..60)
    ) {
        let mut driver = world(policy);
        for op in &ops {
            driver.apply(op);
            let warm = decide(&driver.engine.snapshot(), driver.engine.policy());
            let cold_engine = restored(&driver.engine);
            let cold = decide(&cold_engine.snapshot(), cold_engine.policy());
            prop_assert_eq!(warm.amendment, cold.amendment);
            prop_assert_eq!(warm.report.displaced, cold.report.displaced);
            driver.poll();
        }
    }

    #[test]
    fn everything_is_decided_again_from_the_journal(
        policy in policies(), ops in prop::collection::vec(ops(jobs), 1..60)
    ) {
        let mut driver = world(policy);
        let lines = Lines::default();
        driver.engine.keep_journal(Box::new(lines.clone()));
        for op in &ops {
            driver.apply(op);
            driver.poll();
        }
        let mut replay = Replay::default();
        for line in lines.text().lines() {
            replay.feed(Record::from_line(line).unwrap()).unwrap();
        }
        prop_assert!(replay.mismatches.is_empty(), "{:?}", replay.mismatches[0]);
    }

    #[test]
    fn a_single_member_goes_where_it_is_said_to_be_feasible(
        policy in filling(), ops in prop::collection::vec(ops(jobs), 1..40), shape in shape()
    ) {
        let mut driver = world(policy);
        for op in &ops {
            driver.apply(op);
            driver.poll();
        }
        let mut spec = JobSpec::workers("single", Gang::rigid(1).unwrap(), gpus(0));
        spec.roles[0].shape = shape;
        spec.preempts = false;
        spec.priority = Priority(1000);
        let job = driver.submit(spec);
        let feasible: BTreeSet<NodeId> = driver.engine.feasible_nodes(job).into_iter().collect();
        let ahead = driver.engine.explain(job).and_then(|explained| explained.position);
        driver.poll();
        let planned = driver.engine.plan().get(job).and_then(|planned| planned.nodes().next());
        if ahead == Some(1) {
            prop_assert_eq!(planned.is_some(), !feasible.is_empty());
            prop_assert!(planned.is_none_or(|node| feasible.contains(&node)));
        }
    }
}

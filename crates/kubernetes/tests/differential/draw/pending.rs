//! Pods to ask about.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::storage::{ClaimKind, DrawnClaim};
use super::{Dice, NAMESPACES, RACK, ZONE, merge, selectors};

/// What a pod asks for that may keep it off nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rule {
    Cpu,
    Memory,
    Gpu,
    Extended,
    HugePages,
    EphemeralStorage,
    InitContainers,
    Overhead,
    PodLevel,
    HostPort,
    NodeSelector,
    NodeAffinity,
    NodeName,
    Tolerations,
    PodAffinity,
    PodAntiAffinity,
    Spread,
    BoundVolume,
    ZonedVolume,
    OnePodVolume,
    OpenVolume,
    MadeVolume,
    BrokenVolume,
    EphemeralVolume,
    Features,
}

impl Rule {
    /// Those about room, nodes and company twice as often as those about volumes, of which there are many.
    const ALL: [Self; 25] = {
        use Rule::*;
        [
            Cpu,
            Memory,
            Gpu,
            Extended,
            HugePages,
            EphemeralStorage,
            InitContainers,
            Overhead,
            PodLevel,
            HostPort,
            NodeSelector,
            NodeAffinity,
            NodeName,
            Tolerations,
            PodAffinity,
            PodAntiAffinity,
            Spread,
            BoundVolume,
            ZonedVolume,
            OnePodVolume,
            OpenVolume,
            MadeVolume,
            BrokenVolume,
            EphemeralVolume,
            Features,
        ]
    };

    pub(crate) fn all() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter()
    }

    /// Requests at the level of the pod may not be less than those of its containers.
    fn goes_with(self, others: &BTreeSet<Self>) -> bool {
        const CONTAINERS: [Rule; 4] = [Rule::Cpu, Rule::Memory, Rule::InitContainers, Rule::HugePages];
        match self {
            Self::PodLevel => CONTAINERS.iter().all(|rule| !others.contains(rule)),
            rule => !(others.contains(&Self::PodLevel) && CONTAINERS.contains(&rule)),
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Pending {
    pub(crate) namespace: &'static str,
    pub(crate) body: Value,
    plain: Value,
    parts: Vec<(Rule, Value)>,
    /// The class of a claim that is made for the pod, and whether it says so.
    own_claim: Option<(&'static str, bool)>,
}

impl Pending {
    pub(crate) fn draw(dice: &mut Dice, n: u64, nodes: &[String], claims: &[DrawnClaim]) -> Self {
        let namespace = dice.pick(&NAMESPACES);
        let plain = json!({
            "metadata": {"name": format!("pending-{n}"), "labels": selectors::labels(dice)},
            "spec": {
                "schedulerName": "reference", "terminationGracePeriodSeconds": 0,
                "containers": [{"name": "main", "image": "none"}],
            },
        });
        let mut pending = Self { namespace, body: Value::Null, plain, parts: Vec::new(), own_claim: None };
        for rule in rules(dice) {
            if let Some(part) = pending.part(dice, rule, nodes, claims) {
                pending.parts.push((rule, part));
            }
        }
        pending.body = pending.made_of(|_| true);
        pending
    }

    fn made_of(&self, has: impl Fn(Rule) -> bool) -> Value {
        let mut body = self.plain.clone();
        for (_, part) in self.parts.iter().filter(|(rule, _)| has(*rule)) {
            merge(&mut body, part);
        }
        body
    }

    pub(crate) fn rules(&self) -> impl Iterator<Item = Rule> {
        self.parts.iter().map(|(rule, _)| *rule)
    }

    /// The same pod, had it not asked for one thing.
    pub(crate) fn without(&self, rule: Rule) -> Value {
        self.made_of(|other| other != rule)
    }

    /// The same pod under another name.
    pub(crate) fn again(&self, n: u32) -> Self {
        let mut again = self.clone();
        let name = format!("{}-again-{n}", self.body["metadata"]["name"].as_str().unwrap());
        again.body["metadata"]["name"] = name.into();
        again
    }

    pub(crate) fn claim_for(&self, name: &str, uid: &str) -> Option<Value> {
        let (class, says_so) = self.own_claim?;
        let uid = if says_so { uid } else { "somebody-else" };
        let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid, "controller": true});
        let mut spec = claim_spec(class);
        spec["accessModes"] = json!(["ReadWriteOnce"]);
        let metadata = json!({"name": format!("{name}-scratch"), "ownerReferences": [owner]});
        Some(json!({"metadata": metadata, "spec": spec}))
    }

    fn part(
        &mut self,
        dice: &mut Dice,
        rule: Rule,
        nodes: &[String],
        claims: &[DrawnClaim],
    ) -> Option<Value> {
        Some(match rule {
            Rule::Cpu => container("cpu", &json!({"cpu": dice.pick(&["100m", "0.5", "1", "2", "3", "6"])})),
            Rule::Memory => {
                let memory = dice.pick(&["100Mi", "1Gi", "2e9", "3Gi", "8Gi"]);
                container("memory", &json!({"memory": memory}))
            }
            Rule::Gpu => both("gpu", &json!({"nvidia.com/gpu": dice.pick(&["1", "2", "5"])})),
            Rule::Extended => both("fpga", &json!({"example.com/fpga": dice.pick(&["1", "2", "3"])})),
            Rule::HugePages => {
                both("pages", &json!({"hugepages-2Mi": dice.pick(&["32Mi", "128Mi"]), "memory": "10Mi"}))
            }
            Rule::EphemeralStorage => {
                container("disk", &json!({"ephemeral-storage": dice.pick(&["1Gi", "4500Mi", "10Gi"])}))
            }
            Rule::InitContainers => init_containers(dice),
            Rule::Overhead => json!({"spec": {"runtimeClassName": "heavy"}}),
            Rule::PodLevel => {
                let cpu = dice.pick(&["500m", "2", "3900m"]);
                json!({"spec": {"resources": {"requests": {"cpu": cpu, "memory": dice.pick(&["1Gi", "3Gi"])}}}})
            }
            Rule::HostPort => ports(dice),
            Rule::NodeSelector => node_selector(dice),
            Rule::NodeAffinity => node_affinity(&(0..dice.between(1, 2)).map(|_| node_term(dice)).collect()),
            Rule::NodeName => named(dice, nodes),
            Rule::Tolerations => tolerations(dice),
            Rule::PodAffinity => affinity("podAffinity", &several(dice, selectors::term)),
            Rule::PodAntiAffinity => affinity("podAntiAffinity", &several(dice, selectors::term)),
            Rule::Spread => spread(dice),
            Rule::BoundVolume => self.volumes(dice, claims, ClaimKind::Bound)?,
            Rule::ZonedVolume => self.volumes(dice, claims, ClaimKind::Zoned)?,
            Rule::OnePodVolume => self.volumes(dice, claims, ClaimKind::OnePod)?,
            Rule::OpenVolume => self.volumes(dice, claims, ClaimKind::Open)?,
            Rule::MadeVolume => self.volumes(dice, claims, ClaimKind::Made)?,
            Rule::BrokenVolume => self.volumes(dice, claims, ClaimKind::Broken)?,
            Rule::EphemeralVolume => self.scratch(dice),
            Rule::Features => {
                let rule = json!({"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}});
                let container = json!({
                    "name": "restarts", "image": "none", "restartPolicy": "Never", "restartPolicyRules": [rule],
                });
                json!({"spec": {"containers": [container]}})
            }
        })
    }

    /// Up to two claims of a kind in the pod's namespace, or one that is not there.
    fn volumes(&self, dice: &mut Dice, claims: &[DrawnClaim], kind: ClaimKind) -> Option<Value> {
        let fitting = claims.iter().filter(|claim| claim.namespace == self.namespace && claim.kind == kind);
        let mut names: Vec<&str> = fitting.map(|claim| claim.name.as_str()).collect();
        dice.shuffle(&mut names);
        names.truncate(dice.between(1, 2) as usize);
        if names.is_empty() && kind == ClaimKind::Broken {
            names.push("no-such-claim");
        }
        let volume = |name: &&str| json!({"name": name, "persistentVolumeClaim": {"claimName": name}});
        let volumes: Vec<Value> = names.iter().map(volume).collect();
        (!volumes.is_empty()).then(|| json!({"spec": {"volumes": volumes}}))
    }

    fn scratch(&mut self, dice: &mut Dice) -> Value {
        let class = dice.pick(&["zoned", "strict", "measured", "local"]);
        self.own_claim = Some((class, dice.percent(85)));
        let mut spec = claim_spec(class);
        spec["accessModes"] = json!(["ReadWriteOnce"]);
        let volume = json!({"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": spec}}});
        json!({"spec": {"volumes": [volume], "schedulingGates": [{"name": "example.com/claim"}]}})
    }
}

fn claim_spec(class: &str) -> Value {
    json!({"storageClassName": class, "resources": {"requests": {"storage": "2Gi"}}})
}

/// One to three that go with each other.
fn rules(dice: &mut Dice) -> BTreeSet<Rule> {
    let mut rules = BTreeSet::new();
    for _ in 0..dice.between(1, 3) {
        let rule = *dice.one_of(&Rule::ALL);
        if rule.goes_with(&rules) {
            rules.insert(rule);
        }
    }
    rules
}

fn container(name: &str, requests: &Value) -> Value {
    json!({"spec": {"containers": [{"name": name, "image": "none", "resources": {"requests": requests}}]}})
}

/// What cannot be overcommitted has a limit equal to its request.
fn both(name: &str, amounts: &Value) -> Value {
    let resources = json!({"requests": amounts, "limits": amounts});
    json!({"spec": {"containers": [{"name": name, "image": "none", "resources": resources}]}})
}

fn init_containers(dice: &mut Dice) -> Value {
    let mut containers: Vec<Value> = Vec::new();
    for n in 0..dice.between(1, 3) {
        let cpu = dice.pick(&["200m", "1", "2500m"]);
        let mut container = json!({
            "name": format!("init-{n}"), "image": "none", "resources": {"requests": {"cpu": cpu}},
        });
        if dice.percent(50) {
            container["restartPolicy"] = "Always".into();
        }
        containers.push(container);
    }
    json!({"spec": {"initContainers": containers}})
}

fn ports(dice: &mut Dice) -> Value {
    let mut ports = vec![selectors::port(dice)];
    let second = selectors::port(dice);
    if dice.percent(25) && ports[0]["hostPort"] != second["hostPort"] {
        ports.push(second);
    }
    json!({"spec": {"containers": [{"name": "ports", "image": "none", "ports": ports}]}})
}

fn node_selector(dice: &mut Dice) -> Value {
    let labels = match dice.between(0, 3) {
        0 => json!({"disk": dice.pick(&["ssd", "hdd"])}),
        1 => json!({ZONE: dice.pick(&["z1", "z2", "z3"])}),
        2 => json!({"disk": "ssd", RACK: dice.pick(&["r1", "r2"])}),
        _ => json!({"gen": dice.pick(&["1", "2", "old", "9"])}),
    };
    json!({"spec": {"nodeSelector": labels}})
}

fn node_term(dice: &mut Dice) -> Value {
    let expression = |dice: &mut Dice| match dice.between(0, 6) {
        0 => json!({"key": ZONE, "operator": "In", "values": ["z1", "z3"]}),
        1 => json!({"key": ZONE, "operator": "NotIn", "values": ["z1"]}),
        2 => json!({"key": RACK, "operator": dice.pick(&["Exists", "DoesNotExist"])}),
        3 => json!({"key": "gen", "operator": "Gt", "values": [dice.pick(&["1", "2", "6"])]}),
        4 => json!({"key": "gen", "operator": "Lt", "values": [dice.pick(&["2", "3", "100"])]}),
        5 => json!({"key": "disk", "operator": "In", "values": [dice.pick(&["ssd", "hdd", "tape"])]}),
        _ => json!({"key": RACK, "operator": "In", "values": ["r1", "r2", "r3"]}),
    };
    if dice.percent(5) {
        return json!({});
    }
    let expressions: Vec<Value> = (0..dice.between(1, 2)).map(|_| expression(dice)).collect();
    json!({"matchExpressions": expressions})
}

/// By name, in the only way the API server allows.
fn named(dice: &mut Dice, nodes: &[String]) -> Value {
    let operator = dice.pick(&["In", "NotIn", "NotIn"]);
    let field = json!({"key": "metadata.name", "operator": operator, "values": [dice.one_of(nodes)]});
    let mut term = json!({"matchFields": [field]});
    if dice.percent(30) {
        merge(&mut term, &node_term(dice));
    }
    node_affinity(&vec![term])
}

fn node_affinity(terms: &Vec<Value>) -> Value {
    let required = json!({"nodeSelectorTerms": terms});
    json!({"spec": {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}})
}

fn tolerations(dice: &mut Dice) -> Value {
    let toleration = |dice: &mut Dice| match dice.between(0, 6) {
        0 => json!({"operator": "Exists"}),
        1 => json!({"key": "dedicated", "operator": "Exists"}),
        2 => json!({"key": "dedicated", "operator": "Equal", "value": dice.pick(&["ml", "db"])}),
        3 => json!({"key": "dedicated", "value": "ml", "effect": dice.pick(&["NoSchedule", "NoExecute"])}),
        4 => json!({"key": "flaky", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}),
        5 => json!({"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}),
        _ => json!({"operator": "Exists", "effect": "NoSchedule"}),
    };
    json!({"spec": {"tolerations": several(dice, toleration)}})
}

fn affinity(kind: &str, terms: &Vec<Value>) -> Value {
    json!({"spec": {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}})
}

/// The API server wants each key once.
fn spread(dice: &mut Dice) -> Value {
    let mut constraints: Vec<Value> = Vec::new();
    for _ in 0..dice.between(1, 2) {
        let constraint = selectors::spread(dice);
        if constraints.iter().all(|other| other["topologyKey"] != constraint["topologyKey"]) {
            constraints.push(constraint);
        }
    }
    json!({"spec": {"topologySpreadConstraints": constraints}})
}

fn several(dice: &mut Dice, draw: impl Fn(&mut Dice) -> Value) -> Vec<Value> {
    let count = if dice.percent(30) { 2 } else { 1 };
    (0..count).map(|_| draw(dice)).collect()
}

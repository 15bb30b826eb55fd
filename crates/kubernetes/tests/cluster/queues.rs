//! Queues by objects: what is lent is taken back by whole gangs, limits hold, and what makes no sense breaks nothing.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use k8s_openapi::api::core::v1::Event;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams};
use metronome_testcluster::binaries::{self, Program};
use metronome_testcluster::control_plane::Shared;
use metronome_testcluster::{ControlPlane, Options};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::scheduler::Scheduled;

const OWN: &str = "metronome.dev/v1alpha1";
const VOLCANO: &str = "scheduling.volcano.sh/v1beta1";

/// Queues belong to a whole cluster, so these tests have one of their own. They name amounts rather than weights: what
/// a weight is worth depends on everybody's nodes.
async fn with_queues() -> Option<&'static ControlPlane> {
    static PLANE: Shared = Shared::new(Options::from_env);
    static DEFINED: OnceCell<()> = OnceCell::const_new();
    let plane = PLANE.get().await?;
    DEFINED.get_or_init(|| define(plane)).await;
    Some(plane)
}

/// Volcano's own definitions, and ours.
async fn define(plane: &ControlPlane) {
    define_volcanos(plane).await;
    let ours = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/crds/queue.yaml");
    plane.apply_file(Path::new(ours)).await.unwrap();
}

/// From its module: the real ones.
async fn define_volcanos(plane: &ControlPlane) {
    let folder = binaries::sources(Program::VolcanoScheduler).unwrap().join("config/crd/volcano/bases");
    for kind in ["podgroups", "queues"] {
        plane.apply_file(&folder.join(format!("scheduling.volcano.sh_{kind}.yaml"))).await.unwrap();
    }
}

async fn declare(plane: &ControlPlane, api_version: &str, name: &str, spec: Value) {
    let queue = json!({"apiVersion": api_version, "kind": "Queue", "metadata": {"name": name}, "spec": spec});
    plane.apply_yaml(&queue.to_string()).await.unwrap();
}

fn gpus(gpus: u32) -> Value {
    json!({"nvidia.com/gpu": gpus})
}

impl Scheduled {
    /// A queue's name that no other test uses.
    fn queue(&self, name: &str) -> String {
        format!("{}-{name}", self.namespace)
    }

    async fn declare(&self, api_version: &str, name: &str, spec: Value) {
        declare(self.plane, api_version, &self.queue(name), spec).await;
    }

    /// A gang of single GPUs that stands in a queue by its own word.
    fn gang_in(&self, queue: &str, gang: &str, members: u32) -> Vec<Value> {
        let mut pods = self.gang(gang, members, 1);
        for pod in &mut pods {
            pod["metadata"]["annotations"]["metronome.dev/queue"] = json!(self.queue(queue));
            pod["metadata"]["labels"]["gang"] = json!(gang);
        }
        pods
    }

    /// How many of each gang are bound and to stay.
    async fn gangs(&self) -> BTreeMap<String, usize> {
        let mut gangs = BTreeMap::new();
        for pod in self.pods().list(&ListParams::default()).await.unwrap().items {
            let stays = pod.metadata.deletion_timestamp.is_none();
            if stays && pod.spec.and_then(|spec| spec.node_name).is_some() {
                let gang = pod.metadata.labels.unwrap_or_default().remove("metronome.dev/gang");
                *gangs.entry(gang.unwrap_or_default()).or_default() += 1;
            }
        }
        gangs
    }

    async fn until_gangs(
        &self,
        what: &str,
        so: impl Fn(&BTreeMap<String, usize>) -> bool,
    ) -> BTreeMap<String, usize> {
        self.until(what, async |_| Some(self.gangs().await).filter(&so)).await
    }

    /// Nobody may be evicted who is of this gang: no budget is ever computed here.
    async fn guard(&self, gang: &str) {
        let budget = json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": gang, "namespace": self.namespace},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"gang": gang}}},
        });
        self.plane.apply_yaml(&budget.to_string()).await.unwrap();
    }

    async fn lift_guard(&self, gang: &str) {
        let budgets: Api<PodDisruptionBudget> = Api::namespaced(self.client.clone(), &self.namespace);
        budgets.delete(gang, &DeleteParams::default()).await.unwrap();
    }

    fn queues(&self) -> Api<DynamicObject> {
        let resource = ApiResource {
            group: "metronome.dev".into(),
            version: "v1alpha1".into(),
            api_version: OWN.into(),
            kind: "Queue".into(),
            plural: "queues".into(),
        };
        Api::all_with(self.client.clone(), &resource)
    }
}

fn running(gangs: &BTreeMap<String, usize>, queue: &str) -> Vec<usize> {
    gangs.iter().filter(|(gang, _)| gang.starts_with(queue)).map(|(_, members)| *members).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn volcanos_queues_share_by_weight_and_take_back_whole_gangs() {
    static PLANE: Shared = Shared::new(Options::from_env);
    let Some(plane) = PLANE.get().await else { return };
    define_volcanos(plane).await;
    let mut corner = Scheduled::not_yet(plane, "weights", 4).await;
    corner.declare(VOLCANO, "a", json!({"weight": 3})).await;
    corner.declare(VOLCANO, "b", json!({"weight": 1})).await;
    corner.start().await;
    let group = |queue: &str, gang: &str| {
        json!({
            "apiVersion": VOLCANO, "kind": "PodGroup",
            "metadata": {"name": gang, "namespace": corner.namespace},
            "spec": {"minMember": 2, "queue": corner.queue(queue)},
        })
    };
    let gang = |gang: String| {
        let mut pods = corner.gang(&gang, 2, 1);
        pods.iter_mut()
            .for_each(|pod| pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"] = json!(gang));
        pods
    };
    for at in 0..8 {
        plane.apply_yaml(&group("a", &format!("a{at}")).to_string()).await.unwrap();
        corner.create(gang(format!("a{at}"))).await;
    }
    corner.until_gangs("a borrows all there is", |gangs| running(gangs, "a") == [2; 8]).await;
    for at in 0..8 {
        plane.apply_yaml(&group("b", &format!("b{at}")).to_string()).await.unwrap();
        corner.create(gang(format!("b{at}"))).await;
    }
    corner.until_gangs("b has its quarter", |gangs| running(gangs, "b") == [2; 2]).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let gangs = corner.gangs().await;
    assert_eq!(running(&gangs, "a"), [2; 6], "as few as would do left, each whole: {gangs:?}");
    assert_eq!(running(&gangs, "b"), [2; 2], "{gangs:?}");
    let left = (0..8).map(|at| format!("a{at}")).find(|gang| !gangs.contains_key(gang)).unwrap();
    let told = corner.told(&format!("{left}-0")).await;
    assert!(told.iter().any(|(reason, said)| reason == "Preempted" && said.contains("its own")), "{told:?}");
    corner.judge();
}

/// A server without a GPU and four workers with one each, of a user and with a priority.
fn served_gang(corner: &Scheduled, gang: &str, (user, class): (&str, &str)) -> Vec<Value> {
    let mut pods = corner.gang_in("team", gang, 5);
    for (at, pod) in pods.iter_mut().enumerate() {
        pod["metadata"]["annotations"]["metronome.dev/user"] = json!(user);
        pod["metadata"]["labels"]["metronome.dev/role"] = json!(if at == 0 { "ps" } else { "worker" });
        pod["spec"]["priorityClassName"] = json!(corner.queue(class));
        if at == 0 {
            pod["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "1"}});
        }
    }
    pods
}

/// User and urgency count together: the first a little more, and neither decides alone. Who came last goes first here.
#[tokio::test(flavor = "multi_thread")]
async fn gangs_are_bound_in_the_order_of_users_and_urgency_together() {
    let Some(plane) = with_queues().await else { return };
    let corner = Scheduled::new(plane, "order", 1).await;
    let users = json!([{"name": "ann", "priority": "high"}, {"name": "guest", "priority": "low"}]);
    corner.declare(OWN, "team", json!({"quota": gpus(4), "users": users})).await;
    for (class, value) in [("urgent", 1000), ("patient", 100)] {
        let class = json!({
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
            "metadata": {"name": corner.queue(class)}, "value": value,
        });
        plane.apply_yaml(&class.to_string()).await.unwrap();
    }
    corner.guard("other").await;
    corner.create(corner.gang_in("team", "other", 4)).await;
    corner.until_bound(4).await;
    let gangs = [
        ("neither", ("guest", "patient")),
        ("task", ("guest", "urgent")),
        ("user", ("ann", "patient")),
        ("both", ("ann", "urgent")),
    ];
    for (name, who) in gangs {
        corner.create(served_gang(&corner, name, who)).await;
    }
    // What the scheduler says of the line.
    for (place, (name, _)) in gangs.iter().rev().enumerate() {
        let says = format!("place {},", place + 1);
        corner.until_verdict(&format!("{name}-0"), |_, message| message.contains(&says)).await;
    }
    let mut runs = "other";
    let mut order = Vec::new();
    for _ in gangs {
        let members = if runs == "other" { 4 } else { 5 };
        for at in 0..members {
            corner.delete(&format!("{runs}-{at}")).await;
        }
        let bound = corner.until_gangs("the next is bound whole", |bound| bound.values().eq(&[5])).await;
        let next = bound.into_keys().next().unwrap();
        runs = gangs.iter().find(|(name, _)| *name == next).unwrap().0;
        order.push(runs);
    }
    assert_eq!(order, ["both", "user", "task", "neither"]);
    corner.judge();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_budget_guards_is_not_taken_back_until_it_goes() {
    let Some(plane) = with_queues().await else { return };
    let mut corner = Scheduled::not_yet(plane, "guarded", 2).await;
    corner.declare(VOLCANO, "a", json!({"deserved": gpus(4)})).await;
    corner.declare(VOLCANO, "b", json!({"deserved": gpus(4)})).await;
    corner.guard("a1").await;
    corner.guard("a2").await;
    corner.start().await;
    corner.create([corner.gang_in("a", "a1", 4), corner.gang_in("a", "a2", 4)].concat()).await;
    corner.until_bound(8).await;
    corner.create(corner.gang_in("b", "b1", 4)).await;
    corner.until_verdict("b1-0", |reason, _| reason == "Unschedulable").await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(running(&corner.gangs().await, "a"), [4, 4], "both are guarded");
    corner.lift_guard("a2").await;
    let gangs = corner.until_gangs("the claimant runs", |gangs| gangs.get("b1") == Some(&4)).await;
    assert_eq!((gangs.get("a1"), gangs.get("a2")), (Some(&4), None), "the one that may go goes whole");
    corner.judge();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gang_beyond_its_queues_limit_waits_until_that_is_raised() {
    let Some(plane) = with_queues().await else { return };
    let corner = Scheduled::new(plane, "limit", 1).await;
    let mut unknown = corner.gang_in("lab", "early", 1);
    corner.create([unknown.remove(0)]).await;
    corner.until_verdict("early-0", |_, said| said.contains("there is no queue")).await;
    corner.declare(OWN, "lab", json!({"limit": gpus(2)})).await;
    corner.until_bound(1).await;
    corner.create(corner.gang_in("lab", "g", 3)).await;
    let (_, said) = corner.until_verdict("g-0", |_, said| said.contains("of its quota")).await;
    assert!(said.contains(&corner.queue("lab")), "{said}");
    corner
        .until("the event says so, too", async |corner| {
            let told = corner.told("g-0").await;
            told.into_iter().find(|(reason, told)| reason == "FailedScheduling" && *told == said)
        })
        .await;
    assert_eq!(corner.seats().await.len(), 1, "there is room, but not for this queue");
    corner.declare(OWN, "lab", json!({"limit": gpus(4)})).await;
    corner.until_bound(4).await;
    corner
        .until("the queue says what it holds", async |_| {
            let status = corner.queues().get(&corner.queue("lab")).await.unwrap().data["status"].clone();
            (status["held"]["nvidia.com/gpu"] == "4" && status["running"] == 2 && status["waiting"] == 0)
                .then_some(())
        })
        .await;
    corner.judge();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_that_makes_no_sense_is_refused_and_nothing_is_lost() {
    let Some(plane) = with_queues().await else { return };
    let corner = Scheduled::new(plane, "circle", 1).await;
    corner.declare(OWN, "outer", json!({"limit": gpus(2)})).await;
    corner.declare(OWN, "inner", json!({"parent": corner.queue("outer")})).await;
    corner.create(corner.gang_in("inner", "before", 1)).await;
    corner.until_bound(1).await;
    corner.declare(OWN, "outer", json!({"parent": corner.queue("inner"), "limit": gpus(4)})).await;
    let events: Api<Event> = Api::namespaced(corner.client.clone(), "default");
    let about = ListParams::default().fields(&format!("involvedObject.name={}", corner.queue("outer")));
    let told = corner
        .until("somebody is told", async |_| {
            let told = events.list(&about).await.unwrap().items.pop()?;
            Some((told.reason?, told.message?))
        })
        .await;
    assert_eq!(told.0, "QueueRefused");
    assert!(told.1.contains("lies in it") && told.1.contains("stays in force"), "{told:?}");
    corner.create(corner.gang_in("inner", "after", 1)).await;
    corner.until_bound(2).await;
    corner.create(corner.gang_in("inner", "beyond", 1)).await;
    corner.until_verdict("beyond-0", |_, said| said.contains("of its quota")).await;
    corner.declare(OWN, "outer", json!({"limit": gpus(4)})).await;
    corner.until_bound(3).await;
    corner.judge();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_knows_the_queues_before_it_decides() {
    let Some(plane) = with_queues().await else { return };
    let mut corner = Scheduled::not_yet(plane, "queued", 2).await;
    corner.declare(OWN, "a", json!({"quota": gpus(6)})).await;
    corner.declare(OWN, "b", json!({"quota": gpus(2)})).await;
    corner.start().await;
    corner.create([corner.gang_in("a", "a1", 3), corner.gang_in("a", "a2", 3)].concat()).await;
    corner.create(corner.gang_in("b", "b1", 2)).await;
    let before = corner.until_bound(8).await;
    // By equal parts, b could have this one, too.
    corner.create(corner.gang_in("b", "b2", 2)).await;
    corner.until_verdict("b2-0", |reason, _| reason == "Unschedulable").await;
    for round in 0..3 {
        corner.stop().await;
        corner.start().await;
        corner.create([corner.pod(&format!("probe-{round}"), 0)]).await;
        let after = corner.until_bound(9 + round).await;
        assert!(before.iter().all(|(pod, node)| after.get(pod) == Some(node)), "{before:?} {after:?}");
    }
    corner.declare(OWN, "a", json!({"quota": gpus(4)})).await;
    corner.declare(OWN, "b", json!({"quota": gpus(4)})).await;
    let gangs =
        corner.until_gangs("what is its own now is taken back", |gangs| gangs.get("b2") == Some(&2)).await;
    let (a, b) = (running(&gangs, "a"), running(&gangs, "b"));
    assert_eq!((a, b), (vec![3], vec![2, 2]), "{gangs:?}");
    corner.judge();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_schema_refuses_what_it_can() {
    let Some(plane) = with_queues().await else { return };
    let refusal = async |name: &str, spec: Value| {
        let queue = json!({"apiVersion": OWN, "kind": "Queue", "metadata": {"name": name}, "spec": spec});
        let error = plane.apply_yaml(&queue.to_string()).await.unwrap_err();
        std::error::Error::source(&error).unwrap().to_string()
    };
    assert!(refusal("root", json!({})).await.contains("root is above all queues"));
    assert!(refusal("self", json!({"parent": "self"})).await.contains("does not lie in itself"));
    assert!(refusal("weightless", json!({"weight": 0})).await.contains("spec.weight"));
    assert!(refusal("negative", json!({"quota": {"cpu": -1}})).await.contains("spec.quota.cpu"));
    assert!(refusal("wordy", json!({"limit": {"memory": "much"}})).await.contains("spec.limit.memory"));
    assert!(
        refusal("top", json!({"users": [{"name": "ann", "priority": "top"}]})).await.contains("priority")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_queues_in_the_guide_are_taken() {
    let Some(plane) = with_queues().await else { return };
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/kubernetes.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let shown = guide.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    assert!(shown.contains("kind: Queue"));
    plane.apply_yaml(shown).await.unwrap();
}

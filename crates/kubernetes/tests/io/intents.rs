//! Of two who mean different things with a gang, one gets its way before anybody is bound.

use futures::future::join_all;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams};
use metronome_kubernetes::act;
use metronome_kubernetes::deed::{Bound, Intent, IntentName, Kind, Outcome, PodRef};
use metronome_kubernetes::lead::Lead;
use metronome_kubernetes::watch::INTENT_LABEL;
use metronome_testcluster::Proxy;
use metronome_testcluster::proxy::{Fault, Rule, Verb};

use crate::stage::{Actor, Stage, seat, until};

const GENERATION: u64 = 1;

/// A gang bound to nodes whose names begin with `nodes`.
fn gang(pods: &[PodRef], nodes: &str, epoch: u64) -> Kind {
    let members: Vec<_> = pods.iter().map(|pod| seat(pod, &format!("{nodes}-{}", pod.name))).collect();
    let intent = Intent {
        name: Some(IntentName("gang".into())),
        gang: "PodGroup/a/gang".into(),
        generation: GENERATION,
        epoch,
        seats: members.clone(),
        leaves: Vec::new(),
    };
    Kind::Bind { members, intent: Some(intent) }
}

async fn pods(stage: &Stage, count: usize) -> Vec<PodRef> {
    let names: Vec<_> = (0..count).map(|number| format!("pod-{number}")).collect();
    join_all(names.iter().map(|name| stage.pod(name))).await
}

async fn recorded(stage: &Stage) -> Vec<ConfigMap> {
    let maps: Api<ConfigMap> = Api::namespaced(stage.client.clone(), &stage.namespace);
    maps.list(&ListParams::default().labels(INTENT_LABEL)).await.unwrap().items
}

fn all_here(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Bound { members, .. } if members.iter().all(|(_, bound)| *bound == Bound::Here))
}

fn actor(stage: &Stage, epoch: u64) -> Actor {
    Actor::start(stage.client.clone(), Lead::alone(epoch), stage.settings())
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_who_race_exactly_one_placement_wins() {
    let Some(stage) = Stage::set("race").await else { return };
    let pods = pods(&stage, 8).await;
    let (mut left, mut right) = (actor(&stage, 1), actor(&stage, 1));
    let (to_left, to_right) =
        tokio::join!(left.done(gang(&pods, "left", 1)), right.done(gang(&pods, "right", 1)));
    let winner = match (all_here(&to_left), all_here(&to_right)) {
        (true, false) => "left",
        (false, true) => "right",
        _ => panic!("{to_left:?} and {to_right:?}"),
    };
    let taken = |outcome: &Outcome| matches!(outcome, Outcome::IntentTaken { .. });
    assert!(taken(&to_left) || taken(&to_right), "{to_left:?} and {to_right:?}");
    for pod in &pods {
        let node = stage.node_of(&pod.name).await;
        assert_eq!(node, Some(format!("{winner}-{}", pod.name)), "the gang is split");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_later_leader_takes_over_what_an_earlier_one_meant() {
    let Some(stage) = Stage::set("takeover").await else { return };
    let pods = pods(&stage, 2).await;
    assert!(all_here(&actor(&stage, 1).done(gang(&pods, "node", 1)).await));
    assert!(all_here(&actor(&stage, 2).done(gang(&pods, "node", 2)).await), "all are there already");
    let text = recorded(&stage).await.pop().unwrap().data.unwrap().remove("intent.json").unwrap();
    let intent: Intent = serde_json::from_str(&text).unwrap();
    assert_eq!((intent.epoch, intent.seats.len()), (2, 2));
    let late = actor(&stage, 1).done(gang(&pods, "node", 1)).await;
    assert!(matches!(late, Outcome::IntentTaken { .. }), "the earlier leader comes late: {late:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_placement_is_not_bound_until_the_first_is_forgotten() {
    let Some(stage) = Stage::set("other").await else { return };
    let pods = pods(&stage, 2).await;
    let mut first = actor(&stage, 1);
    assert!(all_here(&first.done(gang(&pods[..1], "node", 1)).await));
    assert!(matches!(first.done(gang(&pods, "node", 1)).await, Outcome::IntentTaken { .. }));
    assert_eq!(stage.node_of("pod-1").await, None);
    first.ask(Kind::Forget { intent: IntentName("gang".into()), generation: Some(GENERATION) }).await;
    until("the intent is forgotten", async || recorded(&stage).await.is_empty()).await;
    assert!(all_here(&first.done(gang(&pods, "node", 1)).await));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_intent_of_a_later_leader_is_not_forgotten_by_an_earlier_one() {
    let Some(stage) = Stage::set("later").await else { return };
    let pods = pods(&stage, 1).await;
    actor(&stage, 2).done(gang(&pods, "node", 2)).await;
    let mut earlier = actor(&stage, 1);
    earlier.ask(Kind::Forget { intent: IntentName("gang".into()), generation: Some(GENERATION) }).await;
    earlier.end().await;
    assert_eq!(recorded(&stage).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_does_not_make_us_doubt_our_own_intent() {
    let Some(stage) = Stage::set("own").await else { return };
    let pods = pods(&stage, 2).await;
    let proxy = Proxy::start(stage.plane, 7).await.unwrap();
    proxy.inject(Rule::new(Fault::LoseAnswer).on([Verb::Create]).of("configmaps").times(1));
    assert!(all_here(&stage.actor_behind(&proxy).await.done(gang(&pods, "node", 1)).await));
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_bound_whose_intent_cannot_be_recorded() {
    let Some(stage) = Stage::set("unrecorded").await else { return };
    let pods = pods(&stage, 2).await;
    let settings = act::Settings { namespace: "no-such-namespace".into(), ..stage.settings() };
    let mut actor = Actor::start(stage.client.clone(), Lead::alone(1), settings);
    assert!(matches!(actor.done(gang(&pods, "node", 1)).await, Outcome::GivenUp { .. }));
    assert_eq!(stage.node_of("pod-0").await, None);
}

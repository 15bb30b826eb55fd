//! Links by a fabric, traffic taken in, and turns that are said on pods.

use kube::api::{ApiResource, DynamicObject};
use metronome_core::model::units::Moment;

use super::moves::said;
use super::*;
use crate::objects::{Fabric, HOSTNAME, HyperNode};

const RACK: &str = "metronome.dev/rack";

fn fabric_called(name: &str, levels: &[(&str, &str)]) -> Fabric {
    let levels: Vec<Value> =
        levels.iter().map(|(label, rate)| json!({"label": label, "rate": rate})).collect();
    let object: DynamicObject = read(json!({
        "apiVersion": "metronome.dev/v1alpha1", "kind": "Fabric",
        "metadata": {"name": name, "uid": name, "generation": 1}, "spec": {"levels": levels},
    }));
    let api = ApiResource {
        group: "metronome.dev".into(),
        version: "v1alpha1".into(),
        api_version: "metronome.dev/v1alpha1".into(),
        kind: "Fabric".into(),
        plural: "fabrics".into(),
    };
    Fabric::read(&api, &object)
}

/// Racks whose uplinks carry no more than one of the jobs below sends.
fn fabric() -> Fabric {
    fabric_called("default", &[(RACK, "10Gbps"), (HOSTNAME, "100Gbps")])
}

fn racked(name: &str, rack: &str) -> Node {
    let mut node = node(name, 8);
    node.metadata.labels.get_or_insert_default().insert(RACK.into(), rack.into());
    node
}

/// Ten gigabits a second for `length` at the end of every `period`, in milliseconds.
fn bursts(period: u64, length: u64) -> String {
    let offset = format!("{}ms", period - length);
    let phase = json!({"offset": offset, "length": format!("{length}ms"), "rate": "10Gbps"});
    json!({"period": format!("{period}ms"), "phases": [phase]}).to_string()
}

fn sending(mut pod: Value, traffic: &str) -> Value {
    pod["metadata"]["annotations"]["metronome.dev/traffic"] = json!(traffic);
    pod
}

/// Two gangs, each with a member in each rack.
fn pods(a: &str, b: &str) -> Vec<Value> {
    let place = [("a", a), ("b", b)].into_iter().flat_map(|(gang, traffic)| {
        [("0", "n1"), ("1", "n2")]
            .map(|(index, node)| on(sending(member(&format!("{gang}-{index}"), gang, 2), traffic), node))
    });
    place.collect()
}

fn led(epoch: u64, fabrics: Vec<Fabric>, pods: &[Value]) -> World {
    let lists = vec![
        Change::Pod(Delta::Reset(pods.iter().cloned().map(read).collect())),
        Change::Node(Delta::Reset(vec![racked("n1", "r1"), racked("n2", "r2")])),
        Change::Fabric(Delta::Reset(fabrics)),
    ];
    World::rebuild(Settings { epoch, ..Settings::new("metronome") }, START, Initial { lists })
}

/// What pods are told of their turns, by their names.
fn turns(deeds: &[Deed]) -> BTreeMap<String, Option<Value>> {
    let read = |text: Option<String>| text.map(|text| serde_json::from_str(&text).expect("JSON"));
    said(deeds, "turn").into_iter().map(|(pod, text)| (pod, read(text))).collect()
}

/// The pods as they are once they say what they were told.
fn telling(pods: &[Value], deeds: &[Deed]) -> Vec<Value> {
    let told: BTreeMap<String, Option<String>> = said(deeds, "turn").into_iter().collect();
    let tell = |pod: &Value| {
        let mut pod = pod.clone();
        let name = pod["metadata"]["name"].as_str().expect("a name").to_owned();
        pod["metadata"]["annotations"]["metronome.dev/turn"] = json!(told[&name]);
        pod
    };
    pods.iter().map(tell).collect()
}

/// Two jobs that fill the uplinks of both racks if they take turns, and collide if they do not.
fn full() -> Vec<Value> {
    pods(&bursts(100, 48), &bursts(100, 48))
}

fn number(turn: &Value, field: &str) -> u64 {
    turn[field].as_u64().unwrap_or_else(|| panic!("{field} is a number: {turn}"))
}

fn generations(turns: &BTreeMap<String, Option<Value>>) -> Vec<u64> {
    turns.values().flatten().map(|turn| number(turn, "generation")).collect()
}

/// Both jobs with the turns that they were told by the leader of an epoch.
fn told_by(epoch: u64) -> (World, Vec<Value>) {
    let mut world = led(epoch, vec![fabric()], &full());
    let pods = telling(&full(), &world.turn(at(0)));
    pods.iter().for_each(|pod| apply(&mut world, at(1), pod.clone()));
    (world, pods)
}

#[test]
fn jobs_that_fill_an_uplink_together_take_turns() {
    let mut world = led(3, vec![fabric()], &full());
    let told = turns(&world.turn(at(0)));
    let turn = |pod: &str| told[pod].clone().expect("it was told something");
    assert_eq!(told.len(), 4, "{told:?}");
    assert_eq!((turn("a-0"), turn("b-0")), (turn("a-1"), turn("b-1")), "one turn for each job");
    let (a, b) = (turn("a-0"), turn("b-0"));
    let period = number(&a, "periodNs");
    assert!(period == number(&b, "periodNs") && period >= 100_000_000, "{a} {b}");
    let apart = number(&a, "turnNs").abs_diff(number(&b, "turnNs"));
    assert!(apart.min(period - apart) >= 48_000_000, "bursts do not meet: {a} {b}");
    assert_eq!((&a["held"], number(&a, "holdNs")), (&json!("everyIteration"), period));
    assert_eq!(a["anchor"], "2026-05-28T20:26:40Z");
    assert_eq!(a["validUntil"], "2026-05-28T20:41:40Z");
    assert_eq!(turns(&world.turn(at(2))), BTreeMap::new(), "what was asked for is not asked again at once");
}

/// Who reads words may have a calendar of another make.
#[test]
fn moments_are_written_and_read_as_others_do_it() {
    let mut nanos = 1_u64;
    for _ in 0..10_000 {
        nanos = nanos.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        // Fractions of every length.
        for nanos in [nanos, nanos / 1_000_000 * 1_000_000, nanos / 1_000_000_000 * 1_000_000_000] {
            let theirs = jiff::Timestamp::from_nanosecond(i128::from(nanos)).unwrap().to_string();
            assert_eq!(Moment(nanos).to_string(), theirs);
            assert_eq!(theirs.parse(), Ok(Moment(nanos)));
        }
    }
}

#[test]
fn jobs_that_do_not_fill_it_have_classes_instead() {
    let mut world = led(0, vec![fabric()], &pods(&bursts(100, 40), &bursts(100, 40)));
    let told = turns(&world.turn(at(0)));
    let said = told["a-0"].clone().expect("it was told something");
    assert_eq!((number(&said, "periodNs"), number(&said, "holdNs")), (0, 0), "nobody is held: {said}");
    assert_eq!((number(&said, "class"), &said["follows"]), (2, &json!("partLeft")));
}

#[test]
fn without_a_fabric_nobody_is_told_anything() {
    let mut world = led(0, vec![fabric_called("other", &[(HOSTNAME, "1Gbps")])], &full());
    assert_eq!(turns(&[world.turn(at(0)), world.turn(at(2))].concat()), BTreeMap::new());
}

#[test]
fn a_new_leader_goes_on_with_what_pods_say() {
    let (_, pods) = told_by(3);
    let mut next = led(4, vec![fabric()], &pods);
    assert_eq!(turns(&[next.turn(at(60)), next.turn(at(62))].concat()), BTreeMap::new());
}

#[test]
fn whatever_a_new_leader_says_is_newer() {
    let (_, mut pods) = told_by(3);
    for pod in &mut pods {
        *pod = sending(pod.clone(), &bursts(150, 74));
    }
    let before = told_by(3).0.turns.generation;
    for epoch in [3, 4] {
        let told = turns(&led(epoch, vec![fabric()], &pods).turn(at(60)));
        assert_eq!(told.len(), 4, "{told:?}");
        assert!(generations(&told).iter().all(|is| *is > before), "{told:?}");
    }
}

#[test]
fn what_others_write_in_our_place_is_replaced() {
    let (_, pods) = told_by(3);
    for (field, nonsense) in [("generation", json!(u64::MAX)), ("validUntil", json!("9000-01-01T00:00:00Z"))]
    {
        let mut pods = pods.clone();
        for pod in &mut pods {
            let said = &mut pod["metadata"]["annotations"]["metronome.dev/turn"];
            let mut turn: Value = serde_json::from_str(said.as_str().unwrap()).unwrap();
            turn[field] = nonsense.clone();
            *said = json!(turn.to_string());
        }
        let told = turns(&led(3, vec![fabric()], &pods).turn(at(60)));
        assert_eq!(told.len(), 4, "{told:?}");
        assert!(generations(&told).iter().all(|is| (3 << 32..4 << 32).contains(is)), "{told:?}");
    }
}

#[test]
fn turns_are_said_anew_before_they_lapse() {
    let (mut world, pods) = told_by(0);
    assert_eq!(turns(&world.turn(at(9 * 60))), BTreeMap::new());
    let told = turns(&world.turn(at(10 * 60 + 1)));
    assert_eq!(told.len(), 4, "{told:?}");
    let before: Value =
        serde_json::from_str(pods[0]["metadata"]["annotations"]["metronome.dev/turn"].as_str().unwrap())
            .unwrap();
    let after = told["a-0"].clone().unwrap();
    assert!(number(&after, "generation") > number(&before, "generation"));
    for same in ["anchor", "periodNs", "turnNs", "class", "holdNs"] {
        assert_eq!(after[same], before[same]);
    }
}

#[test]
fn turns_are_found_anew_when_what_a_job_sends_has_drifted() {
    let (mut world, pods) = told_by(0);
    let before = world.turns.generation;
    // Somebody measures the same again, and finds it slightly other.
    apply(&mut world, at(10), sending(pods[0].clone(), &bursts(100, 47)));
    assert_eq!(turns(&[world.turn(at(10)), world.turn(at(12))].concat()), BTreeMap::new());
    for pod in [&pods[0], &pods[2]] {
        apply(&mut world, at(20), sending(pod.clone(), &bursts(150, 74)));
    }
    let told = turns(&[world.turn(at(20)), world.turn(at(22)), world.turn(at(24))].concat());
    assert_eq!(told.len(), 4, "{told:?}");
    assert!(generations(&told).iter().all(|is| *is > before), "{told:?}");
    assert!(number(told["a-1"].as_ref().unwrap(), "periodNs") >= 150_000_000, "{told:?}");
}

#[test]
fn a_turn_is_taken_back_when_nobody_is_met_any_more() {
    let (mut world, pods) = told_by(0);
    for pod in &pods[2..] {
        delete(&mut world, at(10), pod.clone());
    }
    let told = turns(&[world.turn(at(10)), world.turn(at(12))].concat());
    assert_eq!(told, BTreeMap::from([("a-0".into(), None), ("a-1".into(), None)]));
}

#[test]
fn a_node_that_is_found_in_another_rack_sends_by_other_links() {
    let (mut world, _) = told_by(0);
    world.apply(at(10), Change::Node(Delta::Applied(racked("n2", "r1"))));
    let told = turns(&[world.turn(at(10)), world.turn(at(13))].concat());
    assert_eq!(told.len(), 4, "{told:?}");
    assert!(told.values().all(Option::is_none), "inside a rack there is room for all: {told:?}");
}

#[test]
fn what_cannot_be_read_is_told_and_ignored() {
    let (mut world, pods) = told_by(0);
    apply(&mut world, at(10), sending(pods[0].clone(), r#"{"period":"0ms"}"#));
    let deeds = [world.turn(at(10)), world.turn(at(12))].concat();
    let told = deeds.iter().find_map(|deed| match &deed.kind {
        Kind::Tell(telling) => Some(telling.message.clone()),
        _ => None,
    });
    assert!(told.is_some_and(|message| message.ends_with("the period must be greater than zero")));
    assert_eq!(turns(&deeds), BTreeMap::new(), "its other pod still says what it sends");
}

#[test]
fn a_known_model_sends_as_it_was_measured_until_its_pods_are() {
    let iteration =
        Iteration { compute: Duration::from_millis(100), buckets: vec![], finish: Duration::ZERO };
    let models = Arc::new(BTreeMap::from([("bert/8".to_owned(), iteration.clone())]));
    let mut modelled = on(pod("a"), "n1");
    modelled["metadata"]["annotations"]["metronome.dev/model"] = json!("bert/8");
    let lists = vec![
        Change::Pod(Delta::Reset(vec![read(modelled.clone())])),
        Change::Node(Delta::Reset(vec![racked("n1", "r1")])),
        Change::Fabric(Delta::Reset(vec![fabric()])),
    ];
    let mut world =
        World::rebuild(Settings { models, ..Settings::new("metronome") }, START, Initial { lists });
    let profile = |world: &World| world.engine.job(JobId(0)).unwrap().spec.profile.clone().unwrap();
    assert_eq!(profile(&world).gradients, Some(iteration));
    apply(&mut world, at(10), sending(modelled, &bursts(100, 48)));
    assert_eq!(profile(&world).gradients, None);
    assert_eq!(profile(&world).traffic.as_ref().map(|traffic| traffic.phases().len()), Some(1));
}

#[test]
fn members_are_kept_within_the_level_they_require() {
    let gang = |topology: &str| {
        let pods = [member("g-0", "g", 2), member("g-1", "g", 2)].map(|mut pod| {
            pod["metadata"]["annotations"]["metronome.dev/topology"] = json!(topology);
            pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = json!("8");
            pod
        });
        pods.to_vec()
    };
    let mut world = led(0, vec![fabric()], &gang("preferred=rack"));
    assert_eq!(binds(&world.turn(at(0)))[0].1, ["g-0@n1", "g-1@n2"]);
    let mut world = led(0, vec![fabric()], &gang("required=rack"));
    assert_eq!(binds(&world.turn(at(0))), []);
    let mut world = led(0, vec![fabric()], &gang("required=spine"));
    let said = explained(&[world.turn(at(0)), world.turn(at(2))].concat());
    let why = "cannot be scheduled: the topology has no level spine; it has metronome.dev/rack, node";
    assert_eq!(said[0].1, why);
}

fn judged(deeds: &[Deed]) -> Vec<(String, Value)> {
    let status = |deed: &Deed| match &deed.kind {
        Kind::Status { object, status } => Some((object.name.to_string(), status["conditions"][0].clone())),
        _ => None,
    };
    deeds.iter().filter_map(status).collect()
}

#[test]
fn only_the_fabric_called_default_counts_and_each_is_told_so() {
    let fabrics = vec![fabric(), fabric_called("other", &[(HOSTNAME, "1Gbps")])];
    let mut world = led(0, fabrics, &[]);
    let said = judged(&world.turn(at(0)));
    let reasons: Vec<_> =
        said.iter().map(|(name, is)| (&**name, is["status"].as_str(), is["reason"].as_str())).collect();
    assert_eq!(
        reasons,
        [("default", Some("True"), Some("InForce")), ("other", Some("False"), Some("NotDefault")),]
    );
    assert!(judged(&world.turn(at(15))).is_empty(), "it was just said");
    assert!(!world.is_outdated());
}

#[test]
fn a_fabric_that_changes_has_the_world_built_anew_and_nonsense_changes_nothing() {
    let mut world = led(0, vec![fabric()], &[]);
    let mut becomes = |fabric: Fabric| {
        world.apply(at(1), Change::Fabric(Delta::Applied(fabric)));
        let said = judged(&[world.turn(at(1)), world.turn(at(20))].concat());
        (world.is_outdated(), said)
    };
    let (outdated, said) = becomes(fabric_called("default", &[(RACK, "0.0Gbps"), (HOSTNAME, "1Gbps")]));
    assert!(!outdated && said.iter().any(|(_, is)| is["reason"] == "Refused"), "{said:?}");
    assert!(becomes(fabric_called("default", &[(RACK, "20Gbps"), (HOSTNAME, "100Gbps")])).0);
    assert!(!becomes(fabric()).0);
    world.apply(at(30), Change::Fabric(Delta::Deleted(fabric())));
    assert!(world.is_outdated());
}

fn hyper_node(name: &str, tier: u32, members: Value) -> HyperNode {
    let object: DynamicObject = read(json!({
        "apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode",
        "metadata": {"name": name}, "spec": {"tier": tier, "members": members},
    }));
    HyperNode::read(&object)
}

fn exactly(kind: &str, name: &str) -> Value {
    json!({"type": kind, "selector": {"exactMatch": {"name": name}}})
}

/// Two leaves under one spine: the first by the name of its node, the second by a label.
fn hyper_nodes() -> Vec<HyperNode> {
    let by_label = json!([{"type": "Node", "selector": {"labelMatch": {"matchLabels": {(RACK): "r2"}}}}]);
    vec![
        hyper_node("leaf-1", 1, json!([exactly("Node", "n1")])),
        hyper_node("leaf-2", 1, by_label),
        hyper_node("spine", 2, json!([exactly("HyperNode", "leaf-1"), exactly("HyperNode", "leaf-2")])),
    ]
}

fn with_hyper_nodes(fabrics: Vec<Fabric>) -> World {
    let lists = vec![
        Change::Node(Delta::Reset(vec![racked("n1", "r1"), racked("n2", "r2"), node("n3", 8)])),
        Change::Fabric(Delta::Reset(fabrics)),
        Change::HyperNode(Delta::Reset(hyper_nodes())),
    ];
    World::rebuild(Settings::new("metronome"), START, Initial { lists })
}

fn domains(world: &World, node: &str) -> Vec<String> {
    let cluster = &world.engine.state().cluster;
    let node = cluster.node(cluster.find_node(node).expect("it is there"));
    node.domains.iter().map(|domain| cluster.domain_name(*domain).to_owned()).collect()
}

#[test]
fn tiers_of_hyper_nodes_are_levels_where_nobody_names_others() {
    let mut world = with_hyper_nodes(Vec::new());
    assert_eq!(world.terrain.labels, ["topology.volcano.sh/tier-2", "topology.volcano.sh/tier-1"]);
    assert_eq!(domains(&world, "n1"), ["spine", "leaf-1"]);
    assert_eq!(domains(&world, "n2"), ["spine", "leaf-2"]);
    assert_eq!(domains(&world, "n3"), ["node/n3", "node/n3"], "in nobody's");
    let grown = hyper_node("leaf-1", 1, json!([exactly("Node", "n1"), exactly("Node", "n3")]));
    world.apply(at(1), Change::HyperNode(Delta::Applied(grown)));
    assert_eq!(domains(&world, "n3"), ["spine", "leaf-1"]);
    assert!(!world.is_outdated());
    world.apply(at(2), Change::HyperNode(Delta::Applied(hyper_node("core", 3, json!([])))));
    assert!(world.is_outdated(), "one more level");
}

#[test]
fn a_fabric_may_say_what_the_links_of_tiers_carry() {
    let tier = "topology.volcano.sh/tier-1";
    let world = with_hyper_nodes(vec![fabric_called("default", &[(tier, "10Gbps"), (HOSTNAME, "100Gbps")])]);
    assert_eq!(domains(&world, "n2"), ["leaf-2"]);
    assert!(!world.engine.state().cluster.fabric.is_empty());
}

#[test]
fn hyper_nodes_in_a_circle_or_by_patterns_harm_nobody() {
    let pattern = json!([{"type": "Node", "selector": {"regexMatch": {"pattern": "n.*"}}}]);
    assert!(!hyper_node("p", 1, pattern).is_clear);
    let mut world = with_hyper_nodes(Vec::new());
    let circle = hyper_node("leaf-1", 1, json!([exactly("Node", "n1"), exactly("HyperNode", "spine")]));
    world.apply(at(1), Change::HyperNode(Delta::Applied(circle)));
    assert_eq!(domains(&world, "n1"), ["spine", "leaf-1"]);
}

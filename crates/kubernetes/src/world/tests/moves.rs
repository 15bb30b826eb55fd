//! Jobs that go to another node: they save their work, leave, are made anew and arrive.

use super::*;
use crate::deed::{EventReason, PodRef};

/// A pod that shares cores: it asks for one and can use so many, and takes an hour with them. It was made when the test
/// starts, by an owner of its own name.
pub(super) fn sharing(name: &str, most: u32, annotations: &[(&str, &str)]) -> Value {
    let mut pod = owned(pod(name));
    pod["metadata"]["creationTimestamp"] = json!("2026-05-28T20:26:40Z");
    pod["metadata"]["ownerReferences"][0]["uid"] = json!(format!("owner-of-{name}"));
    let resources = json!({"requests": {"cpu": "1"}, "limits": {"cpu": most.to_string()}});
    pod["spec"]["containers"] = json!([{"name": "c", "resources": resources}]);
    pod["metadata"]["annotations"]["metronome.dev/duration"] = json!("1h");
    for (key, value) in annotations {
        pod["metadata"]["annotations"][format!("metronome.dev/{key}")] = json!(value);
    }
    pod
}

const SAVES: (&str, &str) = ("checkpoint", "takes=30s,restart=10s");

/// The pod that is made in the place of another: all of it is the same but that it is another.
fn anew(mut pod: Value) -> Value {
    let uid = format!("{}-anew", pod["metadata"]["uid"].as_str().unwrap());
    pod["metadata"]["uid"] = json!(uid);
    pod
}

fn saying(mut pod: Value, key: &str, value: &str) -> Value {
    pod["metadata"]["annotations"][format!("metronome.dev/{key}")] = json!(value);
    pod
}

/// `pod: value` of each pod that was to say something by this annotation, or nothing any more.
pub(super) fn said(deeds: &[Deed], annotation: &str) -> Vec<(String, Option<String>)> {
    let said = |deed: &Deed| match &deed.kind {
        Kind::Annotate { pod, key, value } if *key == format!("metronome.dev/{annotation}") => {
            Some((pod.name.to_string(), value.clone()))
        }
        _ => None,
    };
    deeds.iter().filter_map(said).collect()
}

fn requests(deeds: &[Deed]) -> Vec<(String, Option<String>)> {
    said(deeds, "checkpoint-request")
}

fn told(deeds: &[Deed], reason: EventReason) -> Vec<String> {
    let told = |deed: &Deed| match &deed.kind {
        Kind::Tell(telling) if telling.reason == reason => Some(telling.message.clone()),
        _ => None,
    };
    deeds.iter().filter_map(told).collect()
}

/// Two nodes of four cores, the second empty, and these pods on the first.
fn crowded(pods: &[Value]) -> World {
    let pods = pods.iter().map(|pod| on(pod.clone(), "n")).collect();
    let mut world = rebuilt(vec![node("n", 4), node("m", 4)], pods, Vec::new());
    world.turn(at(0));
    world
}

/// Who is asked to save its work when it has run for long enough, and by which word.
fn asked(world: &mut World) -> (String, String) {
    let deeds = world.turn(at(600));
    let requests = requests(&deeds);
    let [(pod, Some(word))] = &requests[..] else { panic!("{deeds:?}") };
    (pod.clone(), word.clone())
}

fn names_of_nodes(world: &World, job: &str) -> Vec<String> {
    let id = world.engine.find_job(job).unwrap();
    world.engine.plan().get(id).unwrap().nodes().map(|node| world.node_name(node).to_string()).collect()
}

#[test]
fn a_job_is_moved_once_it_says_that_its_work_is_saved() {
    let pods = ["a", "b"].map(|name| sharing(name, 4, &[SAVES]));
    let mut world = crowded(&pods);
    let (name, word) = asked(&mut world);
    let old = on(sharing(&name, 4, &[SAVES]), "n");
    assert_eq!(evictions(&world.turn(at(601))), []);
    apply(&mut world, at(602), saying(old.clone(), "checkpointed", "another word"));
    assert_eq!(evictions(&world.turn(at(602))), [], "that was said to somebody else");
    apply(&mut world, at(603), saying(old.clone(), "checkpointed", &word));
    let deeds = world.turn(at(603));
    let evicted = evictions(&deeds);
    assert_eq!(evicted.iter().map(|(_, pods)| pods.clone()).collect::<Vec<_>>(), [[name.clone()]]);
    let recorded =
        |deed: &Deed| matches!(&deed.kind, Kind::Evict { intent: Some(it), .. } if it.leaves.len() == 1);
    assert!(deeds.iter().any(recorded), "{deeds:?}");
    world.heard(at(604), Outcome::Evicted { ticket: evicted[0].0 });
    apply(&mut world, at(604), leaving(old.clone()));
    let new = anew(sharing(&name, 4, &[SAVES]));
    apply(&mut world, at(605), new.clone());
    assert_eq!(binds(&world.turn(at(605))), [], "the old one still runs");
    delete(&mut world, at(606), old);
    let deeds = world.turn(at(606));
    assert_eq!(binds(&deeds)[0].1, [format!("{name}@m")]);
    assert!(deeds.iter().any(|deed| matches!(deed.kind, Kind::Forget { .. })), "{deeds:?}");
    answer(&mut world, at(607), &deeds, |_| Bound::Here);
    apply(&mut world, at(607), on(new, "m"));
    let deeds = world.turn(at(608));
    assert_eq!((binds(&deeds), evictions(&deeds)), (Vec::new(), Vec::new()));
    assert_eq!(names_of_nodes(&world, &format!("ns/{name}")), ["m"]);
    assert_eq!(world.engine.plan().iter().count(), 2);
    assert!(world.moves.is_empty() && world.departures.is_empty() && world.open_intents.is_empty());
}

#[test]
fn a_job_that_does_not_say_so_stays_where_it_is() {
    let mut world = crowded(&[sharing("a", 4, &[SAVES]), sharing("b", 4, &[("throttle", "allowed")])]);
    assert_eq!(asked(&mut world).0, "a", "the other does not save its work");
    let deeds = world.turn(at(719));
    assert_eq!(requests(&deeds), [], "twice as long as it takes, and a minute");
    let deeds = world.turn(at(720));
    assert_eq!(requests(&deeds), [("a".to_owned(), None)]);
    assert_eq!(told(&deeds, EventReason::NotMoved).len(), 1);
    assert_eq!(evictions(&deeds), []);
    assert_eq!([names_of_nodes(&world, "ns/a"), names_of_nodes(&world, "ns/b")], [["n"], ["n"]]);
    assert_eq!(requests(&world.turn(at(721))), [], "it is left alone for a while");
}

#[test]
fn a_job_that_saves_when_it_is_told_to_end_is_not_asked() {
    let signal = ("checkpoint", "takes=30s, restart=10s, how=signal");
    let mut world = crowded(&["a", "b"].map(|name| sharing(name, 4, &[signal])));
    let deeds = world.turn(at(600));
    assert_eq!(requests(&deeds), []);
    assert_eq!(evictions(&deeds).len(), 1);
}

#[test]
fn pods_that_nobody_makes_anew_are_never_moved() {
    let bare = ["a", "b"].map(|name| {
        let mut pod = sharing(name, 4, &[SAVES]);
        pod["metadata"]["ownerReferences"] = json!([]);
        pod
    });
    let mut world = crowded(&bare);
    let deeds: Vec<Deed> = (0..30).flat_map(|minute| world.turn(at(600 + 60 * minute))).collect();
    assert_eq!((requests(&deeds), evictions(&deeds)), (Vec::new(), Vec::new()));
}

#[test]
fn who_may_not_be_evicted_stays() {
    let signal = ("checkpoint", "takes=30s,how=signal");
    let mut world = crowded(&["a", "b"].map(|name| sharing(name, 4, &[signal])));
    let ticket = evictions(&world.turn(at(600)))[0].0;
    world.heard(at(601), Outcome::NotEvicted { ticket, refusal: "a budget".into() });
    let deeds = world.turn(at(601));
    assert!(told(&deeds, EventReason::NotMoved)[0].contains("a budget"), "{deeds:?}");
    assert_eq!([names_of_nodes(&world, "ns/a"), names_of_nodes(&world, "ns/b")], [["n"], ["n"]]);
    assert!(world.departures.is_empty() && world.open_intents.is_empty());
}

#[test]
fn a_pod_that_ends_while_it_saves_is_not_waited_for() {
    let mut world = crowded(&["a", "b"].map(|name| sharing(name, 4, &[SAVES])));
    let (name, _) = asked(&mut world);
    let mut done = on(sharing(&name, 4, &[SAVES]), "n");
    done["status"]["phase"] = json!("Succeeded");
    apply(&mut world, at(610), done);
    assert_eq!(evictions(&world.turn(at(610))), []);
    assert!(world.moves.is_empty());
    assert_eq!(world.engine.plan().iter().count(), 1);
}

fn member_of(gang: &str, index: u32) -> Value {
    let mut pod = sharing(&format!("{gang}-{index}"), 2, &[SAVES, ("gang-members", "2")]);
    pod["metadata"]["labels"]["metronome.dev/gang"] = json!(gang);
    pod
}

#[test]
fn a_gang_is_moved_whole_when_all_of_it_have_said_so() {
    let all = [member_of("g", 0), member_of("g", 1), member_of("h", 0), member_of("h", 1)];
    let mut world = crowded(&all);
    let deeds = world.turn(at(600));
    let requests = requests(&deeds);
    let [(first, Some(word)), _] = &requests[..] else { panic!("{deeds:?}") };
    let gang = first.split('-').next().unwrap().to_owned();
    let old = [0, 1].map(|index| on(member_of(&gang, index), "n"));
    apply(&mut world, at(601), saying(old[0].clone(), "checkpointed", word));
    assert_eq!(evictions(&world.turn(at(601))), [], "the other has not");
    apply(&mut world, at(602), saying(old[1].clone(), "checkpointed", word));
    let (ticket, evicted) = evictions(&world.turn(at(602))).remove(0);
    assert_eq!(evicted.len(), 2);
    world.heard(at(603), Outcome::Evicted { ticket });
    let new = [0, 1].map(|index| anew(member_of(&gang, index)));
    delete(&mut world, at(604), old[0].clone());
    apply(&mut world, at(604), new[0].clone());
    assert_eq!(binds(&world.turn(at(604))), [], "one still runs");
    delete(&mut world, at(605), old[1].clone());
    assert_eq!(binds(&world.turn(at(605))), [], "the other is not made yet");
    apply(&mut world, at(640), new[1].clone());
    let deeds = world.turn(at(640));
    let seats: Vec<_> = binds(&deeds).into_iter().map(|(_, seats, intent)| (seats, intent)).collect();
    assert_eq!(seats, [(vec![format!("{gang}-0@m"), format!("{gang}-1@m")], true)]);
    answer(&mut world, at(641), &deeds, |_| Bound::Here);
    world.turn(at(642));
    assert_eq!(names_of_nodes(&world, &format!("ns/{gang}")), ["m"]);
}

#[test]
fn what_is_not_made_anew_is_given_up() {
    let signal = ("checkpoint", "takes=30s,how=signal");
    let mut world = crowded(&["a", "b"].map(|name| sharing(name, 4, &[signal])));
    let (ticket, pods) = evictions(&world.turn(at(600))).remove(0);
    world.heard(at(601), Outcome::Evicted { ticket });
    delete(&mut world, at(602), on(sharing(&pods[0], 4, &[signal]), "n"));
    world.turn(at(602));
    assert_eq!(world.moves.len(), 1);
    world.turn(at(903));
    assert!(world.moves.is_empty());
    assert_eq!(world.engine.plan().iter().count(), 1, "nothing is kept for it any more");
    apply(&mut world, at(910), anew(sharing(&pods[0], 4, &[signal])));
    assert_eq!(binds(&world.turn(at(910))).len(), 1, "who comes late is placed as anybody is");
}

#[test]
fn a_bind_that_fails_on_arrival_leaves_nobody_where_it_was() {
    let signal = ("checkpoint", "takes=30s,how=signal");
    let mut world = crowded(&["a", "b"].map(|name| sharing(name, 4, &[signal])));
    let (ticket, pods) = evictions(&world.turn(at(600))).remove(0);
    world.heard(at(601), Outcome::Evicted { ticket });
    let pod = sharing(&pods[0], 4, &[signal]);
    delete(&mut world, at(602), on(pod.clone(), "n"));
    apply(&mut world, at(602), anew(pod));
    let deeds = world.turn(at(602));
    answer(&mut world, at(603), &deeds, |_| Bound::Refused);
    let deeds = [world.turn(at(603)), world.turn(at(630))].concat();
    assert_eq!(binds(&deeds).len(), 1, "it is placed anew: {deeds:?}");
}

#[test]
fn a_new_leader_sends_the_rest_of_a_gang_away() {
    let leaves =
        |uid: &str| PodRef { namespace: "ns".into(), name: uid.into(), uid: uid.into(), version: "".into() };
    let mut record = recorded(&[]);
    record.name = IntentName("left".into());
    record.intent.as_mut().unwrap().leaves = vec![leaves("g-0"), leaves("g-1")];
    let pods = vec![anew(member_of("g", 0)), on(member_of("g", 1), "n")];
    let mut world = rebuilt(vec![node("n", 4), node("m", 4)], pods, vec![record]);
    let deeds = world.turn(at(0));
    assert_eq!(binds(&deeds), [], "one still runs");
    let (ticket, evicted) = evictions(&deeds).remove(0);
    assert_eq!(evicted, ["g-1"]);
    world.heard(at(1), Outcome::Evicted { ticket });
    delete(&mut world, at(2), on(member_of("g", 1), "n"));
    let deeds = world.turn(at(2));
    assert!(deeds.iter().any(|deed| matches!(deed.kind, Kind::Forget { .. })), "{deeds:?}");
    assert_eq!(binds(&deeds), []);
    apply(&mut world, at(3), anew(member_of("g", 1)));
    let seats = binds(&world.turn(at(3))).remove(0).1;
    assert_eq!(seats.len(), 2, "{seats:?}");
}

#[test]
fn a_new_leader_takes_back_what_pods_were_asked_for() {
    let pod = on(saying(sharing("a", 4, &[SAVES]), "checkpoint-request", "17"), "n");
    let mut world = world(4, vec![pod]);
    assert_eq!(requests(&world.turn(at(0))), [("a".to_owned(), None)]);
}

#[test]
fn what_makes_no_sense_is_told_and_the_pod_is_bound() {
    let wrong = |annotation: (&str, &str)| {
        let mut world = world(8, vec![sharing("p", 4, &[annotation])]);
        let deeds = world.turn(at(0));
        assert_eq!(binds(&deeds).len(), 1, "{deeds:?}");
        told(&deeds, EventReason::AnnotationIgnored).concat()
    };
    assert!(wrong(("checkpoint", "soon")).contains("metronome.dev/checkpoint"));
    assert!(wrong(("checkpoint", "restart=10s")).contains("how long saving takes is not said"));
    assert!(wrong(("checkpoint", "takes=10s,how=magic")).contains("neither request nor signal"));
    assert!(wrong(("checkpoint", "takes=10s,when=now")).contains("none of takes, restart and how"));
    assert!(wrong(("checkpoint", "2h")).contains("longer than"));
    assert!(wrong(("checkpoint", "takes=45s,how=signal")).contains("has 30s to end"));
    assert!(wrong(("throttle", "yes")).contains("not \"allowed\""));
    assert_eq!(wrong(("checkpoint", "takes=45s")), "");
}

//! Deadlines, and cores that are given and taken while pods run.

use super::*;
use crate::deed::Certainty;

/// A pod that asks for so many cores, made when the test starts.
fn timed(name: &str, cores: u32, annotations: &[(&str, &str)]) -> Value {
    let mut pod = pod(name);
    pod["metadata"]["creationTimestamp"] = json!("2026-05-28T20:26:40Z");
    pod["spec"]["containers"] = json!([{"name": "c", "resources": {"requests": {"cpu": cores.to_string()}}}]);
    for (key, value) in annotations {
        pod["metadata"]["annotations"][format!("metronome.dev/{key}")] = json!(value);
    }
    pod
}

/// The same, as a kubelet shows it that has given it so many.
fn given(mut pod: Value, cores: u32) -> Value {
    let resources = json!({"requests": {"cpu": cores.to_string()}});
    pod["metadata"]["generation"] = json!(u64::from(cores) + 1);
    pod["spec"]["containers"][0]["resources"] = resources.clone();
    pod["status"]["phase"] = json!("Running");
    pod["status"]["containerStatuses"] = json!([{"name": "c", "resources": resources}]);
    pod
}

/// `pod to cores` of each resize asked for.
fn resizes(deeds: &[Deed]) -> Vec<(Ticket, String)> {
    let resize = |deed: &Deed| match &deed.kind {
        Kind::Resize { pod, to } => Some((deed.ticket, format!("{} to {}", pod.name, to.cores))),
        _ => None,
    };
    deeds.iter().filter_map(resize).collect()
}

fn foretold(deeds: &[Deed]) -> Vec<(Certainty, String)> {
    let told = |deed: &Deed| match &deed.kind {
        Kind::Foretell { foretold, .. } => Some((foretold.certainty, foretold.message.clone())),
        _ => None,
    };
    deeds.iter().filter_map(told).collect()
}

/// Binds whatever is asked for, and returns what was asked for since.
fn bind_all(world: &mut World, now: Instant) -> Vec<Deed> {
    let deeds = world.turn(now);
    for deed in &deeds {
        if let Kind::Bind { members, .. } = &deed.kind {
            let members = members.iter().map(|seat| (seat.clone(), Bound::Here)).collect();
            world.heard(now, Outcome::Bound { ticket: deed.ticket, members });
        }
    }
    let mut all = deeds;
    all.extend(world.turn(now));
    all
}

#[test]
fn a_training_job_of_one_member_is_given_more_cores_too() {
    let mut world = world(8, Vec::new());
    let object = json!({
        "metadata": {"name": "job", "namespace": "ns", "uid": "j", "creationTimestamp": "2026-05-28T20:26:40Z"},
        "spec": {
            "image": "i", "cpu": {"min": 2, "max": 8}, "work": {"duration": "1h"},
            "deadline": {"after": "30m", "binding": "Strict"},
        },
    });
    let api = kube::api::ApiResource::erase::<crate::objects::TrainingJobObject>(&());
    let group = Group::read(GroupKind::Training, &api, &read(object)).remove(0);
    world.apply(at(0), Change::Group(GroupKind::Training, Delta::Applied(group)));
    let mut pod = timed("job-worker-0", 2, &[("cpu", "2-8")]);
    pod["metadata"]["labels"]["metronome.dev/training-job"] = json!("job");
    apply(&mut world, at(0), pod);
    let deeds = bind_all(&mut world, at(0));
    let asked: Vec<String> = resizes(&deeds).into_iter().map(|(_, resize)| resize).collect();
    assert_eq!(asked, ["job-worker-0 to 8"], "{deeds:?}");
}

#[test]
fn a_pod_that_would_be_late_is_given_more_cores() {
    let wishes = [("deadline", "30m"), ("duration", "1h"), ("cpu", "2-8"), ("deadline-binding", "Strict")];
    let mut world = world(8, Vec::new());
    let pod = timed("p", 2, &wishes);
    apply(&mut world, at(0), pod.clone());
    let deeds = bind_all(&mut world, at(0));
    assert_eq!(binds(&deeds).len(), 1, "{deeds:?}");
    let asked = resizes(&deeds);
    let [(ticket, resize)] = &asked[..] else { panic!("{deeds:?}") };
    // As many as are free: with them it is done sooner, and nobody else asks for them.
    assert_eq!(resize, "p to 8");
    apply(&mut world, at(1), on(pod.clone(), "n"));
    world.heard(at(1), Outcome::Resized { ticket: *ticket });
    assert_eq!(world.engine.plan().iter().count(), 1);
    apply(&mut world, at(2), given(on(pod, "n"), 8));
    let told = foretold(&world.turn(at(3)));
    assert!(told.iter().all(|(certainty, _)| *certainty == Certainty::Promised), "{told:?}");
    let text = world.explain("ns/p").unwrap()["text"].to_string();
    assert!(text.contains("promised"), "{text}");
}

#[test]
fn cores_beyond_what_a_deadline_needs_are_given_back_to_who_needs_them() {
    let first = timed("first", 2, &[("deadline", "2h"), ("duration", "1h"), ("cpu", "2-8")]);
    let mut world = world(8, Vec::new());
    apply(&mut world, at(0), first.clone());
    let deeds = bind_all(&mut world, at(0));
    let ticket = resizes(&deeds)[0].0;
    world.heard(at(1), Outcome::Resized { ticket });
    apply(&mut world, at(2), given(on(first.clone(), "n"), 8));
    world.turn(at(2));
    let second = timed("second", 4, &[("deadline", "1h"), ("duration", "50m")]);
    apply(&mut world, at(60), second);
    let deeds = world.turn(at(60));
    assert_eq!(binds(&deeds), [], "nobody is bound before there is room");
    let asked = resizes(&deeds);
    let [(ticket, resize)] = &asked[..] else { panic!("{deeds:?}") };
    assert!(["first to 2", "first to 3", "first to 4"].contains(&resize.as_str()), "{resize}");
    let cores: u32 = resize[9..].parse().unwrap();
    world.heard(at(61), Outcome::Resized { ticket: *ticket });
    assert_eq!(binds(&world.turn(at(61))), [], "its kubelet has not said so yet");
    apply(&mut world, at(62), given(on(first, "n"), cores));
    assert_eq!(binds(&world.turn(at(62))).len(), 1);
}

#[test]
fn a_node_that_will_not_have_it_leaves_a_pod_as_it_is() {
    let pod = timed("p", 2, &[("deadline", "2h"), ("duration", "1h"), ("cpu", "2-8")]);
    let mut world = world(8, Vec::new());
    apply(&mut world, at(0), pod.clone());
    let ticket = resizes(&bind_all(&mut world, at(0)))[0].0;
    world.heard(at(1), Outcome::Resized { ticket });
    let mut refused = given(on(pod.clone(), "n"), 8);
    refused["status"]["conditions"] = json!([{"type": "PodResizePending", "reason": "Infeasible"}]);
    apply(&mut world, at(2), refused);
    let asked = resizes(&world.turn(at(2)));
    assert_eq!(asked.iter().map(|(_, resize)| resize.as_str()).collect::<Vec<_>>(), ["p to 2"]);
    apply(&mut world, at(3), given(on(pod, "n"), 2));
    world.turn(at(3));
    let held: u32 = world.engine.plan().iter().map(|(_, assignment)| assignment.members()).sum();
    assert_eq!(held, 3, "the pod and its two cores");
}

#[test]
fn what_a_pod_says_wrongly_is_told_to_it() {
    let wrong = |annotations: &[(&str, &str)]| {
        let mut world = world(8, Vec::new());
        apply(&mut world, at(0), timed("p", 2, annotations));
        explained(&world.turn(at(0))).first().map(|(_, message)| message.clone()).unwrap_or_default()
    };
    assert!(wrong(&[("deadline", "soon")]).contains("neither a time such as"));
    assert!(
        wrong(&[("deadline", "1h"), ("deadline-binding", "Sure")]).contains("not Strict, Soft or BestEffort")
    );
    assert!(wrong(&[("duration", "long")]).contains("metronome.dev/duration"));
    assert!(wrong(&[("cpu", "8-2")]).contains("such as 2-8"));
    assert!(wrong(&[("cpu", "4-8")]).contains("its container requests 2"));
    assert!(wrong(&[("cpu", "1-8"), ("cpu-serial", "lots")]).contains("metronome.dev/cpu-serial"));
}

#[test]
fn after_a_restart_cores_are_as_they_are() {
    let pod = given(on(timed("p", 2, &[("deadline", "2h"), ("duration", "1h"), ("cpu", "2-8")]), "n"), 6);
    let world = world(8, vec![pod]);
    let held: u32 = world.engine.plan().iter().map(|(_, assignment)| assignment.members()).sum();
    assert_eq!(held, 7, "the pod and its six cores");
}

#[test]
fn cores_that_somebody_else_has_changed_are_looked_at_anew() {
    let pod = timed("p", 2, &[("cpu", "2-8")]);
    let mut world = world(8, vec![given(on(pod.clone(), "n"), 2)]);
    world.turn(at(0));
    apply(&mut world, at(1), given(on(pod, "n"), 5));
    world.turn(at(1));
    let held: u32 = world.engine.plan().iter().map(|(_, assignment)| assignment.members()).sum();
    assert_eq!(held, 6);
}

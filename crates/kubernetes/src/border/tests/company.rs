//! Rules about the pods around.

use super::*;

fn labelled(app: &str) -> Value {
    json!({"metadata": {"labels": {"app": app}}})
}

fn term(app: &str, key: &str) -> Value {
    json!({"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key})
}

fn near(terms: Value) -> Value {
    json!({"spec": {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}})
}

fn far(terms: Value) -> Value {
    json!({"spec": {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}})
}

fn spread(app: &str, skew: u32) -> Value {
    json!({"spec": {"topologySpreadConstraints": [{
        "maxSkew": skew, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": app}},
    }]}})
}

#[test]
fn affinity_leads_to_where_the_others_are() {
    let mut world = World::of_two_zones();
    let to_x = near(json!([term("x", "zone")]));
    assert_eq!(world.feasible(to_x.clone()), "");
    world.other("o", "a1", labelled("x"));
    assert_eq!(world.feasible(to_x.clone()), "a1 a2");
    world.other("o", "a1", labelled("y"));
    assert_eq!(world.feasible(to_x), "", "its labels have changed");
}

#[test]
fn one_and_the_same_pod_matches_all_terms() {
    let mut world = World::of_two_zones();
    let both = near(json!([
        {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "zone"},
        {"labelSelector": {"matchLabels": {"tier": "t"}}, "topologyKey": "host"},
    ]));
    world.other("o", "a1", labelled("x"));
    world.other("p", "a1", json!({"metadata": {"labels": {"tier": "t"}}}));
    assert_eq!(world.feasible(both.clone()), "");
    world.other("q", "b1", json!({"metadata": {"labels": {"app": "x", "tier": "t"}}}));
    assert_eq!(world.feasible(both), "b1");
}

#[test]
fn the_first_of_its_kind_may_go_anywhere() {
    let mut world = World::of_two_zones();
    let own = with(labelled("x"), near(json!([term("x", "zone")])));
    assert_eq!(world.feasible(own.clone()), "a1 a2 b1 b2");
    world.other("o", "b2", labelled("x"));
    assert_eq!(world.feasible(own), "b1 b2");
}

#[test]
fn anti_affinity_holds_both_ways() {
    let mut world = World::of_two_zones();
    let from_x = far(json!([term("x", "zone")]));
    world.other("o", "a1", labelled("x"));
    assert_eq!(world.feasible(from_x.clone()), "b1 b2");
    world.other("p", "b1", with(labelled("z"), from_x));
    assert_eq!(world.feasible(labelled("x")), "a1 a2", "b1 keeps those like x out of its zone");
    assert_eq!(world.feasible(labelled("y")), "a1 a2 b1 b2");
}

#[test]
fn a_job_that_waits_is_outdated_when_somebody_comes_who_repels_it() {
    let mut world = World::of_two_zones();
    let waiting = world.job(1, labelled("x"));
    let unconcerned = world.job(1, labelled("y"));
    world.other("o", "a1", far(json!([term("x", "zone")])));
    assert_eq!(world.border.outdated(), [waiting]);
    world.other("p", "a2", far(json!([term("x", "zone")])));
    assert_eq!(world.border.outdated(), [], "the same again is nothing new");
    assert_ne!(waiting, unconcerned);
}

#[test]
fn spread_counts_who_is_here_to_stay() {
    let mut world = World::of_two_zones();
    let even = with(labelled("x"), spread("x", 1));
    world.other("o", "a1", labelled("x"));
    assert_eq!(world.feasible(even.clone()), "b1 b2");
    world.other(
        "o",
        "a1",
        with(labelled("x"), json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})),
    );
    assert_eq!(world.feasible(even), "a1 a2 b1 b2");
}

#[test]
fn a_new_group_counts_jobs_that_are_there_already() {
    let mut world = World::of_two_zones();
    let job = world.job(1, with(labelled("x"), json!({"spec": {"nodeSelector": {"host": "b1"}}})));
    world.engine.poll(NOW);
    assert!(world.engine.job(job).is_some_and(|job| !job.life.is_waiting()), "it starts on b1");
    assert_eq!(world.feasible(near(json!([term("x", "zone")]))), "b1 b2");
    assert_eq!(world.feasible(far(json!([term("x", "zone")]))), "a1 a2");
}

#[test]
fn members_of_one_job_keep_apart_from_each_other() {
    let mut world = World::of_two_zones();
    let job = world.job(2, with(labelled("x"), far(json!([term("x", "zone")]))));
    world.engine.poll(NOW);
    let held = world.engine.job(job).unwrap().life.holds();
    let nodes: Vec<&str> = held[0]
        .parts()
        .iter()
        .map(|part| &**world.border.node_name(part.node))
        .map(|name| &name[..1])
        .collect();
    assert_eq!(nodes, ["a", "b"]);
}

#[test]
fn namespaces_are_asked_for_their_labels() {
    let mut world = World::of_two_zones();
    let team = |value: &str| read(json!({"metadata": {"name": "m", "labels": {"team": value}}}));
    let to_team = near(json!([{
        "labelSelector": {}, "topologyKey": "zone", "namespaceSelector": {"matchLabels": {"team": "t"}},
    }]));
    world.other("o", "a1", json!({"metadata": {"namespace": "m"}}));
    let job = world.job(1, to_team);
    assert_eq!(world.feasible_for(job), "");
    world.border.namespace_applied(&mut world.engine, NOW, &team("t"));
    assert_eq!(world.feasible_for(job), "a1 a2");
    world.border.namespace_applied(&mut world.engine, NOW, &team("u"));
    assert_eq!(world.feasible_for(job), "");
}

#[test]
fn nothing_grows_but_with_what_is_there() {
    let mut world = World::of_two_zones();
    for n in 0..2000 {
        let app = format!("app-{n}");
        world.other("o", "a1", labelled(&app));
        world.feasible(with(labelled(&app), far(json!([term(&app, "host")]))));
    }
    let groups = &world.engine.state().groups;
    assert!(groups.groups.len() < 500, "{} groups", groups.groups.len());
    assert!(groups.partitions.len() < 10);
    assert!(format!("{:?}", world.border).len() < 1_000_000);
}

//! The world and the controller of jobs together, on a cluster in which everything is done at once: jobs whose number of
//! members changes.

use std::collections::BTreeMap;

use kube::api::{ApiResource, DynamicObject};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg32;

use super::*;
use crate::controller::Controller;
use crate::deed::{NewObject, PodRef};
use crate::objects::{TrainingJob, TrainingJobObject};
use crate::world::moves::{CHECKPOINTED, REQUEST};

struct Together {
    world: World,
    controller: Controller,
    now: u64,
    nodes: Vec<Node>,
    jobs: BTreeMap<String, Value>,
    pods: BTreeMap<String, Value>,
    next_uid: u32,
    /// No more pods than these can be made.
    quota: usize,
}

impl std::fmt::Debug for Together {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let seats = self.pods.iter().map(|(name, pod)| (name, &pod["spec"]["nodeName"]));
        let said = self.world.gangs.values().map(|gang| (&gang.jobs, &gang.held_up, &gang.most));
        write!(out, "{:?} {:?}", seats.collect::<Vec<_>>(), said.collect::<Vec<_>>())?;
        write!(out, " {:?} {:?}", self.world.moves, self.world.sizes)
    }
}

impl Together {
    fn new(nodes: Vec<Node>) -> Self {
        let mut together = Self {
            world: rebuilt(nodes.clone(), Vec::new(), Vec::new()),
            controller: Controller::new("metronome"),
            now: 0,
            nodes,
            jobs: BTreeMap::new(),
            pods: BTreeMap::new(),
            next_uid: 0,
            quota: usize::MAX,
        };
        together.go_on(1);
        together
    }

    /// Workers of one core each, which takes them an hour with the fewest of them.
    fn submit(&mut self, name: &str, mut spec: Value) {
        let container = json!({"name": "c", "resources": {"requests": {"cpu": "1"}}});
        if spec["roles"].is_null() {
            spec["template"] = json!({"spec": {"containers": [container]}});
        }
        spec["work"] = json!({"duration": "1h"});
        let made = "2026-05-28T20:26:40Z";
        let job = json!({
            "apiVersion": "metronome.dev/v1alpha1", "kind": "TrainingJob",
            "metadata": {"name": name, "namespace": "ns", "uid": name, "creationTimestamp": made},
            "spec": spec,
        });
        self.jobs.insert(name.to_owned(), job);
        self.show_job(name);
    }

    fn read_job(&self, name: &str) -> (Group, TrainingJob) {
        let object: DynamicObject = read(self.jobs[name].clone());
        let api = ApiResource::erase::<TrainingJobObject>(&());
        (Group::read(GroupKind::Training, &api, &object).remove(0), TrainingJob::read(&api, &object))
    }

    fn show_job(&mut self, name: &str) {
        let (group, job) = self.read_job(name);
        self.world.apply(at(self.now), Change::Group(GroupKind::Training, Delta::Applied(group)));
        self.controller.apply(Change::TrainingJob(Delta::Applied(job)));
    }

    fn show_pod(&mut self, name: &str) {
        let pod = self.pods[name].clone();
        self.world.apply(at(self.now), Change::Pod(Delta::Applied(read(pod.clone()))));
        self.controller.apply(Change::Member(Delta::Applied(read(pod))));
    }

    fn pod_gone(&mut self, name: &str) {
        let Some(pod) = self.pods.remove(name) else { return };
        self.world.apply(at(self.now), Change::Pod(Delta::Deleted(read(pod.clone()))));
        self.controller.apply(Change::Member(Delta::Deleted(read(pod))));
    }

    /// Somebody else takes the lead, who knows nothing but what the API server says.
    fn restart(&mut self) {
        let names: Vec<String> = self.jobs.keys().cloned().collect();
        let (groups, jobs): (Vec<_>, Vec<_>) = names.iter().map(|name| self.read_job(name)).unzip();
        let pods: Vec<Value> = self.pods.values().cloned().collect();
        let lists = vec![
            Change::Group(GroupKind::Training, Delta::Reset(groups)),
            Change::Pod(Delta::Reset(pods.iter().cloned().map(read).collect())),
            Change::Node(Delta::Reset(self.nodes.clone())),
        ];
        self.world = World::rebuild(Settings::new("metronome"), at(self.now), Initial { lists });
        self.controller = Controller::new("metronome");
        self.controller.apply(Change::TrainingJob(Delta::Reset(jobs)));
        self.controller.apply(Change::Member(Delta::Reset(pods.into_iter().map(read).collect())));
    }

    fn is_deleted(&mut self, name: &str) {
        let (group, job) = self.read_job(name);
        self.jobs.remove(name);
        self.world.apply(at(self.now), Change::Group(GroupKind::Training, Delta::Deleted(group)));
        self.controller.apply(Change::TrainingJob(Delta::Deleted(job)));
        let pods: Vec<String> = self.pods.keys().filter(|pod| pod.starts_with(name)).cloned().collect();
        pods.iter().for_each(|pod| self.pod_gone(pod));
    }

    /// Some time goes by, in seconds.
    fn go_on(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.now += 1;
            self.steps(20);
        }
    }

    /// Does what is to be done, so many times or until nothing is.
    fn steps(&mut self, most: usize) {
        for _ in 0..most {
            let deeds = self.world.turn(at(self.now));
            self.controller.resize(self.world.sizes());
            let made = self.controller.turn(at(self.now));
            if deeds.is_empty() && made.is_empty() {
                break;
            }
            deeds.into_iter().for_each(|deed| self.schedule(deed));
            made.into_iter().for_each(|deed| self.make(deed));
            self.is_consistent();
        }
    }

    fn schedule(&mut self, Deed { ticket, kind }: Deed) {
        let now = at(self.now);
        match kind {
            Kind::Bind { members, .. } => {
                let bound = members.into_iter().map(|seat| (self.bind(&seat), seat));
                let members = bound.map(|(bound, seat)| (seat, bound)).collect();
                self.world.heard(now, Outcome::Bound { ticket, members });
            }
            Kind::Evict { victims, .. } => {
                for pod in victims.iter().filter(|pod| self.is_there(pod)).collect::<Vec<_>>() {
                    self.pod_gone(&pod.name);
                }
                self.world.heard(now, Outcome::Evicted { ticket });
            }
            // Whoever is asked saves its work at once.
            Kind::Annotate { pod, key: REQUEST, value } if self.is_there(&pod) => {
                let said =
                    &mut self.pods.get_mut(&*pod.name).expect("it is there")["metadata"]["annotations"];
                said[REQUEST] = json!(value.clone().unwrap_or_default());
                said[CHECKPOINTED] = json!(value.unwrap_or_default());
                self.show_pod(&pod.name);
            }
            _ => {}
        }
    }

    fn is_there(&self, pod: &PodRef) -> bool {
        self.pods.get(&*pod.name).is_some_and(|there| there["metadata"]["uid"] == *pod.uid)
    }

    fn bind(&mut self, seat: &Seat) -> Bound {
        if !self.is_there(&seat.pod) {
            return Bound::Gone;
        }
        let pod = self.pods.get_mut(&*seat.pod.name).expect("it is there");
        assert_eq!(pod["spec"]["nodeName"], Value::Null, "{seat:?} is bound twice");
        pod["spec"]["nodeName"] = json!(&*seat.node);
        pod["status"]["phase"] = json!("Running");
        self.show_pod(&seat.pod.name);
        Bound::Here
    }

    fn make(&mut self, Deed { ticket, kind }: Deed) {
        let outcome = match kind {
            Kind::Make(NewObject { plural: "pods", .. }) if self.pods.len() >= self.quota => {
                Outcome::NotMade { ticket, refusal: "exceeded quota".into() }
            }
            Kind::Make(NewObject { name, plural: "pods", mut body, .. }) => {
                assert!(!self.pods.contains_key(&*name), "{name} is made twice");
                self.next_uid += 1;
                body["metadata"]["uid"] = json!(format!("uid-{}", self.next_uid));
                body["metadata"]["namespace"] = json!("ns");
                body["metadata"]["creationTimestamp"] = json!("2026-05-28T20:26:41Z");
                body["status"] = json!({"phase": "Pending"});
                self.pods.insert(name.to_string(), body);
                self.show_pod(&name);
                Outcome::Made { ticket }
            }
            Kind::Remove { object } => {
                self.pod_gone(&object.name);
                Outcome::Deleted { ticket }
            }
            Kind::Status { object, status } => {
                let job = self.jobs.get_mut(&*object.name).expect("jobs stay");
                let status =
                    status.as_object().expect("an object").iter().filter(|(_, value)| !value.is_null());
                job["status"] =
                    Value::Object(status.map(|(key, value)| (key.clone(), value.clone())).collect());
                self.show_job(&object.name);
                Outcome::Written { ticket }
            }
            _ => Outcome::Made { ticket },
        };
        self.controller.heard(at(self.now), &outcome);
    }

    /// Those who run together were told the same of how many they are, and no node has more than it can take.
    fn is_consistent(&self) {
        for job in self.jobs.keys() {
            let mut told: Vec<Option<String>> =
                self.running(job).map(|pod| told(pod, "WORLD_SIZE")).collect();
            told.dedup();
            assert!(told.len() <= 1, "members of {job} were told {told:?}");
        }
        let held = |node: &Node| {
            self.pods.values().filter(|pod| pod["spec"]["nodeName"] == json!(node.metadata.name)).count()
        };
        assert!(self.nodes.iter().all(|node| held(node) <= 4), "{:?}", self.pods);
    }

    fn least(&self, job: &str) -> usize {
        let spec = &self.jobs[job]["spec"];
        spec["members"].as_u64().or(spec["minMembers"].as_u64()).expect("it says one of them") as usize
    }

    /// The members beyond the fewest of a job that saves its work.
    fn could_give_back(&self, job: &str) -> usize {
        let saves = !self.jobs[job]["spec"]["checkpoint"].is_null();
        if saves { self.running(job).count().saturating_sub(self.least(job)) } else { 0 }
    }

    fn running(&self, job: &str) -> impl Iterator<Item = &Value> {
        let label = json!(job);
        let of = move |pod: &&Value| pod["metadata"]["labels"]["metronome.dev/training-job"] == label;
        self.pods.values().filter(of).filter(|pod| !pod["spec"]["nodeName"].is_null())
    }

    /// How many of a job run, each of which was told so.
    fn members(&self, job: &str) -> usize {
        let running: Vec<_> = self.running(job).collect();
        let knows =
            |pod: &&&Value| told(pod, "WORLD_SIZE").is_none_or(|size| size == running.len().to_string());
        assert_eq!(running.iter().filter(knows).count(), running.len(), "{running:?}");
        let pods =
            self.pods.values().filter(|pod| pod["metadata"]["name"].as_str().unwrap().starts_with(job));
        assert_eq!(pods.count(), running.len(), "nobody of {job} waits");
        running.len()
    }
}

/// What a pod was told by a variable; nothing of their number, where they find out by themselves.
fn told(pod: &Value, name: &str) -> Option<String> {
    let env =
        pod["spec"]["containers"][0]["env"].as_array().expect("members are told how to find each other");
    let said = env.iter().find(|one| one["name"] == name)?;
    Some(said["value"].as_str().expect("a text").to_owned())
}

fn four_cores(names: &[&str]) -> Vec<Node> {
    names.iter().map(|name| node(name, 4)).collect()
}

fn elastic(min: u32, max: u32) -> Value {
    json!({"minMembers": min, "maxMembers": max, "checkpoint": {"takes": "1s", "restart": "1s"}})
}

/// The same, of members who come and go.
fn joining(min: u32, max: u32) -> Value {
    let mut spec = elastic(min, max);
    spec["rendezvous"] = json!("Elastic");
    spec
}

#[test]
fn a_job_starts_with_as_many_members_as_there_is_room_for() {
    let mut together = Together::new(four_cores(&["n", "m"]));
    together.submit("job", elastic(2, 6));
    together.go_on(2);
    assert_eq!(together.members("job"), 6);
    let roles = &together.jobs["job"]["status"]["roles"];
    assert_eq!((&roles[0]["wanted"], &roles[0]["placed"]), (&json!(6), &json!(6)), "{roles}");
    assert!(together.world.moves.is_empty() && together.world.sizes().is_empty());
}

#[test]
fn a_job_makes_room_for_who_waits_and_takes_it_again_when_it_is_free() {
    let mut together = Together::new(four_cores(&["n", "m"]));
    together.submit("job", elastic(2, 8));
    together.go_on(600);
    assert_eq!(together.members("job"), 8);
    together.submit("other", json!({"members": 4}));
    together.go_on(30);
    assert_eq!((together.members("job"), together.members("other")), (4, 4));
    together.is_deleted("other");
    together.go_on(600);
    assert_eq!(together.members("job"), 8);
}

#[test]
fn a_job_without_checkpoints_keeps_the_size_it_started_with() {
    let mut together = Together::new(four_cores(&["n", "m"]));
    together.submit("first", json!({"members": 5}));
    together.go_on(2);
    together.submit("job", json!({"minMembers": 2, "maxMembers": 8}));
    together.go_on(2);
    assert_eq!(together.members("job"), 3);
    together.is_deleted("first");
    together.go_on(1200);
    assert_eq!(together.members("job"), 3);
}

#[test]
fn a_job_whose_members_may_not_be_made_goes_on_with_fewer() {
    let mut together = Together::new(four_cores(&["n", "m"]));
    together.quota = 5;
    together.submit("job", elastic(2, 8));
    together.go_on(600);
    assert_eq!(together.members("job"), 5);
    assert!(together.world.moves.is_empty(), "{:?}", together.world.moves);
}

#[test]
fn roles_that_may_not_change_stay_as_they_are() {
    let mut together = Together::new(four_cores(&["n", "m"]));
    let role = |name: &str, bounds: Value| {
        let container = json!({"name": "c", "resources": {"requests": {"cpu": "1"}}});
        let mut role = json!({"name": name, "template": {"spec": {"containers": [container]}}});
        role.as_object_mut().unwrap().extend(bounds.as_object().unwrap().clone());
        role
    };
    let workers = role("worker", json!({"minMembers": 1, "maxMembers": 16}));
    together.submit("job", json!({"roles": [role("evaluator", json!({"members": 2})), workers]}));
    together.go_on(2);
    let names = |role: &str| together.pods.keys().filter(|name| name.contains(role)).count();
    assert_eq!((names("evaluator"), names("worker")), (2, 6));
    assert_eq!(together.members("job"), 8);
}

#[test]
fn whoever_takes_the_lead_at_whatever_moment_goes_on() {
    for (moment, spec) in (0..12).flat_map(|moment| [(moment, elastic(2, 8)), (moment, joining(2, 8))]) {
        let mut together = Together::new(four_cores(&["n", "m"]));
        together.submit("job", spec);
        together.steps(moment);
        together.restart();
        together.go_on(600);
        assert_eq!(together.members("job"), 8, "after {moment} steps");
        together.submit("other", json!({"members": 4}));
        together.steps(moment);
        together.restart();
        together.go_on(400);
        assert_eq!((together.members("job"), together.members("other")), (4, 4), "after {moment} steps");
    }
}

#[test]
fn members_who_come_and_go_leave_the_others_alone() {
    let mut together = Together::new(four_cores(&["n", "m"]));
    together.submit("job", joining(2, 8));
    together.go_on(600);
    assert_eq!(together.members("job"), 8);
    assert_eq!(told(together.running("job").next().unwrap(), "PET_NNODES").as_deref(), Some("2:8"));
    let uids = |together: &Together| {
        let mut uids: Vec<_> =
            together.running("job").map(|pod| pod["metadata"]["uid"].to_string()).collect();
        uids.sort();
        uids
    };
    let all = uids(&together);
    together.submit("other", json!({"members": 4}));
    together.go_on(30);
    assert_eq!((together.members("job"), together.members("other")), (4, 4));
    let left = uids(&together);
    assert!(left.iter().all(|uid| all.contains(uid)), "{left:?} of {all:?}");
    assert!(together.pods.contains_key("job-worker-0"), "where the others meet");
    together.is_deleted("other");
    together.go_on(600);
    assert_eq!(together.members("job"), 8);
    let again = uids(&together);
    assert!(left.iter().all(|uid| again.contains(uid)), "{left:?} of {again:?}");
    let status = &together.jobs["job"]["status"];
    assert_eq!((&status["attempt"], &status["restarts"]), (&json!(0), &json!(0)), "{status}");
    let asked =
        |pod: &Value| pod["metadata"]["annotations"][REQUEST].as_str().is_some_and(|word| !word.is_empty());
    assert!(!together.running("job").any(asked), "nobody is asked to save its work any more");
}

#[test]
fn members_who_come_and_go_do_without_those_who_do_not_come() {
    let mut together = Together::new(four_cores(&["n", "m"]));
    together.quota = 5;
    together.submit("job", joining(2, 8));
    together.go_on(300);
    assert_eq!(together.members("job"), 5);
    together.quota = usize::MAX;
    together.is_deleted("job");
    together.submit("first", json!({"members": 5}));
    together.go_on(2);
    together.submit("late", joining(2, 8));
    together.go_on(200);
    assert_eq!(together.members("late"), 3);
    together.quota = 4;
    together.is_deleted("first");
    together.go_on(900);
    assert_eq!(together.members("late"), 4, "one more came, and four did not");
    assert!(together.world.moves.is_empty(), "{:?}", together.world.moves);
}

#[test]
fn a_member_that_is_lost_is_made_anew_and_joins_the_others() {
    let mut together = Together::new(four_cores(&["n", "m"]));
    together.submit("job", joining(2, 8));
    together.go_on(10);
    let before = together.pods["job-worker-1"]["metadata"]["uid"].clone();
    together.pod_gone("job-worker-5");
    together.go_on(10);
    assert_eq!(together.members("job"), 7, "they go on without it at first");
    together.go_on(300);
    assert_eq!(together.members("job"), 8);
    assert_eq!(together.pods["job-worker-1"]["metadata"]["uid"], before);
}

/// Jobs come and go, pods are lost, quotas and leaders change, at any moment; when that is over, everybody runs whole.
#[test]
fn whatever_happens_everybody_runs_in_the_end() {
    let seeds = std::env::var("METRONOME_CASES").ok().and_then(|cases| cases.parse().ok());
    for seed in 0..seeds.unwrap_or(50) {
        println!("seed {seed}");
        let mut dice = Pcg32::seed_from_u64(seed);
        let mut together = Together::new(four_cores(&["n", "m", "o"]));
        for _ in 0..30 {
            let name = format!("job{}", dice.random_range(0..4));
            match dice.random_range(0..8) {
                0..3 if together.jobs.contains_key(&name) => together.is_deleted(&name),
                0..3 => together.submit(&name, any_size(&mut dice)),
                3 | 4 => together.restart(),
                5 => together.quota = dice.random_range(4..16),
                _ => {
                    let pods: Vec<String> = together.pods.keys().cloned().collect();
                    if !pods.is_empty() {
                        together.pod_gone(&pods[dice.random_range(0..pods.len())]);
                    }
                }
            }
            match dice.random_bool(0.5) {
                true => together.steps(dice.random_range(0..8)),
                false => together.go_on(dice.random_range(0..200)),
            }
            together.is_consistent();
        }
        together.quota = usize::MAX;
        together.go_on(1500);
        let free = 12 - together.pods.values().filter(|pod| !pod["spec"]["nodeName"].is_null()).count();
        let spare: usize = together.jobs.keys().map(|job| together.could_give_back(job)).sum();
        for job in together.jobs.keys() {
            match together.jobs[job]["status"]["phase"].as_str() {
                Some("Running") => assert!(together.members(job) >= 1, "seed {seed}"),
                phase => assert!(
                    free + spare < together.least(job),
                    "seed {seed}: {job} is {phase:?}: {together:?}"
                ),
            }
        }
    }
}

fn any_size(dice: &mut Pcg32) -> Value {
    let min = dice.random_range(1..4);
    let max = dice.random_range(min + 1..10);
    match dice.random_range(0..4) {
        0 => json!({"members": min}),
        1 => json!({"minMembers": min, "maxMembers": max}),
        2 => elastic(min, max),
        _ => joining(min, max),
    }
}

use serde_json::{Value, json};

use super::*;
use crate::deed::{NewObject, Outcome};
use crate::objects::{Phase, TrainingJobObject};
use kube::api::{ApiResource, DynamicObject};

/// A cluster as far as the controller sees it: what it does is done at once.
struct Stage {
    controller: Controller,
    now: Instant,
    job: Value,
    pods: BTreeMap<String, Value>,
    next_uid: u32,
    made: usize,
}

impl Stage {
    fn new(spec: &Value) -> Self {
        let job = json!({
            "metadata": {"name": "job", "namespace": "a", "uid": "job-1", "generation": 1, "creationTimestamp": "1970-01-01T00:16:40Z"},
            "spec": spec,
        });
        let now = Instant::from_secs(1000);
        let mut stage = Self {
            controller: Controller::new("metronome"),
            now,
            job,
            pods: BTreeMap::new(),
            next_uid: 0,
            made: 0,
        };
        stage.settle();
        stage
    }

    /// A controller that knows nothing but what the API server says.
    fn restart(&mut self) {
        self.controller = Controller::new("metronome");
        let pods = self.pods.values().map(|pod| serde_json::from_value(pod.clone()).unwrap()).collect();
        self.controller.apply(Change::Member(Delta::Reset(pods)));
        self.settle();
    }

    fn read(&self) -> TrainingJob {
        let object: DynamicObject = serde_json::from_value(self.job.clone()).unwrap();
        TrainingJob::read(&ApiResource::erase::<TrainingJobObject>(&()), &object)
    }

    /// Does what is to be done until nothing is.
    fn settle(&mut self) {
        self.controller.apply(Change::TrainingJob(Delta::Applied(self.read())));
        for _ in 0..20 {
            let deeds = self.controller.turn(self.now);
            if deeds.is_empty() {
                return;
            }
            deeds.into_iter().for_each(|deed| self.carry_out(deed));
        }
        panic!("it never comes to rest");
    }

    fn carry_out(&mut self, Deed { ticket, kind }: Deed) {
        match kind {
            Kind::Status { status, .. } => {
                merge(&mut self.job["status"], &status);
                self.controller.apply(Change::TrainingJob(Delta::Applied(self.read())));
                self.controller.heard(self.now, &Outcome::Written { ticket });
            }
            Kind::Make(NewObject { name, plural: "pods", mut body, .. }) => {
                assert!(!self.pods.contains_key(&*name), "{name} would be there twice");
                self.made += 1;
                self.next_uid += 1;
                body["metadata"]["uid"] = json!(format!("pod-{}", self.next_uid));
                body["metadata"]["namespace"] = json!("a");
                self.pods.insert(name.to_string(), body);
                self.show(&name);
                self.controller.heard(self.now, &Outcome::Made { ticket });
            }
            Kind::Remove { object } if &*object.kind == "Pod" => {
                let pod = self.pods.remove(&*object.name).expect("it removes only what is there");
                self.controller.apply(Change::Member(Delta::Deleted(serde_json::from_value(pod).unwrap())));
            }
            Kind::Remove { .. } => {
                self.job["metadata"]["deletionTimestamp"] = json!("1970-01-01T00:20:00Z");
                self.controller.apply(Change::TrainingJob(Delta::Deleted(self.read())));
            }
            Kind::Make(_) => self.controller.heard(self.now, &Outcome::Made { ticket }),
            other => panic!("{other:?}"),
        }
    }

    fn show(&mut self, name: &str) {
        let pod = serde_json::from_value(self.pods[name].clone()).unwrap();
        self.controller.apply(Change::Member(Delta::Applied(pod)));
    }

    /// Something becomes of a pod.
    fn becomes(&mut self, name: &str, status: Value) {
        let pod = self.pods.get_mut(name).unwrap();
        pod["spec"]["nodeName"] = json!("node");
        pod["status"] = status;
        self.show(name);
    }

    fn all_run(&mut self) {
        let names: Vec<String> = self.pods.keys().cloned().collect();
        for name in names {
            self.becomes(&name, json!({"phase": "Running"}));
        }
        self.settle();
    }

    fn fails(&mut self, name: &str, code: i32) {
        let ended = json!([{"state": {"terminated": {"exitCode": code}}}]);
        self.becomes(name, json!({"phase": "Failed", "containerStatuses": ended}));
        self.settle();
    }

    fn is_taken_away(&mut self, name: &str) {
        let pod = self.pods.remove(name).unwrap();
        self.controller.apply(Change::Member(Delta::Deleted(serde_json::from_value(pod).unwrap())));
        self.settle();
    }

    fn wait(&mut self, seconds: u64) {
        self.now = self.now + Duration::from_secs(seconds);
        self.settle();
    }

    fn phase(&self) -> Phase {
        self.read().status.phase.expect("it always has one")
    }

    fn names(&self) -> Vec<&str> {
        self.pods.keys().map(String::as_str).collect()
    }

    fn status(&self) -> TrainingJobStatus {
        self.read().status
    }
}

fn merge(into: &mut Value, patch: &Value) {
    if !into.is_object() {
        *into = json!({});
    }
    for (key, value) in patch.as_object().unwrap() {
        match value {
            Value::Null => drop(into.as_object_mut().unwrap().remove(key)),
            value => into[key] = value.clone(),
        }
    }
}

fn two() -> Value {
    json!({"image": "train", "members": 2})
}

#[test]
fn a_job_has_its_pods_and_says_how_it_stands() {
    let mut stage = Stage::new(&two());
    assert_eq!(stage.names(), ["job-worker-0", "job-worker-1"]);
    assert_eq!(stage.phase(), Phase::Waiting);
    stage.all_run();
    assert_eq!((stage.phase(), stage.status().members.as_str()), (Phase::Running, "2/2"));
    stage.becomes("job-worker-0", json!({"phase": "Succeeded"}));
    stage.settle();
    assert_eq!(stage.phase(), Phase::Running, "one of two is not all");
    stage.becomes("job-worker-1", json!({"phase": "Succeeded"}));
    stage.settle();
    let status = stage.status();
    assert_eq!((status.phase, status.restarts), (Some(Phase::Succeeded), 0));
    assert_eq!(stage.names().len(), 2, "what has ended can be looked at");
}

#[test]
fn that_all_members_run_is_said_at_once() {
    let mut stage = Stage::new(&json!({"image": "train", "members": 3}));
    for name in ["job-worker-0", "job-worker-1", "job-worker-2"] {
        stage.becomes(name, json!({"phase": "Pending"}));
    }
    stage.settle();
    assert_eq!((stage.phase(), stage.status().members.as_str()), (Phase::Running, "0/3"));
    stage.becomes("job-worker-0", json!({"phase": "Running"}));
    stage.settle();
    assert_eq!(stage.status().members, "0/3", "a number alone can wait");
    stage.becomes("job-worker-1", json!({"phase": "Running"}));
    stage.becomes("job-worker-2", json!({"phase": "Running"}));
    stage.settle();
    assert_eq!(stage.status().members, "3/3");
}

#[test]
fn a_chief_decides_and_servers_leave_with_it() {
    let roles = json!([{"name": "ps"}, {"name": "chief"}, {"name": "worker", "members": 2}]);
    let mut stage = Stage::new(&json!({"image": "train", "roles": roles}));
    stage.all_run();
    stage.becomes("job-chief-0", json!({"phase": "Succeeded"}));
    stage.settle();
    assert_eq!(stage.phase(), Phase::Succeeded);
    assert_eq!(stage.names(), ["job-chief-0"], "the others are of no more use");
}

#[test]
fn a_failure_starts_all_again_with_longer_and_longer_pauses_until_it_is_too_much() {
    let mut stage = Stage::new(&json!({"image": "train", "members": 2, "backoffLimit": 2}));
    stage.all_run();
    stage.fails("job-worker-1", 1);
    assert_eq!((stage.status().restarts, stage.status().attempt, stage.made), (1, 1, 4));
    stage.all_run();
    stage.fails("job-worker-0", 1);
    assert_eq!((stage.phase(), stage.names().len()), (Phase::Restarting, 0), "not at once");
    stage.wait(9);
    assert_eq!(stage.names().len(), 0);
    stage.wait(2);
    assert_eq!(stage.names().len(), 2);
    stage.all_run();
    stage.fails("job-worker-0", 1);
    assert_eq!((stage.phase(), stage.status().restarts), (Phase::Failed, 2));
    assert_eq!(stage.names(), ["job-worker-0"], "the one that failed can be looked at");
}

#[test]
fn rules_say_which_failures_count() {
    let rules = json!([{"exitCodes": [42], "action": "Fail"}, {"exitCodes": [143], "action": "Ignore"}]);
    let mut stage =
        Stage::new(&json!({"image": "train", "members": 2, "backoffLimit": 0, "failures": rules}));
    stage.all_run();
    stage.fails("job-worker-1", 143);
    assert_eq!((stage.status().restarts, stage.status().attempt), (0, 1));
    stage.all_run();
    stage.fails("job-worker-1", 42);
    assert_eq!(stage.phase(), Phase::Failed);
    assert!(stage.status().message.ends_with("a rule of its own says that this is its end"));
}

#[test]
fn what_is_taken_away_is_not_the_jobs_fault() {
    let mut stage = Stage::new(&json!({"image": "train", "members": 2, "backoffLimit": 0}));
    stage.all_run();
    stage.is_taken_away("job-worker-0");
    assert_eq!((stage.status().restarts, stage.status().attempt), (0, 1));
    assert_eq!(stage.names().len(), 2);
    stage.all_run();
    let evicted = json!({"phase": "Failed", "conditions": [{"type": "DisruptionTarget", "status": "True", "message": "preempted"}]});
    stage.becomes("job-worker-0", evicted);
    stage.settle();
    assert_eq!((stage.status().restarts, stage.status().attempt), (0, 2));
}

#[test]
fn while_nobody_runs_what_is_missing_is_simply_made() {
    let mut stage = Stage::new(&two());
    stage.is_taken_away("job-worker-0");
    assert_eq!((stage.status().attempt, stage.names().len()), (0, 2));
}

#[test]
fn where_members_restart_alone_the_others_go_on() {
    let mut stage =
        Stage::new(&json!({"image": "train", "members": 2, "restart": "Member", "backoffLimit": 1}));
    stage.all_run();
    let other = stage.pods["job-worker-0"]["metadata"]["uid"].clone();
    stage.fails("job-worker-1", 1);
    assert_eq!((stage.status().restarts, stage.status().attempt), (1, 0));
    assert_eq!(stage.pods["job-worker-0"]["metadata"]["uid"], other);
    assert_eq!(stage.names().len(), 2);
    stage.all_run();
    stage.fails("job-worker-1", 1);
    assert_eq!(stage.phase(), Phase::Failed);
}

#[test]
fn whoever_takes_over_goes_on_where_the_one_before_was() {
    let mut stage = Stage::new(&two());
    stage.restart();
    assert_eq!(stage.made, 2, "nothing is made twice");
    stage.all_run();
    // The one before has recorded that all are to be made anew, and no more.
    stage.job["status"]["attempt"] = json!(1);
    stage.restart();
    assert_eq!((stage.made, stage.names().len()), (4, 2));
    assert_eq!(stage.status().attempt, 1);
}

#[test]
fn it_is_suspended_and_resumed() {
    let mut stage = Stage::new(&two());
    stage.all_run();
    stage.job["spec"]["suspend"] = json!(true);
    stage.settle();
    assert_eq!((stage.phase(), stage.names().len()), (Phase::Suspended, 0));
    stage.job["spec"]["suspend"] = json!(false);
    stage.settle();
    assert_eq!((stage.phase(), stage.names().len()), (Phase::Waiting, 2));
}

#[test]
fn a_deadline_that_is_over_ends_it_where_it_says_so() {
    let spec = |on_miss: &str| json!({"image": "train", "deadline": {"after": "10m"}, "onMiss": on_miss});
    for (on_miss, phase) in [("Run", Phase::Running), ("Suspend", Phase::Suspended), ("Fail", Phase::Failed)]
    {
        let mut stage = Stage::new(&spec(on_miss));
        stage.all_run();
        stage.wait(599);
        assert_eq!(stage.phase(), Phase::Running, "{on_miss}");
        stage.wait(2);
        assert_eq!(stage.phase(), phase, "{on_miss}");
    }
}

#[test]
fn it_is_deleted_when_it_has_been_over_for_long_enough() {
    let mut stage = Stage::new(&json!({"image": "train", "ttlSecondsAfterFinished": 60}));
    stage.becomes("job-worker-0", json!({"phase": "Succeeded"}));
    stage.settle();
    stage.wait(59);
    assert!(stage.job["metadata"]["deletionTimestamp"].is_null());
    stage.wait(2);
    assert!(stage.job["metadata"]["deletionTimestamp"].is_string());
}

#[test]
fn a_job_whose_service_was_only_just_made_is_deleted_in_time() {
    let mut stage = Stage::new(&json!({"image": "train", "ttlSecondsAfterFinished": 1}));
    stage.all_run();
    stage.becomes("job-worker-0", json!({"phase": "Succeeded"}));
    stage.settle();
    stage.wait(2);
    assert!(stage.job["metadata"]["deletionTimestamp"].is_string(), "the service has the same name");
}

/// Makes what is not a pod, and says which pods are to be made.
fn pods_asked_for(controller: &mut Controller, now: Instant) -> Vec<Ticket> {
    let mut pods = Vec::new();
    for Deed { ticket, kind } in controller.turn(now) {
        match kind {
            Kind::Make(NewObject { plural: "pods", .. }) => pods.push(ticket),
            Kind::Make(_) => controller.heard(now, &Outcome::Made { ticket }),
            _ => {}
        }
    }
    pods
}

#[test]
fn what_the_api_server_refuses_is_tried_later_and_later_with_one_pod() {
    let mut controller = Controller::new("metronome");
    controller.apply(Change::TrainingJob(Delta::Applied(Stage::new(&two()).read())));
    let mut now = Instant::from_secs(2000);
    let mut tried = Vec::new();
    for second in 0..20 {
        for ticket in pods_asked_for(&mut controller, now) {
            tried.push(second);
            controller.heard(now, &Outcome::NotMade { ticket, refusal: "quota".into() });
        }
        now = now + Duration::from_secs(1);
    }
    assert_eq!(tried, [0, 0, 1, 3, 7, 15]);
    now = now + Duration::from_secs(60);
    let probe = pods_asked_for(&mut controller, now);
    assert_eq!(probe.len(), 1);
    controller.heard(now, &Outcome::Made { ticket: probe[0] });
    assert_eq!(pods_asked_for(&mut controller, now).len(), 1, "the other is asked for at once");
}

#[test]
fn a_job_says_that_its_pods_are_refused_until_one_is_taken() {
    let mut controller = Controller::new("metronome");
    let mut stage = Stage::new(&two());
    stage.job["status"] = Value::Null;
    controller.apply(Change::TrainingJob(Delta::Applied(stage.read())));
    let mut now = Instant::from_secs(2000);
    let mut written = Vec::new();
    for _ in 0..60 {
        for Deed { ticket, kind } in controller.turn(now) {
            match kind {
                Kind::Make(NewObject { plural: "pods", .. }) => {
                    controller.heard(now, &Outcome::NotMade { ticket, refusal: "quota".into() });
                }
                Kind::Status { status, .. } => {
                    written.push(status["message"].as_str().unwrap().to_owned());
                    stage.job["status"] = status;
                    controller.apply(Change::TrainingJob(Delta::Applied(stage.read())));
                    controller.heard(now, &Outcome::Written { ticket });
                }
                _ => controller.heard(now, &Outcome::Made { ticket }),
            }
        }
        now = now + Duration::from_millis(500);
    }
    assert_eq!(written, ["its pods are made", "the API server does not take its pods: quota"]);
}

#[test]
fn a_service_that_is_refused_alone_is_tried_again() {
    let mut controller = Controller::new("metronome");
    let mut stage = Stage::new(&two());
    let pods = std::mem::take(&mut stage.pods);
    controller.apply(Change::TrainingJob(Delta::Applied(stage.read())));
    let mut now = Instant::from_secs(2000);
    let mut tried = Vec::new();
    for second in 0..20 {
        for Deed { ticket, kind } in controller.turn(now) {
            match kind {
                Kind::Make(NewObject { plural: "services", .. }) => {
                    tried.push(second);
                    let refused = Outcome::NotMade { ticket, refusal: "quota".into() };
                    let outcome = if second < 5 { refused } else { Outcome::Made { ticket } };
                    controller.heard(now, &outcome);
                }
                Kind::Make(NewObject { name, .. }) => {
                    let pod = serde_json::from_value(pods[&*name].clone()).unwrap();
                    controller.apply(Change::Member(Delta::Applied(pod)));
                    controller.heard(now, &Outcome::Made { ticket });
                }
                _ => {}
            }
        }
        now = now + Duration::from_secs(1);
    }
    assert_eq!(tried, [0, 1, 3, 7], "later and later, until it is taken");
}

#[test]
fn while_the_api_server_is_slow_nothing_is_asked_for_twice() {
    let mut controller = Controller::new("metronome");
    controller.apply(Change::TrainingJob(Delta::Applied(Stage::new(&two()).read())));
    let mut now = Instant::from_secs(2000);
    let asked = controller.turn(now);
    assert_eq!(asked.len(), 3, "a service and two pods");
    for _ in 0..60 {
        now = now + Duration::from_secs(5);
        assert!(controller.turn(now).is_empty(), "there is no answer yet");
    }
    asked.iter().for_each(|deed| controller.heard(now, &Outcome::Made { ticket: deed.ticket }));
    now = now + Duration::from_secs(59);
    assert!(controller.turn(now).is_empty(), "they are about to be seen");
    now = now + Duration::from_secs(1);
    let again = controller.turn(now);
    assert_eq!(again.len(), 2, "the pods are not to be seen: {again:?}");
}

#[test]
fn one_status_is_written_at_a_time() {
    let mut controller = Controller::new("metronome");
    let mut stage = Stage::new(&two());
    stage.job["status"] = Value::Null;
    let mut written = Vec::new();
    for generation in 1..4 {
        stage.job["metadata"]["generation"] = json!(generation);
        controller.apply(Change::TrainingJob(Delta::Applied(stage.read())));
        let deeds = controller.turn(Instant::from_secs(2000 + generation));
        written.extend(deeds.into_iter().filter(|deed| matches!(deed.kind, Kind::Status { .. })));
    }
    assert_eq!(written.len(), 1);
    controller.heard(Instant::from_secs(2010), &Outcome::Written { ticket: written[0].ticket });
    let next = controller.turn(Instant::from_secs(2010));
    let [Deed { kind: Kind::Status { status, .. }, .. }] = &next[..] else { panic!("{next:?}") };
    assert_eq!(status["observedGeneration"], json!(3), "the last of them counts");
}

#[test]
fn whoever_is_named_says_that_a_job_makes_no_sense() {
    let spec = json!({"schedulerName": "other", "image": "train", "roles": [{"name": "ps"}]});
    let mut stage = Stage::new(&spec);
    assert!(stage.job["status"].is_null(), "it is not ours");
    stage.controller = Controller::new("other");
    stage.settle();
    assert_eq!(stage.job["status"]["phase"], json!("Refused"));
}

#[test]
fn variables_tell_members_how_to_find_each_other() {
    let roles = json!([{"name": "ps"}, {"name": "worker", "members": 2}, {"name": "chief"}]);
    let stage = Stage::new(&json!({"image": "train", "roles": roles, "port": 4000, "rendezvous": "MPI"}));
    let said = |pod: &str, name: &str| {
        let all = stage.pods[pod]["spec"]["containers"][0]["env"].as_array().unwrap();
        all.iter().find(|one| one["name"] == name).map(|one| one["value"].as_str().unwrap().to_owned())
    };
    assert_eq!(said("job-worker-1", "RANK").as_deref(), Some("2"), "a chief comes first");
    assert_eq!(said("job-worker-1", "WORLD_SIZE").as_deref(), Some("3"));
    assert_eq!(said("job-worker-1", "MASTER_ADDR").as_deref(), Some("job-chief-0.job"));
    assert_eq!(said("job-ps-0", "RANK"), None, "servers have no rank");
    let config: Value = serde_json::from_str(&said("job-ps-0", "TF_CONFIG").unwrap()).unwrap();
    assert_eq!(config["cluster"]["worker"], json!(["job-worker-0.job:4000", "job-worker-1.job:4000"]));
    assert_eq!(config["task"], json!({"type": "ps", "index": 0}));
    assert_eq!(
        said("job-worker-0", "OMPI_MCA_orte_default_hostfile").as_deref(),
        Some("/etc/metronome/hostfile")
    );
    let mounts = &stage.pods["job-worker-0"]["spec"]["containers"][0]["volumeMounts"];
    assert_eq!(mounts[0]["mountPath"], "/etc/metronome");
}

#[test]
fn members_find_their_turn_and_whom_to_report_to_unless_they_know_better() {
    let stage = Stage::new(&two());
    let pod = &stage.pods["job-worker-0"]["spec"];
    let turn =
        json!({"path": "turn.json", "fieldRef": {"fieldPath": "metadata.annotations['metronome.dev/turn']"}});
    assert_eq!(pod["volumes"][0], json!({"name": "metronome-turn", "downwardAPI": {"items": [turn]}}));
    assert_eq!(pod["volumes"][1], json!({"name": "metronome", "emptyDir": {}}));
    let variables = |pod: &Value| pod["containers"][0]["env"].as_array().cloned().unwrap_or_default();
    let said = |name: &str| variables(pod).into_iter().find(|one| one["name"] == name).unwrap();
    let mounted = pod["containers"][0]["volumeMounts"].as_array().unwrap();
    assert!(mounted.iter().any(|mount| mount["mountPath"] == said("METRONOME_DIR")["value"]));
    assert_eq!(said("METRONOME_SOCKET")["value"], "/run/metronome/agent/socket");
    assert_eq!(said("METRONOME_TOKEN")["valueFrom"]["fieldRef"]["fieldPath"], "metadata.uid");

    let own = json!({"name": "metronome", "configMap": {"name": "mine"}});
    let template = json!({"spec": {"containers": [{"name": "main", "image": "train"}], "volumes": [own]}});
    let stage = Stage::new(&json!({"members": 1, "template": template}));
    let pod = &stage.pods["job-worker-0"]["spec"];
    assert_eq!(pod["volumes"], json!([own]));
    assert!(variables(pod).iter().all(|one| one["name"] != "METRONOME_DIR"));
    let stage = Stage::new(&json!({"image": "train", "rendezvous": "None"}));
    assert_eq!(stage.pods["job-worker-0"]["spec"]["volumes"], Value::Null, "it wants to be told nothing");
}

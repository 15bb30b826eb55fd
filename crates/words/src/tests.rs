//! Golden words for every reason, and for whole explanations.

mod foreseen;

use std::sync::Arc;

use metronome_core::model::cluster::{Level, Name};
use metronome_core::model::id::{JobId, NodeId, QueueId};
use metronome_core::model::job::{Gang, JobSpec, Priority};
use metronome_core::model::plan::{Assignment, Part};
use metronome_core::model::units::{Cpu, Duration, Gpus, Instant, Memory, Resources, Share};

use super::*;

/// A world in which things are called by their number.
struct Numbered;

impl Names for Numbered {
    fn job(&self, id: JobId) -> Option<Name> {
        (id.0 < 100).then(|| Arc::from(format!("job-{}", id.0)))
    }
    fn node(&self, id: NodeId) -> Name {
        Arc::from(format!("node-{}", id.0))
    }
    fn queue(&self, id: QueueId) -> Name {
        Arc::from(format!("queue-{}", id.0))
    }
    fn level(&self, level: Level) -> Name {
        Arc::from(if level.0 == 0 { "rack" } else { "node" })
    }
}

fn gpus(count: u64) -> Resources {
    Resources { gpus: Gpus::whole(count), ..Resources::NONE }
}

#[test]
fn every_reason_is_a_sentence() {
    let queue = QueueId(2);
    let each = Resources { gpus: Gpus::whole(1), cpu: Cpu::cores(8), memory: Memory::gib(32) };
    let table = [
        (Reason::Gated, "its owner has not released it yet"),
        (
            Reason::ExceedsQuota { queue, need: gpus(16), quota: gpus(8) },
            "it needs 16 GPUs, and queue `queue-2` may never hold more than 8 GPUs",
        ),
        (
            Reason::NoMatchingNode { each, members: 4, fit: 2 },
            "it needs 4 members of 1 GPU, 8 CPUs, 32Gi each, and even if all nodes were free only 2 would fit",
        ),
        (
            Reason::WaitingForQuota { queue, user: None, need: gpus(4), left: Resources::NONE },
            "it needs 4 GPUs, and queue `queue-2` has nothing left of its quota",
        ),
        (
            Reason::WaitingForQuota {
                queue,
                user: None,
                need: gpus(4),
                left: Resources { cpu: Cpu(u64::MAX - 8000), memory: Memory(u64::MAX), gpus: Gpus::whole(2) },
            },
            "it needs 4 GPUs, and queue `queue-2` has 2 GPUs left of its quota",
        ),
        (
            Reason::WaitingForQuota { queue, user: Some("lab7".into()), need: gpus(4), left: gpus(2) },
            "it needs 4 GPUs, and `lab7` has 2 GPUs left in queue `queue-2`",
        ),
        (
            Reason::InsufficientResources { each: gpus(2), members: 4, fit: 3 },
            "it needs 4 members of 2 GPUs each, and only 3 would fit now",
        ),
        (
            Reason::InsufficientResources { each: gpus(2), members: 1, fit: 0 },
            "it needs one member of 2 GPUs, and none would fit now",
        ),
        (
            Reason::TopologyUnsatisfied { level: Level(0), members: 8, best: 6 },
            "its 8 members must share one rack, and only 6 would fit into the best rack now",
        ),
        (
            Reason::AffinityUnsatisfied { members: 4, fit: 2 },
            "its 4 members must be near others, and only 2 would find room there now",
        ),
        (
            Reason::AntiAffinityUnsatisfied { members: 1, fit: 0 },
            "its 1 member must keep away from others, and none would find room elsewhere now",
        ),
        (
            Reason::SpreadUnsatisfied { members: 4, fit: 3 },
            "its 4 members must be spread evenly, and only 3 would find room where that is so now",
        ),
        (Reason::WaitingForVictims, "its place is chosen, and others have yet to leave it"),
        (
            Reason::BookedFrom { from: Instant::from_secs(60), members: 4, margin: Duration::from_secs(600) },
            "4 members are booked for it later, with which it will be done 10m before its deadline",
        ),
        (
            Reason::DeadlineInfeasible {
                deadline: Instant::from_secs(60),
                earliest: Some(Instant::from_secs(90)),
            },
            "it cannot be done by its deadline beside those who were taken on before: at the earliest 30s after it",
        ),
        (
            Reason::DeadlineInfeasible { deadline: Instant::from_secs(60), earliest: None },
            "it can no longer be done by its deadline",
        ),
        (
            Reason::ReservedUntil { ahead: JobId(3), until: Instant::from_secs(60) },
            "there is room for it, but that is kept for `job-3`, which is ahead of it and has waited long",
        ),
        (
            Reason::BehindHigherPriority { ahead: JobId(3) },
            "the line is served in order, and `job-3` ahead of it still waits",
        ),
        (
            Reason::BehindHigherPriority { ahead: JobId(300) },
            "the line is served in order, and a job ahead of it still waits",
        ),
        (
            Reason::StartFailed { times: 2, failure: Failure::NodeGone },
            "starting it failed 2 times, the last time because a node was gone",
        ),
        (Reason::NodeLost { node: NodeId(4) }, "node `node-4` under it is gone"),
        (
            Reason::Stalled { since: Instant::from_secs(600), silent: Duration::from_secs(720) },
            "nothing was heard of it for 12m, longer than ten of its iterations take: it seems to hang, and nobody counts on it \
             until it reports again; see what its members do, and stop it if they do nothing",
        ),
        (Reason::TrainingFailed, "it started, and its training code failed"),
        (Reason::TooManyJobs { most: 9 }, "there are 9 jobs already, as many as can be kept track of"),
        (Reason::SchedulerError, "the last plan broke a rule and was thrown away: a bug, please report it"),
    ];
    for (reason, words) in table {
        assert_eq!(sentence(&reason, &Numbered), words);
    }
}

fn ahead(job: &str, priority: Priority) -> JobAhead {
    JobAhead { job: Arc::from(job), priority, waited: Duration::from_secs(600), left: None }
}

fn waiting() -> Explanation {
    Explanation {
        job: Arc::from("bert"),
        state: State::Queued,
        submitted: Instant::from_secs(120),
        waited: Duration::from_secs(480),
        reason: Some(Reason::InsufficientResources { each: gpus(1), members: 4, fit: 2 }),
        need: gpus(4),
        free: gpus(2),
        lacks: Vec::new(),
        position: Some(5),
        priority: Priority::NORMAL,
        ahead: vec![ahead("a", Priority::HIGH), ahead("b", Priority::NORMAL), ahead("c", Priority(7))],
        best: Some(BestDomain { level: Level(0), domain: Arc::from("rack-1"), fit: 2, members: 4 }),
        avoided: Vec::new(),
        awaits: Vec::new(),
        assignment: None,
        unwell: Vec::new(),
        unconfirmed: Vec::new(),
        due: None,
        learned: None,
    }
}

#[test]
fn a_job_with_a_place_hears_who_has_yet_to_leave_it() {
    let awaits = ["a", "b"].map(Arc::from).to_vec();
    let explanation =
        Explanation { reason: Some(Reason::WaitingForVictims), awaits, best: None, ..waiting() };
    let text = lines(&explanation, &Numbered);
    assert!(text.contains("others have yet to leave it\nawaits     `a`, `b`\n"), "{text}");
    let json = serde_json::to_value(document(&explanation, &Numbered)).unwrap();
    assert_eq!(json["awaits"], serde_json::json!(["a", "b"]));
}

#[test]
fn a_job_hears_what_is_not_well_under_it() {
    let unwell = |is| vec![NodeProblem { node: NodeId(4), is }];
    let said = |is| {
        let text = lines(&Explanation { unwell: unwell(is), ..running() }, &Numbered);
        text.lines().find_map(|line| line.strip_prefix("unwell     ")).unwrap().to_owned()
    };
    assert_eq!(
        said(NodeCondition::Slow { speed: Speed(666_667) }),
        "node `node-4` is slow: members there take 1.50 times as long for an iteration as others; it goes elsewhere where \
         that pays"
    );
    assert_eq!(
        said(NodeCondition::Draining { within: Some(Duration::from_secs(600)) }),
        "node `node-4` goes in 10m; whoever can be moved leaves it before"
    );
    assert_eq!(
        said(NodeCondition::Draining { within: None }),
        "node `node-4` is about to go; whoever can be moved leaves it before"
    );
}

#[test]
fn a_job_that_waits_hears_of_nodes_that_are_avoided() {
    let failed = ["a", "b", "c"].map(Arc::from).to_vec();
    let avoided = vec![AvoidedNode { node: NodeId(4), failed, lasts: Duration::from_secs(600) }];
    let text = lines(&Explanation { avoided, ..waiting() }, &Numbered);
    let said = "avoided    node `node-4` takes nothing new for 10m: these failed there and nowhere else: `a`, `b`, `c`\n";
    assert!(text.contains(said), "{text}");
}

#[test]
fn a_job_hears_what_it_still_learns_and_whether_it_is_believed() {
    let learned = LearningReport {
        category: Category::Converged,
        left: Some(Duration::from_secs(600)),
        gains_in_an_hour: Some(Share(3_200)),
        is_believed: true,
        odd: 0,
    };
    let said = |learned: &LearningReport| {
        let text = lines(&Explanation { learned: Some(learned.clone()), ..waiting() }, &Numbered);
        text.lines().find_map(|line| line.strip_prefix("progress   ")).unwrap().to_owned()
    };
    let hardly = "it hardly learns any more; another hour alone would take 0.3 % off its metric, 0.08 % for each GPU-hour: it is \
         nearly as good as it will be, and its owner may want to stop it; 10m of work left";
    assert_eq!(said(&learned), hardly);
    let lies = LearningReport { is_believed: false, odd: 2, ..learned };
    let doubt =
        ", which is not believed: it has used more than twice what it was to need; 2 reports made no sense";
    assert_eq!(said(&lies), format!("{hardly}{doubt}"));
}

fn running() -> Explanation {
    let spec = JobSpec::workers("bert", Gang::rigid(4).unwrap(), gpus(1));
    let part = |node, members| Part::of(0, NodeId(node), members);
    Explanation {
        state: State::Running,
        reason: None,
        position: None,
        ahead: Vec::new(),
        best: None,
        assignment: Some(Assignment::whole(&spec, vec![part(7, 1), part(1, 3)]).unwrap()),
        ..waiting()
    }
}

#[test]
fn a_waiting_job_hears_what_it_needs_and_who_is_ahead() {
    assert_eq!(
        lines(&waiting(), &Numbered),
        "job        bert\n\
         state      queued: it waits for its turn and for room\n\
         submitted  2m after the beginning\n\
         waited     8m\n\
         reason     it needs 4 members of 1 GPU each, and only 2 would fit now\n\
         need       4 GPUs; free now: 2 GPUs\n\
         best       rack `rack-1`, with room for 2 of its 4 members\n\
         line       place 5 with priority normal, behind a (high, waited 10m), b (normal, waited 10m), \
         c (7, waited 10m) and 1 more\n"
    );
}

#[test]
fn a_running_job_hears_where_it_runs() {
    assert_eq!(
        lines(&running(), &Numbered),
        "job        bert\n\
         state      running: all its members run\n\
         submitted  2m after the beginning\n\
         waited     8m\n\
         need       4 GPUs; free now: 2 GPUs\n\
         nodes      node-1 (3 members), node-7 (1 member)\n"
    );
}

#[test]
fn of_a_job_that_is_over_only_the_past_is_told() {
    let reason = Some(Reason::NoMatchingNode { each: gpus(1), members: 4, fit: 2 });
    let refused = Explanation { state: State::Refused, reason, position: None, best: None, ..waiting() };
    assert_eq!(
        lines(&refused, &Numbered),
        "job        bert\n\
         state      refused: it will not be run\n\
         submitted  2m after the beginning\n\
         reason     it needs 4 members of 1 GPU each, and even if all nodes were free only 2 would fit\n"
    );
}

#[test]
fn programs_get_the_same_facts() {
    let json = serde_json::to_value(document(&waiting(), &Numbered)).unwrap();
    assert_eq!(json["reason"]["name"], "InsufficientResources");
    assert_eq!(json["submitted_s"], 120.0);
    assert_eq!(json["need"]["gpus"], 4.0);
    assert_eq!(json["ahead"][2], "c");
    assert_eq!(
        json["ahead_because"][0],
        serde_json::json!({"priority": 100, "waited_s": 600.0, "left_s": null})
    );
    assert_eq!(json["best"]["domain"], "rack-1");
    assert!(json["forecast"].is_null());
    let json = serde_json::to_value(document(&running(), &Numbered)).unwrap();
    assert_eq!(json["nodes"][0], serde_json::json!({"node": "node-1", "members": 3}));
    assert!(json["reason"].is_null());
}

#[test]
fn where_the_order_goes_by_what_is_left_that_is_said() {
    let shortest = JobAhead { left: Some(Duration::from_secs(90)), ..ahead("a", Priority::NORMAL) };
    let waiting = Explanation { position: Some(2), ahead: vec![shortest], ..waiting() };
    let text = lines(&waiting, &Numbered);
    assert!(text.contains("behind a (normal, waited 10m, 1m 30s left)\n"), "{text}");
}

#[test]
fn one_line_says_need_free_and_who_is_ahead() {
    let line = one_line(&waiting(), &Numbered);
    assert!(line.starts_with("it needs "), "{line}");
    assert!(
        line.contains("; need ") && line.contains(", free now ") && line.contains("behind a, b, c"),
        "{line}"
    );
}

#[test]
fn a_job_hears_whether_it_will_be_in_time_and_what_would_save_it() {
    let due = DeadlinePrediction {
        deadline: Instant::from_secs(3600),
        verdict: Some(DeadlineVerdict::Promised),
        ends: Some(Instant::from_secs(3000)),
        enough: Some(2),
        error: Share(80_000),
        earliest: None,
        in_the_way: Vec::new(),
    };
    let said = |due: &DeadlinePrediction| {
        let text = lines(&Explanation { due: Some(due.clone()), ..waiting() }, &Numbered);
        text.lines().find_map(|line| line.strip_prefix("deadline   ")).unwrap().to_owned()
    };
    assert_eq!(said(&due), "promised: done 10m before it, whoever comes; predictions were off by up to 8 %");
    let planned =
        DeadlinePrediction { verdict: Some(DeadlineVerdict::Planned), error: Share::NONE, ..due.clone() };
    assert_eq!(said(&planned), "planned: done 10m before it, unless others need its place");
    let pending =
        DeadlinePrediction { verdict: Some(DeadlineVerdict::Pending), error: Share::NONE, ..due.clone() };
    assert_eq!(said(&pending), "nothing is booked for it: in time with 2 members from now on");
    let saved = DeadlinePrediction {
        earliest: Some(Instant::from_secs(4200)),
        in_the_way: vec!["bert".into(), "gpt".into()],
        ..pending.clone()
    };
    assert_eq!(
        said(&saved),
        "nothing is booked for it: in time with 2 members from now on; a deadline 10m later can be kept; so can its \
         own without `bert` or `gpt`"
    );
    let late = DeadlinePrediction { ends: Some(Instant::from_secs(3660)), enough: None, ..pending };
    assert_eq!(said(&late), "nothing is booked for it: at its fastest done 1m after it");
    let unseen = DeadlinePrediction { verdict: None, ..late };
    assert_eq!(said(&unseen), "nobody sees to it: at its fastest done 1m after it");
}

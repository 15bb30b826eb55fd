//! Real PyTorch with our SDK: DistributedDataParallel jobs that make room, are killed and change their size.
//!
//! What a disturbed job ends with is compared with an undisturbed run of the same program.

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use serde_json::Value;

use crate::ground::{Ground, Ran, kill};
use crate::pytorch::{PYTHON, ground};

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sdk/python/src");
const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/local/train_with_sdk.py");
const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sdk/python/examples/pytorch.py");

const ITERATIONS: u64 = 120;

/// A job is disturbed when it has done so many.
const DISTURBED_AFTER: usize = 40;

/// `SAVE_EVERY` of the program.
const SAVE_EVERY: u64 = 25;

/// Sums of more than two numbers depend on their order, and thus on which member adds up what.
const ROUNDING: f64 = 1e-5;

/// A member that does not leave by itself is killed after 10 s; a new start of PyTorch beside others takes a few.
const LONGEST_LEAVE: Duration = Duration::from_secs(8);

/// What members find the SDK and their settings by.
fn environment() -> [(&'static str, &'static str); 2] {
    [("PYTHONPATH", SOURCE), ("PYTHONDONTWRITEBYTECODE", "1")]
}

fn cluster(nodes: u32) -> String {
    format!(
        "
apiVersion: metronome.dev/v1alpha1
kind: Cluster
metadata: {{name: lab}}
spec: {{levels: [node], nodes: [{{count: {nodes}, cpu: 4, memory: 8Gi, gpus: 1}}], links: {{node: 50Gbps}}}}
"
    )
}

/// A job of which each member fills a node.
fn job(name: &str, command: &str, says: &str) -> String {
    format!(
        "---
apiVersion: metronome.dev/v1alpha1
kind: TrainingJob
metadata: {{name: {name}, annotations: {{metronome.dev/submit-after: {after}}}}}
spec:
  backoffLimit: 1
  resources: {{cpu: 2, memory: 4Gi, nvidia.com/gpu: 1}}
  command: {command}
  work: {{duration: 1h}}
{says}
",
        after = if name == "newcomer" { "500ms" } else { "0s" }
    )
}

/// A training that may be stopped, moved and resized. `members` says how many there are of it.
fn training(name: &str, folder: &Path, members: &str) -> String {
    let out = folder.join(name);
    fs::create_dir(&out).unwrap();
    let command = format!("[{PYTHON}, {PROGRAM}, {}, '{ITERATIONS}']", out.display());
    job(name, &command, &format!("  checkpoint: {{takes: 1ms, restart: 10ms}}\n  {members}"))
}

/// A file ends the first of two jobs. Then there is room for the second one, which waits from the beginning, if the training
/// makes room for it: so a test chooses when.
struct Newcomer {
    go: PathBuf,
}

impl Newcomer {
    fn new(ground: &Ground) -> Self {
        Self { go: ground.folder.path().join("go") }
    }

    /// Of all nodes one has the job that is waited for; the newcomer needs it and others.
    fn jobs(&self, members: u32, priority: &str) -> String {
        let waits = format!("[sh, -c, 'until test -e {}; do sleep 0.02; done']", self.go.display());
        let filler = job("filler", &waits, "  members: 1\n  priorityClassName: high");
        let says = format!("  members: {members}\n  priorityClassName: {priority}");
        filler + &job("newcomer", "[sleep, '0.2']", &says)
    }

    /// Lets it come.
    fn come(&self) {
        fs::write(&self.go, "").unwrap();
    }
}

/// An iteration that a member has done.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Done {
    attempt: u64,
    members: u64,
    step: u64,
    loss: f64,
}

/// All that a member has done, in all its starts.
fn trace(folder: &Path, job: &str, rank: usize) -> Vec<Done> {
    let text = fs::read_to_string(folder.join(job).join(format!("trace-{rank}"))).unwrap_or_default();
    let lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    let done = lines.map(|line| {
        let entry: Value = serde_json::from_str(line).unwrap();
        let number = |name: &str| entry[name].as_u64().unwrap();
        let loss = entry["loss"].as_f64().unwrap();
        Done { attempt: number("attempt"), members: number("members"), step: number("step"), loss }
    });
    done.collect()
}

/// What a training has come to.
#[derive(Clone, Debug, PartialEq)]
struct Learned {
    loss: f64,
    parameters: Vec<f64>,
    /// By iteration.
    losses: Vec<f64>,
}

impl Learned {
    fn read(folder: &Path, job: &str) -> Self {
        let text = fs::read_to_string(folder.join(job).join("result.json")).unwrap();
        let result: Value = serde_json::from_str(&text).unwrap();
        let parameters = result["parameters"].as_array().unwrap().iter().filter_map(Value::as_f64).collect();
        let last: BTreeMap<u64, f64> =
            trace(folder, job, 0).into_iter().map(|done| (done.step, done.loss)).collect();
        assert_eq!(last.len() as u64, ITERATIONS);
        Self { loss: result["loss"].as_f64().unwrap(), parameters, losses: last.into_values().collect() }
    }

    /// How far it is from another: the largest difference of a loss, and that of all parameters, each as a part.
    fn difference(&self, other: &Self) -> f64 {
        let losses = self.losses.iter().zip(&other.losses);
        let of_losses = losses.map(|(own, other)| (own - other).abs() / other.abs()).fold(0.0, f64::max);
        let length =
            |values: &mut dyn Iterator<Item = f64>| values.map(|value| value * value).sum::<f64>().sqrt();
        let pairs = self.parameters.iter().zip(&other.parameters);
        let apart = length(&mut pairs.map(|(own, other)| own - other));
        of_losses.max(apart / length(&mut other.parameters.iter().copied()))
    }
}

/// Trainings of two and of four members that nobody disturbs, run once for all tests.
fn undisturbed(beside: &Ground, members: u32) -> &'static Learned {
    static LEARNED: OnceLock<BTreeMap<u32, Learned>> = OnceLock::new();
    let train = || {
        let ground = beside.beside();
        let folder = ground.folder.path();
        let (two, four) = (training("two", folder, "members: 2"), training("four", folder, "members: 4"));
        let scenario = ground.scenario(&format!("{}{two}{four}", cluster(6)));
        let ran = ground.finish(&mut ground.start_with(&scenario, &[], &environment()));
        ran.assert_all_completed();
        let learned = [(2, "two"), (4, "four")].map(|(members, name)| {
            assert_eq!(ran.job(name)["starts"], 1, "{}", ran.said);
            let learned = Learned::read(folder, name);
            let (first, last) = (learned.losses[0], learned.loss);
            eprintln!("{members} members, undisturbed: the loss falls from {first} to {last}");
            assert!(last < 0.1 * first, "it does not learn");
            (members, learned)
        });
        ground.assert_clean();
        learned.into()
    };
    &LEARNED.get_or_init(train)[&members]
}

/// A training in a world that disturbs it.
struct Disturbed<'a> {
    ground: &'a Ground,
    scheduler: Child,
}

impl<'a> Disturbed<'a> {
    /// Starts the world and waits until the job `ddp` is on its way.
    fn start(ground: &'a Ground, scenario: &str) -> Self {
        let scheduler = ground.start_with(&ground.scenario(scenario), &[], &environment());
        let folder = ground.folder.path();
        ground.wait_until(|| trace(folder, "ddp", 0).len() >= DISTURBED_AFTER);
        Self { ground, scheduler }
    }

    fn finish(mut self) -> Ran {
        let ran = self.ground.finish(&mut self.scheduler);
        ran.assert_all_completed();
        let job = ran.job("ddp");
        assert_eq!(job["starts"], 2, "{job} {}", ran.said);
        // The agent was told by the members, and has told the scheduler.
        assert!(job["iterations"].as_u64() > Some(ITERATIONS / 2), "{job}");
        self.ground.assert_clean();
        ran
    }
}

/// Each iteration was done once by each member, though the job was started twice; how many in the first start.
fn assert_each_done_once(folder: &Path, members: [u64; 2]) -> u64 {
    let done = trace(folder, "ddp", 0);
    let steps: Vec<u64> = done.iter().map(|done| done.step).collect();
    assert_eq!(steps, (0..ITERATIONS).collect::<Vec<u64>>(), "each iteration once, in its order");
    let first = done.iter().filter(|done| done.attempt == 1).count() as u64;
    assert!(first >= DISTURBED_AFTER as u64 && first < ITERATIONS, "it left after {first} iterations");
    for done in &done {
        let start = usize::from(done.step >= first);
        assert_eq!((done.attempt, done.members), (1 + start as u64, members[start]), "{done:?}");
    }
    for rank in 1..members[0].max(members[1]) {
        let of_both = members.iter().zip([0..first, first..ITERATIONS]);
        let steps: Vec<u64> =
            of_both.filter(|(members, _)| rank < **members).flat_map(|(_, steps)| steps).collect();
        let own: Vec<u64> = trace(folder, "ddp", rank as usize).iter().map(|done| done.step).collect();
        assert_eq!(own, steps, "member {rank} does what the first one does");
    }
    first
}

/// Members that were asked have left by themselves, without an error.
fn assert_left_well(ground: &Ground, ran: &Ran, members: u64) {
    let at = |name: &str, when: &str| Duration::from_nanos(ran.job(name)[when].as_u64().unwrap());
    let took = at("newcomer", "started") - at("filler", "ended");
    assert!(took < LONGEST_LEAVE, "they left after {took:?}");
    eprintln!("all {members} members have saved and left {took:?} after there was reason to");
    for rank in 0..members {
        let log = ground.of_job("ddp").join(format!("worker-{rank}.attempt-1.log"));
        assert_eq!(fs::read_to_string(&log).unwrap(), "", "{}", log.display());
    }
}

/// A job of a higher priority needs all nodes.
fn makes_room_and_goes_on(members: u32, tolerance: f64) {
    let Some(ground) = ground() else { return };
    let folder = ground.folder.path();
    let newcomer = Newcomer::new(&ground);
    let jobs = newcomer.jobs(members + 1, "high") + &training("ddp", folder, &format!("members: {members}"));
    let disturbed = Disturbed::start(&ground, &format!("{}{jobs}", cluster(members + 1)));
    newcomer.come();
    let ran = disturbed.finish();
    let first = assert_each_done_once(folder, [members.into(); 2]);
    assert_left_well(&ground, &ran, members.into());
    let (learned, undisturbed) = (Learned::read(folder, "ddp"), undisturbed(&ground, members));
    let difference = learned.difference(undisturbed);
    eprintln!("left after {first} iterations; the end differs by {difference:e}: {}", learned.loss);
    assert!(difference <= tolerance, "{} or {}", learned.loss, undisturbed.loss);
}

#[test]
fn two_members_that_make_room_end_with_the_parameters_of_an_undisturbed_run() {
    makes_room_and_goes_on(2, 0.0);
}

#[test]
fn four_members_that_make_room_end_with_those_of_an_undisturbed_run_but_for_rounding() {
    makes_room_and_goes_on(4, ROUNDING);
}

#[test]
fn a_gang_of_which_a_member_is_killed_goes_on_from_its_last_checkpoint() {
    let Some(ground) = ground() else { return };
    let folder = ground.folder.path();
    let scenario = format!("{}{}", cluster(2), training("ddp", folder, "members: 2"));
    let disturbed = Disturbed::start(&ground, &scenario);
    let reached = trace(folder, "ddp", 0).len() as u64;
    let members = ground.members_that_run("train_with_sdk.py");
    kill(members[&("default/ddp".to_owned(), "worker-1".to_owned())][0]);
    let ran = disturbed.finish();
    assert_eq!(ran.job("ddp")["why"], "worker-1 was killed by signal 9");
    for rank in 0..2 {
        let (before, after): (Vec<Done>, Vec<Done>) =
            trace(folder, "ddp", rank).into_iter().partition(|done| done.attempt == 1);
        let from = after[0].step;
        let again = before.len() as u64 - from;
        eprintln!("member {rank}: killed after {} iterations, goes on from {from}", before.len());
        assert!(
            from.is_multiple_of(SAVE_EVERY) && from + SAVE_EVERY > reached,
            "from {from}, after {reached}"
        );
        assert!(from > 0 && again <= SAVE_EVERY, "{again} iterations are done again");
        let steps: Vec<u64> = after.iter().map(|done| done.step).collect();
        assert_eq!(steps, (from..ITERATIONS).collect::<Vec<u64>>());
        for (first, second) in before[from as usize..].iter().zip(&after) {
            assert_eq!(
                (first.step, first.loss),
                (second.step, second.loss),
                "what is done again is the same"
            );
        }
    }
    assert_eq!(Learned::read(folder, "ddp"), *undisturbed(&ground, 2));
}

#[test]
fn a_gang_of_four_that_gives_two_back_goes_on_with_two_from_what_it_saved() {
    let Some(ground) = ground() else { return };
    let folder = ground.folder.path();
    let newcomer = Newcomer::new(&ground);
    let elastic = training("ddp", folder, "minMembers: 2\n  maxMembers: 4");
    let jobs = newcomer.jobs(3, "normal") + &elastic;
    let disturbed = Disturbed::start(&ground, &format!("{}{jobs}", cluster(5)));
    newcomer.come();
    let ran = disturbed.finish();
    assert_eq!(ran.job("ddp")["resizes"], 1, "{}", ran.said);
    let first = assert_each_done_once(folder, [4, 2]) as usize;
    assert_left_well(&ground, &ran, 4);
    let learned = Learned::read(folder, "ddp");
    let mean = |losses: &[f64]| losses.iter().sum::<f64>() / losses.len() as f64;
    let with_four = mean(&learned.losses[first - 20..first]);
    let with_two = mean(&learned.losses[ITERATIONS as usize - 20..]);
    eprintln!("resized after {first} iterations; the loss falls from {with_four} to {with_two}");
    assert!(with_two < with_four, "the loss does not fall any more");
    // Members share the batch of an iteration, so that two compute what four do.
    let difference = learned.difference(undisturbed(&ground, 4));
    eprintln!("the end differs from that of four members by {difference:e}");
    assert!(difference <= 10.0 * ROUNDING, "{difference:e}");
}

/// The last line of a log that names a loss.
fn last_loss(log: &str) -> &str {
    log.lines().rfind(|line| line.contains("loss")).unwrap_or_else(|| panic!("no loss: {log}"))
}

/// What the first of two processes prints that run the example without Metronome. (They are started as `torchrun` does;
/// that of Debian's PyTorch fails with Debian's Python.)
fn example_alone(iterations: &str) -> String {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let start = |rank: &str| {
        let of_torchrun =
            [("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", &port), ("WORLD_SIZE", "2"), ("RANK", rank)];
        let mut command = Command::new(PYTHON);
        command.arg(EXAMPLE).envs(environment()).envs(of_torchrun).env("ITERATIONS", iterations);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap()
    };
    let outputs = ["0", "1"].map(start).map(|member| member.wait_with_output().unwrap());
    assert!(outputs.iter().all(|output| output.status.success()), "{outputs:?}");
    String::from_utf8(outputs[0].stdout.clone()).unwrap()
}

#[test]
fn the_example_ends_with_the_same_loss_with_and_without_metronome() {
    const MANY: &str = "400";
    let Some(ground) = ground() else { return };
    let newcomer = Newcomer::new(&ground);
    let says = "  members: 2\n  checkpoint: {takes: 1ms, restart: 10ms}";
    let example = job("example", &format!("[{PYTHON}, {EXAMPLE}]"), says);
    let scenario = ground.scenario(&format!("{}{}{example}", cluster(3), newcomer.jobs(3, "high")));
    let variables: Vec<_> = environment().into_iter().chain([("ITERATIONS", MANY)]).collect();
    let mut scheduler = ground.start_with(&scenario, &[], &variables);
    ground.wait_until(|| ground.log_of("example", "worker-0").contains("iteration 50:"));
    newcomer.come();
    let ran = ground.finish(&mut scheduler);
    ran.assert_all_completed();
    assert_eq!(ran.job("example")["starts"], 2, "{}", ran.said);
    let alone = example_alone(MANY);
    let of = |attempt: u32| {
        fs::read_to_string(ground.of_job("example").join(format!("worker-0.attempt-{attempt}.log"))).unwrap()
    };
    let (before, after) = (of(1), of(2));
    eprintln!("{before}--\n{after}--\n{alone}");
    assert!(before.contains("iteration 0:") && !after.contains("iteration 0:"), "it goes on");
    assert_eq!(last_loss(&after), last_loss(&alone));
    ground.assert_clean();
}

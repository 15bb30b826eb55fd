//! Real PyTorch: plain DistributedDataParallel programs, which know nothing of Metronome, over shaped links.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::ground::Ground;

/// Debian's own interpreter, which has Debian's PyTorch.
pub(crate) const PYTHON: &str = "/usr/bin/python3";

/// What links carry, divided by the usual scale of 500.
const SHAPED_BITS_PER_SECOND: f64 = 50e9 / 500.0;

const ITERATIONS: u64 = 40;

/// None where there is no PyTorch, or no right to shape links.
pub(crate) fn ground() -> Option<Ground> {
    let import = Command::new(PYTHON)
        .args(["-c", "import torch.distributed"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if !import.is_ok_and(|status| status.success()) {
        metronome_skip::skip(format_args!("{PYTHON} has no PyTorch: apt-get install python3-torch"));
        return None;
    }
    Ground::new()
}

/// Two members, each of which fills a node.
fn scenario(ground: &Ground, program: &str) -> String {
    let file = ground.folder.path().join("train.py");
    fs::write(&file, program).unwrap();
    format!(
        "
apiVersion: metronome.dev/v1alpha1
kind: Cluster
metadata: {{name: two}}
spec: {{levels: [node], nodes: [{{count: 2, cpu: 2, memory: 8Gi}}], links: {{node: 50Gbps}}}}
---
apiVersion: metronome.dev/v1alpha1
kind: TrainingJob
metadata: {{name: ddp}}
spec:
  members: 2
  backoffLimit: 0
  resources: {{cpu: 2, memory: 4Gi}}
  command: [{PYTHON}, {}]
  work: {{duration: 30s}}
",
        file.display()
    )
}

/// A network that learns the sum of its inputs. Each rank prints one JSON document at its end.
const TRAIN: &str = r#"
import json, os, socket, time
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

def counter(name):
    with open(f"/sys/class/net/eth0/statistics/{name}") as file:
        return int(file.read())

torch.set_num_threads(1)
torch.manual_seed(0)
dist.init_process_group("gloo")
rank = dist.get_rank()
network = torch.nn.Sequential(torch.nn.Linear(64, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 64))
model = DistributedDataParallel(network)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
samples = torch.Generator().manual_seed(1 + rank)
losses, sent, began = [], counter("tx_bytes"), time.monotonic()
for iteration in range(ITERATIONS):
    inputs = torch.randn(32, 64, generator=samples)
    loss = torch.nn.functional.mse_loss(model(inputs), inputs.flip(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    if iteration % 10 == 0:
        print(f"rank {rank}, iteration {iteration}: loss {losses[-1]:.4f}", flush=True)
seconds, sent = time.monotonic() - began, counter("tx_bytes") - sent
digest = sum((index + 1) * float(part.double().sum()) for index, part in enumerate(network.parameters()))
print(json.dumps({
    "rank": rank, "losses": losses, "digest": digest, "seconds": seconds, "sent": sent,
    "bytes": sum(part.numel() * 4 for part in network.parameters()),
    "host": socket.gethostname(), "own": socket.gethostbyname(socket.gethostname()),
    "peer": socket.gethostbyname(f"worker-{1 - rank}"), "interfaces": sorted(os.listdir("/sys/class/net")),
}), flush=True)
dist.destroy_process_group()
"#;

/// What a rank printed last.
fn report(ground: &Ground, rank: usize) -> Value {
    let log = ground.of_job("ddp").join(format!("worker-{rank}.attempt-1.log"));
    let text = fs::read_to_string(&log).unwrap_or_else(|error| panic!("{}: {error}", log.display()));
    let (lines, last) = text.trim_end().rsplit_once('\n').unwrap();
    eprintln!("{lines}");
    let report: Value = serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {text}"));
    let of = |name: &str| report[name].to_string();
    eprintln!(
        "rank {rank} on {} ({}): {} bytes sent in {} s, parameters {}",
        of("host"),
        of("own"),
        of("sent"),
        of("seconds"),
        of("digest")
    );
    report
}

#[test]
fn a_plain_ddp_program_trains_over_shaped_links() {
    let Some(ground) = ground() else { return };
    let program = TRAIN.replace("ITERATIONS", &ITERATIONS.to_string());
    let ran = ground.run(&scenario(&ground, &program), &[]);
    ran.assert_all_completed();
    let reports = [report(&ground, 0), report(&ground, 1)];
    for (rank, report) in reports.iter().enumerate() {
        let number = |name: &str| report[name].as_f64().unwrap();
        let losses: Vec<f64> =
            report["losses"].as_array().unwrap().iter().filter_map(Value::as_f64).collect();
        assert_eq!(losses.len() as u64, ITERATIONS);
        assert!(losses[losses.len() - 1] < 0.9 * losses[0], "the loss does not fall: {losses:?}");
        // Two ranks send each other half of the gradients to reduce and half of the result.
        let gradients = number("bytes") * ITERATIONS as f64;
        assert!(number("sent") > gradients, "{} of {gradients} bytes left by eth0", number("sent"));
        let least = 8.0 * gradients / SHAPED_BITS_PER_SECOND;
        assert!(
            number("seconds") > 0.9 * least,
            "faster than the link: {} s, not {least}",
            number("seconds")
        );
        assert_eq!(report["host"], format!("ddp-worker-{rank}"));
        assert_eq!(report["own"], reports[1 - rank]["peer"]);
        assert!(report["own"].as_str().unwrap().starts_with("10.77."), "{report}");
        assert_eq!(report["interfaces"], serde_json::json!(["eth0", "lo"]));
    }
    assert_eq!(reports[0]["digest"], reports[1]["digest"], "both ranks end with the same parameters");
    assert_ne!(reports[0]["losses"], reports[1]["losses"], "each rank has samples of its own");
    ground.assert_clean();
}

const RAISE: &str = r#"
import torch
import torch.distributed as dist

torch.set_num_threads(1)
dist.init_process_group("gloo")
for iteration in range(1000):
    if dist.get_rank() == 1 and iteration == 3:
        raise ValueError(f"no samples left at iteration {iteration}")
    dist.all_reduce(torch.ones(1000))
"#;

#[test]
fn the_rank_that_raises_is_shown_and_not_the_one_that_lost_its_peer() {
    let Some(ground) = ground() else { return };
    let ran = ground.run(&scenario(&ground, RAISE), &[]);
    eprintln!("{}", ran.said);
    let job = ran.job("ddp");
    assert_eq!((&job["fate"], &job["why"]), (&"failed".into(), &"worker-1 ended with 1".into()));
    let last = job["lastLines"].as_array().unwrap().last().unwrap();
    assert_eq!(last, "ValueError: no samples left at iteration 3");
    assert!(ran.said.contains("| ValueError: no samples left at iteration 3\n"), "{}", ran.said);
    ground.assert_clean();
}

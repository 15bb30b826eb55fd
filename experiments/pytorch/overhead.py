#!/usr/bin/env python3
"""What the agent costs a node and the SDK an iteration, with DistributedDataParallel jobs under `metronome local run`:

    sudo python3 overhead.py --metronome target/release/metronome

Each job has two members, one on each of two nodes, and all jobs share the links of both. Compute is sleep. One agent watches all
members of this machine; its processor time is read from /proc while all jobs train. Needs root, iproute2 and PyTorch.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
SDK = HERE.parents[1] / "sdk/python/src"
MEMBERS = 2
ITERATIONS = 150
COMPUTE_MS = 135
WARM_ITERATIONS = 20
"""Iterations before the first that counts: PyTorch rebuilds its buckets, and links settle."""
MEASURED_S = 15.0

CLUSTER = """apiVersion: metronome.dev/v1alpha1
kind: Cluster
metadata: {name: overhead}
spec: {levels: [node], nodes: [{count: 2, cpu: 100, memory: 1000Gi, gpus: 64}], links: {node: 100Gbps}}
"""

# Each job asks for more than half of another resource of a node, so that no node has two members of one job.
SCARCE = (
    "{cpu: 60, memory: 10Gi, nvidia.com/gpu: 1}",
    "{cpu: 10, memory: 600Gi, nvidia.com/gpu: 1}",
    "{cpu: 10, memory: 10Gi, nvidia.com/gpu: 40}",
)


def train(out: Path) -> None:
    """A member. Rank 0 writes how long the SDK took in each iteration, in microseconds."""
    import metronome
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    import models

    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group("gloo")
    asked = argparse.Namespace(model="sleep", compute_ms=COMPUTE_MS, megabytes=2.0, layers=6)
    work = models.build(asked)
    model = DistributedDataParallel(work.module, bucket_cap_mb=0.3)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    took = []
    with metronome.training(total_iterations=ITERATIONS) as job:
        for _ in range(ITERATIONS):
            began = time.perf_counter()
            job.begin_iteration()
            begun = time.perf_counter()
            optimizer.zero_grad()
            loss = work.loss(model)
            loss.backward()
            optimizer.step()
            done = time.perf_counter()
            job.report(loss=loss.item())
            job.end_iteration()
            took.append(1e6 * (begun - began + time.perf_counter() - done))
    if dist.get_rank() == 0:
        name = os.environ["METRONOME_JOB"].split("/")[-1]
        (out / f"{name}.json").write_text(json.dumps(took))
    dist.destroy_process_group()


def scenario(jobs: int, python: str, out: Path) -> str:
    command = json.dumps(["env", f"PYTHONPATH={SDK}", python, str(Path(__file__).resolve()), "--member", str(out)])
    text = CLUSTER
    for index in range(jobs):
        text += f"""---
apiVersion: metronome.dev/v1alpha1
kind: TrainingJob
metadata: {{name: job-{index}}}
spec:
  members: {MEMBERS}
  backoffLimit: 0
  resources: {SCARCE[index]}
  command: {command}
  work: {{duration: 60s}}
"""
    return text


def agent_of(folder: Path) -> int | None:
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"agent" in words[1:3] and any(word.startswith(bytes(folder)) for word in words):
            return int(process.name)
    return None


def processor_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(asked: argparse.Namespace, jobs: int, policy: str) -> str:
    """One row of the table."""
    with tempfile.TemporaryDirectory() as folder:
        out, worlds = Path(folder), Path(folder) / "worlds"
        (out / "jobs.yaml").write_text(scenario(jobs, asked.python, out))
        command = [asked.metronome, "local", "run", "-f", str(out / "jobs.yaml"), "--policies", policy]
        command += ["--world", "overhead", "--dir", str(worlds), "--output", "json"]
        run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        time.sleep(10.0)
        agent = agent_of(worlds)
        if agent is None:
            run.terminate()
            raise SystemExit("no agent runs: `metronome local run` has ended, or needs root")
        before, began = processor_seconds(agent), time.monotonic()
        time.sleep(MEASURED_S)
        part = (processor_seconds(agent) - before) / (time.monotonic() - began)
        run.communicate()
        if run.returncode != 0:
            raise SystemExit(f"metronome local run ended with {run.returncode}")
        took = [time for path in out.glob("job-*.json") for time in json.loads(path.read_text())[WARM_ITERATIONS:]]
    cuts = statistics.quantiles(took, n=100)
    return (
        f"| {policy} | {jobs * MEMBERS} | {100 * part:.2f} % | {cuts[49]:.0f} | {cuts[98]:.0f} | "
        f"{max(took):.0f} | {len(took)} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--metronome", default="metronome", help="the program")
    parser.add_argument("--python", default=sys.executable, help="an interpreter with PyTorch")
    parser.add_argument("--member", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.member:
        train(asked.member)
        return
    print("| policy | members | agent, of a core | SDK median, µs | 99th percentile | most | iterations |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for policy in ("fair", "metronome"):
        for jobs in (1, 2, 3):
            print(measure(asked, jobs, policy), flush=True)


if __name__ == "__main__":
    main()

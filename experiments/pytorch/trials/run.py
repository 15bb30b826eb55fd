#!/usr/bin/env python3
"""Runs PyTorch programs under `metronome local run`, and prints what works:

    python3 run.py --metronome target/release/metronome --python VENV/bin/python
    python3 run.py --only ddp,fsdp --policies fair,metronome
    python3 run.py --table                                        # prints the results of earlier runs again

Each trial has two parts. *Shared*: two jobs of two members each cross the same links, once under each policy.
*Leaving*: one job gives its nodes to another job of higher priority, and resumes. Results are kept in `results.json`
beside this file, trial by trial. Needs root and `iproute2`; the interpreter needs PyTorch, and for `huggingface` also
transformers and accelerate.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

HERE = Path(__file__).resolve().parent
SDK = HERE.parents[2] / "sdk/python/src"
RESULTS = HERE / "results.json"

MAX_RUN_S = 150
"""A run that takes longer is interrupted, as by Ctrl-C."""
UNDISTURBED = "fair"
"""The policy of the run with whose losses those of the job that leaves are compared."""
LINK = "100Gbps"
"""200 Mbit/s at the usual scale of 500."""


@dataclass(frozen=True)
class Trial:
    """A program, and when the other job of higher priority is submitted: while the program trains."""

    name: str
    command: tuple[str, ...]
    iterations: int = 170
    leaving_iterations: int = 130
    visitor_after_s: int = 18


TRIALS = (
    Trial("ddp", ("ddp.py",)),
    Trial("communicators", ("communicators.py",)),
    Trial("accumulation", ("accumulate.py",), leaving_iterations=80, visitor_after_s=20),
    Trial("accumulation-sync", ("accumulate.py", "--sync"), iterations=60, leaving_iterations=45, visitor_after_s=20),
    Trial("uneven", ("uneven.py",)),
    Trial("uneven-inside", ("uneven.py", "--inside")),
    Trial("fully_shard", ("fsdp.py",)),
    Trial("FSDP", ("fsdp.py", "--wrapped")),
    Trial("compile", ("ddp.py", "--compile"), visitor_after_s=30),
    Trial("huggingface", ("huggingface.py",), visitor_after_s=30),
)

CLUSTER = f"""apiVersion: metronome.dev/v1alpha1
kind: Cluster
metadata: {{name: two-nodes}}
spec: {{levels: [node], nodes: [{{count: 2, cpu: 100, memory: 1000Gi}}], links: {{node: {LINK}}}}}
"""

# `fair`, but a job of higher priority takes the place of another.
LEAVING = """apiVersion: metronome.dev/v1alpha1
kind: Policy
metadata: {name: leaving}
spec: {base: fair, preemption: byPriority}
"""

# A node has room for one member of each job, but not for two of the same.
MOSTLY_CORES, MOSTLY_MEMORY = "{cpu: 60, memory: 10Gi}", "{cpu: 30, memory: 600Gi}"


def job(name: str, resources: str, command: list[str], after: str = "0s", priority: str = "normal") -> str:
    return f"""apiVersion: metronome.dev/v1alpha1
kind: TrainingJob
metadata: {{name: {name}, annotations: {{metronome.dev/submit-after: {after}}}}}
spec:
  members: 2
  resources: {resources}
  command: {json.dumps(command)}
  work: {{duration: 60s}}
  priorityClassName: {priority}
  backoffLimit: 1
  checkpoint: {{takes: 1s, restart: 1s}}
"""


class Ground:
    """The program, the interpreter and the folders of all runs."""

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self.metronome, self.python, self.world = options.metronome, options.python, options.world
        self.folder = folder

    def command(self, trial: Trial, iterations: int) -> list[str]:
        program, *flags = trial.command
        return [self.python, str(HERE / program), "--iterations", str(iterations), *flags]

    def run(self, name: str, documents: list[str], policy: str) -> dict[str, Any]:
        """What the run prints, with the records of its jobs; `error` where it printed nothing."""
        records = self.folder / name
        shutil.rmtree(records, ignore_errors=True)
        scenario = self.folder / f"{name}.yaml"
        scenario.write_text("---\n".join(documents))
        worlds = self.folder / "worlds"
        command = [self.metronome, "local", "run", "-f", str(scenario), "--policies", policy, "--output", "json"]
        command += ["--world", self.world, "--dir", str(worlds)]
        variables = {
            **os.environ,
            "PYTHONPATH": str(SDK),
            "PYTHONDONTWRITEBYTECODE": "1",
            "TRIAL_OUT": str(records),
            "TORCHINDUCTOR_CACHE_DIR": str(self.folder / "inductor"),
            "TORCHINDUCTOR_COMPILE_THREADS": "1",
            "HF_HUB_OFFLINE": "1",
            # Accelerate gives each member as many threads as there are cores; those that wait for work spin.
            "OMP_NUM_THREADS": "1",
        }
        try:
            document = self._printed_by(command, variables)
        finally:
            clean = [self.metronome, "local", "clean", "--world", self.world, "--dir", str(worlds)]
            subprocess.run(clean, check=False, capture_output=True)
        for outcome in (document.get("runs") or [{}])[0].get("jobs", []):
            record = records / f"{outcome['name']}.jsonl"
            lines = record.read_text().splitlines() if record.exists() else []
            outcome["record"] = [json.loads(line) for line in lines]
        return document

    def _printed_by(self, command: list[str], variables: dict[str, str]) -> dict[str, Any]:
        process = subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        late = False
        try:
            printed, said = process.communicate(timeout=MAX_RUN_S)
        except subprocess.TimeoutExpired:
            late = True
            process.send_signal(signal.SIGINT)
            try:
                printed, said = process.communicate(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()
                printed, said = process.communicate()
        try:
            document = json.loads(printed)
        except ValueError:
            document = {"error": said[-2000:]}
        if late:
            document["late"] = f"interrupted after {MAX_RUN_S} s"
        return document


def iterations_of(record: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [line for line in record if "iteration" in line]


def spans_ms(record: list[dict[str, Any]]) -> list[float]:
    """How long each iteration took, as the program saw it; not those across a start."""
    lines = [line if "iteration" in line else None for line in record]
    pairs = [(before, after) for before, after in zip(lines, lines[1:]) if before and after]
    return [1e3 * (after["at"] - before["at"]) for before, after in pairs]


def mean_between(record: list[dict[str, Any]], what: str, from_ns: int, until_ns: int) -> Optional[float]:
    """How much `what` rises in each of the iterations that began and ended within these times."""
    ended = [line[what] for line in iterations_of(record) if from_ns <= line["at"] * 1e9 <= until_ns]
    return (ended[-1] - ended[0]) / (len(ended) - 1) if len(ended) > 1 else None


def learned(outcome: dict[str, Any]) -> Optional[dict[str, Any]]:
    """What the agent learned of the job, beside what the program knows."""
    last, record = outcome.get("learned"), outcome["record"]
    if not last:
        return None
    window = (last["from_ns"], last["until_ns"])
    true_s = mean_between(record, "at", *window)
    uncontended = last.get("uncontended") or {}
    first = outcome.get("firstUsed")
    done = [line for line in iterations_of(record) if first and line["at"] * 1e9 <= first["until_ns"]]
    return {
        "periodMs": last["period_ns"] / 1e6,
        "trueMs": 1e3 * true_s if true_s else None,
        "bytes": uncontended.get("bytes"),
        "trueBytes": mean_between(record, "sent", *window),
        "confidence": last["confidence"],
        "while": last["while"],
        "usedAfter": len(done) if first else None,
    }


def shared(ground: Ground, trial: Trial, policy: str) -> dict[str, Any]:
    command = ground.command(trial, trial.iterations)
    documents = [CLUSTER, job("first", MOSTLY_CORES, command), job("second", MOSTLY_MEMORY, command)]
    document = ground.run(f"{trial.name}-{policy}", documents, policy)
    if "runs" not in document:
        return {"error": document.get("error", ""), "late": document.get("late")}
    jobs = []
    for outcome in document["runs"][0]["jobs"]:
        spans = spans_ms(outcome["record"])
        half = spans[len(spans) // 2 :]
        jobs.append(
            {
                "fate": outcome["fate"],
                "why": outcome["why"],
                "lastLines": outcome["lastLines"][-3:],
                "iterations": len(iterations_of(outcome["record"])),
                "secondHalfMs": statistics.fmean(half) if half else None,
                "learned": learned(outcome),
                "directives": len([given for given in outcome["directives"] if given[1]]),
            }
        )
    losses = [line["loss"] for line in iterations_of(document["runs"][0]["jobs"][0]["record"])]
    payload = [line["payload"] for line in document["runs"][0]["jobs"][0]["record"] if "payload" in line]
    return {"jobs": jobs, "losses": losses, "payload": payload[-1] if payload else None, "late": document.get("late")}


def leaving(ground: Ground, trial: Trial, undisturbed: list[float]) -> dict[str, Any]:
    visitor = job("visitor", MOSTLY_CORES, ["sleep", "2"], f"{trial.visitor_after_s}s", "high")
    command = ground.command(trial, trial.leaving_iterations)
    documents = [CLUSTER, LEAVING, job("first", MOSTLY_CORES, command), visitor]
    document = ground.run(f"{trial.name}-leaving", documents, "leaving")
    if "runs" not in document:
        return {"error": document.get("error", ""), "late": document.get("late")}
    first, guest = document["runs"][0]["jobs"]
    record = first["record"]
    spans = spans_ms(record)
    return {
        "fate": first["fate"],
        "why": first["why"],
        "lastLines": first["lastLines"][-3:],
        "starts": [line["start"] for line in record if "start" in line],
        "visitorWaitedS": (guest["started"] - guest["submitted"]) / 1e9 if guest["started"] else None,
        "repeated": len(iterations_of(record)) - len({line["iteration"] for line in iterations_of(record)}),
        "aloneMs": statistics.median(spans) if spans else None,
        "learned": learned(first),
        "largestError": largest_error(iterations_of(record), undisturbed),
        "late": document.get("late"),
    }


def largest_error(record: list[dict[str, Any]], undisturbed: list[float]) -> Optional[float]:
    """Of the losses beside those of the job that nobody disturbed; 0 where all bits are equal."""
    pairs = [(line["loss"], undisturbed[line["iteration"]]) for line in record if line["iteration"] < len(undisturbed)]
    return max((abs(loss - other) / abs(other) for loss, other in pairs), default=None)


def try_out(ground: Ground, trial: Trial, policies: list[str], before: dict[str, Any], parts: str) -> dict[str, Any]:
    result = dict(before)
    if "s" in parts:
        for policy in policies:
            result[policy] = shared(ground, trial, policy)
            if policy != UNDISTURBED:
                result[policy].pop("losses", None)
    if "l" in parts:
        result["leaving"] = leaving(ground, trial, result.get(UNDISTURBED, {}).get("losses", []))
    return result


# The table


def row(trial: Trial, result: dict[str, Any]) -> list[str]:
    fair, chosen, left = (result.get(part) or {} for part in ("fair", "metronome", "leaving"))
    return [
        trial.name,
        runs(fair),
        alone(left),
        each(fair, periods),
        each(fair, sent),
        each(fair, lambda job: str(job["learned"]["usedAfter"] or "never") if job["learned"] else "–"),
        resumed(left),
        each(fair, lambda job: number(job["secondHalfMs"])),
        each(chosen, lambda job: number(job["secondHalfMs"])),
    ]


HEADER = (
    "trial",
    "runs",
    "alone: ms, MB learned (true)",
    "shared: ms learned (true)",
    "shared: MB learned (true)",
    "used after iterations",
    "leaves and resumes",
    "ms under fair",
    "ms under metronome",
)


def each(run: dict[str, Any], what: Any) -> str:
    return ", ".join(what(job) for job in run.get("jobs", [])) or "–"


def runs(run: dict[str, Any]) -> str:
    if not run:
        return "–"
    fates = {job["fate"] for job in run.get("jobs", [])}
    if fates == {"completed"} and not run.get("late"):
        return "yes"
    return "no: " + (run.get("late") or "; ".join(sorted(fates)) or run.get("error", ""))


def periods(job: dict[str, Any]) -> str:
    found = job["learned"]
    return f"{number(found['periodMs'])} ({number(found['trueMs'])})" if found else "none"


def sent(job: dict[str, Any]) -> str:
    found = job["learned"]
    return f"{megabytes(found['bytes'])} ({megabytes(found['trueBytes'])})" if found else "none"


def alone(left: dict[str, Any]) -> str:
    if not left or "starts" not in left:
        return "–"
    found = left["learned"]
    return periods(left) + ", " + sent(left) if found else f"none ({number(left['aloneMs'])})"


def resumed(left: dict[str, Any]) -> str:
    if not left:
        return "–"
    if left.get("fate") != "completed":
        return "no: " + (left.get("late") or left.get("why") or left.get("error", ""))
    starts, error = left["starts"], left["largestError"]
    if len(starts) < 2:
        return "was not asked in time"
    if left["repeated"]:
        return f"no: begins again at {starts[-1]}, {left['repeated']} iterations are repeated"
    said = "the same loss to the last bit" if error == 0 else f"losses differ by {error:.1e}"
    return f"yes, at {starts[-1]}: {said}"


def number(value: Optional[float]) -> str:
    return "–" if value is None else f"{value:.0f}"


def megabytes(value: Optional[float]) -> str:
    return "–" if value is None else f"{value / 1e6:.2f}"


def table(results: dict[str, Any]) -> str:
    lines = [HEADER, ("---",) * len(HEADER)]
    lines += [row(trial, results[trial.name]) for trial in TRIALS if trial.name in results]
    return "\n".join("| " + " | ".join(" ".join(cell.split()) for cell in line) + " |" for line in lines)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--metronome", default="metronome", help="the program")
    parser.add_argument("--python", default=sys.executable, help="an interpreter with PyTorch")
    parser.add_argument("--only", help="trials, separated by commas; else all")
    parser.add_argument("--policies", default="fair,metronome", help="policies of the shared part")
    parser.add_argument("--parts", default="sl", help="s: shared, l: leaving")
    parser.add_argument("--world", default="trials", help="the name of the world")
    parser.add_argument("--keep", type=Path, help="a folder for scenarios, records and logs; else they are removed")
    parser.add_argument("--table", action="store_true", help="run nothing: print the results so far")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    chosen = options.only.split(",") if options.only else [trial.name for trial in TRIALS]
    with tempfile.TemporaryDirectory(prefix="trials-") as made:
        ground = Ground(options, options.keep or Path(made))
        ground.folder.mkdir(parents=True, exist_ok=True)
        for trial in TRIALS if not options.table else ():
            if trial.name not in chosen:
                continue
            print(f"{trial.name} …", file=sys.stderr, flush=True)
            before = results.get(trial.name, {})
            results[trial.name] = try_out(ground, trial, options.policies.split(","), before, options.parts)
            RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    print(table(results))


if __name__ == "__main__":
    main()

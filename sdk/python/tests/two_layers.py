"""A small real training, as users write it: a net of two layers learns which points lie within a circle. Members
average their gradients over TCP; rank 0 adds them up. Run by `test_training.py`, one process a member.

Each member notes the iterations that it computes in the file `FOLDER/trace-RANK`.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from pathlib import Path
from typing import Any, Dict, List, Tuple

import numpy as np
from numpy.typing import NDArray

import metronome

Numbers = NDArray[np.float64]
Net = Dict[str, Numbers]

TOTAL = 120
SAVE_EVERY = 25
BATCH = 64


def main(folder: Path) -> None:
    rank, members = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    peers = connect(rank, members)
    points, inside = data(rank, members)
    with metronome.training(total_iterations=TOTAL) as job, open(folder / f"trace-{rank}", "a") as trace:
        assert job.checkpoint_dir is not None
        saved = job.checkpoint_dir / "net.npz"
        net, done = load(saved)

        def save() -> None:
            if rank == 0:
                store(saved, net, job.iteration)

        job.on_checkpoint(save)
        loss = float("nan")
        for step in job.iterations(start=done):
            print(step, time.time_ns(), file=trace, flush=True)
            batch = slice(step * BATCH % len(points), step * BATCH % len(points) + BATCH)
            loss, gradient = backward(net, points[batch], inside[batch])
            time.sleep(0.005)
            with job.waiting():
                mean, gradient = average(peers, rank, [np.array([loss]), *gradient])
            loss = float(mean[0])
            for name, slope in zip(sorted(net), gradient):
                net[name] = net[name] - 0.5 * slope
            job.report(loss=loss)
            if (step + 1) % SAVE_EVERY == 0 and rank == 0:
                store(saved, net, step + 1)
        if rank == 0:
            (folder / "result").write_text(f"{loss!r} {float(np.sum(net['first']))!r}")


def data(rank: int, members: int) -> Tuple[Numbers, Numbers]:
    """This member's part of the points."""
    points = np.random.default_rng(11).uniform(-1, 1, (4096, 2))
    inside = (np.sum(points**2, axis=1) < 0.5).astype(np.float64)
    return points[rank::members], inside[rank::members]


def new_net() -> Net:
    random = np.random.default_rng(5)
    return {"bias": np.zeros(16), "first": random.normal(0, 1, (2, 16)), "second": random.normal(0, 0.5, 16)}


def backward(net: Net, points: Numbers, inside: Numbers) -> Tuple[float, List[Numbers]]:
    """The loss, and its slopes in the order of the names of the parts."""
    hidden = np.tanh(points @ net["first"] + net["bias"])
    guess = 1 / (1 + np.exp(-(hidden @ net["second"])))
    loss = -np.mean(inside * np.log(guess) + (1 - inside) * np.log(1 - guess))
    error = (guess - inside) / len(points)
    back = np.outer(error, net["second"]) * (1 - hidden**2)
    return float(loss), [back.sum(axis=0), points.T @ back, hidden.T @ error]


def store(path: Path, net: Net, done: int) -> None:
    aside = path.with_name("net.new.npz")
    parts: Dict[str, Any] = {**net, "done": np.array(done)}
    np.savez(aside, **parts)
    aside.replace(path)


def load(path: Path) -> Tuple[Net, int]:
    if not path.exists():
        return new_net(), 0
    with np.load(path) as parts:
        return {name: parts[name] for name in parts if name != "done"}, int(parts["done"])


def connect(rank: int, members: int) -> List[socket.socket]:
    """Of rank 0 the connections to all others, of others the one to it."""
    at = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
    if rank == 0:
        with socket.create_server(at) as listening:
            listening.settimeout(20)
            return [listening.accept()[0] for _ in range(members - 1)]
    ends = time.monotonic() + 20
    while True:
        try:
            return [socket.create_connection(at)]
        except ConnectionRefusedError:
            if time.monotonic() > ends:
                raise
            time.sleep(0.02)


def average(peers: List[socket.socket], rank: int, parts: List[Numbers]) -> Tuple[Numbers, List[Numbers]]:
    flat = np.concatenate([part.ravel() for part in parts])
    if rank == 0:
        for peer in peers:
            flat = flat + receive(peer, flat.nbytes)
        flat = flat / (len(peers) + 1)
        for peer in peers:
            peer.sendall(flat.tobytes())
    else:
        peers[0].sendall(flat.tobytes())
        flat = receive(peers[0], flat.nbytes)
    ends = np.cumsum([part.size for part in parts])
    averaged = [piece.reshape(part.shape) for piece, part in zip(np.split(flat, ends[:-1]), parts)]
    return averaged[0], averaged[1:]


def receive(peer: socket.socket, count: int) -> Numbers:
    came = b""
    while len(came) < count:
        piece = peer.recv(count - len(came))
        if not piece:
            raise ConnectionError("a member is gone")
        came += piece
    return np.frombuffer(came)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

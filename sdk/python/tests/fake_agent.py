"""An agent on a real Unix socket that keeps what it is told, and misbehaves on request."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Tuple

TOKEN = "secret"

Request = Tuple[Dict[str, str], bytes]
# What is answered to a request; `None` is no answer at all.
Behaviour = Callable[[int, Request], Optional[bytes]]


def answer(status: str, body: bytes = b"{}", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def take(_number: int, request: Request) -> bytes:
    headers, _ = request
    if headers.get("authorization") != f"Bearer {TOKEN}":
        return answer("401 Unauthorized", b'{"error":"no such job"}')
    return answer("202 Accepted")


class FakeAgent:
    def __init__(self, path: Path, behaviour: Behaviour = take) -> None:
        self.path = path
        self.behaviour = behaviour
        self.requests: List[Request] = []
        self.came_at: List[float] = []
        self._open: List[socket.socket] = []
        self._listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listening.bind(str(path))
        self._listening.listen(16)
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> FakeAgent:
        return self

    def __exit__(self, *_: object) -> None:
        self.go()

    def go(self) -> None:
        """As if it were killed: the file stays, nobody is behind it."""
        self.hang_up()
        # Wakes whoever accepts, which closing alone does not.
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def hang_up(self) -> None:
        for connection in self._open:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    @property
    def reports(self) -> List[Dict[str, Any]]:
        return [json.loads(body) for _, body in list(self.requests)]

    def wait_for(self, count: int, seconds: float = 10) -> List[Dict[str, Any]]:
        return self.wait_until(lambda reports: len(reports) >= count, seconds)

    def wait_until(
        self, is_enough: Callable[[List[Dict[str, Any]]], bool], seconds: float = 10
    ) -> List[Dict[str, Any]]:
        ends = time.monotonic() + seconds
        while not is_enough(self.reports):
            assert time.monotonic() < ends, f"told only {self.reports}"
            time.sleep(0.005)
        return self.reports

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            self._open.append(connection)
            threading.Thread(target=self._serve, args=[connection], daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection, connection.makefile("rb") as stream:
                while True:
                    request = _read(stream)
                    if request is None:
                        return
                    self.came_at.append(time.monotonic())
                    self.requests.append(request)
                    said = self.behaviour(len(self.requests), request)
                    if said is None:
                        return
                    connection.sendall(said)
        except (OSError, ValueError):
            return


def _read(stream: Any) -> Optional[Request]:
    first = stream.readline()
    if not first:
        return None
    assert first == b"POST /v1/progress HTTP/1.1\r\n", first
    headers: Dict[str, str] = {}
    while True:
        line = stream.readline().decode().strip()
        if not line:
            break
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    return headers, stream.read(int(headers["content-length"]))

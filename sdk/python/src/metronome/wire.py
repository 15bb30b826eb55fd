"""One report to the agent, over HTTP on a Unix socket, and what came of it."""

from __future__ import annotations

import http.client
import socket
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import Optional

# So long each read may take. Only the thread that reports waits for it.
PATIENCE = 2.0
# What an agent answers is a few bytes; the rest is not read.
MOST_ANSWERED = 65_536


class Fate(Enum):
    TAKEN = auto()
    REFUSED = auto()
    """By an agent that will not take this report later, either."""
    LATER = auto()
    """It may be taken yet: the agent is busy, or has not heard of this job and its token."""
    LOST = auto()
    """Nobody answered, or nothing that makes sense."""


@dataclass(frozen=True)
class Answer:
    fate: Fate
    retry_after: Optional[float] = None


class Wire:
    """A connection that is kept while all goes well, and made anew after anything else."""

    def __init__(self, path: Path, token: str) -> None:
        self._path = path
        self._headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
        self._connection: Optional[_UnixConnection] = None

    def post(self, body: bytes, patience: float = PATIENCE) -> Answer:
        is_used = self._connection is not None
        answer = self._post_once(body, patience)
        # An agent may close a connection that nobody used for a while; that is no sign that it is gone.
        if answer.fate is Fate.LOST and is_used:
            answer = self._post_once(body, patience)
        return answer

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _post_once(self, body: bytes, patience: float) -> Answer:
        try:
            connection = self._connection or _UnixConnection(self._path)
            self._connection = connection
            connection.be_patient_for(patience)
            connection.request("POST", "/v1/progress", body, self._headers)
            response = connection.getresponse()
            rest = response.read(MOST_ANSWERED)
            if len(rest) == MOST_ANSWERED:
                self.close()
            return _judge(response)
        except (OSError, http.client.HTTPException, ValueError):
            self.close()
            return Answer(Fate.LOST)


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost")
        self._path = path

    def be_patient_for(self, seconds: float) -> None:
        self.timeout = seconds
        if self.sock is not None:
            self.sock.settimeout(seconds)

    def connect(self) -> None:
        connecting = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connecting.settimeout(self.timeout)
            connecting.connect(str(self._path))
        except BaseException:
            connecting.close()
            raise
        self.sock = connecting


def _judge(response: http.client.HTTPResponse) -> Answer:
    if 200 <= response.status < 300:
        return Answer(Fate.TAKEN)
    if response.status in (401, 403, 429) or response.status >= 500:
        return Answer(Fate.LATER, _seconds(response.getheader("Retry-After")))
    return Answer(Fate.REFUSED)


def _seconds(text: Optional[str]) -> Optional[float]:
    try:
        seconds = float(text or "")
    except ValueError:
        return None
    return seconds if 0 <= seconds < float("inf") else None

"""A JSON file that others replace, whole, while we run."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Optional, Tuple

# Nobody has so much to say; whatever is longer is none of our files.
MOST_BYTES = 65_536

_Mark = Tuple[int, int, int]


class WatchedFile:
    """To look costs one `stat` while nothing changes."""

    def __init__(self, path: Optional[Path]) -> None:
        self._path = path
        self._mark: Optional[_Mark] = None
        self._content: Any = None

    def look(self) -> Any:
        """What the file says; `None` if it is not there or makes no sense."""
        mark = self._find_mark()
        if mark != self._mark:
            self._mark = mark
            self._content = None if mark is None else self._read()
        return self._content

    def _find_mark(self) -> Optional[_Mark]:
        if self._path is None:
            return None
        try:
            found = os.stat(self._path)
        except (OSError, ValueError):
            return None
        return (found.st_ino, found.st_mtime_ns, found.st_size)

    def _read(self) -> Any:
        assert self._path is not None
        try:
            with open(self._path, "rb") as file:
                return json.loads(file.read(MOST_BYTES))
        except (OSError, ValueError, RecursionError):
            return None

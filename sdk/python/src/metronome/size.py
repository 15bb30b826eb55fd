"""How large the job is now, as `size.json` says it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

from .progress import number
from .watched import WatchedFile


@dataclass(frozen=True)
class Size:
    cpus: Optional[float] = None
    """The cores that this member may use."""
    members: Optional[int] = None
    """How many members the job has."""

    @classmethod
    def parse(cls, word: Any) -> Optional[Size]:
        if not isinstance(word, dict):
            return None
        cpus, members = number(word.get("cpus")), word.get("members")
        is_count = isinstance(members, int) and not isinstance(members, bool) and members > 0
        size = cls(cpus if cpus is not None and cpus > 0 else None, members if is_count else None)
        return None if size == cls() else size


class Sizes:
    """The size at each moment. A file that is gone or makes no sense leaves it as it was."""

    def __init__(self, path: Optional[Path]) -> None:
        self._file = WatchedFile(path)
        self.size = Size.parse(self._file.look()) or Size()

    def has_changed(self) -> bool:
        """Whether it is another one than when this was last asked."""
        size = Size.parse(self._file.look()) or self.size
        before, self.size = self.size, size
        return size != before

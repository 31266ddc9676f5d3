"""Intents: each injection is written to a file and flushed before it is tried.

If the harness crashes after that, the next process reads from the file which injections are open,
and heals them. One JSON object per line; an incomplete last line was written when the harness
crashed, before its injection was tried.
"""

from __future__ import annotations

import fcntl
import getpass
import json
import os
import socket
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from streamquake.faults.fault import Fault, faults
from streamquake.topologies.yaml_document import frozen


@dataclass(frozen=True, kw_only=True)
class Intent:
    """One injection: the fault, its parameters (which suffice to heal it), and its targets."""

    id: str
    step: int
    fault: str
    params: Mapping[str, Any]
    target: str
    names: tuple[str, ...]
    baselines: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Target name -> the baseline that was measured there before."""
    by: str = ""
    """The process that wrote it: user@host:pid."""
    at: str = ""
    """When it was written, ISO 8601 in UTC."""

    def build_fault(self) -> Fault:
        return faults[self.fault](**frozen(self.params))


class IntentLog:
    """The intents of one run."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()

    def write_intent(
        self,
        *,
        step: int,
        fault: Fault,
        target: str,
        names: Sequence[str],
        baselines: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> Intent:
        """Write the intent of an injection; it is on disk before this returns."""
        intent = Intent(
            id=uuid.uuid4().hex[:12],
            step=step,
            fault=fault.name,
            params=fault.model_dump(mode="json", exclude_none=True),
            target=target,
            names=tuple(names),
            baselines=baselines or {},
            by=whoami(),
            at=datetime.now(UTC).isoformat(timespec="seconds"),
        )
        self._write({"schema": 1, "intent": asdict(intent)})
        return intent

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the file's lock, so that no other process reads or writes intents meanwhile: of two
        processes that inject into the same target, the second reads the intent of the first."""
        with self._path.open("a", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def record_heal(self, intent: Intent) -> None:
        """Record that an injection was healed and its removal verified."""
        self._write({"schema": 1, "healed": intent.id})

    def open_intents(self) -> tuple[Intent, ...]:
        """The injections without a verified heal, oldest first."""
        found: dict[str, Intent] = {}
        for line in self._lines():
            if "intent" in line:
                fields = {**line["intent"], "names": tuple(line["intent"]["names"])}
                found[fields["id"]] = Intent(**fields)
            else:
                found.pop(line["healed"], None)
        return tuple(found.values())

    def _lines(self) -> list[dict[str, Any]]:
        if not self._path.exists():
            return []
        complete = self._path.read_text(encoding="utf-8").split("\n")[:-1]
        return [json.loads(line) for line in complete]

    def _write(self, document: Mapping[str, Any]) -> None:
        with self._lock, self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(document) + "\n")
            file.flush()
            os.fsync(file.fileno())


def whoami() -> str:
    """The name of this process in messages: user@host:pid."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user id without a name, as in some containers
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}:{os.getpid()}"

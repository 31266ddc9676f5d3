"""The job of a run: what is submitted, and what the engine then runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, kw_only=True)
class JobSpec:
    """A job to run: a program of a kind that its engine runs. Config keys are the engine's own."""

    name: str
    sql: str | None = None
    pyspark: str | None = None
    jar: str | None = None
    jars: tuple[str, ...] = ()
    """The paths of jars for the class path of an SQL or PySpark program."""
    jar_prefix: str = ""
    """What the names of its jars in a container begin with: other jobs have theirs in the same
    folder."""
    modules: Mapping[str, str] = field(default_factory=dict)
    """Name -> the text of a module that a PySpark program imports."""
    entry_class: str | None = None
    args: tuple[str, ...] = ()
    parallelism: int
    config: Mapping[str, Any] = field(default_factory=dict)

    def jar_contents(self) -> Mapping[str, bytes]:
        """The names of `jars` in a container -> their bytes. Raises OSError."""
        return {
            f"{self.jar_prefix}{n}.jar": Path(jar).read_bytes()
            for n, jar in enumerate(self.jars, 1)
        }


@dataclass(frozen=True, kw_only=True)
class CurrentJob:
    """The job that the run uses now, by the engine's own id; a fault may replace it by another."""

    service: str
    id: str
    spec: JobSpec | None = None
    """The submitted specification; None for a job that another process submitted."""
    values: Mapping[str, str] = field(default_factory=dict)
    """The values of the placeholders in the run's statements."""
    restored_from: str = ""
    """The path of the state that it was restored from, if any."""

"""`logs`: no node logged an error that the experiment does not expect."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Self

from pydantic import Field

from streamquake.harness.experiment.check import Check, JudgedRun, checks
from streamquake.harness.reconcile.examples import clip
from streamquake.reports.record.error_baseline import read_baseline
from streamquake.reports.record.logged_errors import (
    DOUBT,
    LOG,
    LogEntry,
    LoggedError,
    ReadLog,
    grouped,
    read_log,
)
from streamquake.reports.record.outcome import CheckResult, Finding
from streamquake.reports.record.run_events import ClusterReused
from streamquake.topologies.named_files import file_beside

UNEXPECTED = "unexpected_error"
SHORTEST = 8
"""A shorter text is part of too many errors."""


@checks.register
class Logs(Check):
    """Held when the nodes logged only errors that are expected.

    An error is an entry of level ERROR or FATAL, a stack trace of Java or Python, or what a JVM
    prints when it ends or cannot start. Errors with the same classes of exceptions, thrown at the
    same place, are one finding, with the nodes that logged them. A baseline has the errors of
    earlier runs: `streamquake errors` writes it.

    Levels are read after a time stamp, as Log4j, Logback, Python, PostgreSQL, nginx and others
    write them, and in JSON, logfmt and glog.

    Undecided where a node has no log, or one whose lines have no time stamps and levels, where no
    node logged anything, and where a line outside of a stack trace seems to have the level of an
    error, but its form is not known.
    """

    name: ClassVar[str] = "logs"
    classes: ClassVar[tuple[str, ...]] = (UNEXPECTED,)
    files: ClassVar[tuple[str, ...]] = ("baseline",)

    allow: tuple[Annotated[str, Field(min_length=SHORTEST)], ...] = ()
    """Texts of expected errors: an error is expected if its first line, or the line of one of its
    exceptions, contains one of them. So is a line whose form is not known."""
    baseline: str | tuple[str, ...] = ()
    """Expected errors by their signatures: a file that `streamquake errors --write` made, by its
    path from the document, or a list of signatures."""

    def beside(self, folder: Path) -> Self:
        if not isinstance(self.baseline, str):
            return self
        known = read_baseline(file_beside(self.baseline, folder))
        return self.model_copy(update={"baseline": tuple(e.error for e in known.errors)})

    def check(self, case: JudgedRun) -> CheckResult:
        if case.logs is None:
            return self.undecided("there are no logs")
        read: dict[str, ReadLog] = {}
        logs = {node.name: case.logs / node.host / LOG for node in case.experiment.topology.nodes()}
        for node, log in logs.items():
            try:
                read[node] = read_log(log)
            except (OSError, ValueError) as error:
                reason = error.strerror if isinstance(error, OSError) else str(error)
                return self.undecided(f"the log of {node} cannot be read: {reason}")
        silent = [node for node, log in logs.items() if not log.stat().st_size]
        if len(silent) == len(logs):
            return self.undecided("no node logged anything")
        # On a reused cluster a process has logged its start before the run.
        if silent and case.history.first(ClusterReused) is None:
            return self.undecided(f"{silent[0]} logged nothing, not even its start")
        return self._judge(read)

    def _judge(self, read: Mapping[str, ReadLog]) -> CheckResult:
        errors = [(node, error) for node, log in read.items() for error in log.errors]
        unexpected = grouped((node, e) for node, e in errors if not self._is_expected(e))
        counts = {
            "errors": len(errors),
            "unexpected": sum(error.count for error in unexpected),
            "kinds": len(unexpected),
        }
        if unexpected:
            found = tuple(_finding(error) for error in unexpected)
            first = clip(unexpected[0].signature)
            summary = f"{len(unexpected)} kinds of unexpected errors were logged, first {first}"
            return self.violated(summary, found, **counts)
        for node, log in read.items():
            for line in log.doubtful:
                if not self._allows(line):
                    what = clip(f"{DOUBT}: {line}")
                    return self.undecided(f"the log of {node} is not read in full: {what}")
        return self.held(f"no unexpected error among {len(errors)} in the logs", **counts)

    def _is_expected(self, error: LogEntry) -> bool:
        return error.signature in self.baseline or self._allows(error.text)

    def _allows(self, text: str) -> bool:
        return any(allowed in text for allowed in self.allow)


def _finding(error: LoggedError) -> Finding:
    nodes = ", ".join(f"{node} {count}" for node, count in error.nodes.items())
    detail = {"error": error.signature, "times": error.count, "nodes": nodes, "text": error.text}
    return Finding(what=UNEXPECTED, detail={k: clip(v) for k, v in detail.items()})

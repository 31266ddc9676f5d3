"""The results of one run: how it ended, what was judged, what each fault did."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from streamquake.reports.record.expected_outcome import ExpectedOutcome
from streamquake.reports.record.outcome import CheckResult, Finding, Outcome
from streamquake.reports.record.record_json import is_schema

SCHEMA = 1
RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
"""Runs are called so; their names become paths and links."""
Ended = Literal["completed", "interrupted", "failed_to_run"]


@dataclass(frozen=True, kw_only=True)
class FaultRecord:
    """What one step of the schedule did. `injected_s` is the moment the effect was seen,
    `lateness_ms` how long after the moment that its trigger meant that was."""

    fault: str
    target: str
    nodes: tuple[str, ...]
    injected_s: float | None
    in_effect: bool
    evidence: Mapping[str, Any] = field(default_factory=dict)
    healed: bool = False
    reason: str = ""
    lateness_ms: float | None = None
    missed_window: bool = False
    """Whether it took effect too late for the two events it was to be injected between."""
    ended_early_s: float | None = None
    """When the effect was found ended before its heal was called, seconds since the run began."""


@dataclass(frozen=True, kw_only=True)
class FaultRecovery:
    """The recovery after one injection: `phases` in seconds from the fault's effect, None where not
    reached before the next fault or the end."""

    fault: str
    step: int
    phases: Mapping[str, float | None]

    @property
    def title(self) -> str:
        """The fault and its place in the schedule."""
        return f"{self.fault} (faults[{self.step}])"


@dataclass(frozen=True, kw_only=True)
class Results:
    """*ended* says whether the run got to its end; *outcome* what was proven. Two fields.

    `recovery` holds the phases of the first fault's recovery in seconds, None where not reached;
    `recoveries` those of every fault that acted, empty in records of older versions.
    """

    run_id: str
    experiment: str
    seed: int
    ended: Ended
    outcome: Outcome
    expected: ExpectedOutcome = field(default_factory=ExpectedOutcome)
    cause: str = ""
    """What exit status 3 stands for, in two words (see `ErrorKind`): `undecided` where the run
    completed, else the kind of error it failed with. Empty otherwise, and in records of older
    versions."""
    reason: str = ""
    """Why the run failed or was interrupted, or what is missing of its record; else empty."""
    checks: tuple[CheckResult, ...] = ()
    faults: tuple[FaultRecord, ...] = ()
    recovery: Mapping[str, float | None] = field(default_factory=dict)
    recoveries: tuple[FaultRecovery, ...] = ()
    replay: str = ""
    warnings: tuple[str, ...] = ()
    """Steps of the tear-down that failed; they never change the verdict."""

    @property
    def titled_recoveries(self) -> tuple[tuple[str, Mapping[str, float | None]], ...]:
        """The phases of each recovery, behind its fault where there were several faults."""
        if len(self.recoveries) > 1:
            return tuple((each.title, each.phases) for each in self.recoveries)
        return (("", self.recovery),) if self.recovery else ()

    @property
    def met(self) -> Outcome:
        """Held when the run came out as it was to, violated when it certainly did not."""
        return self._met()[0]

    @property
    def unmet(self) -> str:
        """In which way it came out otherwise than expected; empty when it did not."""
        return self._met()[1]

    @property
    def as_expected(self) -> bool:
        """Whether the run got to its end, its record is whole, and it came out as it was to."""
        return self.met == Outcome.HELD

    def _met(self) -> tuple[Outcome, str]:
        met, why = self.expected.met(self.outcome, self.checks)
        if met != Outcome.HELD:
            return met, why
        if self.ended != "completed":
            return Outcome.UNDECIDED, "the run did not come to its end"
        # What is missing of a record may be why a check is undecided, or found nothing more.
        return (Outcome.UNDECIDED, self.reason) if self.reason else (Outcome.HELD, "")

    def to_json(self) -> dict[str, Any]:
        document = dataclasses.asdict(self)
        document["outcome"] = str(self.outcome)
        document["expected"] = self.expected.to_json()
        for check, result in zip(document["checks"], self.checks, strict=True):
            check["outcome"] = str(result.outcome)
        return {"schema": SCHEMA, **document}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Results:
        """Raises ValueError for another schema, for a run that is called like a path, and where
        the reason of its end is no text. Fields that a later version adds are left out."""
        if not is_schema(document.get("schema"), SCHEMA):
            raise ValueError(f"results of schema {document.get('schema')}, not {SCHEMA}")
        if not RUN_ID.fullmatch(str(document["run_id"])):
            raise ValueError(f"no run can be called {document['run_id']!r}")
        known = {each.name for each in dataclasses.fields(cls)}
        fields = {key: value for key, value in document.items() if key in known}
        fields["outcome"] = Outcome.parse(fields["outcome"])
        fields["expected"] = ExpectedOutcome.of(fields["expected"])
        fields["checks"] = tuple(_check(check) for check in fields["checks"])
        fields["faults"] = tuple(
            FaultRecord(**{**fault, "nodes": tuple(fault["nodes"])}) for fault in fields["faults"]
        )
        recoveries = fields.get("recoveries", ())
        fields["recoveries"] = tuple(FaultRecovery(**each) for each in recoveries)
        fields["warnings"] = tuple(fields["warnings"])
        texts = (fields.get("cause", ""), fields["reason"], *fields["warnings"])
        if fields["ended"] not in get_args(Ended) or not all(isinstance(t, str) for t in texts):
            raise ValueError("expected how the run ended, a cause, a reason, and warnings as texts")
        return cls(**fields)


def _check(document: Mapping[str, Any]) -> CheckResult:
    findings = tuple(Finding(**finding) for finding in document["findings"])
    outcome = Outcome.parse(document["outcome"])
    return CheckResult(**{**document, "outcome": outcome, "findings": findings})

"""The results of one run: how it ended, what was judged, what each fault did."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any, Literal, get_args

from streamquake.reports.record.expected_outcome import ExpectedOutcome
from streamquake.reports.record.outcome import CheckResult, Finding, Outcome
from streamquake.reports.record.record_json import is_schema

SCHEMA = 1
RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
"""The form of a run id, which becomes part of paths and links."""
Ended = Literal["completed", "interrupted", "failed_to_run"]


@dataclass(frozen=True, kw_only=True)
class FaultRecord:
    """The record of one step of the schedule. `injected_s` is the time when the effect was
    observed, `lateness_ms` the delay since the time that its trigger planned."""

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
    """Whether it took effect after the two events between which it was planned."""
    ended_early_s: float | None = None
    """When the effect was observed to have ended, if that was before the heal was called; in
    seconds since the run began."""


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
    """*The results of a run: *ended* is whether the run completed, *outcome* is what was proven.

    `recovery` has the phases of the first whole recovery from a failure of the job, else those
    after the first fault, in seconds, None where not reached; `recoveries` those of every fault
    that acted, empty in records of older versions.
    """

    run_id: str
    experiment: str
    seed: int
    ended: Ended
    outcome: Outcome
    expected: ExpectedOutcome = field(default_factory=ExpectedOutcome)
    cause: str = ""
    """The cause of exit status 3, in at most two words (see `ErrorKind`): `undecided` where the run
    completed, else the kind of its error. Empty for other exit statuses and in records of older
    versions."""
    reason: str = ""
    """Why the run failed or was interrupted, or what is missing of its record; else empty."""
    checks: tuple[CheckResult, ...] = ()
    faults: tuple[FaultRecord, ...] = ()
    recovery: Mapping[str, float | None] = field(default_factory=dict)
    recoveries: tuple[FaultRecovery, ...] = ()
    replay: str = ""
    judge: str = ""
    """A hash of the modules that judged the run; empty in records of older versions."""
    warnings: tuple[str, ...] = ()
    """Steps of the tear-down that failed; they never change the verdict."""
    elapsed_s: float | None = None
    """How long the run took, from its start to its verdict; None in records of older versions."""

    @property
    def titled_recoveries(self) -> tuple[tuple[str, Mapping[str, float | None]], ...]:
        """The phases of each recovery, each with its fault's title where there were several
        faults."""
        if len(self.recoveries) > 1:
            return tuple((each.title, each.phases) for each in self.recoveries)
        return (("", self.recovery),) if self.recovery else ()

    @property
    def met(self) -> Outcome:
        """Held when the run had the expected outcome, violated when it certainly had not."""
        return self._met()[0]

    @property
    def unmet(self) -> str:
        """How the outcome differs from the expected one; empty when it does not."""
        return self._met()[1]

    @property
    def as_expected(self) -> bool:
        """Whether the run completed, its record is complete, and its outcome is the expected
        one."""
        return self.met == Outcome.HELD

    def _met(self) -> tuple[Outcome, str]:
        met, why = self.expected.met(self.outcome, self.checks)
        if met != Outcome.HELD:
            return met, why
        if self.ended != "completed":
            return Outcome.UNDECIDED, "the run did not complete"
        # A check may be undecided, or have found no more, because a part of the record is missing.
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
        """Raises ValueError for another schema, for a run id that could be a path, and where the
        reason of its end is not a text. Fields that a later version added are ignored."""
        if not is_schema(document.get("schema"), SCHEMA):
            raise ValueError(f"results of schema {document.get('schema')}, not {SCHEMA}")
        if not RUN_ID.fullmatch(str(document["run_id"])):
            raise ValueError(f"not a run id: {document['run_id']!r}")
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
        texts = (
            fields.get("cause", ""),
            fields.get("judge", ""),
            fields["reason"],
            *fields["warnings"],
        )
        if fields["ended"] not in get_args(Ended) or not all(isinstance(t, str) for t in texts):
            raise ValueError(
                "expected how the run ended, a cause, a judge, a reason, and warnings as texts"
            )
        if not _is_duration(fields.get("elapsed_s")):
            raise ValueError("expected `elapsed_s` to be a number of seconds")
        return cls(**fields)


def _is_duration(held: Any) -> bool:
    """Whether it is a number of seconds, or unknown."""
    return held is None or (type(held) in (int, float) and 0 <= held < inf)


def _check(document: Mapping[str, Any]) -> CheckResult:
    if not isinstance(document.get("doubt", ""), str):
        raise ValueError("expected the doubt of a check as a text")
    findings = tuple(Finding(**finding) for finding in document["findings"])
    outcome = Outcome.parse(document["outcome"])
    return CheckResult(**{**document, "outcome": outcome, "findings": findings})

"""Outcomes: held, undecided, violated. "No" and "not known" are always distinct."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any


class Outcome(IntEnum):
    """Ordered by weight, so that the worst of several is their maximum."""

    HELD = 0
    UNDECIDED = 1
    VIOLATED = 2

    def __str__(self) -> str:
        return self.name.lower()

    @classmethod
    def parse(cls, word: str) -> Outcome:
        return cls[word.upper()]


def worst(outcomes: Iterable[Outcome]) -> Outcome:
    """The worst of several outcomes; undecided when there is none (no evidence, no verdict)."""
    return max(outcomes, default=Outcome.UNDECIDED)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One example of an anomaly that a check found: its class, its place, and the details."""

    what: str
    where: str = ""
    detail: Mapping[str, Any] = field(default_factory=dict)


def class_of(finding: Finding) -> str:
    """The class of the anomaly, without the details of this example, which follow a comma."""
    return finding.what.partition(",")[0]


@dataclass(frozen=True, kw_only=True)
class CheckResult:
    """The result of one check. `counts` has figures by name, None where a class was not judged."""

    check: str
    outcome: Outcome
    summary: str
    counts: Mapping[str, int | float | None] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    doubt: str = ""
    """Why the record leaves open which classes there are, also where the result is violated: for
    example, records were read that are not stored. Empty in records of older versions."""

"""Whether a candidate counts: its tries until they decide, as few as possible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class TryOutcome(StrEnum):
    """What one run of a candidate showed."""

    FAILS = "fails"
    PASSES = "passes"
    UNDECIDED = "undecided"
    """It shows neither, as where a fault did not take effect."""


@dataclass(frozen=True, kw_only=True)
class Try:
    """One run of a candidate. `run` is None where it left no record."""

    run: str | None
    outcome: TryOutcome
    why: str


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A candidate counts if at least `failures` of `tries` fail. Undecided tries are repeated, at
    most `undecided` times."""

    failures: int
    tries: int
    undecided: int

    @classmethod
    def of(cls, failures: int, tries: int) -> Rule:
        """With as many undecided tries as decided ones."""
        return cls(failures=failures, tries=tries, undecided=tries)

    def verdict(self, tries: Sequence[Try]) -> bool | None:
        """Whether the candidate of these tries counts; None where it takes another try."""
        fails, passes, undecided = (count(tries, outcome) for outcome in TryOutcome)
        if fails >= self.failures:
            return True
        can_fail = fails + self.tries - (fails + passes)
        if can_fail < self.failures or undecided > self.undecided:
            return False
        return None

    @property
    def fewest(self) -> int:
        """How many tries at least it takes until a candidate that never fails does not count."""
        return self.tries - self.failures + 1

    def __str__(self) -> str:
        return f"at least {self.failures} of {self.tries} tries"


def count(tries: Sequence[Try], outcome: TryOutcome) -> int:
    """How many tries have this outcome."""
    return sum(each.outcome == outcome for each in tries)


def in_words(tries: Sequence[Try]) -> str:
    """The tries of a candidate, such as `fails 2 of 3, 1 undecided`."""
    fails, passes, undecided = (count(tries, outcome) for outcome in TryOutcome)
    message = f"fails {fails} of {fails + passes}"
    return f"{message}, {undecided} undecided" if undecided else message

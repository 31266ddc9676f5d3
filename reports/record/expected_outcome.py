"""The expected outcome of a run: held, undecided or violated, or one result for each named
check."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from streamquake.reports.record.outcome import CheckResult, Outcome, class_of, worst

Written = str | Mapping[str, str | tuple[str, ...]]
"""The forms in YAML: `violated`; `{exactly_once: duplicated}` with one finding class or a list of
them; or `{execution: [held, undecided]}` with one outcome or a list of alternatives."""
OUTCOMES = tuple(str(outcome) for outcome in Outcome)


@dataclass(frozen=True, kw_only=True)
class ExpectedOutcome:
    """`found` maps the name of a check to its expected result; every other check must be held. A
    check must find all the listed classes and no other class, and no doubt about them, or have any
    one of the listed outcomes. Without `found` any check may cause the outcome."""

    outcome: Outcome = Outcome.HELD
    """The worst outcome that the run may have."""
    found: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, written: Written) -> ExpectedOutcome:
        """The expected outcome in YAML or in a record. Raises ValueError for an unknown outcome,
        and for a check's list that is empty, that mixes outcomes and classes, or that no run could
        fail."""
        if isinstance(written, str):
            if written not in OUTCOMES:
                raise ValueError(f'expected {" or ".join(OUTCOMES)}, got "{written}"')
            return cls(outcome=Outcome.parse(written))
        found = {check: _words(words) for check, words in written.items()}
        allowed = [outcome for words in found.values() for outcome in _allowed(words)]
        return cls(outcome=max(allowed, default=Outcome.HELD), found=found)

    def to_json(self) -> Any:
        """The form that `of` reads."""
        return {name: list(words) for name, words in self.found.items()} or str(self.outcome)

    def __str__(self) -> str:
        return ", ".join(f"{name}: {_as_text(words)}" for name, words in self.found.items()) or str(
            self.outcome
        )

    def met(self, outcome: Outcome, checks: Sequence[CheckResult]) -> tuple[Outcome, str]:
        """Whether a run had the expected outcome: held if so, violated if it certainly had not; and
        why not."""
        if not self.found:
            if outcome == self.outcome:
                return Outcome.HELD, ""
            surely_not = outcome != Outcome.UNDECIDED
            why = f"{self.outcome} was expected"
            return (Outcome.VIOLATED if surely_not else Outcome.UNDECIDED), why
        unmet = list(self._unmet(checks))
        if not unmet and outcome != (of_checks := worst(result.outcome for result in checks)):
            # The cause is not a check: for example, a part of the record is missing.
            unmet = [(Outcome.UNDECIDED, f"the run is {outcome}, and its checks are {of_checks}")]
        met = max((each for each, _ in unmet), default=Outcome.HELD)
        return met, "; ".join(why for each, why in unmet if each == met)

    def _unmet(self, checks: Sequence[CheckResult]) -> Iterator[tuple[Outcome, str]]:
        judged = {result.check for result in checks}
        for name in self.found:
            if name not in judged:
                yield Outcome.UNDECIDED, f"{name} was not judged"
        for result in checks:
            name, seen = result.check, result.outcome
            wanted = self.found.get(name, (str(Outcome.HELD),))
            classes = {class_of(each) for each in result.findings}
            if seen not in _allowed(wanted):
                if seen == Outcome.UNDECIDED:
                    yield Outcome.UNDECIDED, f"{name} is undecided: {result.summary}"
                else:
                    yield Outcome.VIOLATED, f"{name} is {seen}, expected {_as_text(wanted)}"
            elif not _are_outcomes(wanted) and result.doubt:
                yield Outcome.UNDECIDED, f"the classes of {name} are in doubt: {result.doubt}"
            elif not _are_outcomes(wanted) and set(wanted) != classes:
                message = " and ".join(sorted(classes)) or "nothing"
                yield Outcome.VIOLATED, f"{name} found {message}, expected {_as_text(wanted)}"


def _words(written: str | Sequence[str]) -> tuple[str, ...]:
    """The expected classes or outcomes of one check. Raises ValueError as `of` does."""
    words = (written,) if isinstance(written, str) else tuple(written)
    outcomes = set(OUTCOMES) & set(words)
    if not words:
        raise ValueError("expected an outcome or classes, got an empty list")
    if outcomes and not outcomes.issuperset(words):
        raise ValueError(f"expected either outcomes or classes, got {', '.join(words)}")
    if {str(Outcome.HELD), str(Outcome.VIOLATED)} <= outcomes:
        raise ValueError("expected held or violated, got both, which no run could fail")
    return words


def _are_outcomes(words: tuple[str, ...]) -> bool:
    return words[0] in OUTCOMES


def _allowed(words: tuple[str, ...]) -> set[Outcome]:
    """The outcomes that a check may have; one that finds classes is violated."""
    return {Outcome.parse(each) for each in words} if _are_outcomes(words) else {Outcome.VIOLATED}


def _as_text(words: tuple[str, ...]) -> str:
    return (" or " if _are_outcomes(words) else " and ").join(words)

"""How a run is to come out: held, undecided, violated, or violated by named checks and classes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from streamquake.reports.record.outcome import CheckResult, Outcome, class_of

Written = str | Mapping[str, str | tuple[str, ...]]
"""As YAML has it: `violated`, or `{exactly_once: duplicated}` with one class or a list of them."""
OUTCOMES = tuple(str(outcome) for outcome in Outcome)


@dataclass(frozen=True, kw_only=True)
class Expected:
    """`found` names what each check must find, all of it and nothing else; every check that is not
    named must be held. An outcome in place of classes asks for that outcome alone. Without `found`
    any check may bring the outcome about."""

    outcome: Outcome = Outcome.HELD
    found: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, written: Written) -> Expected:
        """What YAML or a record says. Raises ValueError for no word of the three."""
        if isinstance(written, str):
            if written not in OUTCOMES:
                raise ValueError(f'expected {" or ".join(OUTCOMES)}, got "{written}"')
            return cls(outcome=Outcome.parse(written))
        found = {
            check: (words,) if isinstance(words, str) else tuple(words)
            for check, words in written.items()
        }
        outcomes = [_outcome_of(words) for words in found.values()]
        return cls(outcome=max(outcomes, default=Outcome.HELD), found=found)

    def to_json(self) -> Any:
        """As `of` reads it."""
        return {name: list(words) for name, words in self.found.items()} or str(self.outcome)

    def __str__(self) -> str:
        return ", ".join(f"{n}: {' and '.join(w)}" for n, w in self.found.items()) or str(
            self.outcome
        )

    def met(self, outcome: Outcome, checks: Sequence[CheckResult]) -> tuple[Outcome, str]:
        """Whether a run came out so: held, violated when it certainly did not; and why not."""
        if not self.found:
            if outcome == self.outcome:
                return Outcome.HELD, ""
            surely_not = outcome != Outcome.UNDECIDED
            why = f"{self.outcome} was expected"
            return (Outcome.VIOLATED if surely_not else Outcome.UNDECIDED), why
        unmet = list(self._unmet(checks))
        if not unmet and outcome != self.outcome:
            # Something beside the checks, such as a record of which a part is missing.
            unmet = [(Outcome.UNDECIDED, f"the run is {outcome}, and {self.outcome} was expected")]
        worst = max((each for each, _ in unmet), default=Outcome.HELD)
        return worst, "; ".join(why for each, why in unmet if each == worst)

    def _unmet(self, checks: Sequence[CheckResult]) -> Iterator[tuple[Outcome, str]]:
        results = {result.check: result for result in checks}
        for name in self.found:
            if name not in results:
                yield Outcome.UNDECIDED, f"{name} was not judged"
        for name, result in results.items():
            wanted = self.found.get(name, (str(Outcome.HELD),))
            seen = str(result.outcome)
            if wanted == (seen,):
                continue
            if result.outcome == Outcome.UNDECIDED:
                yield Outcome.UNDECIDED, f"{name} is undecided: {result.summary}"
            elif _outcome_of(wanted) != result.outcome:
                yield Outcome.VIOLATED, f"{name} is {seen}, expected {' and '.join(wanted)}"
            elif set(wanted) != (classes := {class_of(each) for each in result.findings}):
                said = " and ".join(sorted(classes)) or "nothing"
                yield Outcome.VIOLATED, f"{name} found {said}, expected {' and '.join(wanted)}"


def _outcome_of(words: tuple[str, ...]) -> Outcome:
    return Outcome.parse(words[0]) if len(words) == 1 and words[0] in OUTCOMES else Outcome.VIOLATED

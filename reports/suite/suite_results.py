"""The results of a suite: its rows, the outcome of each run, and the figures side by side.

`suite.json` is rewritten completely after every run, so that it can be read at any time. A row
without runs has the outcome `not run`.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

from streamquake.reports.record.expected_outcome import ExpectedOutcome
from streamquake.reports.record.group_folder import GroupFolder
from streamquake.reports.record.outcome import Outcome
from streamquake.reports.record.results import Ended
from streamquake.reports.suite.rate import Rate
from streamquake.topologies.errors import common_cause

SCHEMA = 1
NOT_RUN = "not run"
TOO_NOISY = "too noisy to say"
"""The outcome of a claim whose runs were as expected, but too few to tell its relations."""
NOT_MEASURED = "not measured"
"""The outcome of a claim that cannot be measured with the available systems."""
Role = Literal["claim", "series", "control"]


@dataclass(frozen=True, kw_only=True)
class Spread:
    """A figure over the repeats in which it was measured: their number, the median and the range.

    Every value is kept, in the order of the repeats.
    """

    n: int
    median: float
    low: float
    high: float
    values: tuple[float, ...]
    interval: tuple[float, float] | None = None
    """The interval of 95 % of the median; None of fewer than six values."""

    @classmethod
    def of(cls, values: Sequence[float | None]) -> Spread | None:
        """The spread of the values that were measured; None when none was."""
        known = tuple(value for value in values if value is not None)
        if not known:
            return None
        middle = statistics.median(known)
        return cls(n=len(known), median=middle, low=min(known), high=max(known), values=known)

    @property
    def spread(self) -> float:
        return self.high - self.low

    def to_json(self) -> dict[str, Any]:
        found = {**asdict(self), "values": list(self.values), "spread": self.spread}
        interval = found.pop("interval")
        return found if interval is None else {**found, "interval": list(interval)}


Figures = Mapping[str, Spread | None]
"""Figure as CHECK.COUNT -> its values; None where none was measured."""


@dataclass(frozen=True, kw_only=True)
class SuiteRun:
    """One run of a row: of its experiment (the claim), of one of its series, or of its control.
    `run` is the run's id, None where the run did not begin."""

    experiment: str
    role: Role
    repeat: int
    seed: int
    expected: ExpectedOutcome
    met: Outcome
    """Whether the outcome is the expected one; undecided where that is not known."""
    run: str | None
    ended: Ended
    outcome: Outcome
    why: str
    cause: str = ""
    """The kind of error that prevented a verdict (`Results.cause`)."""
    attempt: int = 1
    """Which attempt it is: an undecided run is tried again. Only the last one counts."""

    @property
    def place(self) -> tuple[str, Role, int]:
        """What it is a run of, in its row."""
        return self.experiment, self.role, self.repeat

    @property
    def as_expected(self) -> bool:
        return self.ended == "completed" and self.met == Outcome.HELD

    @property
    def is_unexpected(self) -> bool:
        """Whether the outcome is certainly not the expected one; False for an undecided run."""
        return self.met == Outcome.VIOLATED


@dataclass(frozen=True, kw_only=True)
class RelationResult:
    """One bound on a figure, and its outcome; `text` is the bound with the numbers."""

    figure: str
    outcome: Outcome
    text: str
    p: float | None = None
    """The p-value of the test of the bound; None where there are too few runs for one."""


@dataclass(frozen=True, kw_only=True)
class ClaimResult:
    """A claim: its text, its author, the setting that causes it, and its control."""

    claim: str
    article: str
    setting: str
    note: str | None
    control: str | None
    control_figures: Figures
    relations: tuple[RelationResult, ...]
    published: str | None = None
    """The published measurement."""


@dataclass(frozen=True, kw_only=True)
class RowResult:
    """One row. Its `outcome` is that of its runs or of its claim; None while it has no run.

    `verdict` is whether the outcome is the expected one: held (yes), violated (no), undecided (not
    known).
    """

    experiment: str
    topology: str
    expected: ExpectedOutcome
    outcome: Outcome | None
    verdict: Outcome | None
    why: str
    figures: Figures
    runs: tuple[SuiteRun, ...] = ()
    planned: int = 1
    """The number of planned runs of the row."""
    claim: ClaimResult | None = None
    unavailable: str | None = None
    """Why the row cannot be measured. Such a row counts neither as expected nor as undecided."""
    quarantined: str | None = None
    """Why the row does not count, although it is run and shown."""
    fails_more: str = ""
    """How its quarantined runs fail more often than the earlier ones; then the row counts."""
    rate: Rate | None = None
    """How many of its runs, all attempts included, had the expected outcome; None without runs."""

    @property
    def is_flaky(self) -> bool:
        """Whether some of its runs had the expected outcome and others had not."""
        return self.rate is not None and 0 < self.rate.count < self.rate.n

    @property
    def counts(self) -> bool:
        """Whether the verdict of the suite depends on it."""
        return self.unavailable is None and (self.quarantined is None or bool(self.fails_more))

    @property
    def reliability(self) -> tuple[str, ...]:
        """How far the row is to be relied on: whether it is flaky, and whether it counts."""
        lines = [f"flaky: {self.rate} of its runs as expected"] if self.is_flaky else []
        if self.fails_more:
            lines.append(f"quarantined, but it fails more often than before: {self.quarantined}")
        elif self.quarantined is not None:
            lines.append(f"quarantined, does not count: {self.quarantined}")
        return tuple(lines)

    @property
    def is_too_noisy(self) -> bool:
        """Whether only relations that were tested keep its claim from being decided."""
        relations = self.claim.relations if self.claim else ()
        open_ones = [each for each in relations if each.outcome == Outcome.UNDECIDED]
        return (
            self.verdict == Outcome.UNDECIDED
            and bool(open_ones)
            and all(each.p is not None for each in open_ones)
            and self.why in {each.text for each in open_ones}
        )

    @property
    def outcome_word(self) -> str:
        """The outcome in a word or two, or why the row has none."""
        if self.unavailable is not None:
            return NOT_MEASURED
        if self.is_too_noisy:
            return TOO_NOISY
        return NOT_RUN if self.outcome is None else str(self.outcome)

    @property
    def title(self) -> str:
        return self.claim.claim if self.claim else self.experiment

    @property
    def as_expected(self) -> bool:
        return self.verdict == Outcome.HELD

    @property
    def run(self) -> str | None:
        """The last run of the row's experiment."""
        own = [run.run for run in self.runs if run.role == "claim" and run.run]
        return own[-1] if own else None

    def to_json(self) -> dict[str, Any]:
        return {
            "experiment": self.experiment,
            "topology": self.topology,
            "expected": self.expected.to_json(),
            "outcome": self.outcome_word,
            "unavailable": self.unavailable,
            "run": self.run,
            "figures": _figures_json(self.figures),
            "as_expected": self.as_expected,
            "why": self.why,
            "quarantined": self.quarantined,
            "fails_more": self.fails_more,
            "flaky": self.is_flaky,
            "rate": asdict(self.rate) if self.rate else None,
            "planned": self.planned,
            "runs": [_run_json(run) for run in self.runs],
            **(_claim_json(self.claim) if self.claim else {}),
        }


@dataclass(frozen=True, kw_only=True)
class ChangeLine:
    """What became of the outcome or of one figure of an experiment against a baseline."""

    experiment: str
    figure: str
    """The figure as CHECK.COUNT, or `as expected` for the rate of expected outcomes."""
    text: str
    is_worse: bool
    """Whether the expected outcome became rarer, or a time longer."""


@dataclass(frozen=True, kw_only=True)
class SuiteResults:
    """The results of a suite so far."""

    suite_id: str
    suite: str
    description: str
    seed: int
    ended: Ended
    rows: tuple[RowResult, ...]
    deployments: int = 0
    """How many clusters were started for all the runs."""
    elapsed_s: float = 0.0
    reason: str = ""
    again: str = ""
    """The command that repeats the suite."""
    reused: tuple[str, ...] = ()
    """The ids of the recorded runs that replaced planned ones."""
    budget_s: float | None = None
    """The time that the suite had, in seconds; None where all planned runs were to be run."""
    against: str = ""
    """The baseline that the runs were compared with; empty for none."""
    conditions: tuple[str, ...] = ()
    """When, on which machines and with which software the runs were made, as lines for readers."""
    changes: tuple[ChangeLine, ...] = ()
    """What changed against the baseline."""
    warnings: tuple[str, ...] = field(default=())

    @property
    def verdict(self) -> Outcome:
        """Held when every row is as expected, violated when one certainly is not, or something is
        worse than in the baseline. Rows that cannot be measured and quarantined ones do not count,
        nor within a budget those for which no time was left. A suite that did not complete, or only
        took over recorded runs, is not held, nor one that could not be compared with its
        baseline."""
        verdicts = [
            Outcome.UNDECIDED if row.verdict is None else row.verdict
            for row in self.rows
            if row.counts and not (row.verdict is None and self.budget_s is not None)
        ]
        if self.ran_nothing or self.ended != "completed":
            verdicts.append(Outcome.UNDECIDED)
        if self.against and not self.changes:
            verdicts.append(Outcome.UNDECIDED)
        if any(change.is_worse for change in self.changes):
            verdicts.append(Outcome.VIOLATED)
        return max(verdicts, default=Outcome.UNDECIDED)

    @property
    def ran_nothing(self) -> bool:
        """Whether every run was taken over from the recorded ones."""
        return bool(self.reused) and {*self.reused} >= {
            run.run for row in self.rows for run in row.runs
        }

    @property
    def cause(self) -> str:
        """What prevented a verdict; empty unless the suite is undecided."""
        return common_cause(run.cause for row in self.rows for run in row.runs)

    @property
    def runs_made(self) -> int:
        """The number of ended runs; a run may belong to several rows."""
        runs = (run for row in self.rows for run in row.runs)
        return len({(run.run, run.experiment, run.repeat, run.attempt) for run in runs})

    @property
    def counted(self) -> str:
        """The number of rows by verdict, as text."""
        words = ["as expected", "undecided", "not as expected"]
        counts = [sum(r.verdict == outcome for r in self.rows) for outcome in Outcome]
        unavailable = sum(r.unavailable is not None for r in self.rows)
        words += [NOT_RUN, NOT_MEASURED]
        counts += [sum(r.verdict is None for r in self.rows) - unavailable, unavailable]
        message = [f"{n} {word}" for n, word in zip(counts, words, strict=True) if n]
        flaky = sum(row.is_flaky for row in self.rows)
        quarantined = sum(row.quarantined is not None for row in self.rows)
        aside = [f"{n} {word}" for n, word in ((flaky, "flaky"), (quarantined, "quarantined")) if n]
        return "; ".join([f"{len(self.rows)} rows: {', '.join(message) or 'none'}", *aside])

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "suite_id": self.suite_id,
            "suite": self.suite,
            "description": self.description,
            "seed": self.seed,
            "ended": self.ended,
            "verdict": str(self.verdict),
            "reason": self.reason,
            "deployments": self.deployments,
            "elapsed_s": round(self.elapsed_s, 1),
            "again": self.again,
            "reused": list(self.reused),
            "budget_s": self.budget_s,
            "conditions": list(self.conditions),
            "against": self.against,
            "changes": [asdict(change) for change in self.changes],
            "warnings": list(self.warnings),
            "rows": [row.to_json() for row in self.rows],
        }


class SuiteFolder(GroupFolder):
    """The folder of one suite."""

    kind: ClassVar[str] = "suite"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.markdown = path / "suite.md"
        self.junit = path / "junit.xml"


def _figures_json(figures: Figures) -> dict[str, Any]:
    return {name: spread.to_json() if spread else None for name, spread in figures.items()}


def _run_json(run: SuiteRun) -> dict[str, Any]:
    return {
        **asdict(run),
        "expected": run.expected.to_json(),
        "met": str(run.met),
        "outcome": str(run.outcome),
    }


def _claim_json(claim: ClaimResult) -> dict[str, Any]:
    return {
        "claim": claim.claim,
        "article": claim.article,
        "published": claim.published,
        "setting": claim.setting,
        "note": claim.note,
        "control": None
        if claim.control is None
        else {"experiment": claim.control, "figures": _figures_json(claim.control_figures)},
        "relations": [{**asdict(each), "outcome": str(each.outcome)} for each in claim.relations],
    }

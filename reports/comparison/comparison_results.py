"""One experiment on several topologies, side by side: outcomes, figures and outputs.

compare-<id>/compare.json   compare.html
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

from streamquake.reports.record.group_folder import GroupFolder
from streamquake.reports.record.outcome import CheckResult, Outcome
from streamquake.reports.record.results import Ended, Results
from streamquake.reports.render.run_sentences import EFFECT_AT
from streamquake.topologies.errors import common_cause

SCHEMA = 1
RECOVERY = "recovery"


@dataclass(frozen=True, kw_only=True)
class ComparedRun:
    """The run on one topology. `results` is None where the run did not start; `why` is the
    reason."""

    topology: str
    results: Results | None
    why: str
    cause: str = ""
    """The kind of error that prevented a verdict (`Results.cause`)."""

    @property
    def ended(self) -> Ended:
        return self.results.ended if self.results else "failed_to_run"

    @property
    def outcome(self) -> Outcome:
        return self.results.outcome if self.results else Outcome.UNDECIDED

    @property
    def as_expected(self) -> bool:
        return self.results is not None and self.ended == "completed" and self.results.as_expected

    def check(self, name: str) -> CheckResult | None:
        """The result of a check in this run; None where the run does not have it."""
        checks = self.results.checks if self.results else ()
        return next((check for check in checks if check.check == name), None)


@dataclass(frozen=True, kw_only=True)
class OutputDifference:
    """The difference of one output between the first run and another, compared by record. The order
    of the records does not matter.

    Numbers of records: `missing` are only in the first, `added` only in the other, `changed` have
    different values in the two. They are None where the output could not be compared; `why` is the
    reason. `outcome` is None where the outputs may differ because a run is not proven exactly-once.
    """

    output: str
    first: str
    other: str
    missing: int | None = None
    added: int | None = None
    changed: int | None = None
    outcome: Outcome | None = None
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class TopologyComparison:
    """The runs in the order of their topologies, and the differences of their outputs."""

    comparison_id: str
    experiment: str
    seed: int
    runs: tuple[ComparedRun, ...]
    differences: tuple[OutputDifference, ...] = ()
    ended: Ended = "completed"
    reason: str = ""
    again: str = ""
    """The command that repeats the comparison."""
    warnings: tuple[str, ...] = field(default=())

    @property
    def verdict(self) -> Outcome:
        """Held when every run has the expected outcome and every output that must be equal is
        equal; violated when one is certainly not."""
        if any(_is_unexpected(run) for run in self.runs):
            return Outcome.VIOLATED
        same = [each.outcome for each in self.differences if each.outcome is not None]
        if Outcome.VIOLATED in same:
            return Outcome.VIOLATED
        whole = self.ended == "completed" and all(run.as_expected for run in self.runs)
        return max([Outcome.HELD if whole else Outcome.UNDECIDED, *same])

    @property
    def cause(self) -> str:
        """What prevented a verdict; empty unless the comparison is undecided."""
        return common_cause(run.cause for run in self.runs)

    def checks(self) -> tuple[str, ...]:
        """The names of all checks that at least one run has, in their order."""
        results = [run.results for run in self.runs if run.results is not None]
        return tuple(dict.fromkeys(check.check for each in results for check in each.checks))

    def figures(self) -> Iterator[tuple[str, tuple[float | None, ...]]]:
        """Pairs of a name (CHECK.FIGURE or recovery.PHASE) and its value in each run. Figures that
        no run measured and figures of single outputs are left out."""
        runs = [_figures(run.results) for run in self.runs]
        for name in dict.fromkeys(name for run in runs for name in run):
            values = tuple(run.get(name) for run in runs)
            if any(value is not None for value in values):
                yield name, values

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "comparison_id": self.comparison_id,
            "experiment": self.experiment,
            "seed": self.seed,
            "ended": self.ended,
            "verdict": str(self.verdict),
            "reason": self.reason,
            "again": self.again,
            "warnings": list(self.warnings),
            "runs": [_run_json(run) for run in self.runs],
            "figures": {name: list(values) for name, values in self.figures()},
            "differences": [_difference_json(each) for each in self.differences],
        }


class ComparisonFolder(GroupFolder):
    """The folder of one comparison."""

    kind: ClassVar[str] = "compare"


def _is_unexpected(run: ComparedRun) -> bool:
    """Whether the outcome is certainly not the expected one."""
    return run.results is not None and run.results.met == Outcome.VIOLATED


def _figures(results: Results | None) -> Mapping[str, float | None]:
    if results is None:
        return {}
    found = {
        f"{RECOVERY}.{name}": value for name, value in results.recovery.items() if name != EFFECT_AT
    }
    for check in results.checks:
        for name, value in check.counts.items():
            if "." not in name and (value is None or isinstance(value, int | float)):
                found[f"{check.check}.{name}"] = value
    return found


def _run_json(run: ComparedRun) -> dict[str, Any]:
    return {
        "topology": run.topology,
        "run": run.results.run_id if run.results else None,
        "ended": run.ended,
        "outcome": str(run.outcome),
        "as_expected": run.as_expected,
        "why": run.why,
        "cause": run.cause,
        "checks": {check.check: str(check.outcome) for check in run.results.checks}
        if run.results
        else {},
    }


def _difference_json(each: OutputDifference) -> dict[str, Any]:
    return {**asdict(each), "outcome": None if each.outcome is None else str(each.outcome)}

"""The result of a row: its outcome, its figures and its relations, from its runs.

An undecided run may be tried again; then only its last attempt counts, and all are shown. A
claim is held if every run of its experiment and of its control has the expected outcome, and
every relation holds. It is violated if one of these is certainly false. Otherwise, and if a run is
missing, it is undecided.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from streamquake.harness.campaign.statistics.bounds import LEVEL
from streamquake.harness.campaign.statistics.medians import Median
from streamquake.harness.campaign.statistics.rates import CONFIDENCE, rate_of
from streamquake.harness.campaign.suite.loader import Row
from streamquake.harness.campaign.suite.model import RowSource
from streamquake.harness.campaign.suite.relations import Side, relations_of
from streamquake.harness.campaign.suite.slopes import slopes_of
from streamquake.harness.campaign.suite.suite_run import CompletedRun, figure_of
from streamquake.reports.record.expected_outcome import ExpectedOutcome
from streamquake.reports.record.outcome import Outcome, worst
from streamquake.reports.suite.suite_results import (
    NOT_MEASURED,
    ClaimResult,
    Figures,
    RelationResult,
    Role,
    RowResult,
    Spread,
    SuiteRun,
)


def row_result(
    row: Row,
    *,
    topology: str,
    expected: ExpectedOutcome,
    planned: int,
    completed: Sequence[CompletedRun],
    level: float = LEVEL,
) -> RowResult:
    """The result of a row from its runs so far. `expected` is that of its experiment, `level` the
    largest p-value that counts."""
    attempts = tuple(each.run for each in completed)
    completed = _last_attempts(completed)
    runs = tuple(each.run for each in completed)
    own, control = (
        _spreads(row.source, "claim", completed),
        _spreads(row.source, "control", completed),
    )
    verdict, why = _of_runs(runs, planned)
    rate = rate_of(sum(run.as_expected for run in attempts), len(attempts)) if attempts else None
    outcome: Outcome | None
    if row.source.claim is None:
        outcome = None if verdict is None else _plain_outcome(runs)
        claim = None
    else:
        is_complete = len(completed) >= planned
        relations = (
            (
                *relations_of(row.source, _sides(completed, own, control), level),
                *slopes_of(row, completed, level),
            )
            if is_complete
            else ()
        )
        if verdict is not None:
            verdict, why = _with_relations(verdict, why, relations)
        outcome, expected = verdict, ExpectedOutcome()
        claim = _claim(row.source, row.source.claim, control, relations, row.names[-1])
    return RowResult(
        experiment=row.names[0],
        topology=topology,
        expected=expected,
        outcome=outcome,
        verdict=verdict,
        why=why,
        figures=own,
        runs=attempts,
        planned=planned,
        claim=claim,
        quarantined=row.source.quarantined,
        rate=rate,
    )


def _sides(completed: Sequence[CompletedRun], own: Figures, control: Figures) -> dict[str, Side]:
    roles = [each.run.role for each in completed]
    return {
        "claim": Side(runs=roles.count("claim"), figures=own),
        "control": Side(runs=roles.count("control"), figures=control),
    }


def _last_attempts(completed: Sequence[CompletedRun]) -> tuple[CompletedRun, ...]:
    """The last attempt of each run: the earlier ones were undecided."""
    last = Counter[tuple[str, Role, int]]()
    for each in completed:
        last[each.run.place] = max(last[each.run.place], each.run.attempt)
    return tuple(each for each in completed if each.run.attempt == last[each.run.place])


def unavailable_row(source: RowSource, reason: str) -> RowResult:
    """The row of a claim that cannot be measured, which has no outcome."""
    return RowResult(
        experiment="",
        topology="",
        expected=ExpectedOutcome(),
        outcome=None,
        verdict=None,
        why=f"{NOT_MEASURED}: {reason}",
        figures={},
        planned=0,
        unavailable=reason,
        claim=_claim(source, source.claim or "", {}, (), ""),
    )


def _claim(
    source: RowSource, text: str, control: Figures, relations: tuple[RelationResult, ...], last: str
) -> ClaimResult:
    """`last` is the name of the row's last experiment, the control's where it has one."""
    return ClaimResult(
        claim=text,
        article=source.article or "",
        setting=source.setting or "",
        note=source.note,
        published=source.published,
        control=last if source.control else None,
        control_figures=control if source.control else {},
        relations=relations,
    )


def _of_runs(runs: Sequence[SuiteRun], planned: int) -> tuple[Outcome | None, str]:
    """The outcome of the runs, without relations; None if there is no run yet."""
    if not runs:
        return None, "not run"
    for run in runs:
        if run.is_unexpected:
            return Outcome.VIOLATED, f"{_named(run)} was {run.outcome}, {_expectation(run)}"
    for run in runs:
        if not run.as_expected:
            return Outcome.UNDECIDED, f"{_named(run)}: {run.why}"
    if len(runs) < planned:
        return Outcome.UNDECIDED, f"{len(runs)} of {planned} runs completed"
    return Outcome.HELD, "every run has the expected outcome"


def _named(run: SuiteRun) -> str:
    return f"{run.experiment} (repeat {run.repeat + 1})" if run.repeat else run.experiment


def _expectation(run: SuiteRun) -> str:
    return f"but {run.expected} was expected: {run.why}"


def _plain_outcome(runs: Sequence[SuiteRun]) -> Outcome:
    """The outcome of a row without a claim: that of the first run which is certainly not expected,
    else of the first undecided one, else the worst of all runs."""
    against = [run.outcome for run in runs if run.is_unexpected]
    undecided = [run.outcome for run in runs if not run.as_expected]
    return (against or undecided or [worst(run.outcome for run in runs)])[0]


def _spreads(source: RowSource, role: Role, completed: Sequence[CompletedRun]) -> Figures:
    related = (relation.figure for relation in source.relations)
    sloped = (slope.figure for slope in source.slopes)
    names = dict.fromkeys((*source.figures, *related, *sloped))
    results = [each.results for each in completed if each.run.role == role]
    return {name: spread_of([figure_of(each, name) for each in results]) for name in names}


def spread_of(values: Sequence[float | None]) -> Spread | None:
    """The spread of the values that were measured, with the interval of their median where they are
    enough for 95 %; None when none was measured."""
    spread = Spread.of(values)
    if spread is None:
        return None
    median = Median.of(spread.values)
    enough = median.confidence >= CONFIDENCE
    return replace(spread, interval=(median.low, median.high)) if enough else spread


def _with_relations(
    verdict: Outcome, why: str, relations: Sequence[RelationResult]
) -> tuple[Outcome, str]:
    """The worst outcome of the runs and of the relations, and its text."""
    for relation in relations:
        if relation.outcome > verdict:
            verdict, why = relation.outcome, relation.text
    return verdict, why

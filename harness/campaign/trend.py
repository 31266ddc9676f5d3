"""The lines of the trend page, from the stored runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from streamquake.harness.campaign.regression import (
    by_row,
    changes_against,
    figure_sentence,
    is_slower,
    is_time,
    rate_sentence,
    row_names,
)
from streamquake.harness.campaign.statistics.changes import Changes
from streamquake.harness.campaign.statistics.rates import rate_of
from streamquake.reports.store.stored_run import StoredRun
from streamquake.reports.trend.trend_row import TrendRow

PREFERRED = ("recovery.longest_s", "checkpoints.median_ms", "latency.committed_p50_ms")
"""The figures that are drawn where they are known, before other times."""
DRAWN = 3


def trend_rows(runs: Sequence[StoredRun], figures: Sequence[str] = ()) -> list[TrendRow]:
    """A row for each experiment and topology. The runs on its newest software are compared with
    those on the software before."""
    in_time = sorted(runs, key=lambda run: (run.started_at, run.run_id))
    runs_of = by_row(in_time, row_names(in_time))
    drawn = {name: tuple(figures) or _figures_of(own) for name, own in runs_of.items()}
    baseline = [run for own in runs_of.values() for run in _on_earlier_software(own)]
    newest = [run for own in runs_of.values() for run in own if run.key == own[-1].key]
    compared = tuple(dict.fromkeys(name for names in drawn.values() for name in names))
    changes = changes_against(baseline, newest, compared)
    return [_row(name, own, drawn[name], changes.get(name)) for name, own in runs_of.items()]


def _on_earlier_software(runs: Sequence[StoredRun]) -> list[StoredRun]:
    """The runs on the software before the newest."""
    earlier = [run for run in runs if run.key != runs[-1].key]
    return [run for run in earlier if run.key == earlier[-1].key]


def _figures_of(runs: Sequence[StoredRun]) -> tuple[str, ...]:
    """The figures to draw: the preferred ones that are known, then other times that vary."""
    values: dict[str, set[float]] = defaultdict(set)
    for run in runs:
        for name, value in run.figures.items():
            values[name].add(value)
    times = (name for name, seen in values.items() if is_time(name) and len(seen) > 1)
    known = (name for name in PREFERRED if name in values)
    return tuple(dict.fromkeys((*known, *times)))[:DRAWN]


def _row(
    name: str, runs: Sequence[StoredRun], figures: Sequence[str], changes: Changes | None
) -> TrendRow:
    lines = list(_lines(changes)) if changes else []
    return TrendRow(
        experiment=name,
        runs=tuple(runs),
        rate=rate_of(sum(run.as_expected == 1 for run in runs), len(runs)),
        figures=figures,
        regressions=tuple(line for line, is_worse in lines if is_worse),
        others=tuple(line for line, is_worse in lines if not is_worse),
    )


def _lines(changes: Changes) -> Iterator[tuple[str, bool]]:
    """(sentence, whether it is a regression) of each comparison that could say something."""
    if changes.rate.finding != "too few runs":
        yield f"as expected: {rate_sentence(changes.rate)}", changes.rate.is_worse
    for change in changes.figures:
        if change.finding != "too few runs":
            yield f"{change.figure}: {figure_sentence(change)}", is_slower(change)

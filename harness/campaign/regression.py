"""Regressions: what changed in the recorded runs of each experiment against a baseline."""

from __future__ import annotations

import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from math import ceil, inf, isinf

from streamquake.harness.campaign.statistics.changes import (
    Changes,
    FigureChange,
    Group,
    RateChange,
    compare,
)
from streamquake.reports.render import run_sentences
from streamquake.reports.store.stored_run import ELAPSED, StoredRun
from streamquake.reports.suite.suite_results import ChangeLine
from streamquake.topologies.problems import bad_input

TIMES = ("_s", "_ms")
"""The endings of figures that are times; they are compared unless others are named."""
_VERSION = re.compile(r"([A-Za-z0-9._-]+)=([A-Za-z0-9._+-]+)")
_IMAGE = re.compile(r"sha256:[0-9a-f]{6,64}")


def baseline_condition(text: str) -> str:
    """The condition of a baseline: a day (2026-11-20), a version (flink=2.2.0, streamquake=0.2.0,
    program=HASH), or an image's id (sha256:...). Raises BadInput."""
    if (version := _VERSION.fullmatch(text)) is not None:
        name, value = version.groups()
        column = name if name in ("streamquake", "program") else f"get(versions, '{name}')"
        return f"{column} = '{value}'"
    if _IMAGE.fullmatch(text):
        return f"images LIKE '%{text}%'"
    try:
        day = date.fromisoformat(text)
        next_day = day + timedelta(days=1)
    except (ValueError, OverflowError) as error:
        message = (
            f"expected a day such as 2026-11-20, a version such as flink=2.2.0, or the id of an "
            f'image such as sha256:3f1c, got "{text}"'
        )
        raise bad_input("--against", message) from error
    return f"started_at >= '{day}' AND started_at < '{next_day}'"


def changes_against(
    baseline: Sequence[StoredRun], now: Sequence[StoredRun], figures: Sequence[str] = ()
) -> dict[str, Changes]:
    """Experiment -> what changed, of the experiments with runs in both groups; only runs on the
    same topology are compared. A run of the baseline does not count as one of now."""
    known = {run.run_id for run in baseline}
    later = [run for run in now if run.run_id not in known]
    names = row_names([*baseline, *later])
    before_of, now_of = by_row(baseline, names), by_row(later, names)
    return compare(
        {
            name: _groups(before_of[name], now_of[name], figures)
            for name in before_of
            if name in now_of
        }
    )


def row_names(runs: Sequence[StoredRun]) -> dict[tuple[str, str], str]:
    """(experiment, topology) -> the name of its row: the experiment, with its topology where there
    are runs on several."""
    rows = dict.fromkeys((run.experiment, run.topology) for run in runs)
    topologies = Counter(experiment for experiment, _ in rows)
    return {
        (experiment, topology): experiment
        if topologies[experiment] == 1
        else f"{experiment} on {topology}"
        for experiment, topology in rows
    }


def by_row(
    runs: Sequence[StoredRun], names: Mapping[tuple[str, str], str]
) -> dict[str, list[StoredRun]]:
    """Name -> the runs of its row, in their order; `names` as of `row_names`."""
    found: dict[str, list[StoredRun]] = defaultdict(list)
    for run in runs:
        found[names[run.experiment, run.topology]].append(run)
    return dict(found)


def is_time(figure: str) -> bool:
    """Whether a figure is a time that the system took. The duration of the run itself is not: it
    contains the start of a cluster, or not."""
    return run_sentences.unit_ending(figure) in TIMES and figure != ELAPSED


def _groups(
    before: Sequence[StoredRun], now: Sequence[StoredRun], figures: Sequence[str]
) -> tuple[Group, Group]:
    names = {name for run in (*before, *now) for name in run.figures}
    chosen = sorted(name for name in names if name in figures or (not figures and is_time(name)))
    return _group(before, chosen), _group(now, chosen)


def _group(runs: Sequence[StoredRun], figures: Sequence[str]) -> Group:
    decided = [run for run in runs if run.as_expected is not None]
    return Group(
        decided=len(decided),
        as_expected=sum(run.as_expected == 1 for run in decided),
        figures={name: list(_values(runs, name)) for name in figures},
    )


def _values(runs: Sequence[StoredRun], figure: str) -> Iterator[float]:
    """The values of a figure. A time that a completed run did not reach, although its check has
    other figures, is infinite: the job never restored, for example."""
    check = figure.partition(".")[0]
    for run in runs:
        value = run.figures.get(figure)
        if value is not None:
            yield value
        elif is_time(figure) and any(name.startswith(f"{check}.") for name in run.figures):
            yield inf


def is_regression(changes: Changes) -> bool:
    """Whether the expected outcome became rarer, or a time longer."""
    return changes.rate.is_worse or any(map(is_slower, changes.figures))


def is_slower(change: FigureChange) -> bool:
    """Whether it is a time that became longer."""
    return is_time(change.figure) and change.finding == "changed" and change.is_longer


def change_lines(changes: Mapping[str, Changes]) -> Iterator[ChangeLine]:
    """Every comparison as a line for readers."""
    for experiment, found in changes.items():
        yield ChangeLine(
            experiment=experiment,
            figure="as expected",
            text=rate_sentence(found.rate),
            is_worse=found.rate.is_worse,
        )
        for change in found.figures:
            yield ChangeLine(
                experiment=experiment,
                figure=change.figure,
                text=figure_sentence(change),
                is_worse=is_slower(change),
            )


def sentences(changes: Mapping[str, Changes]) -> Iterator[tuple[str, str, str]]:
    """(experiment, what was compared, what came out) of every comparison."""
    return ((line.experiment, line.figure, line.text) for line in change_lines(changes))


def rate_sentence(change: RateChange) -> str:
    both = f"{change.before} before, {change.now} now"
    if change.finding == "changed":
        return f"{'less' if change.is_worse else 'more'} often: {both}"
    return f"{change.finding}: {both}"


def figure_sentence(change: FigureChange) -> str:
    """What became of a figure, with its interval; what would have been seen where it did not
    change."""
    runs = f"{len(change.before)} runs before, {len(change.now)} now"
    if change.finding == "too few runs":
        return f"too few runs for the number of comparisons: {runs}"
    middles = " → ".join(map(_median_text, (change.before, change.now)))
    if change.finding == "no change seen":
        seen = change.smallest_seen
        more = f", {middles} ({runs})" if seen is None else f"; {ceil(seen * 100)}% would have been"
        return f"no change seen{more}"
    if change.ratio is None or change.low is None or change.high is None:
        return f"{'longer' if is_slower(change) else 'changed'}, {middles} ({runs})"
    words = ("slower", "faster") if is_time(change.figure) else ("more", "less")
    word = words[change.ratio < 1]
    sizes = sorted(abs(each - 1) for each in (change.low, change.high))
    return (
        f"{word} by {abs(change.ratio - 1):.0%} ({sizes[0]:.0%} to {sizes[1]:.0%}), "
        f"{middles} ({runs})"
    )


def _median_text(values: Sequence[float]) -> str:
    middle = statistics.median(values)
    return "never" if isinf(middle) else run_sentences.counted(middle)

"""When, on which machines, at which load and with which software the runs of a suite were made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from streamquake.reports.render import run_sentences
from streamquake.reports.store.stored_run import StoredRun


def conditions_of(runs: Sequence[StoredRun]) -> tuple[str, ...]:
    """Lines for readers; empty without runs."""
    return tuple(_lines(runs)) if runs else ()


def _lines(runs: Sequence[StoredRun]) -> Iterator[str]:
    days = sorted({run.started_at[:10] for run in runs if run.started_at})
    when = f" of {_span(days)}" if days else ""
    yield f"{len(runs)} runs{when}, by Streamquake {_all(run.streamquake for run in runs)}"
    machines = (run_sentences.machine(run.machine) for run in runs)
    yield from dict.fromkeys(each or "an unknown machine" for each in machines)
    loads = sorted(run.load_1m for run in runs if run.load_1m is not None)
    if loads:
        yield f"load average at the start of a run: {_span([f'{load:.1f}' for load in loads])}"
    names = sorted({name for run in runs for name in run.versions})
    versions = (f"{name} {_all(run.versions.get(name, '') for run in runs)}" for name in names)
    if text := ", ".join(versions):
        yield text


def _span(ascending: Sequence[str]) -> str:
    first, last = ascending[0], ascending[-1]
    return first if first == last else f"{first} to {last}"


def _all(values: Iterable[str]) -> str:
    """The different values, in the order of their first runs."""
    return " and ".join(dict.fromkeys(value for value in values if value))

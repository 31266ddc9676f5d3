"""When, on which machines, at which load and with which software the runs of a suite were made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from streamquake.reports.store.stored_run import StoredRun

GIB = 1 << 30


def conditions_of(runs: Sequence[StoredRun]) -> tuple[str, ...]:
    """Lines for readers; empty without runs."""
    return tuple(_lines(runs)) if runs else ()


def _lines(runs: Sequence[StoredRun]) -> Iterator[str]:
    days = sorted({run.started_at[:10] for run in runs if run.started_at})
    when = f" of {_span(days)}" if days else ""
    yield f"{len(runs)} runs{when}, by Streamquake {_all(run.streamquake for run in runs)}"
    yield from dict.fromkeys(map(_machine, runs))
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


def _machine(run: StoredRun) -> str:
    known = run.machine
    memory = known.get("memory_bytes")
    parts = [
        f"{known['cpus']} processors" if known.get("cpus") else "",
        f"{memory / GIB:.0f} GiB" if isinstance(memory, int) else "",
        str(known.get("system") or ""),
    ]
    return ", ".join(part for part in parts if part) or "an unknown machine"

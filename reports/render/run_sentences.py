"""Sentences about a run, the same in text, HTML and JUnit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from streamquake.reports.record.checkpoint_events import CheckpointCompleted, CheckpointFailed
from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import JobRestarting
from streamquake.reports.record.outcome import Outcome
from streamquake.reports.record.results import FaultRecord, Results
from streamquake.reports.record.run_events import ClusterReused, RecordsSent, WorkloadDone

GIB = 1 << 30
EFFECT_AT = "effect_at_s"
"""The one key in `Results.recovery` whose value is in seconds since the run began, not since the
fault."""


def headline(results: Results) -> str:
    """The outcome, compared with the expected one where that is not *held*."""
    if results.expected.outcome == Outcome.HELD:
        return str(results.outcome)
    if results.as_expected:
        return f"{results.outcome}, as expected"
    if results.expected.found:
        return f"{results.outcome}, but not as expected: {results.unmet}"
    return f"{results.outcome}, but {results.unmet}"


def why(results: Results) -> str:
    """One sentence: the reason for the outcome."""
    if results.ended == "failed_to_run":
        return f"failed to run: {_first_line(results.reason) or 'no reason is known'}"
    if results.ended == "interrupted":
        return f"interrupted: {_first_line(results.reason) or 'stopped before its end'}"
    deciding = [check for check in results.checks if check.outcome == results.outcome]
    if not deciding:
        return results.reason or "nothing was judged, so nothing is proven"
    if results.outcome == Outcome.HELD:
        return _all_held(results)
    others = len(deciding) - 1
    more = f" (and {others} more check{'s' if others > 1 else ''})" if others else ""
    return f"{deciding[0].check}: {deciding[0].summary}{more}"


def why_met(results: Results) -> str:
    """The same as `why`; for a run with expected findings, also the expected ones that are
    missing."""
    message = why(results)
    return f"{results.unmet}; {message}" if results.expected.found and results.unmet else message


def more_reason(results: Results) -> str:
    """The reason without its first line, such as a log tail."""
    return results.reason.strip().partition("\n")[2]


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]


def _all_held(results: Results) -> str:
    checks = f"{_count(len(results.checks), 'check')} held"
    if not results.faults:
        return f"{checks}; no fault was injected"
    took_effect = sum(fault.in_effect for fault in results.faults)
    healed = sum(fault.healed for fault in results.faults)
    faults = _count(len(results.faults), "fault")
    return f"{checks}; {took_effect} of {faults} verified in effect, {healed} healed"


def fault_result(fault: FaultRecord) -> str:
    """The effect and the heal of one fault, as a phrase."""
    if not fault.in_effect:
        return f"effect not verified{': ' + fault.reason if fault.reason else ''}"
    late = "" if fault.lateness_ms is None else f" {fault.lateness_ms:.1f} ms after its trigger"
    missed = ", too late for its window" if fault.missed_window else ""
    early = "" if fault.ended_early_s is None else f", ended early ({fault.ended_early_s:.3f} s)"
    healed = "healed" if fault.healed else "NOT healed"
    return f"in effect{late}{missed}{early}, {healed}{': ' + fault.reason if fault.reason else ''}"


def milestones(recovery: Mapping[str, float | None]) -> tuple[tuple[str, float | None], ...]:
    """The phases of a recovery as (name, seconds since the fault or None); those reached are in
    order of time.

    The time of the fault itself is left out.
    """
    phases = {name: value for name, value in recovery.items() if name != EFFECT_AT}
    named = [(name.removesuffix("_s").replace("_", " "), value) for name, value in phases.items()]
    return tuple(sorted(named, key=lambda item: (item[1] is None, item[1] or 0.0)))


def counted(value: float | None) -> str:
    """A figure as text: with a thousands separator and few decimals; a dash where it was not
    judged."""
    if value is None:
        return "–"
    is_small = isinstance(value, float) and abs(value) < 1000
    return f"{value:.4g}" if is_small else f"{value:,.0f}"


def machine(known: Mapping[str, Any]) -> str:
    """The machine of a run, by its manifest: processors, memory, operating system, and the load
    average of the minute before it began. What is not recorded is left out; empty without all."""
    memory, load = known.get("memory_bytes"), known.get("load_1m")
    parts = [
        f"{known['cpus']} processors" if known.get("cpus") else "",
        f"{memory / GIB:.0f} GiB" if isinstance(memory, int) else "",
        str(known.get("system") or ""),
        f"load average {load:.1f} at the start" if isinstance(load, int | float) else "",
    ]
    return ", ".join(part for part in parts if part)


UNITS = {"_ms": "ms", "_s": "s", "_bytes": "bytes", "_mb": "MB"}
"""Ending of a figure's name -> the unit after its value."""


def unit_ending(name: str) -> str:
    """The ending of a figure's name that says its unit, of `UNITS`; empty for one without a unit
    and for a rate."""
    return next((end for end in UNITS if name.endswith(end) and not name.endswith("_per_s")), "")


def measured(name: str, value: float | None) -> tuple[str, str]:
    """A figure as its name and its value with unit: `outage_s`, 12.4 is `outage`, `12.4 s`."""
    ending = unit_ending(name)
    words = name.removesuffix(ending).replace("_", " ")
    unit = f" {UNITS[ending]}" if ending and value is not None else ""
    return words, counted(value) + unit


def finding_text(value: Any, most: int | None = None, none: str = "not known") -> str:
    """A value of evidence or a finding as short text, mappings as `key value` pairs; with `most`,
    at most that many parts of each mapping or list. `none` stands for a value that is None."""
    if value is None:
        return none
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Mapping):
        pairs = [f"{key} {finding_text(item, most, none)}" for key, item in value.items()]
        return _joined(pairs, most)
    if isinstance(value, list | tuple):
        return _joined([finding_text(item, most, none) for item in value], most)
    return str(value)


def detail_text(detail: Mapping[str, Any]) -> str:
    """The details of a finding as short text. A field of a record that is null is `null`."""
    return ", ".join(
        f"{key} {finding_text(value, none='not known' if value is None else 'null')}"
        for key, value in detail.items()
    )


def _joined(parts: Sequence[str], most: int | None) -> str:
    if most is None or len(parts) <= most:
        return ", ".join(parts)
    return f"{', '.join(parts[:most])} and {len(parts) - most} more"


def key_figures(history: History, results: Results) -> dict[str, str]:
    """The key figures of a run by name: its size, its faults, its recovery, its duration."""
    done = history.of(WorkloadDone)
    sent = history.of(RecordsSent)
    acknowledged = (
        done[-1].acknowledged
        if done
        else sum(event.count for event in sent if event.status == "acknowledged")
    )
    phases = [phase for _, each in results.titled_recoveries for phase in milestones(each)]
    reached = [at_s for _, at_s in phases if at_s is not None]
    return {
        "records acknowledged": counted(acknowledged),
        "checkpoints completed": counted(len(history.of(CheckpointCompleted))),
        "checkpoints failed": counted(len(history.of(CheckpointFailed))),
        "job restarts": counted(len(history.of(JobRestarting))),
        "faults in effect": _in_effect(results),
        "recovered after": f"{max(reached):.1f} s" if reached else "–",
        "run took": f"{max((e.at_s for e in history), default=0.0):.0f} s",
    }


def cluster_text(history: History) -> str:
    """Whose cluster the run used: its own, or one of earlier runs with the proof that nothing was
    left there."""
    if not (reused := history.of(ClusterReused)):
        return "deployed for this run"
    found = reused[-1]
    equal = ", ".join(f"{count} {kind}" for kind, count in found.equal.items())
    text = (
        f"deployed by {found.deployed_by} and used by {found.runs_before} runs before; cleaned up "
        f"in {found.seconds:.1f} s, then equal to its state after the deployment: {equal}"
    )
    return f"{text}; started anew: {', '.join(found.restarted)}" if found.restarted else text


def _in_effect(results: Results) -> str:
    if not results.faults:
        return "none"
    return f"{sum(fault.in_effect for fault in results.faults)} of {len(results.faults)}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"

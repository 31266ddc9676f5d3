"""Figures of a group of checkpoints: how many came through, how long they took, and in which phase.

Durations and sizes are medians over the completed ones; a phase is that of the slowest subtask of
each checkpoint, since a checkpoint is as slow as its slowest subtask.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any

from streamquake.harness.evidence.checkpoints import PHASES, Checkpoint
from streamquake.harness.evidence.recovery import percentile

METADATA = "_metadata"
"""The one file in a checkpoint's folder that has a name of its own."""
SPOKEN = {
    "start_delay_ms": "start delay", "alignment_ms": "alignment",
    "sync_ms": "synchronous part", "async_ms": "asynchronous part",
}  # fmt: skip


def figures(checkpoints: Sequence[Checkpoint]) -> dict[str, float | None]:
    """All figures by name, with the unit last; None where nothing of the kind was seen."""
    done = [checkpoint for checkpoint in checkpoints if checkpoint.completed]
    failed = [checkpoint.failed_how for checkpoint in checkpoints if checkpoint.failed_how]
    ended = len(done) + len(failed)
    return {
        "triggered": len(checkpoints),
        "completed": len(done),
        "failed": len(failed),
        "expired": failed.count("expired"),
        # In progress when the run ended, or stopped with tasks that did not run.
        "set_aside": len(checkpoints) - ended,
        "share_completed": len(done) / ended if ended else None,
        "unaligned": sum(checkpoint.unaligned for checkpoint in done),
        **_durations(done),
        **phase_medians(done),
        "source_start_delay_ms": _source_delay_ms(done),
        **_sizes(done),
    }


def phase_medians(done: Iterable[Checkpoint]) -> dict[str, float | None]:
    """Of each phase, the median over checkpoints of the slowest subtask's."""
    told = [checkpoint.parts for checkpoint in done if checkpoint.parts]
    return {phase: _median(max(p.phases[phase] for p in parts) for parts in told)
            for phase in PHASES}  # fmt: skip


def _source_delay_ms(done: Iterable[Checkpoint]) -> float | None:
    """The median over checkpoints of the longest wait of a source for its own lock or mailbox."""
    told = [[p for p in checkpoint.parts or () if p.source] for checkpoint in done]
    return _median(max(p.phases["start_delay_ms"] for p in parts) for parts in told if parts)


def dominating(done: Iterable[Checkpoint]) -> str | None:
    """The phase that was the longest of the slowest subtask in most of the checkpoints."""
    slowest = [checkpoint.slowest for checkpoint in done]
    longest = [part.longest_phase for part in slowest if part is not None]
    return max(PHASES, key=longest.count) if longest else None


def slowest_of(done: Iterable[Checkpoint]) -> Checkpoint | None:
    """The completed checkpoint that took longest."""
    return max(done, key=lambda checkpoint: checkpoint.duration_ms or 0, default=None)


def slowest_part(checkpoint: Checkpoint) -> dict[str, Any]:
    """Who was slowest in a checkpoint, and in which phase; empty where it is not told."""
    part = checkpoint.slowest
    if part is None:
        return {}
    return {"slowest": part.where, "took_ms": part.took_ms, **part.phases}


def durations_text(done: Sequence[Checkpoint]) -> str:
    """How long they took, who was slowest and in which phase, and which phase dominates."""
    found, slowest = _durations(done), slowest_of(done)
    if slowest is None or found["median_ms"] is None:
        return ""
    said = f"median {found['median_ms']:,.0f} ms, 95th percentile {found['p95_ms']:,.0f} ms"
    part, phase = slowest.slowest, dominating(done)
    if part is None or phase is None:
        return said
    own = part.longest_phase
    return (
        f"{said}; slowest {slowest.where} at {part.where}: {SPOKEN[own]} {part.phases[own]:,} ms; "
        f"{SPOKEN[phase]} dominates (median {phase_medians(done)[phase]:,.0f} ms)"
    )


def _durations(done: Sequence[Checkpoint]) -> dict[str, float | None]:
    took = [each.duration_ms for each in done if each.duration_ms is not None]
    return {
        "median_ms": _median(took),
        "p95_ms": percentile(took, 0.95) if took else None,
        "max_ms": max(took, default=None),
    }


def _sizes(done: Sequence[Checkpoint]) -> dict[str, float | None]:
    folders = [checkpoint.files for checkpoint in done if checkpoint.files is not None]
    metadata = [files[METADATA] for files in folders if METADATA in files]
    return {
        "persisted_bytes": _median(each.persisted_bytes for each in done),
        "persisting_vertices": _median(
            len({part.vertex for part in each.parts if part.persisted_bytes})
            for each in done
            if each.parts
        ),
        "state_bytes": _median(each.state_bytes for each in done),
        "checkpointed_bytes": _median(each.checkpointed_bytes for each in done),
        "files": _median(len(files) for files in folders),
        "files_bytes": _median(sum(files.values()) for files in folders),
        "metadata_bytes": _median(metadata),
    }


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None

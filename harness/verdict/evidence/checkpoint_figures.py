"""Figures of a group of checkpoints: how many completed, how long they took, and in which phase.

Durations and sizes are medians over the completed checkpoints. A phase is that of each checkpoint's
slowest subtask, since a checkpoint is as slow as that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any

from streamquake.harness.verdict.evidence.checkpoints import METADATA, PHASES, Checkpoint
from streamquake.harness.verdict.evidence.lag import percentile

PHASE_NAMES = {
    "start_delay_ms": "start delay",
    "alignment_ms": "alignment",
    "sync_ms": "synchronous part",
    "async_ms": "asynchronous part",
}


def checkpoint_figures(checkpoints: Sequence[Checkpoint]) -> dict[str, float | None]:
    """All figures by name, with the unit last; None where nothing of the kind was recorded."""
    done = [checkpoint for checkpoint in checkpoints if checkpoint.completed]
    failed = [checkpoint.failure_kind for checkpoint in checkpoints if checkpoint.failure_kind]
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
        # Start delay plus alignment: how the sum is split depends on which barrier arrived first.
        "barriers_ms": _median(last.barriers_ms for each in done if (last := each.last_barrier)),
        **_source_delays(done),
        **_sizes(done),
        **_shared_files(done),
    }


def phase_medians(done: Iterable[Checkpoint]) -> dict[str, float | None]:
    """The median of each phase over checkpoints; of a checkpoint, its slowest subtask in that
    phase."""
    recorded = [checkpoint.parts for checkpoint in done if checkpoint.parts]
    return {
        phase: _median(max(p.phases[phase] for p in parts) for parts in recorded)
        for phase in PHASES
    }


def _source_delays(done: Iterable[Checkpoint]) -> dict[str, float | None]:
    """How long sources waited for their own lock or mailbox, by their slowest subtask: medians over
    checkpoints, of the vertex that waited longest and of the one that waited least. The two are
    equal where a job has one source."""
    waits = [waited for checkpoint in done if (waited := _source_waits(checkpoint))]
    return {
        "source_start_delay_ms": _median(max(waited) for waited in waits),
        "least_source_start_delay_ms": _median(min(waited) for waited in waits),
    }


def _source_waits(checkpoint: Checkpoint) -> list[int]:
    """How long the slowest subtask of each source vertex waited."""
    waited: dict[str, int] = {}
    for part in checkpoint.parts or ():
        if part.source:
            own = part.phases["start_delay_ms"]
            waited[part.vertex] = max(own, waited.get(part.vertex, 0))
    return list(waited.values())


def dominating_phase(done: Iterable[Checkpoint]) -> str | None:
    """The phase that was the slowest subtask's longest in most of the checkpoints."""
    slowest = [checkpoint.slowest for checkpoint in done]
    longest = [part.longest_phase for part in slowest if part is not None]
    return max(PHASES, key=longest.count) if longest else None


def slowest_checkpoint(done: Iterable[Checkpoint]) -> Checkpoint | None:
    """The completed checkpoint that took longest."""
    return max(done, key=lambda checkpoint: checkpoint.duration_ms or 0, default=None)


def slowest_part(checkpoint: Checkpoint) -> dict[str, Any]:
    """The slowest subtask of a checkpoint with its phases; empty where they are not recorded."""
    part = checkpoint.slowest
    if part is None:
        return {}
    return {"slowest": part.where, "took_ms": part.took_ms, **part.phases}


def durations_text(done: Sequence[Checkpoint]) -> str:
    """A text about their durations, the slowest subtask and its phase, and the dominating phase."""
    found, slowest = _durations(done), slowest_checkpoint(done)
    if slowest is None or found["median_ms"] is None:
        return ""
    message = f"median {found['median_ms']:,.0f} ms, 95th percentile {found['p95_ms']:,.0f} ms"
    part, phase = slowest.slowest, dominating_phase(done)
    if part is None or phase is None:
        return message
    own = part.longest_phase
    return (
        f"{message}; slowest {slowest.where} at {part.where}: {PHASE_NAMES[own]} "
        f"{part.phases[own]:,} ms; {PHASE_NAMES[phase]} dominates "
        f"(median {phase_medians(done)[phase]:,.0f} ms)"
    )


def _durations(done: Sequence[Checkpoint]) -> dict[str, float | None]:
    durations = [each.duration_ms for each in done if each.duration_ms is not None]
    return {
        "median_ms": _median(durations),
        "p95_ms": percentile(durations, 0.95) if durations else None,
        "max_ms": max(durations, default=None),
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


def _shared_files(done: Sequence[Checkpoint]) -> dict[str, float | None]:
    """Figures of the folder that several checkpoints share: the files in its last listing, and how
    many files of earlier listings were deleted. Without deletions it grows without bound."""
    listings = [checkpoint.shared for checkpoint in done if checkpoint.shared is not None]
    if not listings:
        return {"shared_files": None, "shared_files_bytes": None, "shared_files_gone": None}
    last, seen = listings[-1], {name for listing in listings for name in listing}
    return {
        "shared_files": len(last),
        "shared_files_bytes": sum(last.values()),
        "shared_files_gone": len(seen - last.keys()),
    }


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None

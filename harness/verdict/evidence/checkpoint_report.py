"""Whether the report of a completed checkpoint agrees with itself: its subtasks, their stamps and
its figures all come from the engine's own statistics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from streamquake.harness.verdict.evidence.engine_clock import STAMPS_S
from streamquake.reports.record.checkpoint_events import (
    CheckpointAcknowledged,
    CheckpointCompleted,
)
from streamquake.reports.record.job_events import JobSubmitted

OF_ONE_CLOCK = ("alignment_ms", "sync_ms", "async_ms")
"""The phases that a subtask measures without the time stamp of another machine, unlike its start
delay."""
UNMEASURED = -1
"""Flink's value of a figure that was not measured."""
FIGURES = (
    "start_delay_ms",
    *OF_ONE_CLOCK,
    "duration_ms",
    "state_bytes",
    "checkpointed_bytes",
    "processed_bytes",
    "persisted_bytes",
)
"""The figures of a checkpoint or of one of its subtasks."""
STAMPS_MS = STAMPS_S * 1000


def contradicted_report(
    completed: CheckpointCompleted,
    progress: CheckpointAcknowledged | None,
    graph: JobSubmitted | None,
    *,
    clocks_moved: bool,
) -> str:
    """What in the report of a completed checkpoint cannot be true together; empty where nothing is
    seen. `progress` are its last recorded acknowledgements; `clocks_moved` is whether a fault moved
    the clock of some node."""
    contradictions = chain(
        _counts(completed, progress),
        _places(completed, progress, graph),
        _negative_figures(completed),
        () if clocks_moved else _moments(completed),
    )
    return next(contradictions, "")


def _counts(
    completed: CheckpointCompleted, progress: CheckpointAcknowledged | None
) -> Iterator[str]:
    parts = _parts(completed)
    if progress is not None and progress.subtasks is not None:
        done, of = max(progress.acknowledged or 0, len(parts)), progress.subtasks
        if done > of:
            yield f"is recorded with {done} acknowledgements of {of} subtasks"
    unaligned = sum(bool(part["unaligned"]) for part in parts)
    if parts and completed.unaligned_subtasks not in (None, unaligned):
        yield (
            f"is recorded with {completed.unaligned_subtasks} unaligned subtasks, and lists "
            f"{unaligned}"
        )


def _places(
    completed: CheckpointCompleted,
    progress: CheckpointAcknowledged | None,
    graph: JobSubmitted | None,
) -> Iterator[str]:
    """Subtasks that are listed twice, or that the graph does not have. After a rescale, the graph
    may be that of other checkpoints: it has another number of subtasks."""
    listed = Counter((part["vertex"], part["subtask"]) for part in _parts(completed))
    vertices = {vertex["id"]: vertex for vertex in graph.vertices} if graph else {}
    is_its_graph = progress is not None and progress.subtasks == sum(
        vertex["parallelism"] for vertex in vertices.values()
    )
    for (vertex, subtask), times in listed.items():
        known = vertices.get(vertex)
        where = f"{known['name'] if known else vertex}/{subtask}"
        if times > 1:
            yield f"lists the subtask {where} {times} times"
        if is_its_graph and (known is None or subtask >= known["parallelism"]):
            yield f"lists the subtask {where}, which its job does not have"


def _negative_figures(completed: CheckpointCompleted) -> Iterator[str]:
    for report in (completed.value, *_parts(completed)):
        for name in FIGURES:
            if (figure := report.get(name)) is not None and figure < UNMEASURED:
                yield f"is recorded with the {name} {figure:,}"


def _moments(completed: CheckpointCompleted) -> Iterator[str]:
    """Phases that are longer than their whole, and durations that are not those by the stamps. The
    JobManager stamps the trigger and each acknowledgement, and reports the time between the two."""
    for part in _parts(completed):
        for phase in OF_ONE_CLOCK:
            if part[phase] > part["duration_ms"] + STAMPS_MS:
                yield (
                    f"has a subtask with an {phase} of {part[phase]:,}, and its whole checkpoint "
                    f"took {part['duration_ms']:,} ms"
                )
    if not completed.trigger_ms or completed.duration_ms is None or completed.duration_ms < 0:
        return
    acknowledged: list[tuple[float | None, float | None]] = [
        (completed.first_ack_ms, None),
        *((part.get("ack_ms"), part["duration_ms"]) for part in _parts(completed)),
        (completed.last_ack_ms, completed.duration_ms),
    ]
    for ack_ms, took_ms in acknowledged:
        if not ack_ms:
            continue
        by_stamps_ms = ack_ms - completed.trigger_ms
        if by_stamps_ms < 0:
            yield f"was acknowledged {-by_stamps_ms / 1000:,.3f} s before its trigger"
        elif took_ms is not None and took_ms != by_stamps_ms:
            yield (
                f"is recorded to have taken {took_ms:,} ms until an acknowledgement, which came "
                f"{by_stamps_ms:,} ms after its trigger"
            )


def _parts(completed: CheckpointCompleted) -> Sequence[Mapping[str, Any]]:
    return completed.subtasks or ()

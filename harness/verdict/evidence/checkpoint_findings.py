"""The findings about checkpoints: each names its checkpoint and the evidence."""

from __future__ import annotations

from typing import Any

from streamquake.harness.verdict.evidence.checkpoint_figures import slowest_part
from streamquake.harness.verdict.evidence.checkpoint_loop import RestartLoop
from streamquake.harness.verdict.evidence.checkpoints import Checkpoint
from streamquake.reports.record.outcome import Finding

MAX_MISSING = 6
"""The most missing subtasks that one finding names."""


def failed(checkpoint: Checkpoint) -> Finding:
    """A checkpoint failed; with the reason and the subtasks that had not acknowledged it."""
    subtasks = checkpoint.subtasks or "an unknown number"
    detail: dict[str, Any] = {
        "acknowledged": f"{checkpoint.acknowledged} of {subtasks}",
        "reason": checkpoint.reason,
        "duration_ms": checkpoint.duration_ms,
    }
    if checkpoint.missing:
        more = len(checkpoint.missing) - MAX_MISSING
        detail["missing"] = [
            *checkpoint.missing[:MAX_MISSING],
            *([f"{more} more"] if more > 0 else []),
        ]
    what = checkpoint.failure_kind or "failed"
    return Finding(what=what, where=checkpoint.where, detail=detail | slowest_part(checkpoint))


def wrong_type(checkpoint: Checkpoint, *, unaligned: bool) -> Finding | None:
    """The reported type, or that of its subtasks, is not the required one; None where it is."""
    parts = [part.unaligned for part in checkpoint.parts or ()]
    recorded = {checkpoint.unaligned, any(parts)} if parts else {checkpoint.unaligned}
    if not checkpoint.of_known_alignment or recorded == {unaligned}:
        return None
    detail = {"type": checkpoint.kind, "unaligned": f"{sum(parts)} of {len(parts)} subtasks"}
    return Finding(
        what="aligned" if unaligned else "unaligned", where=checkpoint.where, detail=detail
    )


def wrongly_persisted(checkpoint: Checkpoint, *, wanted: bool) -> Finding | None:
    """It persisted in-flight bytes, or none, against the requirement; None where it complies."""
    persisted = checkpoint.persisted_bytes
    if persisted is None or checkpoint.parts_persisted_otherwise or (persisted > 0) == wanted:
        return None
    what = "in-flight bytes persisted" if persisted else "no in-flight bytes persisted"
    return Finding(
        what=what, where=checkpoint.where, detail={"bytes": persisted, "type": checkpoint.kind}
    )


def too_slow(slowest: Checkpoint, median_ms: float) -> Finding:
    """Checkpoints take too long; the slowest one is the example."""
    detail = {"median_ms": median_ms, "duration_ms": slowest.duration_ms}
    return Finding(what="too slow", where=slowest.where, detail=detail | slowest_part(slowest))


def switched_late(checkpoint: Checkpoint, timeout_ms: int, within_ms: float) -> Finding | None:
    """Its last barrier arrived long after the time-out at which it should have become unaligned,
    whether it became unaligned or not; None where it arrived in time."""
    last = checkpoint.last_barrier
    if last is None or last.barriers_ms <= timeout_ms + within_ms:
        return None
    detail = {
        "aligned_timeout_ms": timeout_ms,
        "last_barrier_ms": last.barriers_ms,
        "subtask": last.where,
        **last.phases,
    }
    what = "switched late" if checkpoint.unaligned else "not switched"
    return Finding(what=what, where=checkpoint.where, detail=detail)


def too_many_files(checkpoint: Checkpoint, at_most: int) -> Finding | None:
    """Its folder holds more files than allowed; None where it does not."""
    files = checkpoint.files or {}
    if len(files) <= at_most:
        return None
    detail = {"files": len(files), "bytes": sum(files.values())}
    return Finding(what="too many files", where=checkpoint.where, detail=detail)


def restart_loop(loop: RestartLoop) -> Finding:
    """A job was set back to the same checkpoint again and again."""
    # A query reports -1 before its first batch was committed.
    known = loop.checkpoint is not None and loop.checkpoint >= 0
    back_to = f"checkpoint {loop.checkpoint}" if known else "its beginning"
    detail = {
        "restarts": len(loop.failed_s),
        "restored": loop.checkpoint,
        "failed_s": [round(at_s, 1) for at_s in loop.failed_s],
        "cause": loop.cause,
    }
    what = "one batch fails again and again" if loop.over_batch else "tolerable-failures loop"
    return Finding(what=what, where=back_to, detail=detail)

"""What can be wrong with checkpoints, as findings: each names its checkpoint and what it shows."""

from __future__ import annotations

from typing import Any

from streamquake.harness.verdict.evidence.checkpoint_figures import slowest_part
from streamquake.harness.verdict.evidence.checkpoint_loop import RestartLoop
from streamquake.harness.verdict.evidence.checkpoints import Checkpoint
from streamquake.reports.record.outcome import Finding

NAMED = 6
"""Subtasks named as missing in one finding."""


def failed(each: Checkpoint) -> Finding:
    """Which checkpoint failed, how, and who had not acknowledged it by then."""
    detail: dict[str, Any] = {
        "acknowledged": f"{each.acknowledged} of {each.subtasks or 'an unknown number'}",
        "reason": each.reason,
        "duration_ms": each.duration_ms,
    }
    if each.missing:
        more = len(each.missing) - NAMED
        detail["missing"] = [*each.missing[:NAMED], *([f"{more} more"] if more > 0 else [])]
    what = each.failed_how or "failed"
    return Finding(what=what, where=each.where, detail=detail | slowest_part(each))


def wrong_type(each: Checkpoint, *, unaligned: bool) -> Finding | None:
    """That the reported type, or what its subtasks report, is not the one asked for."""
    parts = [part.unaligned for part in each.parts or ()]
    recorded = {each.unaligned, any(parts)} if parts else {each.unaligned}
    if each.kind is None or each.micro_batch or recorded == {unaligned}:
        return None
    detail = {"type": each.kind, "unaligned": f"{sum(parts)} of {len(parts)} subtasks"}
    return Finding(what="aligned" if unaligned else "unaligned", where=each.where, detail=detail)


def wrongly_persisted(each: Checkpoint, *, wanted: bool) -> Finding | None:
    """That it holds bytes that were in flight, or holds none, against what is asked for."""
    kept = each.persisted_bytes
    if kept is None or each.parts_kept_more or (kept > 0) == wanted:
        return None
    what = "in-flight bytes persisted" if kept else "no in-flight bytes persisted"
    return Finding(what=what, where=each.where, detail={"bytes": kept, "type": each.kind})


def too_slow(slowest: Checkpoint, median_ms: float) -> Finding:
    """That checkpoints take too long; shown by the slowest one."""
    detail = {"median_ms": median_ms, "duration_ms": slowest.duration_ms}
    return Finding(what="too slow", where=slowest.where, detail=detail | slowest_part(slowest))


def switched_late(each: Checkpoint, timeout_ms: int, within_ms: float) -> Finding | None:
    """That its last barrier came long after the time-out at which it should have become
    unaligned, whether it did so in the end or not."""
    last = each.last_barrier
    if last is None or last.barriers_ms <= timeout_ms + within_ms:
        return None
    detail = {
        "aligned_timeout_ms": timeout_ms,
        "last_barrier_ms": last.barriers_ms,
        "subtask": last.where,
        **last.phases,
    }
    what = "switched late" if each.unaligned else "not switched"
    return Finding(what=what, where=each.where, detail=detail)


def too_many_files(each: Checkpoint, at_most: int) -> Finding | None:
    """That its folder holds more files than allowed."""
    files = each.files or {}
    if len(files) <= at_most:
        return None
    detail = {"files": len(files), "bytes": sum(files.values())}
    return Finding(what="too many files", where=each.where, detail=detail)


def looped(loop: RestartLoop) -> Finding:
    """That a job was set back to one checkpoint again and again."""
    # A query says -1 before its first batch was committed.
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

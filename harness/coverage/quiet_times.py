"""Whether a fault took effect while no checkpoint was in progress."""

from __future__ import annotations

from collections.abc import Sequence

from streamquake.harness.coverage.phase_window import Moment, Onset
from streamquake.harness.verdict.evidence.checkpoints import Checkpoint


def is_between(onset: Onset, checkpoints: Sequence[Checkpoint]) -> bool:
    """Whether one checkpoint was seen to have ended before, and the one with the next number, so
    that none is missing in the record, began after it."""
    before = [
        each
        for each in checkpoints
        if each.ended_s is not None and each.ended_s * 1e9 <= onset.called_ns
    ]
    if not before or before[-1].micro_batch:
        return False
    last = max(before, key=lambda each: each.ended_s or 0)
    after = (each for each in checkpoints if (each.job, each.number) == (last.job, last.number + 1))
    return any(
        Moment.stamped(round(each.began_s * 1e9)).earliest_ns >= onset.seen_ns for each in after
    )

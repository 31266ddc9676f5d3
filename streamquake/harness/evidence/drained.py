"""Whether a run was drained: everything sent was read, and everything read was committed.

The run records it when its waits are met. The record is held against the checkpoints: one that
persisted in-flight data holds records that no sink has seen, so after the drain the newest
checkpoint must have persisted none (https://nightlies.apache.org/flink/flink-docs-stable/docs/ops/
state/checkpointing_under_backpressure/).
"""

from __future__ import annotations

from streamquake.harness.evidence.waits import failed_waits
from streamquake.reports.event import Action
from streamquake.reports.history import History


def not_drained(history: History) -> str | None:
    """Why the outputs may still change, or None where the run was drained."""
    if history.first(Action.DRAINED) is None:
        waits = failed_waits(history)
        return waits[0].reason if waits else "the run ended before it was drained"
    completed = history.of(Action.CHECKPOINT_COMPLETED)
    newest = max(completed, key=lambda event: event.at_ns, default=None)
    in_flight = 0 if newest is None else int(newest.value.get("persisted_bytes") or 0)
    if newest is not None and in_flight:
        return (
            f"the newest checkpoint, {newest.value.get('checkpoint')}, still held {in_flight:,} "
            "bytes of in-flight data"
        )
    return None

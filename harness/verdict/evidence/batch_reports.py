"""What Spark reports of a micro-batch that cannot be true together.

The parts of a batch follow each other within it, its checkpoint is triggered within it, and the
offsets of the batches of a query continue each other (`StreamingQueryProgress` and
`MicroBatchExecution` of Spark).
"""

from __future__ import annotations

from collections.abc import Iterator

from streamquake.harness.verdict.evidence.batch_offsets import contradicted_offsets
from streamquake.harness.verdict.evidence.batches import WHOLE
from streamquake.reports.record.checkpoint_events import CheckpointCompleted
from streamquake.reports.record.history import History

ROUNDED_MS = 1
"""The tolerance of a sum of durations, each of which is rounded to milliseconds."""


def contradicted_reports(history: History) -> Iterator[str]:
    """A message for each contradiction within the report of a batch, or between two that follow
    each other."""
    batches = [event for event in history.of(CheckpointCompleted) if event.is_micro_batch]
    for batch in batches:
        yield from (f"batch {batch.checkpoint} {problem}" for problem in _durations(batch))
    for job in dict.fromkeys(batch.job for batch in batches):
        of_query = [batch for batch in batches if batch.job == job]
        yield from contradicted_offsets(of_query, history)


def _durations(batch: CheckpointCompleted) -> Iterator[str]:
    """Durations that do not fit each other."""
    parts = dict(batch.durations_ms or {})
    whole_ms, took_ms = parts.pop(WHOLE, None), batch.duration_ms
    phases_ms = sum(batch.phases_ms.values())
    if took_ms is not None and batch.phases_ms and abs(took_ms - phases_ms) > ROUNDED_MS:
        yield (
            f"is recorded to have taken {took_ms:,.0f} ms since its trigger, and its phases "
            f"{phases_ms:,.0f} ms"
        )
    if whole_ms is None:
        return
    for name, inner_ms in (("parts", sum(parts.values())), ("checkpoint", took_ms or 0)):
        if inner_ms > whole_ms + ROUNDED_MS:
            yield (
                f"is recorded to have taken {whole_ms:,.0f} ms, and its {name} {inner_ms:,.0f} ms"
            )
    began_ms, trigger_ms = batch.began_ms, batch.trigger_ms
    if began_ms is None or trigger_ms is None:
        return
    if not began_ms <= trigger_ms <= began_ms + whole_ms + ROUNDED_MS:
        yield f"is recorded to have been triggered {trigger_ms - began_ms:+,.0f} ms after its begin"

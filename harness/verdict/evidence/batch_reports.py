"""What Spark reports of a micro-batch that cannot be true together.

The parts of a batch follow each other within it, its checkpoint is triggered within it, and each
batch of a query reads on from the offsets at which the one before it ended
(`StreamingQueryProgress` and `MicroBatchExecution` of Spark).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from streamquake.harness.verdict.evidence.batches import WHOLE
from streamquake.reports.record.checkpoint_events import CheckpointCompleted
from streamquake.reports.record.event import MICRO_BATCH
from streamquake.reports.record.history import History

ROUNDED_MS = 1
"""The tolerance of a sum of durations, each of which is rounded to milliseconds."""


def contradicted_reports(history: History) -> Iterator[str]:
    """A message for each contradiction within the report of a batch, or between two that follow
    each other."""
    batches = [event for event in history.of(CheckpointCompleted) if event.type == MICRO_BATCH]
    for batch in batches:
        yield from (f"batch {batch.checkpoint} {problem}" for problem in _durations(batch))
    for job in dict.fromkeys(batch.job for batch in batches):
        for before, after in pairwise(batch for batch in batches if batch.job == job):
            if after.checkpoint == before.checkpoint + 1:
                yield from _offsets(before, after)


def _durations(batch: CheckpointCompleted) -> Iterator[str]:
    """Durations that do not fit each other."""
    parts = dict(batch.durations_ms)
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


def _offsets(before: CheckpointCompleted, after: CheckpointCompleted) -> Iterator[str]:
    """Sources that a batch did not read on from where the one before it ended."""
    ends = {_name(source): source.get("end") for source in before.offsets}
    for source in after.offsets:
        start, end = source.get("start"), ends.get(_name(source))
        if start is not None and end is not None and start != end:
            yield (
                f"batch {before.checkpoint} read {_name(source)} to {end}, and batch "
                f"{after.checkpoint} from {start}"
            )


def _name(source: Mapping[str, Any]) -> str:
    return str(source.get("source"))

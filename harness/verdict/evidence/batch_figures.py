"""Figures of a group of micro-batches: their sizes, their durations, and those of their parts.

All are medians over the batches, except for the waiting records, of which it is the maximum.
Spark's driver measures the parts of a batch: they follow each other and add up to the whole.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from statistics import median

from streamquake.harness.verdict.evidence.batches import Batch

PARTS = ("latestOffset", "getBatch", "queryPlanning", "walCommit", "addBatch", "commitOffsets")
"""Spark's names, in their order (`MicroBatchExecution`)."""


def batch_figures(batches: Sequence[Batch]) -> dict[str, float | None]:
    """All figures by name, with the unit last; nothing where there are no batches."""
    if not batches:
        return {}
    copied = [each.files_copied for each in batches if each.files_copied is not None]
    changelogs = [e.changelog_commit_ms for e in batches if e.changelog_commit_ms is not None]
    return {
        "batch_ms": median(each.took_ms for each in batches),
        "batch_rows": median(each.rows for each in batches),
        "waiting_rows_max": max(each.waiting for each in batches),
        **{
            _figure_name(part): median(each.durations_ms.get(part, 0) for each in batches)
            for part in PARTS
        },
        "state_rows": median(each.state_rows for each in batches),
        "state_commit_ms": median(each.state_commit_ms for each in batches),
        "changelog_commit_ms": median(changelogs) if changelogs else None,
        "state_files_copied": median(copied) if copied else None,
    }


def batches_text(batches: Sequence[Batch]) -> str:
    """A text about the durations of the batches and the part that dominates; empty without
    batches."""
    if not batches:
        return ""
    slowest = max(batches, key=lambda each: each.took_ms)
    medians = {part: median(e.durations_ms.get(part, 0) for e in batches) for part in PARTS}
    most = max(medians, key=lambda part: medians[part])
    return (
        f"whole batches took a median of {median(e.took_ms for e in batches):,.0f} ms, the slowest "
        f"({slowest.number}) {slowest.took_ms:,} ms; {most} dominates "
        f"(median {medians[most]:,.0f} ms)"
    )


def _figure_name(part: str) -> str:
    return re.sub(r"([A-Z])", r"_\1", part).lower() + "_ms"

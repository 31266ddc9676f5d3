"""Made-up runs of many nights, for the trend page.

`python -m tests.reports.made_up_nights OUT` writes a page of ninety nights for manual inspection.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from streamquake.harness.campaign.trend import trend_rows
from streamquake.reports.store.stored_run import StoredRun
from streamquake.reports.trend.trend_html import render_trend
from tests.reports.stored_runs import stored

FIRST = datetime(2026, 8, 1, 1, 0, tzinfo=UTC)
EXPERIMENTS = ("kill-taskmanager", "slow-sink", "silent-worker", "uc-under-pressure")


def made_up_nights(nights: int, slowdown: float = 1.3, seed: int = 1) -> Iterator[StoredRun]:
    """One run of each experiment a night; Flink changes after two thirds of the nights, from when
    on the first experiment recovers slower. Every fifteenth run or so is undecided."""
    draw = random.Random(seed)
    for night in range(nights):
        is_new = night >= nights * 2 // 3
        for place, experiment in enumerate(EXPERIMENTS):
            slower = slowdown if is_new and place == 0 else 1.0
            is_known = draw.random() > 1 / 15
            started_at = FIRST + timedelta(days=night, minutes=place)
            yield stored(
                experiment,
                run_id=f"{started_at:%Y%m%d-%H%M%S}-{place:04x}",
                started_at=started_at.isoformat(timespec="seconds"),
                seed=night,
                outcome="held" if is_known else "undecided",
                as_expected=1 if is_known else None,
                why="all checks held" if is_known else "the fault missed its window",
                key=f"{experiment}-{is_new}",
                versions={"flink": "2.3.0" if is_new else "2.2.1"},
                figures={
                    "recovery.longest_s": slower * (8 + 3 * place) * draw.lognormvariate(0, 0.1),
                    "checkpoints.median_ms": (200 + 90 * place) * draw.lognormvariate(0, 0.2),
                    "throughput.outage_s": (4 + place) * draw.lognormvariate(0, 0.15),
                },
            )


if __name__ == "__main__":
    rows = trend_rows(list(made_up_nights(90)))
    out = Path(sys.argv[1])
    print(render_trend(rows, out / "trend.html", out))

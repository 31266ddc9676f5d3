"""Whether the stamps of an output contradict what the harness saw by its own clock.

Containers share the clock of their host, but the brokers of another cluster have clocks of their
own. Where one is ahead, records had been read as committed before their stamps; where one is
behind, records are stamped before anything was sent. Differences below the tolerance stay unseen.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from streamquake.harness.verdict.evidence.sent_times import sent_ranges_of
from streamquake.reports.record.history import History
from streamquake.reports.record.run_events import OutputSeen

if TYPE_CHECKING:
    from streamquake.harness.verdict.evidence.append_times import AppendedRecords

TOLERANCE_MS = 1000
"""Clocks that are synchronised over a network differ by less."""
FIRST_SEND_MS = 1000
"""So long before its first acknowledgement the load may have sent its first record."""


def clock_contradiction(
    found: AppendedRecords, facts: Mapping[str, Any], history: History
) -> str | None:
    """What shows that the clock of a broker differs from that of the harness; None where nothing
    does. `facts` are those of the output's reading."""
    stamps = np.sort(found.records.select("timestamp_ms").toArrow()["timestamp_ms"].to_numpy())
    if not len(stamps):
        return None
    first_ms = _first_sent_ms(found, history)
    if first_ms is not None and stamps[0] < first_ms - FIRST_SEND_MS - TOLERANCE_MS:
        before_s = (first_ms - stamps[0]) / 1000
        return f"the first record is stamped {before_s:.1f} s before anything was sent"
    starts = sum((facts.get("starts") or {}).values())
    without_record = sum(facts["ends"].values()) - starts - len(stamps)
    for event in history.of(OutputSeen):
        if event.output != found.name or event.end is None:
            continue
        seen = event.end - starts - without_record
        stamped = int(np.searchsorted(stamps, found.ms(event.at_ns) + TOLERANCE_MS, "right"))
        if stamped < seen:
            late = seen - stamped
            return f"records that could be read at {event.at_s:.1f} s are stamped later ({late:,})"
    return None


def _first_sent_ms(found: AppendedRecords, history: History) -> int | None:
    """When the first records had been acknowledged, in epoch milliseconds; None without any."""
    sent = sent_ranges_of(history)
    return found.ms(min(part.since_ns for part in sent)) if sent else None

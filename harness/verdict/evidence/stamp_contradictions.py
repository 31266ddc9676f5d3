"""Whether the stamps of an output contradict what the harness saw by its own clock.

Containers share the clock of their host, but the brokers of another cluster have clocks of their
own. Where one is ahead, records had been read as committed before their stamps; where one is
behind, records are stamped before anything was sent, or before their partition had them.
Differences below the tolerance stay unseen.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from streamquake.harness.verdict.evidence.observation_window import injected_ns
from streamquake.harness.verdict.evidence.output_rate import Stamps
from streamquake.harness.verdict.evidence.sent_times import sent_ranges_of
from streamquake.reports.record.history import History
from streamquake.reports.record.metrics import Samples, by_series, read_metrics
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


def early_stamp(found: AppendedRecords, metrics: Path, history: History) -> str | None:
    """What shows that a broker stamped records before its partition had them; None where nothing
    does, or where the ends of partitions were not sampled.

    Only samples before the first fault count: later an end may not move although records are
    written, as the replicas of a partition lack them.
    """
    try:
        ends = by_series(read_metrics(metrics)).get("end", {})
    except ValueError:
        return None
    sampled = {where: each for where, each in ends.items() if where.startswith(f"{found.name}/")}
    if not sampled:
        return None
    called_ns = injected_ns(history)
    records = found.records.select("partition", "offset", "timestamp_ms")
    if called_ns is not None:
        records = records.where(f"timestamp_ms < {found.ms(called_ns):d}")
    columns = records.toArrow()
    partitions, offsets, stamps = (columns[name].to_numpy() for name in columns.column_names)
    until_s = np.inf if called_ns is None else called_ns / 1e9
    for where, samples in sampled.items():
        own = partitions == int(where.rpartition("/")[2])
        in_order = np.argsort(offsets[own])
        early_ms, at_s = _earliest(
            samples, until_s, offsets[own][in_order], stamps[own][in_order] - found.began_ms
        )
        if early_ms > TOLERANCE_MS:
            return (
                f"records that {where} did not have at {at_s:.1f} s are stamped "
                f"{early_ms / 1000:.1f} s earlier"
            )
    return None


def _earliest(
    samples: Samples, until_s: float, offsets: Stamps, stamps_ms: Stamps
) -> tuple[float, float]:
    """By how many milliseconds a stamp is earlier than the moment at which its partition did not
    have the record, at most, and that moment. An end was asked for after the sample before it; the
    offsets grow."""
    in_time = samples.at_s[1:] <= until_s
    since_s, ends = samples.at_s[:-1][in_time], samples.value[1:][in_time]
    first = np.searchsorted(offsets, ends)
    since_s, first = since_s[first < len(offsets)], first[first < len(offsets)]
    early_ms = since_s * 1000 - stamps_ms[first]
    if not len(early_ms):
        return 0.0, 0.0
    worst = int(early_ms.argmax())
    return float(early_ms[worst]), float(since_s[worst])


def _first_sent_ms(found: AppendedRecords, history: History) -> int | None:
    """When the first records had been acknowledged, in epoch milliseconds; None without any."""
    sent = sent_ranges_of(history)
    return found.ms(min(part.since_ns for part in sent)) if sent else None

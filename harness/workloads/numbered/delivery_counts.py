"""Counts of the acknowledged records: keys, sizes, and the signs of each disturbance."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

EVENT_TIME = re.compile(rb'"event_time_ms":(\d+)')
COPIES = b'"copies":['
SHOWN_KEYS = 3


class DeliveryReport(Protocol):
    """A record as the client returns it; its length is that of its value."""

    def key(self) -> Any: ...
    def value(self) -> Any: ...
    def __len__(self) -> int: ...


@dataclass
class DeliveryCounts:
    """Counts over the records of one interval. One thread adds; others may read."""

    keys: dict[bytes, int] = field(default_factory=dict)
    records: int = 0
    bytes: int = 0
    largest_bytes: int = 0
    unreadable: int = 0
    moved_back: int = 0
    furthest_back_ms: int = 0
    exploded: int = 0
    most_copies: int = 1

    def add(self, record: DeliveryReport) -> None:
        """Count one record by its key and size, without parsing its value."""
        key, size = record.key(), len(record)
        self.keys[key] = self.keys.get(key, 0) + 1
        self.records += 1
        self.bytes += size
        if size > self.largest_bytes:
            self.largest_bytes = size

    def inspect(self, record: DeliveryReport, undisturbed_ms: int) -> None:
        """Parse the value of one record for signs of a disturbance; `undisturbed_ms` is its event
        time in an undisturbed load."""
        value = record.value()
        event_time = EVENT_TIME.search(value)
        if event_time is None or not value.endswith(b"}"):
            self.unreadable += 1
            return
        if (behind := undisturbed_ms - int(event_time[1])) > 0:
            self.moved_back += 1
            self.furthest_back_ms = max(self.furthest_back_ms, behind)
        if (list_at := value.find(COPIES)) >= 0:
            self.exploded += 1
            self.most_copies = max(self.most_copies, value.count(b",", list_at) + 1)


def figures(all_counts: Iterable[DeliveryCounts]) -> dict[str, Any]:
    """The counts of several intervals combined, as JSON values."""
    all_counts = tuple(all_counts)
    keys: Counter[bytes] = Counter()
    for counts in all_counts:
        keys.update(counts.keys.copy())  # a copy, since the sender continues counting
    total = max(1, keys.total())
    records = sum(counts.records for counts in all_counts)
    hottest = {key.decode(): round(count / total, 4) for key, count in keys.most_common(SHOWN_KEYS)}
    return {
        "records": records,
        "keys": len(keys),
        "hottest": hottest,
        "hottest_share": max(hottest.values(), default=0.0),
        "bytes_per_record": round(sum(counts.bytes for counts in all_counts) / max(1, records)),
        "largest_bytes": max(counts.largest_bytes for counts in all_counts),
        "unreadable": sum(counts.unreadable for counts in all_counts),
        "moved_back": sum(counts.moved_back for counts in all_counts),
        "furthest_back_ms": max(counts.furthest_back_ms for counts in all_counts),
        "exploded": sum(counts.exploded for counts in all_counts),
        "most_copies": max(counts.most_copies for counts in all_counts),
    }

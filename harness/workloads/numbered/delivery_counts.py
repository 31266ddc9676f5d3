"""Counts of the acknowledged records that the client returns: keys, sizes, and the signs of each
disturbance."""

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
        """Count one record by its key and size, which costs next to nothing."""
        key, size = record.key(), len(record)
        self.keys[key] = self.keys.get(key, 0) + 1
        self.records += 1
        self.bytes += size
        if size > self.largest_bytes:
            self.largest_bytes = size

    def read(self, record: DeliveryReport, ordinary_ms: int) -> None:
        """Inspect the content of one record too; `ordinary_ms` is the event time of an undisturbed
        load, milliseconds."""
        value = record.value()
        event_time = EVENT_TIME.search(value)
        if event_time is None or not value.endswith(b"}"):
            self.unreadable += 1
            return
        if (behind := ordinary_ms - int(event_time[1])) > 0:
            self.moved_back += 1
            self.furthest_back_ms = max(self.furthest_back_ms, behind)
        if (list_at := value.find(COPIES)) >= 0:
            self.exploded += 1
            self.most_copies = max(self.most_copies, value.count(b",", list_at) + 1)


def figures(tallies: Iterable[DeliveryCounts]) -> dict[str, Any]:
    """Several counts combined, as plain figures."""
    tallies = tuple(tallies)
    keys: Counter[bytes] = Counter()
    for tally in tallies:
        keys.update(tally.keys.copy())  # a copy, since the sender continues counting
    counted = max(1, keys.total())
    records = sum(tally.records for tally in tallies)
    hottest = {
        key.decode(): round(count / counted, 4) for key, count in keys.most_common(SHOWN_KEYS)
    }
    return {
        "records": records,
        "keys": len(keys),
        "hottest": hottest,
        "hottest_share": max(hottest.values(), default=0.0),
        "bytes_per_record": round(sum(tally.bytes for tally in tallies) / max(1, records)),
        "largest_bytes": max(tally.largest_bytes for tally in tallies),
        "unreadable": sum(tally.unreadable for tally in tallies),
        "moved_back": sum(tally.moved_back for tally in tallies),
        "furthest_back_ms": max(tally.furthest_back_ms for tally in tallies),
        "exploded": sum(tally.exploded for tally in tallies),
        "most_copies": max(tally.most_copies for tally in tallies),
    }

"""Reconciliation said once more, in plain Python over small lists: what the real one must equal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple


class Sent(NamedTuple):
    key: str
    seq: int
    amount: int | None
    status: str = "acknowledged"


class Seen(NamedTuple):
    key: str | None
    seq: int | None
    amount: int | None
    partition: int
    offset: int


def counts(sent: Sequence[Sent], seen: Sequence[Seen]) -> dict[str, int]:
    """Counts by class; every identity is sent at most once."""
    by_identity = {(record.key, record.seq): record for record in sent}
    certain = {name for name, record in by_identity.items() if record.status == "acknowledged"}
    possible = {name for name, record in by_identity.items() if record.status != "failed"}
    copies = Counter((record.key, record.seq) for record in seen)
    odd = {
        (record.key, record.seq)
        for record in seen
        if (record.key, record.seq) in possible
        and record.amount != by_identity[record.key, record.seq].amount  # type: ignore[index]
    }
    unknown = possible - certain
    return {
        "expected": len(certain),
        "actual": len(seen),
        "lost": sum(name not in copies for name in certain),
        "duplicated": sum(copies[name] - 1 for name in possible if copies[name]),
        "phantom": sum(count for name, count in copies.items() if name not in possible),
        "changed": len(odd),
        "unknown_absent": sum(name not in copies for name in unknown),
        "unknown_arrived": sum(name in copies for name in unknown),
        "reordered": _reordered(possible, seen),
    }


def _reordered(possible: set[tuple[str, int]], seen: Sequence[Seen]) -> int:
    before: dict[tuple[str | None, int], int] = {}
    met: set[tuple[str | None, int | None]] = set()
    found = 0
    for record in sorted(seen, key=lambda record: (record.partition, record.offset)):
        name = (record.key, record.seq)
        if name in met or name not in possible:
            continue
        met.add(name)
        assert record.seq is not None
        lane = (record.key, record.partition)
        found += record.seq < before.get(lane, record.seq)
        before[lane] = record.seq
    return found

"""Reconciliation said once more, in plain Python over small lists: what the real one must equal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple


class Sent(NamedTuple):
    key: str
    seq: int
    amount: int | None
    status: str = "acknowledged"


class BatchWindow(NamedTuple):
    key: str | None
    seq: int | None
    amount: int | None
    partition: int
    offset: int


def counts(sent: Sequence[Sent], seen: Sequence[BatchWindow]) -> dict[str, int]:
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


def asked_for(
    sent: Sequence[Sent], seen: Sequence[BatchWindow], homes: Mapping[str | None, int]
) -> Counter[str]:
    """Counts of the classes that must be asked for; `homes` are the partitions of the keys sent."""
    found: Counter[str] = Counter()
    by_key: dict[str | None, list[BatchWindow]] = {}
    for record in sorted(seen, key=lambda record: (record.partition, record.offset)):
        by_key.setdefault(record.key, []).append(record)
        if record.key in homes:
            found["wrong_partition"] += record.partition != homes[record.key]
    for records in by_key.values():
        numbers = {record.seq for record in records if record.seq is not None}
        found["gap"] += max(numbers) - min(numbers) + 1 - len(numbers) if numbers else 0
        numbered = [record for record in records if record.seq is not None]
        for one, other in pairwise(numbered):
            assert one.seq is not None
            assert other.seq is not None
            found["regression"] += one.partition == other.partition and other.seq < one.seq
    return found


def stands(
    message: Sequence[BatchWindow], taken_back: Sequence[BatchWindow]
) -> tuple[list[BatchWindow], int]:
    """What stands of a changelog, of equal records the last, and how many take back what was never
    said."""
    back = Counter(record[:3] for record in taken_back)
    left = []
    for record in sorted(message, key=lambda record: record.offset):
        if back[record[:3]] > 0:
            back[record[:3]] -= 1
        else:
            left.append(record)
    return left, back.total()


def _reordered(possible: set[tuple[str, int]], seen: Sequence[BatchWindow]) -> int:
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

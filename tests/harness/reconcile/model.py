"""A model of reconciliation in plain Python over small lists, which the real one must equal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple


class SentRecord(NamedTuple):
    key: str
    seq: int
    amount: int | None
    status: str = "acknowledged"


class OutputRecord(NamedTuple):
    key: str | None
    seq: int | None
    amount: int | None
    partition: int
    offset: int


def counts(sent: Sequence[SentRecord], received: Sequence[OutputRecord]) -> dict[str, int]:
    """Counts by class; every identity is sent at most once."""
    by_identity = {(record.key, record.seq): record for record in sent}
    certain = {
        identity for identity, record in by_identity.items() if record.status == "acknowledged"
    }
    possible = {identity for identity, record in by_identity.items() if record.status != "failed"}
    copies = Counter((record.key, record.seq) for record in received)
    changed = {
        (record.key, record.seq)
        for record in received
        if (record.key, record.seq) in possible
        and record.amount != by_identity[record.key, record.seq].amount  # type: ignore[index]
    }
    unknown = possible - certain
    return {
        "expected": len(certain),
        "actual": len(received),
        "lost": sum(identity not in copies for identity in certain),
        "duplicated": sum(copies[identity] - 1 for identity in possible if copies[identity]),
        "phantom": sum(count for identity, count in copies.items() if identity not in possible),
        "changed": len(changed),
        "unknown_absent": sum(identity not in copies for identity in unknown),
        "unknown_arrived": sum(identity in copies for identity in unknown),
        "reordered": _reordered_count(possible, received),
    }


def further_counts(
    sent: Sequence[SentRecord], received: Sequence[OutputRecord], homes: Mapping[str | None, int]
) -> Counter[str]:
    """Counts of the classes that are judged on request; `homes` are the partitions of the sent
    keys."""
    total: Counter[str] = Counter()
    by_key: dict[str | None, list[OutputRecord]] = {}
    for record in sorted(received, key=lambda record: (record.partition, record.offset)):
        by_key.setdefault(record.key, []).append(record)
        if record.key in homes:
            total["wrong_partition"] += record.partition != homes[record.key]
    for records in by_key.values():
        numbers = {record.seq for record in records if record.seq is not None}
        total["gap"] += max(numbers) - min(numbers) + 1 - len(numbers) if numbers else 0
        numbered = [record for record in records if record.seq is not None]
        for one, other in pairwise(numbered):
            assert one.seq is not None
            assert other.seq is not None
            total["regression"] += one.partition == other.partition and other.seq < one.seq
    return total


def final_state(
    inserted: Sequence[OutputRecord], retracted: Sequence[OutputRecord]
) -> tuple[list[OutputRecord], int]:
    """The final records of a changelog, of equal records the last ones, and the number of
    retractions of records that were never inserted."""
    retractions = Counter(record[:3] for record in retracted)
    remaining = []
    for record in sorted(inserted, key=lambda record: record.offset):
        if retractions[record[:3]] > 0:
            retractions[record[:3]] -= 1
        else:
            remaining.append(record)
    return remaining, retractions.total()


def _reordered_count(possible: set[tuple[str, int]], received: Sequence[OutputRecord]) -> int:
    last_sequence: dict[tuple[str | None, int], int] = {}
    visited: set[tuple[str | None, int | None]] = set()
    total = 0
    for record in sorted(received, key=lambda record: (record.partition, record.offset)):
        identity = (record.key, record.seq)
        if identity in visited or identity not in possible:
            continue
        visited.add(identity)
        assert record.seq is not None
        lane = (record.key, record.partition)
        total += record.seq < last_sequence.get(lane, record.seq)
        last_sequence[lane] = record.seq
    return total

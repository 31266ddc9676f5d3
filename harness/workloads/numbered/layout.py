"""The key of record i, and its sequence number within that key, as a formula of i.

A segment is a range of records with one skew and one set of generation parameters. Its keys follow
a fixed table of slots, a seeded permutation that contains every key as often as the skew requires;
record i of the segment takes slot `i mod slots`. So its sequence number is the key's count before
the segment, plus a full round's share for each full round, plus its rank within this round.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from streamquake.harness.workloads.numbered.generation_parameters import GenerationParameters

MAX_SLOTS = 1 << 16
"""The largest table; a key with a share of less than one slot still gets one slot."""


class KeySlot(NamedTuple):
    """One slot of a segment's table; a tuple, since it is read once for every record."""

    key: int
    base: int
    """Records of this key before the segment."""
    per_round: int
    """How often the table contains the key."""
    rank: int
    """The rank of this slot among the slots of its key, from 0."""


@dataclass(frozen=True, kw_only=True)
class KeyDistribution:
    """The shares of the keys, and the generation parameters, from record `start` on."""

    start: int
    shares: Sequence[float]
    generation: GenerationParameters


@dataclass(frozen=True, kw_only=True)
class KeySegment:
    """The records `start` <= i < `end`, which have one table of slots."""

    start: int
    end: int
    slots: tuple[KeySlot, ...]
    generation: GenerationParameters

    def place(self, index: int) -> tuple[int, int]:
        """(key number, sequence within the key) of record `index`."""
        rounds, position = divmod(index - self.start, len(self.slots))
        slot = self.slots[position]
        return slot.key, slot.base + rounds * slot.per_round + slot.rank

    def places(self, first: int, end: int) -> Iterator[tuple[int, int]]:
        """`place` of every record from `first` to before `end`."""
        return map(self.place, range(max(first, self.start), min(end, self.end)))


def segments(
    seed: int, distributions: Sequence[KeyDistribution], records: int
) -> tuple[KeySegment, ...]:
    """The segments of a load, by its key distributions in order."""
    ends = [distribution.start for distribution in distributions[1:]] + [records]
    records_before: Counter[int] = Counter()
    result = []
    for number, (distribution, end) in enumerate(zip(distributions, ends, strict=True)):
        slots = _slots(f"{seed}:{number}", distribution.shares, records_before)
        segment = KeySegment(
            start=distribution.start, end=end, slots=slots, generation=distribution.generation
        )
        result.append(segment)
        records_before += _records_per_key(segment)
    return tuple(result)


def multiplicities(shares: Sequence[float]) -> list[int]:
    """How often a table contains each key: at least once, else in proportion to its share."""
    total = sum(shares)
    wanted = max(len(shares), min(MAX_SLOTS, round(total / min(shares))))
    return [max(1, round(share / total * wanted)) for share in shares]


def _slots(seed: str, shares: Sequence[float], records_before: Counter[int]) -> tuple[KeySlot, ...]:
    counts = multiplicities(shares)
    keys = [key for key, count in enumerate(counts) for _ in range(count)]
    random.Random(f"{seed}:layout").shuffle(keys)
    before = [records_before[key] for key in range(len(counts))]
    ranks = [itertools.count() for _ in counts]
    return tuple(KeySlot(key, before[key], counts[key], next(ranks[key])) for key in keys)


def _records_per_key(segment: KeySegment) -> Counter[int]:
    rounds, rest = divmod(segment.end - segment.start, len(segment.slots))
    counts = Counter(slot.key for slot in segment.slots[:rest])
    for slot in segment.slots:
        counts[slot.key] += rounds
    return counts

"""Record i of the workload, as a pure function of (seed, workload changes, i), in Python.

`frame.py` computes the same in Spark expressions; a property test compares the two. The hash is
xxHash64 of the index's eight little-endian bytes under a seed that is itself the hash of the run's
seed, which is what Spark's `xxhash64(seed, index)` computes
(https://github.com/apache/spark/blob/master/sql/catalyst/src/main/java/org/apache/spark/sql/catalyst/expressions/XXH64.java).
Integers only, because rounding could be mistaken for a changed record.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import xxhash

from streamquake.harness.workloads.numbered.layout import KeySegment

EPOCH_MS = 1_767_225_600_000
"""Event time of record 0: 2026-01-01T00:00:00Z."""
SPARK_HASH_SEED = 42
AMOUNTS = 1000
"""`amount` is between 1 and this."""


class Record(NamedTuple):
    """One record: its fields, and its form in Kafka; a tuple, because it must be cheap to
    create."""

    key: str
    seq: int
    index: int  # type: ignore[assignment]  # a column's name, not tuple.index
    event_time_ms: int
    amount: int
    payload: str
    checksum: int
    copies: int
    """The number of rows of a job that unnests the list `copies`; one row if the list is left
    out."""
    partition: int
    poison: bool = False
    """Malformed; no output may contain it."""

    def value(self) -> bytes:
        """The record's Kafka value: JSON in a fixed field order; a poison record has half of it."""
        value = (
            f'{{"key":"{self.key}","seq":{self.seq},"index":{self.index},'
            f'"event_time_ms":{self.event_time_ms},"amount":{self.amount},'
            f'"payload":"{self.payload}","checksum":{self.checksum}'
        ).encode()
        if self.poison:
            return value[: len(value) // 2]
        if self.copies == 1:
            return value + b"}"
        return value + f',"copies":[{",".join(map(str, range(self.copies)))}]}}'.encode()


@dataclass(frozen=True, kw_only=True)
class LoadDefinition:
    """All parameters that determine the records of one run."""

    seed: int
    segments: Sequence[KeySegment]
    records: int
    partitions: int
    event_ms: tuple[int, int]
    """Event time from record to record: milliseconds, as numerator and denominator."""

    def event_time_ms(self, index: int) -> int:
        return EPOCH_MS + index * self.event_ms[0] // self.event_ms[1]

    def between(self, first: int, end: int) -> Iterator[Record]:
        """The records from index `first` to before `end`, in order."""
        hash_seed = _hash(self.seed, SPARK_HASH_SEED)
        index = first
        for segment in self.segments:
            parameters = segment.generation
            size, behind_ms, copies = parameters.payload_bytes, 0, 1
            disturbed = not parameters.undisturbed
            for key_number, seq in segment.places(first, end):
                hashed = _hash(index, hash_seed)
                if disturbed:
                    size, behind_ms = parameters.size(hashed), parameters.behind_ms(hashed)
                    copies = parameters.copies_of(hashed)
                key = f"k-{key_number:05d}"
                event_time_ms = self.event_time_ms(index) - behind_ms
                amount = _signed(hashed) % AMOUNTS + 1
                payload = (f"{hashed:016X}" * -(-size // 16))[:size]
                canonical = f"{key}|{seq}|{index}|{event_time_ms}|{amount}|{payload}"
                checksum = zlib.crc32(canonical.encode())
                yield Record(
                    key,
                    seq,
                    index,
                    event_time_ms,
                    amount,
                    payload,
                    checksum,
                    copies,
                    key_number % self.partitions,
                    index < parameters.poison_until,
                )
                index += 1


def _hash(number: int, seed: int) -> int:
    return xxhash.xxh64_intdigest(number.to_bytes(8, "little", signed=True), seed)


def _signed(unsigned: int) -> int:
    return unsigned - (1 << 64) if unsigned >> 63 else unsigned

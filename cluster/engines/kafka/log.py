"""A broker's log on disk: its flushed part, and the truncations that leave only that part.

A broker writes to the page cache and leaves the flushing to the operating system; its recovery
points, one offset per partition, record what it has flushed itself. All later records may be lost
when the machine loses power. The metadata log of the quorum is flushed with every write and is not
truncated. The layout of a batch of records: https://kafka.apache.org/documentation/#recordbatch
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby

DATA = "/var/lib/kafka"
FOLDER = f"{DATA}/data"
"""The folder in a broker that has a folder for each partition."""
CHECKPOINT = "recovery-point-offset-checkpoint"
METADATA = "__cluster_metadata-0"
BATCH_HEAD = struct.Struct(">qi")
"""First offset of a batch, and the number of bytes after these twelve."""

ReadFile = Callable[[str], bytes]


@dataclass(frozen=True, kw_only=True)
class LogSegment:
    """One file of a partition's log; its name is the first offset in it."""

    path: str
    size: int

    @property
    def partition(self) -> str:
        return self.path.rpartition("/")[0]

    @property
    def first_offset(self) -> int:
        return int(self.path.rpartition("/")[2].removesuffix(".log"))


@dataclass(frozen=True, kw_only=True)
class LogTruncation:
    """A segment, its size, and its size after the truncation; None to remove the whole file."""

    path: str
    size: int
    new_size: int | None


def recovery_points(text: str) -> dict[str, int]:
    """Partition folder -> the offset up to which its log is flushed, from a checkpoint file.

    Raises ValueError for a file of another version.
    """
    version, _, *entries = text.splitlines() or ["0", "0"]
    if version.strip() != "0":
        raise ValueError(f'{CHECKPOINT}: expected version 0, got "{version}"')
    parts = (entry.split() for entry in entries if entry.strip())
    return {f"{topic}-{partition}": int(offset) for topic, partition, offset in parts}


def segments(listing: str) -> Iterator[LogSegment]:
    """The segments in a listing with a line `./input-0/00000000000000000000.log 4711` for each."""
    for line in listing.splitlines():
        path, _, size = line.strip().removeprefix("./").rpartition(" ")
        yield LogSegment(path=path, size=int(size))


def truncations(
    found: Iterable[LogSegment], flushed: Mapping[str, int], read: ReadFile
) -> list[LogTruncation]:
    """The truncations after which only flushed records are left. A file is read only if a flushed
    end falls inside it; a partition without a recovery point was never flushed."""
    needed: list[LogTruncation] = []
    by_place = sorted(found, key=lambda s: (s.partition, s.first_offset))
    for partition, of_partition in groupby(by_place, key=lambda segment: segment.partition):
        if partition == METADATA:
            continue
        first, *later = of_partition
        end = max(flushed.get(partition, 0), first.first_offset)
        needed += filter(None, (_truncation(segment, end, read) for segment in (first, *later)))
    return needed


def position_of(offset: int, log: bytes) -> int:
    """Where in a segment the first batch begins that is not before an offset."""
    at = 0
    while at + BATCH_HEAD.size <= len(log):
        first, length = BATCH_HEAD.unpack_from(log, at)
        if first >= offset or length <= 0:
            break
        at += BATCH_HEAD.size + length
    return min(at, len(log))


def _truncation(segment: LogSegment, end: int, read: ReadFile) -> LogTruncation | None:
    """The truncation of a segment from an offset on; None when the segment stays complete."""
    if segment.first_offset > end:
        return LogTruncation(path=segment.path, size=segment.size, new_size=None)
    inside = segment.size > 0 and segment.first_offset < end
    new_size = position_of(end, read(segment.path)) if inside else 0
    return (
        LogTruncation(path=segment.path, size=segment.size, new_size=new_size)
        if new_size < segment.size
        else None
    )

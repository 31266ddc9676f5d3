"""The bottleneck of a job's graph: the vertex, or the link, that all back-pressured vertices wait
for.

A vertex is back-pressured when it cannot emit its records. So the bottleneck itself is not
back-pressured: it is the next vertex downstream of the last one that is. Where that one has several
consumers, the bottleneck is the consumer whose input buffers are full or which is busy all the
time. Both signs count: while a checkpoint aligns, its senders are blocked behind their barriers and
the buffers of the bottleneck run empty, though it is as busy as before
(`PipelinedSubpartition.isBlocked`). Where the consumer has neither sign, it waits for records while
its senders wait for buffers: the bottleneck is the link between them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from streamquake.harness.verdict.evidence.pressure import (
    LOW_ABOVE,
    PressureLevel,
    Ratios,
    Series,
    ratios_of,
)
from streamquake.reports.record.job_events import JobSubmitted

BUSY, IDLE = "busy_ms_per_s", "idle_ms_per_s"
POOL = "input_pool_usage_max"
STRAINED_ABOVE = 0.5
"""A bottleneck has nearly full buffers and is busy nearly all the time; a vertex that waits for
records has nearly zero of both. Half is far from either."""


@dataclass(frozen=True, kw_only=True)
class JobGraph:
    """A job's vertices, id -> name, and its edges as (from, to, ship strategy)."""

    names: Mapping[str, str]
    edges: tuple[tuple[str, str, str], ...]

    @classmethod
    def of(cls, submitted: JobSubmitted) -> JobGraph:
        """The graph of a job; without edges where the record has none."""
        return cls(
            names={vertex["id"]: vertex["name"] for vertex in submitted.vertices},
            edges=tuple((e["from"], e["to"], e["ship"]) for e in submitted.edges or ()),
        )

    def consumers(self, vertex: str) -> list[str]:
        return [to for source, to, _ in self.edges if source == vertex]

    def below(self, vertex: str) -> set[str]:
        """All vertices downstream of this one."""
        found: set[str] = set()
        ahead = self.consumers(vertex)
        while ahead:
            found.update(ahead)
            ahead = [to for each in ahead for to in self.consumers(each) if to not in found]
        return found


@dataclass(frozen=True, kw_only=True)
class VertexLoad:
    """The load of a vertex in a window. `busy` (share of time) and `pool` (share of the input
    buffers in use) are means of the worst subtask's samples, None where there are none."""

    pressed: Ratios
    busy: float | None
    pool: float | None
    idle: float | None = None
    """The share of time without records, as a mean over the subtasks; None without samples."""

    @property
    def is_idle_with_full_buffers(self) -> bool:
        """Whether it waits for records, by its samples, and has full input buffers: one of both is
        wrong, or its inputs are blocked for a checkpoint, which hides who is slow."""
        if self.busy is None or self.idle is None or self.pool is None:
            return False
        is_idle = self.busy <= LOW_ABOVE and self.idle > STRAINED_ABOVE
        return is_idle and self.pool > STRAINED_ABOVE

    @property
    def strain(self) -> float:
        """The stronger of the two signs of a bottleneck, 0 to 1."""
        return max(self.busy or 0.0, self.pool or 0.0)

    @property
    def is_strained(self) -> bool:
        return self.strain > STRAINED_ABOVE

    def __str__(self) -> str:
        return (
            f"back-pressured {self.pressed.max:.2f}, busy {_share(self.busy)}, "
            f"input pool {_share(self.pool)}"
        )


@dataclass(frozen=True, kw_only=True)
class BackpressureSource:
    """Where the back-pressure comes from: one vertex, or a link into one of the vertices."""

    vertices: tuple[str, ...]
    is_link: bool = False


def load_of(series: Series, name: str, start_s: float, end_s: float) -> VertexLoad | None:
    """The load of the vertex of this name, or None where its back-pressure was not sampled."""
    pressed = ratios_of(series, name, start_s, end_s)
    if pressed is None:
        return None
    busy, idle = (ratios_of(series, name, start_s, end_s, kind) for kind in (BUSY, IDLE))
    samples = series.get(POOL, {}).get(name)
    used = (
        ()
        if samples is None
        else samples.value[(samples.at_s >= start_s) & (samples.at_s <= end_s)]
    )
    return VertexLoad(
        pressed=pressed,
        busy=None if busy is None else busy.max,
        pool=float(sum(used)) / len(used) if len(used) else None,
        idle=None if idle is None else idle.mean,
    )


def root_of(
    graph: JobGraph, loads: Mapping[str, VertexLoad], high: Collection[str]
) -> BackpressureSource | None:
    """The root by the loads (vertex id -> load) of all vertices; `high` are the back-pressured
    vertices. None where no back-pressured vertex has a consumer."""
    last = [vertex for vertex in high if not graph.below(vertex) & set(high)]
    reached = list(dict.fromkeys(each for vertex in last for each in _next(graph, loads, vertex)))
    free = [vertex for vertex in reached if loads[vertex].pressed.level == PressureLevel.OK]
    # A vertex with low back-pressure is the bottleneck only if no vertex downstream of it is.
    for candidates in (free, [vertex for vertex in reached if vertex not in free]):
        strained = [vertex for vertex in candidates if loads[vertex].is_strained]
        if strained:
            return BackpressureSource(
                vertices=(max(strained, key=lambda vertex: loads[vertex].strain),)
            )
    return BackpressureSource(vertices=tuple(free or reached), is_link=True) if reached else None


def _next(graph: JobGraph, loads: Mapping[str, VertexLoad], vertex: str) -> Iterator[str]:
    """The consumers of a vertex; also, for a back-pressured consumer, its own consumers."""
    for consumer in graph.consumers(vertex):
        yield consumer
        if loads[consumer].pressed.level != PressureLevel.OK:
            yield from _next(graph, loads, consumer)


def unsampled_vertices(
    graph: JobGraph, loads: Mapping[str, VertexLoad], least: int
) -> Iterable[str]:
    """The names of the vertices with fewer than `least` samples."""
    for vertex, name in graph.names.items():
        if vertex not in loads or loads[vertex].pressed.samples < least:
            yield name


def _share(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f}"

"""How far a failure may spread in a job's graph, and how far it did: the kind of its failover.

`task` is the failed subtasks alone. `downstream` adds all subtasks downstream of them. `region`
adds all subtasks in the same pipelined region (Flink; with the approximate exchange every subtask
is its own region). `job` is all subtasks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from typing import Any

from streamquake.cluster.engines.flink.plan import POINTWISE, pairs
from streamquake.reports.record.job_events import JobSubmitted

Subtask = tuple[str, int]
KINDS = ("task", "downstream", "region", "job")


class RegionGraph:
    """The pipelined regions of a job, with the edges and vertices of its `job submitted`."""

    def __init__(
        self,
        regions: Iterable[Iterable[Subtask]],
        edges: Sequence[Mapping[str, Any]] = (),
        vertices: Iterable[Mapping[str, Any]] | None = None,
    ) -> None:
        """Without the `vertices` the regions alone are the graph."""
        self._regions = [{(vertex, int(n)) for vertex, n in region} for region in regions]
        self._edges = edges
        self._has_vertices = vertices is not None
        self._width = {vertex["id"]: int(vertex["parallelism"]) for vertex in vertices or ()}

    @classmethod
    def of(cls, submitted: JobSubmitted) -> RegionGraph:
        """The graph of a job; without regions where the record has none."""
        vertices = submitted.vertices if JobSubmitted.vertices.name in submitted.value else None
        return cls(submitted.regions or (), submitted.edges or (), vertices)

    @property
    def all_subtasks(self) -> set[Subtask]:
        """Every subtask of the job."""
        return set().union(*self._regions)

    @property
    def contradiction(self) -> str | None:
        """What in the graph cannot be true together: a subtask is in one region, and each vertex
        has as many as its parallelism. None where nothing is seen."""
        members = Counter(place for region in self._regions for place in region)
        for (vertex, number), regions in members.items():
            if regions > 1:
                return f"the job's graph has {vertex} ({number}) in {regions} regions"
        subtasks = Counter(vertex for vertex, _ in members)
        if self._has_vertices and (without := sorted(set(subtasks) - set(self._width))):
            return f"the job's graph has no vertex {without[0]}, which is in its regions"
        for vertex, width in self._width.items():
            if subtasks[vertex] != width:
                return (
                    f"the job's graph has a parallelism of {width} for {vertex}, and "
                    f"{subtasks[vertex]} subtasks in its regions"
                )
        return None

    def width_difference(self, places: Collection[Subtask]) -> str | None:
        """How the numbers of subtasks differ from the graph's; None where they are equal."""
        observed, planned = (
            Counter(vertex for vertex, _ in each) for each in (places, self.all_subtasks)
        )
        for vertex in sorted(observed | planned):
            if observed[vertex] != planned[vertex]:
                return (
                    f"{observed[vertex]} subtasks of {vertex} were seen, {planned[vertex]} in its "
                    "graph"
                )
        return None

    def reach(self, kind: str, affected: Set[Subtask]) -> set[Subtask]:
        """The subtasks that restart in a failover of this kind, after a failure of the affected
        subtasks."""
        if kind == "task":
            return set(affected)
        if kind == "downstream":
            return self._downstream(affected)
        if kind == "job":
            return self.all_subtasks
        return set().union(*(region for region in self._regions if region & affected))

    def kind(self, affected: Set[Subtask], restarted: Set[Subtask]) -> str | None:
        """The narrowest kind of failover that restarts exactly these; None when none does."""
        return next((kind for kind in KINDS if self.reach(kind, affected) == restarted), None)

    def _downstream(self, affected: Set[Subtask]) -> set[Subtask]:
        reached, added = set(affected), set(affected)
        while added:
            added = {
                receiver for edge in self._edges for receiver in self._receivers(edge, added)
            } - reached
            reached |= added
        return reached

    def _receivers(self, edge: Mapping[str, str], senders: Set[Subtask]) -> set[Subtask]:
        """The subtasks that these send records to over one edge."""
        source, target = edge["from"], edge["to"]
        if all(vertex != source for vertex, _ in senders):
            return set()
        if edge["ship"] not in POINTWISE:
            return {(target, n) for n in range(self._width[target])}
        connected = ({one, other} for one, other in pairs(edge, self._width))
        return {end for pair in connected if pair & senders for end in pair if end[0] == target}

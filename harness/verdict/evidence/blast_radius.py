"""How far a failure may spread in a job's graph, and how far it did, in the words of a failover.

`task` is the failed subtasks alone, `downstream` adds all that their records lead to, `region` all
that exchanges records with them without keeping them in between (Flink's pipelined regions; with
the approximate exchange every subtask is one), `job` everything.
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
        vertices: Iterable[Mapping[str, Any]] = (),
    ) -> None:
        self._regions = [{(vertex, int(n)) for vertex, n in region} for region in regions]
        self._edges = edges
        self._width = {vertex["id"]: int(vertex["parallelism"]) for vertex in vertices}

    @classmethod
    def of(cls, submitted: JobSubmitted) -> RegionGraph:
        """The graph of a job; without regions in records that do not hold them."""
        return cls(submitted.regions or (), submitted.edges or (), submitted.vertices)

    @property
    def all(self) -> set[Subtask]:
        """Every subtask of the job."""
        return set().union(*self._regions)

    def unlike(self, places: Collection[Subtask]) -> str | None:
        """How the numbers of subtasks differ from the graph's; None where they do not."""
        seen, drawn = (Counter(vertex for vertex, _ in each) for each in (places, self.all))
        for vertex in sorted(seen | drawn):
            if seen[vertex] != drawn[vertex]:
                return (
                    f"{seen[vertex]} subtasks of {vertex} were seen, {drawn[vertex]} in its graph"
                )
        return None

    def reach(self, kind: str, victims: Set[Subtask]) -> set[Subtask]:
        """The subtasks that restart when a failure of the victims spreads so far."""
        if kind == "task":
            return set(victims)
        if kind == "downstream":
            return self._downstream(victims)
        if kind == "job":
            return self.all
        return set().union(*(region for region in self._regions if region & victims))

    def kind(self, victims: Set[Subtask], restarted: Set[Subtask]) -> str | None:
        """The narrowest kind of failover that restarts exactly these; None when none does."""
        return next((kind for kind in KINDS if self.reach(kind, victims) == restarted), None)

    def _downstream(self, victims: Set[Subtask]) -> set[Subtask]:
        reached, fresh = set(victims), set(victims)
        while fresh:
            fresh = {fed for edge in self._edges for fed in self._fed(edge, fresh)} - reached
            reached |= fresh
        return reached

    def _fed(self, edge: Mapping[str, str], senders: Set[Subtask]) -> set[Subtask]:
        """The subtasks that these send records to over one edge."""
        source, target = edge["from"], edge["to"]
        if all(vertex != source for vertex, _ in senders):
            return set()
        if edge["ship"] not in POINTWISE:
            return {(target, n) for n in range(self._width[target])}
        joined = ({one, other} for one, other in pairs(edge, self._width))
        return {end for pair in joined if pair & senders for end in pair if end[0] == target}

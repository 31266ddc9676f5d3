"""Rescale: the job gets another parallelism while it runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.engines.engine import (
    JobUnknown,
    JobUnreachable,
    Rescales,
    VertexParallelism,
    engine,
)
from streamquake.cluster.job import CurrentJob
from streamquake.cluster.runtime.runtime import InjectionTimes
from streamquake.cluster.runtime.waiting import wait_until
from streamquake.faults.fault import Evidence, JobFault, JobTarget, faults
from streamquake.faults.mechanisms.injection_times import nothing_done, until_now
from streamquake.faults.requirement import (
    Requirement,
    Requirements,
    all_of,
    as_many_as,
    each,
    has,
    one_of,
    other_than,
)
from streamquake.topologies.model import Topology

ANSWER_S = 10.0


@faults.register
class Rescale(JobFault):
    """Change the parallelism of the job's widest vertices; heal restores their parallelism.

    Narrower vertices, such as a single writer, stay as they are.
    """

    name: ClassVar[str] = "rescale"
    touches: ClassVar[str] = "parallelism"
    lasts: ClassVar[bool] = False
    example: ClassVar[Mapping[str, Any]] = {"to": 2}

    to: Annotated[int, Field(ge=1, le=1024)]
    """Parallel subtasks of each such vertex."""

    @classmethod
    def role_problem(cls, topology: Topology, role: str) -> str | None:
        service = role.partition("/")[0]
        runs = engine(topology.services[service].engine)
        if not isinstance(runs, Rescales):
            return f"{runs.name} does not change the parallelism of a running job"
        return runs.rescale_problem(topology, service)

    def baseline(self, cluster: Cluster, target: JobTarget) -> Mapping[str, Any]:
        """The widest vertices and the requested parallelism of each."""
        job = target.job
        return {"parallelism": _widest(_await_widths(cluster, job))}

    def inject(self, cluster: Cluster, target: JobTarget) -> InjectionTimes:
        job = target.job
        runs = _engine_of(cluster, job)
        widest = _widest(runs.widths(cluster, job.service, job.id))
        if set(widest.values()) == {self.to}:
            raise ValueError(f"the job has a parallelism of {self.to} already; choose another")
        return self._rescale(cluster, job, dict.fromkeys(widest, self.to))

    def evidence(
        self, cluster: Cluster, target: JobTarget, baseline: Mapping[str, Any]
    ) -> Evidence:
        """In effect when each of the vertices has the new parallelism and every subtask of it runs;
        healed when each has the old one, and the old one is requested too."""
        job = target.job
        before: Mapping[str, int] = baseline.get("parallelism", {})
        try:
            widths = _engine_of(cluster, job).widths(cluster, job.service, job.id)
        except (JobUnknown, JobUnreachable) as error:
            return Evidence(
                in_effect=False,
                healed=isinstance(error, JobUnknown),
                observations={"job": str(error), "vertices": None},
            )
        vertices = {v: widths[v] for v in before or _widest(widths) if v in widths}
        changed = all(_has_parallelism(width, self.to) for width in vertices.values())
        as_before = all(_has_parallelism(w, before.get(v, w.wanted)) for v, w in vertices.items())
        return Evidence(
            in_effect=changed and not (before and as_before),
            healed=as_before if before else not changed,
            observations={
                "vertices": {
                    vertex: {
                        "name": width.name,
                        "parallelism": width.parallelism,
                        "running": width.running,
                        "wanted": width.wanted,
                    }
                    for vertex, width in vertices.items()
                }
            },
        )

    def effect_requires(self, before: Mapping[str, Any]) -> Requirements:
        changed = each(has(parallelism=one_of(self.to), running=one_of(self.to)))
        if not (known := before.get("parallelism")):
            return {"vertices": changed}
        return {
            "vertices": all_of(as_many_as(known), changed),
            "before": has(parallelism=each(other_than(self.to))),
        }

    def heal_requires(self, before: Mapping[str, Any]) -> Requirements:
        """A job that no longer exists has no vertices."""
        known = before.get("parallelism")
        if not isinstance(known, Mapping) or not known:
            return {}
        old = one_of(*known.values())
        as_before = all_of(as_many_as(known), each(has(parallelism=old, running=old, wanted=old)))
        return {
            "vertices": Requirement(
                expected=as_before.expected,
                is_met=lambda found: found is None or as_before.is_met(found),
            )
        }

    def heal(
        self, cluster: Cluster, target: JobTarget, baseline: Mapping[str, Any]
    ) -> InjectionTimes:
        job = target.job
        try:
            return self._rescale(cluster, job, baseline.get("parallelism", {}))
        except JobUnknown:
            return nothing_done(cluster, "the job no longer exists")

    def _rescale(
        self, cluster: Cluster, job: CurrentJob, wanted: Mapping[str, int]
    ) -> InjectionTimes:
        called_ns = cluster.clock.epoch_ns()
        if wanted:
            _engine_of(cluster, job).rescale(cluster, job.service, job.id, wanted)
        return until_now(cluster, called_ns, "accepted")


def _widest(widths: Mapping[str, VertexParallelism]) -> dict[str, int]:
    most = max((width.wanted for width in widths.values()), default=0)
    return {vertex: width.wanted for vertex, width in widths.items() if width.wanted == most}


def _has_parallelism(width: VertexParallelism, parallelism: int) -> bool:
    """Whether a vertex has the requested parallelism, and all its subtasks run."""
    return width.wanted == width.parallelism == width.running == parallelism


def _await_widths(cluster: Cluster, job: CurrentJob) -> Mapping[str, VertexParallelism]:
    """The parallelism of each vertex, as soon as the job can report it: during a failover it
    cannot. Raises NotReadyInTime."""
    found: dict[str, VertexParallelism] = {}

    def pending() -> str | None:
        try:
            found.update(_engine_of(cluster, job).widths(cluster, job.service, job.id))
        except JobUnreachable as error:
            return str(error)
        return None

    wait_until(pending, what="the job's parallelism", limit_s=ANSWER_S, clock=cluster.clock)
    return found


def _engine_of(cluster: Cluster, job: CurrentJob) -> Rescales:
    runs = engine(cluster.topology.services[job.service].engine)
    assert isinstance(runs, Rescales), "rejected by `role_problem` before anything starts"
    return runs

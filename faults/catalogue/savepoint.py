"""Savepoint: the job copies its whole state while it runs, as when an operator requests it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, ClassVar

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.engines.engine import JobUnknown, JobUnreachable, TakesSavepoints, engine
from streamquake.cluster.job import CurrentJob
from streamquake.cluster.runtime.runtime import InjectionTimes
from streamquake.faults.fault import Evidence, JobFault, JobTarget, faults
from streamquake.faults.mechanisms.injection_times import nothing_done, until_now
from streamquake.faults.requirement import Requirements, more_than, one_of, other_than, some
from streamquake.topologies.model import Topology


@faults.register
class Savepoint(JobFault):
    """Take a savepoint; in effect when it is completed. The savepoint stays where it was written:
    there is nothing to undo, and the fault has ended as soon as none is in progress."""

    name: ClassVar[str] = "savepoint"
    touches: ClassVar[str] = "savepoint"
    lasts: ClassVar[bool] = False

    @classmethod
    def role_problem(cls, topology: Topology, role: str) -> str | None:
        service = role.partition("/")[0]
        runs = engine(topology.services[service].engine)
        if not isinstance(runs, TakesSavepoints):
            return f"{runs.name} takes no savepoints"
        return runs.savepoint_problem(topology, service)

    def baseline(self, cluster: Cluster, target: JobTarget) -> Mapping[str, Any]:
        """The newest existing savepoint; a newer one belongs to the fault."""
        job = target.job
        known = _engine_of(cluster, job).savepoints(cluster, job.service, job.id)
        return {"newest": max((savepoint.number for savepoint in known), default=0)}

    def inject(self, cluster: Cluster, target: JobTarget) -> InjectionTimes:
        job = target.job
        called_ns = cluster.clock.epoch_ns()
        _engine_of(cluster, job).take_savepoint(cluster, job.service, job.id)
        return until_now(cluster, called_ns, "accepted")

    def evidence(
        self, cluster: Cluster, target: JobTarget, baseline: Mapping[str, Any]
    ) -> Evidence:
        """In effect when a savepoint newer than the baseline's is completed: its path, size and
        duration are the evidence. Healed while none is in progress."""
        job = target.job
        try:
            known = _engine_of(cluster, job).savepoints(cluster, job.service, job.id)
        except (JobUnknown, JobUnreachable) as error:
            return Evidence(
                in_effect=False,
                healed=isinstance(error, JobUnknown),
                observations={"job": str(error), "state": None},
            )
        ours = [s for s in known if s.number > int(baseline.get("newest", 0))]
        completed = [s for s in ours if s.state == "completed"]
        signs = asdict((completed or ours)[0]) if ours else {"state": None}
        return Evidence(
            in_effect=bool(completed),
            healed=all(s.state != "in progress" for s in known),
            observations={"savepoints": len(ours), **signs},
        )

    def effect_requires(self, before: Mapping[str, Any]) -> Requirements:
        newest = before.get("newest")
        return {
            "savepoints": more_than(0),
            "state": one_of("completed"),
            "number": more_than(newest if isinstance(newest, int) else 0),
            "path": some(),
        }

    def heal_requires(self, before: Mapping[str, Any]) -> Requirements:
        """A job that no longer exists has no savepoint in progress."""
        return {"state": other_than("in progress")}

    def heal(
        self, cluster: Cluster, target: JobTarget, baseline: Mapping[str, Any]
    ) -> InjectionTimes:
        return nothing_done(cluster, "nothing to undo")


def _engine_of(cluster: Cluster, job: CurrentJob) -> TakesSavepoints:
    runs = engine(cluster.topology.services[job.service].engine)
    assert isinstance(runs, TakesSavepoints), "rejected by `role_problem` before anything starts"
    return runs

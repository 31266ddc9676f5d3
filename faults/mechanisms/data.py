"""Common base of all data faults: they change the load, and the acknowledged records prove the
change.

The load continues to send records whose correct result is known; only their keys, number, size or
times change for a while. So these faults need the workload of a run: a cluster that was started
manually has none, and a finished workload cannot be changed any more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.runtime.runtime import InjectionTimes
from streamquake.faults.fault import Evidence, Fault, TargetKind, WorkloadTarget
from streamquake.faults.mechanisms.injection_times import until_now
from streamquake.faults.mechanisms.workload_change import LoadUse, WorkloadChange
from streamquake.faults.requirement import Requirements, at_least, more_than, one_of


class DataFault(Fault[WorkloadTarget]):
    """The base of every fault of `the workload`: what it changes in the load, what it requires of
    the job, and which figures prove it. The record of a run contains its name and parameters."""

    target_kind: ClassVar[TargetKind] = "workload"
    shows_in_place: ClassVar[bool] = True
    grows: ClassVar[tuple[str, ...]] = ("acknowledged",)
    usual: ClassVar[str] = "the workload"
    shows: ClassVar[tuple[str, ...]]
    """The figures of `SteerableLoad.sent_under` that prove the disturbance."""

    @property
    def change(self) -> WorkloadChange:
        """How the load is sent while the fault is in effect."""
        raise NotImplementedError

    def unknown_result(self, use: LoadUse) -> str | None:
        """Why the expected result would not be known exactly, or nothing would be disturbed, with
        the next step for the user; None where the fault is valid."""
        return None

    def took_effect(self, figures: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
        """Whether the figures of the records acknowledged since its begin prove it, compared with
        those before; `before` may be empty."""
        raise NotImplementedError

    def baseline(self, cluster: Cluster, target: WorkloadTarget) -> Mapping[str, Any]:
        """The same figures of the unchanged load."""
        figures = target.steering.sent_under(self.name)
        return {name: figures[name] for name in self.shows}

    def inject(self, cluster: Cluster, target: WorkloadTarget) -> InjectionTimes:
        called_ns = cluster.clock.epoch_ns()
        target.steering.steer(self.name, self.model_dump(exclude_none=True))
        return until_now(cluster, called_ns, "workload")

    def evidence(
        self, cluster: Cluster, target: WorkloadTarget, baseline: Mapping[str, Any]
    ) -> Evidence:
        """In effect while records that prove it are acknowledged; healed when the load is no longer
        changed and an ordinary record was acknowledged afterwards, or when the load has
        finished."""
        figures = target.steering.sent_under(self.name)
        active, records = figures["active"], figures["records"]
        return Evidence(
            in_effect=active and records > 0 and self.took_effect(figures, baseline),
            healed=not active and (records > 0 or figures["finished"]),
            in_place=active or figures["finished"],
            observations={
                "steered": active,
                "acknowledged": records,
                **{name: figures[name] for name in self.shows},
            },
        )

    def effect_requires(self, before: Mapping[str, Any]) -> Requirements:
        return {"steered": one_of(True), "acknowledged": more_than(0)}

    def heal_requires(self, before: Mapping[str, Any]) -> Requirements:
        return {"steered": one_of(False), "acknowledged": at_least(0)}

    def contradicted_effect(
        self, observations: Mapping[str, Any], before: Mapping[str, Any]
    ) -> Iterator[str]:
        yield from super().contradicted_effect(observations, before)
        figures = {name: observations[name] for name in self.shows if name in observations}
        counted = {**figures, "records": observations.get("acknowledged", 0)}
        if len(figures) == len(self.shows) and not self.took_effect(counted, before):
            yield f"{figures} show no effect"
        if self.change.changes_only_content and self._shows(before):
            yield f"{dict(before)} before the injection show it already"

    def _shows(self, figures: Mapping[str, Any]) -> bool:
        """Whether figures alone, without those before, show the change of the content."""
        known = set(self.shows) <= set(figures)
        return known and self.took_effect({**figures, "records": 1}, {})

    def heal(
        self, cluster: Cluster, target: WorkloadTarget, baseline: Mapping[str, Any]
    ) -> InjectionTimes:
        called_ns = cluster.clock.epoch_ns()
        target.steering.settle(self.name)
        return until_now(cluster, called_ns, "workload")

"""Heap exhausted: the node's JVM runs out of heap and ends with OutOfMemoryError."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.node import Node
from streamquake.cluster.runtime.runtime import ContainerStatus, InjectionTimes
from streamquake.faults.fault import Evidence, NodeFault, faults
from streamquake.faults.mechanisms.entrypoint import has_line, put_line, remove_line
from streamquake.faults.mechanisms.injection_times import nothing_done
from streamquake.faults.mechanisms.processes import (
    ENDED,
    RUNNING_OR_REMOVED,
    process_baseline,
    runs_again,
    state_observations,
)
from streamquake.faults.requirement import Requirements, one_of
from streamquake.topologies.limits import LARGEST_MB

ERROR = "java.lang.OutOfMemoryError"
LOG_LINES = 400
OUT_OF_MEMORY = 3
"""The exit status of HotSpot with ExitOnOutOfMemoryError (`debug.cpp`)."""


@faults.register
class OomHeap(NodeFault):
    """Restart the node with a heap too small for its work; its JVM ends at the first
    OutOfMemoryError. Heal restarts it with its own heap."""

    name: ClassVar[str] = "oom_heap"
    touches: ClassVar[str] = "process"
    ends_process: ClassVar[bool] = True
    ends_repeatedly: ClassVar[bool] = True
    engines: ClassVar[tuple[str, ...]] = ("flink", "kafka", "hdfs")
    usual: ClassVar[str] = "hdfs/datanode-2"
    example: ClassVar[Mapping[str, Any]] = {"heap_mb": 8}

    heap_mb: Annotated[int, Field(ge=2, le=LARGEST_MB)] = 8
    """The maximum heap, megabytes. A heap that suffices for the node's work is reported as not in
    effect."""

    def baseline(self, cluster: Cluster, target: Node) -> Mapping[str, Any]:
        return {**process_baseline(cluster, target), "errors": _errors(cluster, target)}

    def inject(self, cluster: Cluster, target: Node) -> InjectionTimes:
        # This variable takes precedence over the options on the JVM's command line.
        options = f"-Xms2m -Xmx{self.heap_mb}m -XX:+ExitOnOutOfMemoryError"
        put_line(cluster, target, f'export _JAVA_OPTIONS="{options}"', self.name)
        killed = cluster.runtime.kill(target.container)
        cluster.start_again(target)
        return killed

    def evidence(self, cluster: Cluster, target: Node, baseline: Mapping[str, Any]) -> Evidence:
        """In effect when the JVM has ended with more OutOfMemoryErrors in its log than before, or
        with the exit status for such an error: in a long log the error may precede the last
        `LOG_LINES` lines."""
        state = cluster.state(target)
        if state.status == ContainerStatus.GONE:
            return Evidence(in_effect=False, healed=True, observations=state_observations(state))
        errors = _errors(cluster, target) - int(baseline.get("errors", 0))
        small = has_line(cluster, target, self.name)
        recorded = errors > 0 or state.exit_code == OUT_OF_MEMORY
        return Evidence(
            in_effect=small and state.status == ContainerStatus.EXITED and recorded,
            healed=not small and state.status in RUNNING_OR_REMOVED,
            observations={
                **state_observations(state),
                "out_of_memory_errors": errors,
                "small_heap": small,
            },
        )

    def effect_requires(self, before: Mapping[str, Any]) -> Requirements:
        return {**ENDED, "small_heap": one_of(True)}

    def heal_requires(self, before: Mapping[str, Any]) -> Requirements:
        return {**runs_again(before), "small_heap": one_of(False)}

    def heal(self, cluster: Cluster, target: Node, baseline: Mapping[str, Any]) -> InjectionTimes:
        if self.evidence(cluster, target, baseline).healed:
            return nothing_done(cluster)
        remove_line(cluster, target, self.name)
        cluster.runtime.kill(target.container)
        return cluster.start_again(target)


def _errors(cluster: Cluster, node: Node) -> int:
    return cluster.runtime.logs(node.container, tail=LOG_LINES).count(ERROR)

"""Heap exhausted: the node's JVM runs out of heap and ends with OutOfMemoryError."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field

from streamquake.cluster.cluster import Cluster, Node
from streamquake.cluster.runtime.runtime import Bracket, Status
from streamquake.faults.fault import Aim, Evidence, Fault, Target, faults, node_of
from streamquake.faults.mechanisms.entrypoint import has_line, put_line, take_line
from streamquake.faults.mechanisms.injection_times import nothing_done
from streamquake.faults.mechanisms.processes import BACK, about, before
from streamquake.topologies.limits import LARGEST_MB

WORDS = "java.lang.OutOfMemoryError"
LOOK_BACK_LINES = 400
OUT_OF_MEMORY = 3
"""What HotSpot exits with under ExitOnOutOfMemoryError (`debug.cpp`)."""


@faults.register
class OomHeap(Fault):
    """Start the node again with a heap too small for its work; its JVM ends at the first
    OutOfMemoryError. Heal starts it with its own heap."""

    name: ClassVar[str] = "oom_heap"
    aims: ClassVar[Aim] = "nodes"
    touches: ClassVar[str] = "process"
    engines: ClassVar[tuple[str, ...]] = ("flink", "kafka", "hdfs")
    usual: ClassVar[str] = "hdfs/datanode-2"
    example: ClassVar[Mapping[str, Any]] = {"heap_mb": 8}

    heap_mb: Annotated[int, Field(ge=2, le=LARGEST_MB)] = 8
    """The largest heap, megabytes. What suffices for the node's work is said not to bite."""

    def baseline(self, cluster: Cluster, target: Target) -> Mapping[str, Any]:
        node = node_of(target)
        return {**before(cluster, node), "errors": _errors(cluster, node)}

    def inject(self, cluster: Cluster, target: Target) -> Bracket:
        node = node_of(target)
        # Of all the ways to give a JVM options, this one wins over its command line.
        options = f"-Xms2m -Xmx{self.heap_mb}m -XX:+ExitOnOutOfMemoryError"
        put_line(cluster, node, f'export _JAVA_OPTIONS="{options}"', self.name)
        killed = cluster.runtime.kill(node.container)
        cluster.start_again(node)
        return killed

    def evidence(self, cluster: Cluster, target: Target, baseline: Mapping[str, Any]) -> Evidence:
        """In effect when the JVM has ended, and told of more OutOfMemoryErrors than before, or by
        its exit status: a log that goes on for long may have the error out of sight."""
        node = node_of(target)
        state = cluster.state(node)
        if state.status == Status.GONE:
            return Evidence(in_effect=False, gone=True, seen=about(state))
        errors = _errors(cluster, node) - int(baseline.get("errors", 0))
        small = has_line(cluster, node, self.name)
        told = errors > 0 or state.exit_code == OUT_OF_MEMORY
        return Evidence(
            in_effect=small and state.status == Status.EXITED and told,
            gone=not small and state.status in BACK,
            seen={**about(state), "out_of_memory_errors": errors, "small_heap": small},
        )

    def heal(self, cluster: Cluster, target: Target, baseline: Mapping[str, Any]) -> Bracket:
        node = node_of(target)
        if self.evidence(cluster, target, baseline).gone:
            return nothing_done(cluster)
        take_line(cluster, node, self.name)
        cluster.runtime.kill(node.container)
        return cluster.start_again(node)


def _errors(cluster: Cluster, node: Node) -> int:
    return cluster.runtime.logs(node.container, tail=LOOK_BACK_LINES).count(WORDS)

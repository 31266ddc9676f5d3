"""Crash loop: the node crashes after each start."""

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
    RAN_BEFORE,
    RUNNING_OR_REMOVED,
    process_baseline,
    runs_again,
    state_observations,
)
from streamquake.faults.requirement import (
    Requirements,
    more_than,
    one_of,
    other_text_than,
)

EXIT_CODE = 70
"""An internal software error (sysexits.h)."""


@faults.register
class CrashLoop(NodeFault):
    """Make the node's main process fail soon after each start, and let the container engine restart
    it with its growing delays (0.1 s, doubled up to a minute). The loop continues even if the
    harness ends."""

    name: ClassVar[str] = "crash_loop"
    touches: ClassVar[str] = "process"
    ends_process: ClassVar[bool] = True
    ends_repeatedly: ClassVar[bool] = True
    exit_codes: ClassVar[tuple[int, ...]] = (EXIT_CODE,)
    lasts: ClassVar[bool] = False
    usual: ClassVar[str] = "hdfs/datanode-2"
    example: ClassVar[Mapping[str, Any]] = {"times": 50, "lives_s": 0.5}

    times: Annotated[int, Field(ge=1, le=1000)] = 50
    """How often the engine restarts it; then it stays down until it is healed."""
    lives_s: Annotated[float, Field(ge=0, le=600)] = 1.0
    """Seconds from each start to the end."""

    def baseline(self, cluster: Cluster, target: Node) -> Mapping[str, Any]:
        return process_baseline(cluster, target)

    def inject(self, cluster: Cluster, target: Node) -> InjectionTimes:
        fail = f"if [ $$ = 1 ]; then sleep {self.lives_s:g}; exit {EXIT_CODE}; fi"
        put_line(cluster, target, fail, self.name)
        killed = cluster.runtime.kill(target.container)
        cluster.runtime.restart_on_failure(target.container, self.times)
        cluster.runtime.start_again(target.container)
        return killed

    def evidence(self, cluster: Cluster, target: Node, baseline: Mapping[str, Any]) -> Evidence:
        """In effect when the container engine has restarted it, which it does only after a
        crash."""
        state = cluster.state(target)
        if state.status == ContainerStatus.GONE:
            return Evidence(in_effect=False, healed=True, observations=state_observations(state))
        has_exit_line = has_line(cluster, target, self.name)
        return Evidence(
            in_effect=has_exit_line and state.restarts > 0,
            healed=not has_exit_line and state.restarts == 0 and state.status in RUNNING_OR_REMOVED,
            observations={
                **state_observations(state),
                "ends": state.restarts,
                "made_to_fail": has_exit_line,
            },
        )

    def effect_requires(self, before: Mapping[str, Any]) -> Requirements:
        return {
            "ends": more_than(0),
            "made_to_fail": one_of(True),
            "started_at": other_text_than(before.get("started_at")),
            "before": RAN_BEFORE,
        }

    def heal_requires(self, before: Mapping[str, Any]) -> Requirements:
        return {**runs_again(before), "ends": one_of(0), "made_to_fail": one_of(False)}

    def heal(self, cluster: Cluster, target: Node, baseline: Mapping[str, Any]) -> InjectionTimes:
        if self.evidence(cluster, target, baseline).healed:
            return nothing_done(cluster)
        cluster.runtime.restart_on_failure(target.container, 0)
        remove_line(cluster, target, self.name)
        cluster.runtime.kill(target.container)
        return cluster.start_again(target)

"""A process that injects a fault and then kills itself with SIGKILL, so that another one must heal
it.

Before that it prints its measurements as JSON.

Usage: python -m tests.containers.inject_and_die JSON
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from streamquake.cluster.cluster import attach_cluster
from streamquake.cluster.job import CurrentJob
from streamquake.cluster.runtime.clock import SystemClock
from streamquake.cluster.runtime.docker.runtime import DockerRuntime
from streamquake.faults.fault import faults
from streamquake.faults.injection.intents import IntentLog
from streamquake.topologies.model import Topology
from tests.injecting import FaultInjector


def inject_and_die(request: dict[str, Any]) -> str:
    """Inject a fault into a cluster that another process started. Returns the reason, and only if
    the fault had no effect."""
    topology = Topology.model_validate_json(Path(request["topology"]).read_text())
    clock = SystemClock()
    cluster = attach_cluster(
        run_id=request["run_id"], topology=topology, runtime=DockerRuntime(clock), clock=clock
    )
    service, job = request["job"]
    cluster.run.job = CurrentJob(service=service, id=job)
    fault = faults[request["fault"]](**request["params"])
    log = IntentLog(Path(request["intents"]))
    _, injected = FaultInjector(cluster, log, limit_s=request["limit_s"]).inject_fault(fault)
    if injected.done:
        recorded = {"injection_ms": injected.width_ms, "watched": injected.evidence["watched"]}
        print(json.dumps(recorded), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    return injected.reason


if __name__ == "__main__":
    sys.exit(inject_and_die(json.loads(sys.argv[1])))

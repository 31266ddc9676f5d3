"""The engine "spark": a standalone cluster, and a driver of its own that runs one PySpark program.

Workers run executors, with as many cores as they have slots; the driver requests them from the
master. The driver's node is supervised like all others: a driver that ends is restarted and
continues from its checkpoint.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from streamquake.cluster.engines import health
from streamquake.cluster.engines.engine import (
    Contents,
    JobVariations,
    NodePlan,
    PortAllocator,
    RecordEvent,
    RecordSample,
    engines,
)
from streamquake.cluster.engines.service_declaration import (
    Problems,
    image_of,
    images_to_build,
    owned_problems,
    role_problems,
    version_problems,
)
from streamquake.cluster.engines.spark import job as spark_job
from streamquake.cluster.engines.spark import master, submit
from streamquake.cluster.engines.spark.config import (
    CONF,
    DATA,
    DRIVER_DATA,
    DRIVER_RPC,
    LISTENER,
    MASTER_RPC,
    MASTER_UI,
    MEMORY_MB,
    OWNED,
    UI,
    WORK,
    WORKER_RPC,
    defaults_file,
    heap_mb,
    master_host,
    master_url,
)
from streamquake.cluster.engines.spark.follow import follow
from streamquake.cluster.engines.spark.variations import VARIATIONS
from streamquake.cluster.images.recipes import ImageRecipe
from streamquake.cluster.job import JobSpec
from streamquake.cluster.live_cluster import LiveCluster
from streamquake.cluster.runtime.waiting import wait_until
from streamquake.topologies.model import NodeSpec, Topology

CANCEL_S = 60.0
PUBLISHED = {"master": (MASTER_UI,), "driver": (LISTENER, UI)}


@engines.register
class SparkEngine:
    """Runs Apache Spark."""

    name = "spark"
    worker_role = "worker"
    """The role whose nodes offer slots, one each unless the topology sets more."""
    programs = ("pyspark",)
    parts: Mapping[str, str] = {"worker": "worker", "coordinator": "driver"}

    def roles(self) -> Mapping[str, str]:
        return {
            "master": "assigns executors to programs",
            "worker": "runs executors, which run tasks, as many at once as it has slots",
            "driver": "runs the program: plans its batches and commits them",
        }

    def ports(self) -> Mapping[str, int]:
        return {
            "rpc": MASTER_RPC,
            "worker-rpc": WORKER_RPC,
            "driver-rpc": DRIVER_RPC,
            "driver-data": DRIVER_DATA,
            "data": DATA,
        }

    def problems(self, topology: Topology, service: str) -> Problems:
        declared = topology.services[service]
        return [
            *version_problems(declared, "spark"),
            *role_problems(
                declared, self.roles(), needed=tuple(self.roles()), only_one=("master", "driver")
            ),
            *owned_problems(declared, OWNED),
            *(
                (("config", key), f'{key}: settings of Spark begin with "spark."')
                for key in declared.config
                if not key.startswith("spark.")
            ),
        ]

    def images(self, topology: Topology, service: str) -> tuple[ImageRecipe, ...]:
        return images_to_build(topology.services[service], "spark")

    def extra_nodes(self, topology: Topology, service: str) -> tuple[NodeSpec, ...]:
        return ()

    def plan(self, topology: Topology, node: NodeSpec, ports: PortAllocator) -> NodePlan:
        heap = {"JVM_HEAP_MB": str(heap_mb(node))} if node.role == "driver" else {}
        offered = {
            "SPARK_WORKER_CORES": str(node.group.slots or 1),
            "SPARK_WORKER_MEMORY": f"{heap_mb(node)}m",
        }
        to_master = (master_url(topology, node.service),) if node.role == "worker" else ()
        return NodePlan(
            image=image_of(topology, node, "spark"),
            command=(node.role, *to_master),
            env={
                "SPARK_LOCAL_HOSTNAME": node.host,
                **heap,
                **(offered if node.role == "worker" else {}),
            },
            files={f"{CONF}/spark-defaults.conf": defaults_file(topology, node.service)},
            publish=PUBLISHED.get(node.role, ()),
            memory_mb=node.group.memory_mb or MEMORY_MB[node.role],
            volumes=(WORK,),
            health=_health(topology, node),
        )

    def pending(self, cluster: LiveCluster, service: str) -> str | None:
        """None when every worker is registered; `job_pending` checks whether a program runs."""
        return master.pending(cluster, service)

    def checkpointed(self, topology: Topology, service: str, config: Mapping[str, Any]) -> bool:
        """A query always has a checkpoint."""
        return True

    def variations(self) -> JobVariations:
        return VARIATIONS

    def submit(self, cluster: LiveCluster, service: str, job: JobSpec) -> str:
        return submit.submit(cluster, service, job)

    def job_pending(self, cluster: LiveCluster, service: str, job: str) -> str | None:
        return spark_job.pending(cluster, service)

    def drain_pending(
        self, cluster: LiveCluster, service: str, job: str, since_ms: int, *, writes_files: bool
    ) -> str | None:
        return spark_job.drain_pending(cluster, service, since_ms)

    def follow(
        self,
        cluster: LiveCluster,
        service: str,
        job: str,
        record_event: RecordEvent,
        measure: RecordSample,
        stop: threading.Event,
    ) -> None:
        follow(cluster, service, job, record_event, measure, stop)

    def committed(self, cluster: LiveCluster, service: str, topic: str) -> Mapping[int, int]:
        return spark_job.committed(cluster, service, topic)

    def cancel(self, cluster: LiveCluster, service: str, job: str) -> None:
        submit.cancel(cluster, service)

    def contents(self, cluster: LiveCluster, service: str) -> Contents:
        """The programs that run, and the workers that are alive. Raises MasterUnreachable."""
        return {
            "programs": master.running_programs(cluster, service),
            "living workers": master.living_workers(cluster, service),
        }

    def clean(self, cluster: LiveCluster, service: str, kept: Contents) -> None:
        """End the driver's program, and wait until its executors have ended. Raises
        MasterUnreachable, NotReadyInTime."""
        submit.cancel(cluster, service)

        def pending() -> str | None:
            left = master.running_programs(cluster, service)
            return f"not ended: {', '.join(sorted(left))}" if left else None

        wait_until(pending, what="programs ended", limit_s=CANCEL_S, clock=cluster.clock)


def _health(topology: Topology, node: NodeSpec) -> tuple[str, ...]:
    """A master must answer, a worker must be registered at the master. A driver answers nothing
    before it has a program."""
    if node.role == "driver":
        return ()
    expected = '"status" : "ALIVE"' if node.role == "master" else f'"{node.host}"'
    return health.http_check(master_host(topology, node.service), MASTER_UI, "/json/", expected)

"""The cluster of the fault matrix: all its tests share one cluster with a job under a light
load."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.engines.flink.rest import jobmanager
from streamquake.cluster.job import CurrentJob
from streamquake.cluster.node import Node
from streamquake.cluster.runtime.clock import SystemClock
from streamquake.cluster.runtime.docker.runtime import DockerRuntime
from streamquake.faults.fault import Fault, PairTarget, Target
from streamquake.faults.injection.injection import InjectionResult, evidence_now, targets_of
from streamquake.faults.injection.intents import Intent, IntentLog
from streamquake.harness.experiment.loader import load_experiment
from streamquake.harness.run.cluster_lease import ClusterLease, DedicatedClusters, follow_job
from streamquake.harness.run.event_loop import EventLoop
from streamquake.harness.run.image_preparation import ensure_images
from streamquake.harness.run.job_preparation import RunningJob, prepare_job
from streamquake.harness.run.load import start_load
from streamquake.reports.record.history import HistoryWriter
from streamquake.reports.record.metrics import Metrics
from streamquake.reports.record.run_folder import RunFolder, new_run_id
from tests.injecting import FaultInjector
from tests.pace import at_pace, wait_until
from tests.reviving import restart_ended_nodes

DOCUMENT = Path(__file__).with_name("matrix.yaml")
EFFECT_S = 60.0
READY_S = 240.0
"""Limits in seconds. Each wait usually takes a few seconds; a limit ends one that would never
end."""


class MatrixTestbed(FaultInjector):
    """A cluster that is ready before each test, and the log of its injections."""

    def __init__(self, cluster: Cluster, job: RunningJob, folder: RunFolder) -> None:
        super().__init__(cluster, IntentLog(folder.intents), limit_s=at_pace(EFFECT_S))
        self.folder = folder
        self._job = job

    def await_ready(self) -> None:
        """Start nodes again that ended on their own, and wait until the services and the job are
        ready."""

        def pending() -> str | None:
            return restart_ended_nodes(self.cluster) or self._job.pending() or self._idle()

        wait_until(pending, what="cluster and job ready", limit_s=READY_S, clock=self.cluster.clock)

    def inject_fault(
        self, fault: Fault, at: str | None = None, *, limit_s: float | None = None
    ) -> tuple[Intent, InjectionResult]:
        """Inject a fault. It is healed at once if it has no effect, so that the next test has a
        ready cluster."""
        intent, injected = super().inject_fault(fault, at, limit_s=limit_s)
        if not injected.done:
            self.undo(intent)
        return intent, injected

    def inject_and_die(self, fault: Fault) -> subprocess.CompletedProcess[str]:
        """Inject a fault in another process, which kills itself with SIGKILL as soon as the fault
        is in effect."""
        topology = self.folder.path / "topology.json"
        topology.write_text(self.cluster.topology.model_dump_json(by_alias=True, exclude_none=True))
        job = CurrentJob(service=self._job.service, id=self._job.id)
        request = {
            "run_id": self.cluster.run_id,
            "topology": str(topology),
            "intents": str(self.folder.intents),
            "fault": fault.name,
            "params": fault.model_dump(mode="json", exclude_none=True),
            "job": [job.service, job.id],
            "limit_s": at_pace(EFFECT_S),
        }
        command = [sys.executable, "-m", "tests.containers.inject_and_die", json.dumps(request)]
        return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)

    def await_healed(self, intent: Intent) -> None:
        """Wait until the fault is observed on none of the existing targets."""

        def pending() -> str | None:
            found = evidence_now(intent, self.cluster).items()
            return next((f"{name}: {seen}" for name, seen in found if not seen.healed), None)

        wait_until(
            pending, what=f"{intent.fault} healed", limit_s=EFFECT_S, clock=self.cluster.clock
        )

    def end_target(self, intent: Intent) -> None:
        """Kill the node of the target, in whatever state the fault left it, and start it again. It
        is found by its name, since another node may have its role by now."""
        for node in _nodes_of(targets_of(intent, self.cluster)):
            self.cluster.runtime.unpause(node.container)
            self.cluster.runtime.kill(node.container)
            self.cluster.start_again(node)

    def _idle(self) -> str | None:
        """Why some TaskManagers run no task of the job, so that they cannot be a target; None if
        all run one."""
        with jobmanager(self.cluster, self._job.service) as rest:
            free = sum(
                taskmanager["freeSlots"]
                for taskmanager in rest.get("/taskmanagers")["taskmanagers"]
            )
        return f"{free} slots are free" if free else None


def _nodes_of(targets: tuple[Target, ...]) -> list[Node]:
    """One node of the target: the node itself, or the source of a pair."""
    match targets[0]:
        case Node() as node:
            return [node]
        case PairTarget(source=source):
            return [source]
        case _:
            return []


@contextmanager
def matrix_testbed(out: Path, runtime: DockerRuntime) -> Iterator[MatrixTestbed]:
    """Deploy the experiment of the matrix, without faults. Everything is removed at the end."""
    experiment = load_experiment(str(DOCUMENT), seed=1)
    ensure_images(experiment.topology, runtime.images(), print)
    folder = RunFolder(out / new_run_id())
    for path in (folder.path, folder.logs, folder.data):
        path.mkdir(parents=True)
    clock = SystemClock()
    loop = EventLoop(
        HistoryWriter(folder.history), Metrics(folder.metrics), clock, show=lambda: None
    )
    lease = ClusterLease(
        run_id=folder.path.name,
        experiment=experiment,
        runtime=runtime,
        clock=clock,
        loop=loop,
        folder=folder,
        show_message=print,
        warn=print,
    )
    with ExitStack() as stack:
        stack.enter_context(_writing_history(loop))
        clusters = DedicatedClusters()
        stack.callback(clusters.remove)
        cluster = stack.enter_context(clusters.cluster_for(lease))
        prepared = prepare_job(experiment, cluster, cluster.run_id)
        assert prepared is not None
        job = prepared.submit(cluster)
        stack.enter_context(follow_job(loop, job))
        stack.enter_context(start_load(experiment, cluster, loop, cluster.run_id))
        yield MatrixTestbed(cluster, job, folder)


@contextmanager
def _writing_history(loop: EventLoop) -> Iterator[None]:
    """Let a thread write the history during the tests."""
    stop = threading.Event()

    def tick() -> None:
        while not stop.is_set():
            loop.tick()

    thread = threading.Thread(target=tick, daemon=True)
    thread.start()
    yield
    stop.set()
    thread.join()
    loop.close()

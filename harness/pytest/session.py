"""What the chaos tests of one pytest session share: engine, clock, Spark and a cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from streamquake.cluster.runtime.clock import Clock, FakeClock, SystemClock
from streamquake.cluster.runtime.docker.runtime import DockerRuntime
from streamquake.cluster.runtime.fake_runtime import FakeRuntime
from streamquake.cluster.runtime.runtime import ContainerRuntime
from streamquake.harness.campaign.clusters.pool import ClusterPool
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.pytest.shared_clusters import SharedClusters
from streamquake.harness.reconcile.spark_session import SparkInBackground
from streamquake.harness.run import runner
from streamquake.harness.run.progress_views import PlainView
from streamquake.reports.record.results import Results


@dataclass(frozen=True, kw_only=True)
class ChaosSession:
    """Runs the experiments of a session, on one cluster while their topologies are equal.

    With `keep` every run leaves a cluster of its own running, with `own_clusters` every run gets
    one. Workers of pytest-xdist use the clusters in the folder `shared` in turn.
    """

    runtime_name: str
    out: Path
    keep: bool
    own_clusters: bool
    shared: Path | None
    show_message: Callable[[str], None]

    @cached_property
    def clock(self) -> Clock:
        return FakeClock() if self.runtime_name == "fake" else SystemClock()

    @cached_property
    def runtime(self) -> ContainerRuntime:
        return FakeRuntime(self.clock) if self.runtime_name == "fake" else DockerRuntime(self.clock)

    @cached_property
    def _spark(self) -> SparkInBackground:
        return SparkInBackground()

    @cached_property
    def _clusters(self) -> ClusterPool | SharedClusters:
        if self.shared is None:
            return ClusterPool(self.show_message)
        return SharedClusters(self.shared, self.runtime, self.clock, self.show_message)

    def run(self, experiment: Experiment) -> Results:
        """Run an experiment and judge it."""
        self.clock.restart()
        if isinstance(self._clusters, ClusterPool):
            # Whether the next test has the same topology is not known: the cluster is kept for it.
            self._clusters.next_topology = experiment.topology
        return runner.run(
            experiment,
            out=self.out,
            argv=["pytest"],
            keep=self.keep,
            view=PlainView(self.show_message, self.clock),
            runtime=self.runtime,
            clock=self.clock,
            cluster_leases=None if self.keep or self.own_clusters else self._clusters,
            shared_spark=self._spark,
        )

    def release_cluster(self) -> None:
        """Remove the cluster that is kept for the next run."""
        self._clusters.remove()

    def end(self) -> list[str]:
        """Remove the cluster and end Spark; returns what could not be removed."""
        self.release_cluster()
        self._spark.stop()
        return self._clusters.warnings

"""The resources that consecutive runs share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Self

from streamquake.cluster.runtime.clock import Clock
from streamquake.cluster.runtime.runtime import ContainerRuntime
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.reconcile.spark_session import SparkInBackground
from streamquake.harness.run import runner
from streamquake.harness.run.cluster_lease import ClusterLeases
from streamquake.harness.run.progress import View
from streamquake.reports.record.results import Results
from streamquake.topologies.errors import kind_of

MOST_FAILED_IN_A_ROW = 3
"""After so many runs that failed to run, no more time is spent on further ones."""


@dataclass(frozen=True, kw_only=True)
class SharedResources:
    """The output folder, container runtime, clock, view and Spark session that the runs share; a
    context manager that ends the session."""

    out: Path
    argv: Sequence[str]
    again: str
    """The command that repeats all the runs."""
    runtime: ContainerRuntime
    clock: Clock
    view: View
    show_message: Callable[[str], None]
    """Shows the progress of the runs, a line at a time."""
    master: str = "local[*]"

    @cached_property
    def spark(self) -> SparkInBackground:
        """The session that judges all runs: a warm one needs half the time."""
        return SparkInBackground(self.master)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.spark.stop()

    def run(
        self, experiment: Experiment, cluster_leases: ClusterLeases | None = None
    ) -> RunAttempt:
        """Run an experiment; an error of its run does not end the other runs."""
        self.clock.restart()
        try:
            results = runner.run(
                experiment,
                out=self.out,
                argv=self.argv,
                keep=False,
                view=self.view,
                runtime=self.runtime,
                clock=self.clock,
                cluster_leases=cluster_leases,
                shared_spark=self.spark,
            )
        except Exception as error:  # noqa: BLE001 - one run must not end the others
            message = f"harness error: {type(error).__name__}: {error}"
            return RunAttempt(error=message, error_kind=kind_of(error))
        return RunAttempt(results=results)


@dataclass(frozen=True, kw_only=True)
class RunAttempt:
    """The results of a run, or the error that prevented them."""

    results: Results | None = None
    error: str = ""
    error_kind: str = ""
    """The kind of the error (`ErrorKind`)."""

"""The resources that consecutive runs share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from streamquake.cluster.runtime.clock import Clock
from streamquake.cluster.runtime.runtime import ContainerRuntime
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.run import runner
from streamquake.harness.run.cluster_lease import ClusterLeases
from streamquake.harness.run.progress import View
from streamquake.reports.record.results import Results
from streamquake.topologies.errors import kind_of


@dataclass(frozen=True, kw_only=True)
class SharedResources:
    """The output folder, container runtime, clock and view that the runs share."""

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
                master=self.master,
                cluster_leases=cluster_leases,
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

"""Conducting a suite: one run after the other, the table on disk after each of them.

A run that fails costs its row, never the suite. An interruption lets the run that is under way end
as a run by itself would (healed, judged, its logs saved, its cluster removed); the rows that are
left say that they were not run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from streamquake.harness.campaign.shared_resources import SharedResources
from streamquake.harness.campaign.suite.cluster_pool import ClusterPool
from streamquake.harness.campaign.suite.plan import PlannedRun, SuitePlan
from streamquake.harness.campaign.suite.recorded_runs import RecordedRuns
from streamquake.harness.campaign.suite.row_outcome import row_result, unavailable_row
from streamquake.harness.campaign.suite.suite_run import CompletedRun
from streamquake.harness.interrupts import Interrupted, interruptible
from streamquake.harness.run import runner
from streamquake.reports.junit import write_suite_junit
from streamquake.reports.record.outcome import Outcome
from streamquake.reports.record.results import Ended, Results
from streamquake.reports.record.run_folder import RunFolder, new_run_id
from streamquake.reports.render import run_sentences
from streamquake.reports.suite.suite_html import render_suite
from streamquake.reports.suite.suite_markdown import write_markdown
from streamquake.reports.suite.suite_results import RowResult, SuiteFolder, SuiteResults, SuiteRun
from streamquake.topologies.errors import kind_of
from streamquake.topologies.model import Topology


@dataclass(frozen=True, kw_only=True)
class SuiteResources(SharedResources):
    """What the runs of a suite are made with."""

    resume: bool = False
    """Let runs that `out` holds already stand for planned ones of the same experiment."""


def conduct(plan: SuitePlan, means: SuiteResources) -> tuple[SuiteResults, SuiteFolder]:
    """Make every run of a plan and write suite.json, suite.html, suite.md and junit.xml."""
    recorded = RecordedRuns(means.out) if means.resume else None
    folder = SuiteFolder.create(means.out, new_run_id())
    performance = SuiteInProgress(plan, means, folder, ClusterPool(means.show_message), recorded)
    with interruptible(means.show_message):
        try:
            performance.play()
        except Interrupted as interruption:
            performance.end("interrupted", f"stopped by {interruption}")
        return performance.finish(), folder


@dataclass
class SuiteInProgress:
    """A suite in progress."""

    plan: SuitePlan
    means: SuiteResources
    folder: SuiteFolder
    pool: ClusterPool
    recorded: RecordedRuns | None = None
    made: dict[int, list[CompletedRun]] = field(default_factory=dict)
    """Row -> its runs so far; a run may be of several rows."""
    judged: list[Results] = field(default_factory=list)
    over: int = 0
    """How many runs are over."""
    ended: Ended = "completed"
    reason: str = ""
    warnings: list[str] = field(default_factory=list)
    passed_s: float = 0.0
    """How long the runs took that are over; the clock counts from nought in each."""

    def play(self) -> None:
        """All runs, until one is interrupted."""
        self.write()
        taken = self._taken()
        with self.pool:
            for number, planned in enumerate(self.plan.runs):
                self.pool.then = self._topology_after(number, taken)
                made = taken.get(number) or self._run(number, planned)
                self.over += 1
                for part in planned.parts:
                    run = replace(made.run, role=part.role)
                    self.made.setdefault(part.row, []).append(replace(made, run=run))
                self.write()
                self._show_end(number, made)
                if made.run.ended == "interrupted":
                    self.end("interrupted", made.run.why)
                    return

    def end(self, ended: Ended, reason: str) -> None:
        self.ended, self.reason = ended, reason

    def results(self) -> SuiteResults:
        """The suite as far as it has come."""
        suite = self.plan.suite
        return SuiteResults(
            suite_id=self.folder.path.name.removeprefix("suite-"),
            suite=suite.name,
            description=suite.description,
            seed=self.plan.seed,
            ended=self.ended,
            reason=self.reason,
            rows=tuple(self._row(number) for number in range(len(suite.rows))),
            deployments=self.pool.deployments,
            elapsed_s=self.passed_s,
            again=self.means.again,
            warnings=(*self.warnings, *self.pool.warnings),
        )

    def write(self) -> None:
        """suite.json now; until the end it says that the suite was interrupted, as it will have
        been if nothing writes it again."""
        unfinished = self.ended == "completed" and self._left()
        state = self._unfinished() if unfinished else self.results()
        self.folder.write_results(state)

    def finish(self) -> SuiteResults:
        """Write what there is: table, page and JUnit; a picture that fails is a warning."""
        runs = [(results, RunFolder(self.means.out / results.run_id)) for results in self.judged]
        shown = self.results()
        writers: Mapping[str, Callable[[], object]] = {
            "junit.xml": lambda: write_suite_junit(runs, self.folder.junit, shown),
            "suite.html": lambda: render_suite(shown, self.folder),
            "suite.md": lambda: write_markdown(shown, self.folder),
        }
        for what, write in writers.items():
            try:
                write()
            except Exception as error:  # noqa: BLE001 - the table is on disk; a picture is not worth it
                message = f"{what} could not be written: {type(error).__name__}: {error}"
                self.warnings.append(message)
        results = self.results()
        self.folder.write_results(results)
        return results

    def _taken(self) -> Mapping[int, CompletedRun]:
        """Number of a run -> the recorded one that stands in its place, where there is one."""
        if self.recorded is None:
            return {}
        taken = {}
        for run in self.recorded.changed:
            message = f"{run} changed since it was judged and does not count; to judge it again"
            self.means.show_message(f"{message}: streamquake check {self.means.out / run}")
        for number, planned in enumerate(self.plan.runs):
            results = self.recorded.take(planned.experiment)
            if results is not None:
                self.means.show_message(f"{planned.experiment.name} was run as {results.run_id}")
                taken[number] = self._made(planned, results)
        return taken

    def _topology_after(self, number: int, taken: Mapping[int, CompletedRun]) -> Topology | None:
        """Of the next run that is to be made; None after the last one."""
        later = enumerate(self.plan.runs[number + 1 :], number + 1)
        return next((p.experiment.topology for n, p in later if n not in taken), None)

    def _run(self, number: int, planned: PlannedRun) -> CompletedRun:
        self._show_start(number, planned)
        experiment, means = planned.experiment, self.means
        means.clock.restart()
        results: Results | None = None
        why = cause = ""
        try:
            results = runner.run(
                experiment,
                out=means.out,
                argv=means.argv,
                keep=False,
                view=means.view,
                runtime=means.runtime,
                clock=means.clock,
                master=means.master,
                cluster_leases=self.pool,
            )
        except Exception as error:  # noqa: BLE001 - one run must not end the others
            why = f"harness error: {type(error).__name__}: {error}"
            cause = kind_of(error)
        finally:
            self.passed_s += means.clock.now_ns() / 1e9
        return self._made(planned, results, why, cause)

    def _made(
        self, planned: PlannedRun, results: Results | None, why: str = "", cause: str = ""
    ) -> CompletedRun:
        experiment = planned.experiment
        self.judged += [results] if results else []
        run = SuiteRun(
            experiment=experiment.name,
            role=planned.parts[0].role,
            repeat=planned.repeat,
            seed=results.seed if results else experiment.seed,
            expected=experiment.expected,
            met=results.met if results else Outcome.UNDECIDED,
            run=results.run_id if results else None,
            ended=results.ended if results else "failed_to_run",
            outcome=results.outcome if results else Outcome.UNDECIDED,
            why=run_sentences.why_met(results) if results else why,
            cause=results.cause if results else cause,
        )
        return CompletedRun(run=run, results=results)

    def _row(self, number: int) -> RowResult:
        row, planned = self.plan.suite.rows[number], self.plan.of_row(number)
        if row.source.unavailable is not None:
            return unavailable_row(row.source, row.source.unavailable)
        experiment = planned[0].experiment
        return row_result(
            row,
            topology=experiment.topology.name,
            expected=experiment.expected,
            planned=len(planned),
            made=self.made.get(number, ()),
        )

    def _left(self) -> int:
        return len(self.plan.runs) - self.over

    def _unfinished(self) -> SuiteResults:
        message = f"{self._left()} of {len(self.plan.runs)} runs were still to be made"
        return replace(self.results(), ended="interrupted", reason=message)

    def _show_start(self, number: int, planned: PlannedRun) -> None:
        parts = ", ".join(f"row {part.row + 1} {part.role}" for part in planned.parts)
        again = f", repeat {planned.repeat + 1}" if planned.repeat else ""
        name, seed = planned.experiment.name, planned.experiment.seed
        self._report(number, f"{name} ({parts}{again}, seed {seed})")

    def _show_end(self, number: int, made: CompletedRun) -> None:
        run = made.run
        expected = "as expected" if run.as_expected else f"expected {run.expected}"
        self._report(number, f"{run.experiment}: {run.outcome}, {expected}; {self._left()} left")
        if not run.as_expected:
            self.means.show_message(f"    {run.why}")

    def _report(self, number: int, line: str) -> None:
        self.means.show_message(
            f"[{self.passed_s:6.0f} s] {number + 1}/{len(self.plan.runs)} {line}"
        )

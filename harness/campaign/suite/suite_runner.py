"""Conducting a suite: one run after the other; after each run the table is written to disk.

A failed run affects only its own row. After an interruption the current run still heals, is judged,
saves its logs and removes its cluster; the other rows are marked as not run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from streamquake.harness.campaign.clusters.pool import ClusterPool
from streamquake.harness.campaign.shared_resources import (
    MOST_FAILED_IN_A_ROW,
    RunAttempt,
    SharedResources,
)
from streamquake.harness.campaign.statistics.bounds import LEVEL, threshold
from streamquake.harness.campaign.suite.budget import Budget
from streamquake.harness.campaign.suite.durations import Durations, duration_text
from streamquake.harness.campaign.suite.earlier_runs import EarlierRuns
from streamquake.harness.campaign.suite.knowledge import Knowledge
from streamquake.harness.campaign.suite.plan import PlannedRun, SuitePlan
from streamquake.harness.campaign.suite.recorded_runs import RecordedRun, RecordedRuns
from streamquake.harness.campaign.suite.row_outcome import row_result, unavailable_row
from streamquake.harness.campaign.suite.suite_run import CompletedRun
from streamquake.harness.interrupts import Interrupted, interruptible
from streamquake.harness.run.judging_again import judge_again
from streamquake.harness.run.runner import save
from streamquake.reports.junit import write_suite_junit
from streamquake.reports.record.outcome import Outcome
from streamquake.reports.record.results import Ended, Results
from streamquake.reports.record.run_folder import RunFolder, new_run_id
from streamquake.reports.render import run_sentences
from streamquake.reports.render.report_files import write_reports
from streamquake.reports.suite.suite_html import render_suite
from streamquake.reports.suite.suite_markdown import write_markdown
from streamquake.reports.suite.suite_results import RowResult, SuiteFolder, SuiteResults, SuiteRun
from streamquake.topologies.errors import StreamquakeError
from streamquake.topologies.model import Topology


@dataclass(frozen=True, kw_only=True)
class SuiteResources(SharedResources):
    """The resources that the runs of a suite share."""

    attempts: int = 1
    """How often a run is tried until it is decided."""
    resume_since: datetime | None = None
    """Reuse runs recorded in `out` that began then or later, in place of planned ones of the same
    experiment; None to reuse none."""
    budget_s: float | None = None
    """Repeat the rows of which least is known until this time is used, in seconds; None to run the
    planned runs."""
    max_failures: int | None = None
    """End after so many runs that certainly had not the expected outcome; None for no limit."""
    against: str = ""
    """The baseline to compare the runs with (see `baseline_condition`); empty for none."""


def conduct(plan: SuitePlan, resources: SuiteResources) -> tuple[SuiteResults, SuiteFolder]:
    """Run every experiment of a plan and write suite.json, suite.html, suite.md and junit.xml.
    Raises StoreUnreadable where the baseline cannot be read, and BadInput for one of another
    form."""
    earlier = EarlierRuns.of(resources.out, resources.against)
    images = resources.runtime.images()
    recorded = budget = None
    if resources.resume_since is not None:
        recorded = RecordedRuns(resources.out, images, since=resources.resume_since)
    durations = Durations.of(earlier.runs)
    if resources.budget_s is not None:
        experiments = [run.experiment for run in plan.runs]
        knowledge = Knowledge.of(earlier.runs, experiments, images)
        budget = Budget(resources.budget_s, knowledge, durations)
        plan = budget.of_suite(plan)
    folder = SuiteFolder.create(resources.out, new_run_id())
    progress = SuiteInProgress(
        plan=plan,
        resources=resources,
        folder=folder,
        pool=ClusterPool(resources.show_message),
        earlier=earlier,
        durations=durations,
        recorded=recorded,
        budget=budget,
    )
    with resources, interruptible(resources.show_message):
        try:
            progress.play()
        except Interrupted as interruption:
            progress.end("interrupted", f"stopped by {interruption}")
        return progress.finish(), folder


@dataclass
class SuiteInProgress:
    """A suite in progress."""

    plan: SuitePlan
    resources: SuiteResources
    folder: SuiteFolder
    pool: ClusterPool
    earlier: EarlierRuns
    durations: Durations
    recorded: RecordedRuns | None
    budget: Budget | None
    completed: dict[int, list[CompletedRun]] = field(default_factory=dict)
    """Row -> its runs so far; a run may belong to several rows."""
    judged: list[Results] = field(default_factory=list)
    reused: list[str] = field(default_factory=list)
    """The ids of the recorded runs that replace planned ones."""
    ended_runs: int = 0
    """The number of runs that ended."""
    ended: Ended = "completed"
    reason: str = ""
    elapsed_s: float = 0.0
    """The duration of the ended runs; the clock restarts at zero in each."""
    failures: int = 0
    """How many runs of rows that count certainly had not the expected outcome."""
    failed_in_a_row: int = 0
    """How many of the last runs failed to run."""
    is_over: bool = False

    def play(self) -> None:
        """Run everything, until a run is interrupted or too many had not the expected outcome."""
        self.write()
        reused = self._reused_runs()
        for message in self.budget.too_long() if self.budget else ():
            self.resources.show_message(message)
        with self.pool:
            for number, planned in self._planned_runs():
                self.pool.next_topology = self._topology_after(number, reused)
                completed = self._attempts(number, planned, reused.get(number))
                self.ended_runs += 1
                self.write()
                self._show_end(number, completed)
                if completed.run.ended == "interrupted":
                    self.end("interrupted", completed.run.why)
                elif self.failures == self.resources.max_failures:
                    self.end("completed", f"stopped after {self.failures} runs not as expected")
                elif self.budget is not None and self.failed_in_a_row >= MOST_FAILED_IN_A_ROW:
                    self.end("failed_to_run", f"{self.failed_in_a_row} runs in a row failed to run")
                if self.is_over:
                    return
        self.end("completed", "")

    def _planned_runs(self) -> Iterator[tuple[int, PlannedRun]]:
        """The runs of the plan, which a budget extends while time is left."""
        number = 0
        while True:
            while number < len(self.plan.runs):
                yield number, self.plan.runs[number]
                number += 1
            longer = self.budget.extended(self.plan, self.elapsed_s) if self.budget else None
            if longer is None:
                return
            self.plan = longer

    def end(self, ended: Ended, reason: str) -> None:
        self.ended, self.reason, self.is_over = ended, reason, True

    def results(self) -> SuiteResults:
        """The results of the suite so far."""
        suite = self.plan.suite
        return SuiteResults(
            suite_id=self.folder.path.name.removeprefix("suite-"),
            suite=suite.name,
            description=suite.description,
            seed=self.plan.seed,
            ended=self.ended,
            reason=self.reason,
            rows=self._rows(),
            deployments=self.pool.deployments,
            elapsed_s=self.elapsed_s,
            again=self.resources.again,
            reused=tuple(self.reused),
            budget_s=self.resources.budget_s,
            warnings=(
                *self.earlier.warnings,
                *(self.budget.too_long() if self.budget else ()),
                *self.pool.warnings,
            ),
        )

    def write(self) -> None:
        """Write suite.json. Before the end its state is `interrupted`, which is true if the process
        ends before the next write."""
        self.folder.write_results(self.results() if self.is_over else self._unfinished())

    def finish(self) -> SuiteResults:
        """Write the table, the page and JUnit; a page that fails is a warning."""
        runs = [
            (results, RunFolder(self.resources.out / results.run_id)) for results in self.judged
        ]
        compared = self.earlier.compare(self.results(), [each.run_id for each in self.judged])
        warnings = write_reports(
            {
                "junit.xml": lambda: write_suite_junit(runs, self.folder.junit, compared),
                "suite.html": lambda: render_suite(compared, self.folder),
                "suite.md": lambda: write_markdown(compared, self.folder),
            }
        )
        results = replace(compared, warnings=(*compared.warnings, *warnings))
        self.folder.write_results(results)
        return results

    def _reused_runs(self) -> Mapping[int, CompletedRun]:
        """Number of a run -> the recorded run that replaces it, if one does."""
        if self.recorded is None:
            return {}
        reused = {}
        for run in self.recorded.changed:
            message = f"{run} changed since it was judged and does not count; to judge it again"
            self.resources.show_message(f"{message}: streamquake check {self.resources.out / run}")
        if self.recorded.too_old:
            count = self.recorded.too_old
            self.resources.show_message(f"{count} recorded runs are too old and do not count")
        for number, planned in enumerate(self.plan.runs):
            recorded = self.recorded.take(planned.experiment)
            if recorded is None or (results := self._judged_today(recorded)) is None:
                continue
            self.resources.show_message(
                f"{planned.experiment.name} is recorded as {results.run_id}"
            )
            reused[number] = self._completed(planned, RunAttempt(results=results))
            self.reused.append(results.run_id)
        return reused

    def _judged_today(self, recorded: RecordedRun) -> Results | None:
        """The results of a recorded run by the judge of today; None where it cannot be judged
        again, and has to be repeated."""
        if recorded.is_judged_today:
            return recorded.results
        show_message, run = self.resources.show_message, recorded.folder.run_id
        show_message(f"judging {run} again: another version judged it")
        try:
            results = judge_again(recorded.folder, self.resources.spark.get, show_message)
        except StreamquakeError as error:
            show_message(f"{run} cannot be judged again and is repeated: {error}")
            return None
        return save(results, recorded.folder)

    def _topology_after(self, number: int, reused: Mapping[int, CompletedRun]) -> Topology | None:
        """The topology of the next run that is not reused; None after the last one. A budget
        adds the next run later, on the same topology if it can."""
        if self.budget is not None and number + 1 == len(self.plan.runs):
            return self.plan.runs[number].experiment.topology
        later = enumerate(self.plan.runs[number + 1 :], number + 1)
        return next((p.experiment.topology for n, p in later if n not in reused), None)

    def _attempts(
        self, number: int, planned: PlannedRun, reused: CompletedRun | None
    ) -> CompletedRun:
        """The last attempt of a run. An undecided run is tried again with the same seed."""
        completed = reused or self._run(number, planned)
        self._add(planned, completed)
        for attempt in range(2, self.resources.attempts + 1):
            run = completed.run
            if run.ended == "interrupted" or run.met != Outcome.UNDECIDED:
                break
            if self.budget is not None and not self.budget.has_time_for(planned, self.elapsed_s):
                break
            self.write()
            self.resources.show_message(f"    {run.why}; trying again, attempt {attempt}")
            completed = self._run(number, planned)
            completed = replace(completed, run=replace(completed.run, attempt=attempt))
            self._add(planned, completed)
        self.failures += completed.run.is_unexpected and self._counts(planned)
        return completed

    def _counts(self, planned: PlannedRun) -> bool:
        """Whether a row of the run is not quarantined."""
        rows = self.plan.suite.rows
        return any(rows[part.row].source.quarantined is None for part in planned.parts)

    def _add(self, planned: PlannedRun, completed: CompletedRun) -> None:
        for part in planned.parts:
            run = replace(completed.run, role=part.role)
            self.completed.setdefault(part.row, []).append(replace(completed, run=run))

    def _run(self, number: int, planned: PlannedRun) -> CompletedRun:
        self._show_start(number, planned)
        try:
            attempt = self.resources.run(planned.experiment, self.pool)
        finally:
            seconds = self.resources.clock.now_ns() / 1e9
            self.elapsed_s += seconds
        completed = self._completed(planned, attempt)
        name, run = planned.experiment.name, completed.run
        if run.ended == "completed":
            self.durations.known[name].append(seconds)
        if self.budget is not None:
            self.budget.knowledge.add(name, as_expected=run.as_expected)
        self.failed_in_a_row = self.failed_in_a_row + 1 if run.ended == "failed_to_run" else 0
        return completed

    def _completed(self, planned: PlannedRun, attempt: RunAttempt) -> CompletedRun:
        experiment, results = planned.experiment, attempt.results
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
            why=run_sentences.why_met(results) if results else attempt.error,
            cause=results.cause if results else attempt.error_kind,
        )
        return CompletedRun(run=run, results=results)

    def _rows(self) -> tuple[RowResult, ...]:
        """All rows; their relations are tested at a level that is corrected for their number."""
        numbers = range(len(self.plan.suite.rows))
        rows = [self._row(number, LEVEL) for number in numbers]
        relations = (each for row in rows if row.claim for each in row.claim.relations)
        tested = [each.p for each in relations if each.p is not None]
        if not tested:  # nothing depends on the level
            return tuple(rows)
        level = threshold(tested)
        return tuple(self._row(number, level) for number in numbers)

    def _row(self, number: int, level: float) -> RowResult:
        row, planned = self.plan.suite.rows[number], self.plan.of_row(number)
        if row.source.unavailable is not None:
            return unavailable_row(row.source, row.source.unavailable)
        experiment = self.plan.experiment_of(number)
        result = row_result(
            row,
            topology=experiment.topology.name,
            expected=experiment.expected,
            planned=len(planned),
            completed=self.completed.get(number, ()),
            level=level,
        )
        if self.budget is not None and not result.runs and self.budget.is_too_short_for(number):
            why = "not run: it takes longer than the budget"
            return replace(result, verdict=Outcome.UNDECIDED, why=why)
        return result

    def _runs_left(self) -> int:
        return len(self.plan.runs) - self.ended_runs

    def _left(self) -> str:
        """What is left to do, and how long it probably takes."""
        if self.resources.budget_s is not None:
            return f"{duration_text(self.resources.budget_s - self.elapsed_s)} of the budget left"
        if not (left := self._runs_left()):
            return "0 left"
        later = self.plan.runs[self.ended_runs :]
        seconds = self.durations.total_s(run.experiment for run in later)
        return f"{left} left, about {duration_text(seconds)}"

    def _unfinished(self) -> SuiteResults:
        message = f"{self._runs_left()} of {len(self.plan.runs)} runs had not ended"
        if self.resources.budget_s is not None:
            message = f"stopped with {self._left()}"
        return replace(self.results(), ended="interrupted", reason=message)

    def _show_start(self, number: int, planned: PlannedRun) -> None:
        parts = ", ".join(f"row {part.row + 1} {part.role}" for part in planned.parts)
        again = f", repeat {planned.repeat + 1}" if planned.repeat else ""
        name, seed = planned.experiment.name, planned.experiment.seed
        self._report(number, f"{name} ({parts}{again}, seed {seed})")

    def _show_end(self, number: int, completed: CompletedRun) -> None:
        run = completed.run
        expected = "as expected" if run.as_expected else f"expected {run.expected}"
        self._report(number, f"{run.experiment}: {run.outcome}, {expected}; {self._left()}")
        if not run.as_expected:
            self.resources.show_message(f"    {run.why}")

    def _report(self, number: int, line: str) -> None:
        of_all = "" if self.budget else f"/{len(self.plan.runs)}"
        self.resources.show_message(f"[{self.elapsed_s:6.0f} s] {number + 1}{of_all} {line}")

"""Conducting a shrink: one run after the other; after each try it is on disk how far it got.

After an interruption the current run still heals, is judged, saves its logs and removes its
cluster. A second call takes over all tries, so that it goes on at the same candidate.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from streamquake.harness.campaign.clusters.pool import ClusterPool
from streamquake.harness.campaign.shared_resources import MOST_FAILED_IN_A_ROW, SharedResources
from streamquake.harness.campaign.shrinking.candidate import Candidate
from streamquake.harness.campaign.shrinking.failing_cases import FailingCases
from streamquake.harness.campaign.shrinking.failure import Failure
from streamquake.harness.campaign.shrinking.reductions import reductions_left, smallest
from streamquake.harness.campaign.shrinking.taken_away import in_short, taken_away
from streamquake.harness.campaign.shrinking.trials import Rule, Try, TryOutcome, count, in_words
from streamquake.harness.campaign.shrinking.tries_file import TriesFile
from streamquake.harness.campaign.statistics.rates import rate_of
from streamquake.harness.campaign.suite.durations import OVERHEAD_S, duration_text
from streamquake.harness.campaign.suite.todays_key import todays_key
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.interrupts import Interrupted, interruptible
from streamquake.reports.record import atomic_files
from streamquake.reports.record.results import Ended
from streamquake.reports.record.secret_settings import hide_secrets
from streamquake.reports.render.report_files import write_reports
from streamquake.reports.shrink.shrink_html import render_shrink
from streamquake.reports.shrink.shrink_results import (
    ShrinkFolder,
    ShrinkResults,
    TriedCandidate,
    TriedRun,
)
from streamquake.topologies.errors import ErrorKind, StreamquakeError
from streamquake.topologies.problems import BadInput
from streamquake.topologies.yaml_text import yaml_text


class ShrinkStopped(StreamquakeError):
    """The shrink ends before the smallest experiment is known; the message has the reason."""

    kind = ErrorKind.UNDECIDED


@dataclass(frozen=True, kw_only=True)
class ShrinkPlan:
    """What to shrink: the experiment of a run as the first candidate, and the failure to keep."""

    run: str
    experiment: str
    start: Candidate
    failure: Failure
    rule: Rule


def conduct(
    plan: ShrinkPlan, resources: SharedResources, *, budget_s: float | None = None
) -> tuple[ShrinkResults, ShrinkFolder]:
    """Look for the smallest experiment, and write it with shrink.json and shrink.html; stop before
    a run that would probably not end within the budget. Raises BadInput for damaged files of
    earlier calls."""
    folder = ShrinkFolder.of_run(resources.out, plan.run)
    progress = ShrinkInProgress(
        plan=plan,
        resources=resources,
        folder=folder,
        pool=ClusterPool(resources.show_message),
        tries=TriesFile(folder.tries, plan.failure),
        cases=FailingCases(resources.out),
        budget_s=budget_s,
    )
    with resources, interruptible(resources.show_message):
        try:
            progress.play()
        except Interrupted as interruption:
            progress.end("interrupted", f"interrupted: {interruption}")
        except ShrinkStopped as stopped:
            progress.end(progress.ended, str(stopped))
        return progress.finish(), folder


@dataclass
class ShrinkInProgress:
    """A shrink in progress."""

    plan: ShrinkPlan
    resources: SharedResources
    folder: ShrinkFolder
    pool: ClusterPool
    tries: TriesFile
    cases: FailingCases
    budget_s: float | None = None
    """How long the runs may take, in seconds; None for no limit."""
    smallest: Candidate | None = None
    """The smallest candidate that counts so far."""
    candidates: dict[str, TriedCandidate] = field(default_factory=dict)
    """Key -> candidate, in the order of their first tries."""
    seconds: list[float] = field(default_factory=list)
    """The duration of each run of this call."""
    is_smallest: bool = False
    ended: Ended = "completed"
    reason: str = ""
    failed_in_a_row: int = 0

    def play(self) -> None:
        """Look for the smallest experiment. Raises ShrinkStopped, Interrupted."""
        with self.pool:
            if not self.counts(self.plan.start):
                raise ShrinkStopped(
                    f"the experiment of the run did not fail again in {self.plan.rule}; lower "
                    "--tries or raise --of"
                )
            known = self.cases.known(self.plan.start, self.plan.failure)
            start = next(filter(self.counts, known), self.plan.start)
            found = smallest(start, self.counts)
            self._complete(found)
            self.is_smallest = True

    def counts(self, candidate: Candidate) -> bool:
        """Whether a candidate fails as the run did, often enough; runs it until that is known."""
        try:
            experiment = candidate.experiment(str(self.folder.smallest))
        except BadInput:
            return False  # an experiment that no run would start
        key = self._key(experiment)
        text = self._text(candidate)
        while (verdict := self.plan.rule.verdict(tries := self.tries.of(key))) is None:
            self._note(key, text, tries, None)
            self._try(experiment, key, text)
        is_new = key not in self.candidates or self.candidates[key].counts is None
        self._note(key, text, tries, verdict)
        if verdict:
            self.smallest = candidate
            self._write_smallest(candidate, experiment, tries)
        if is_new:
            self.write()
            word = "counts" if verdict else "does not count"
            self._report(f"{in_words(tries)}, {word}; {self._left()}")
        return verdict

    def end(self, ended: Ended, reason: str) -> None:
        self.ended, self.reason = ended, reason

    def results(self) -> ShrinkResults:
        """The results so far."""
        plan, found = self.plan, self.smallest
        tries = () if found is None else self._tries_of(found)
        decided = [each for each in tries if each.outcome != TryOutcome.UNDECIDED]
        return ShrinkResults(
            run=plan.run,
            experiment=plan.experiment,
            seed=plan.start.document["seed"],
            check=plan.failure.check,
            found=plan.failure.found,
            rule=str(plan.rule),
            ended=self.ended,
            reason=self.reason,
            cause="" if found is not None else ErrorKind.UNDECIDED,
            is_smallest=self.is_smallest,
            taken_away=() if found is None else tuple(taken_away(plan.start, found)),
            rate=rate_of(count(tries, TryOutcome.FAILS), len(decided)) if decided else None,
            runs=_runs(tries),
            candidates=tuple(self.candidates.values()),
            deployments=self.pool.deployments,
            runs_made=len(self.seconds),
            elapsed_s=round(sum(self.seconds), 1),
            again=self.resources.again,
            warnings=tuple(self.pool.warnings),
        )

    def write(self) -> None:
        """Write what is known so far; the state is `interrupted` until the end, which is true if
        the process ends before the next write."""
        self.folder.write_results(replace(self.results(), ended="interrupted"))

    def _write_smallest(
        self, candidate: Candidate, experiment: Experiment, tries: Sequence[Try]
    ) -> None:
        """Write the document of a candidate, with the files of its load beside it."""
        load = experiment.workload.written_beside(self.folder.path)
        for place, file in load.file_places().items():
            candidate = candidate.with_value(place, file)
        text = _yaml(candidate, self.plan, in_words(tries))
        atomic_files.write_text(self.folder.smallest, text)

    def finish(self) -> ShrinkResults:
        """Write everything; a page that fails is a warning."""
        if self.smallest is not None and self.smallest != self.plan.start:
            tries = in_words(self._tries_of(self.smallest))
            self.cases.keep(self.folder.path.name, self.smallest, self.plan.failure, tries)
        results = self.results()
        warnings = write_reports({"shrink.html": lambda: render_shrink(results, self.folder)})
        results = replace(results, warnings=(*results.warnings, *warnings))
        self.folder.write_results(results)
        return results

    def _complete(self, candidate: Candidate) -> None:
        """Repeat the smallest experiment until all its tries are made: a share of tries that end
        with the last needed failure would be too large."""
        experiment = candidate.experiment(str(self.folder.smallest))
        key, rule = self._key(experiment), self.plan.rule
        while len(tries := self.tries.of(key)) < rule.tries:
            self._try(experiment, key, "the smallest experiment")
        self._note(key, self.candidates[key].text, tries, True)
        self._write_smallest(candidate, experiment, tries)

    def _try(self, experiment: Experiment, key: str, text: str) -> None:
        """One run of a candidate. Raises ShrinkStopped, Interrupted."""
        self._spend()
        number = len(self.tries.of(key)) + 1
        self._report(f"try {number}: {text}")
        self.pool.next_topology = experiment.topology
        attempt = self.resources.run(experiment, self.pool)
        self.seconds.append(self.resources.clock.now_ns() / 1e9)
        results = attempt.results
        if results is None:
            made = Try(run=None, outcome=TryOutcome.UNDECIDED, why=attempt.error)
        else:
            made = self.plan.failure.try_of(results)
            if results.ended == "interrupted":
                raise Interrupted(results.reason)
        self.tries.add(key, made)
        self.resources.show_message(f"    {made.outcome}: {made.why} ({made.run or 'no record'})")
        failed = results is None or results.ended == "failed_to_run"
        self.failed_in_a_row = self.failed_in_a_row + 1 if failed else 0
        if self.failed_in_a_row >= MOST_FAILED_IN_A_ROW:
            self.ended = "failed_to_run"
            raise ShrinkStopped(f"{self.failed_in_a_row} runs in a row failed to run: {made.why}")

    def _spend(self) -> None:
        """Raises ShrinkStopped if another run would probably not end within the budget."""
        if self.budget_s is not None and sum(self.seconds) + self._run_s() > self.budget_s:
            raise ShrinkStopped(f"the time of {duration_text(self.budget_s)} is used")

    def _run_s(self) -> float:
        """How long a run probably takes, in seconds."""
        return statistics.median(self.seconds or [OVERHEAD_S])

    def _left(self) -> str:
        """How much is left to try if nothing more can be taken away, and how long that takes."""
        if self.smallest is None:
            return "nothing can be taken away"
        left = reductions_left(self.smallest)
        seconds = left * self.plan.rule.fewest * self._run_s()
        return f"at most about {left} candidates left, {duration_text(seconds)}"

    def _key(self, experiment: Experiment) -> str:
        """Equal for equal experiments with equal seeds on equal software."""
        return f"{todays_key(experiment, self.resources.runtime.images())}-{experiment.seed}"

    def _tries_of(self, candidate: Candidate) -> Sequence[Try]:
        return self.tries.of(self._key(candidate.experiment(str(self.folder.smallest))))

    def _text(self, candidate: Candidate) -> str:
        """A candidate by what it has less than the smallest so far."""
        before = self.smallest or self.plan.start
        return in_short(before, candidate) or "the experiment of the run"

    def _note(self, key: str, text: str, tries: Sequence[Try], counts: bool | None) -> None:
        known = self.candidates.get(key)
        self.candidates[key] = TriedCandidate(
            text=known.text if known else text,
            tries=in_words(tries),
            counts=counts,
            runs=_runs(tries),
        )

    def _report(self, line: str) -> None:
        number = len(self.candidates)
        self.resources.show_message(f"[{sum(self.seconds):6.0f} s] candidate {number}, {line}")


def _runs(tries: Sequence[Try]) -> tuple[TriedRun, ...]:
    return tuple(TriedRun(run=t.run, outcome=str(t.outcome), why=t.why) for t in tries)


def _yaml(candidate: Candidate, plan: ShrinkPlan, tries: str) -> str:
    """The experiment of a candidate as a document, without its secrets."""
    head = (
        f"# Written by `streamquake shrink` from the run {plan.run} of {plan.experiment}.\n"
        f"# {plan.failure}: it {tries} tries.\n"
    )
    return head + yaml_text(hide_secrets(candidate.document))

"""Exploring: one trial after the other, each drawn by what the earlier ones showed.

The trials are runs on one cluster where its state is proven clean after each of them. An
interrupted exploration is continued by the same experiment and seed in the same folder.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from streamquake.harness.campaign.exploration.behaviour import behaviour_of
from streamquake.harness.campaign.exploration.guidance import Guidance
from streamquake.harness.campaign.exploration.trial_cells import (
    effective,
    injections,
    planned_cells,
    tried_cells,
)
from streamquake.harness.campaign.exploration.trial_drawing import TrialSpace
from streamquake.harness.campaign.exploration.trial_log import LoggedTrial, LogHead, TrialLog
from streamquake.harness.campaign.shared_resources import MOST_FAILED_IN_A_ROW, RunAttempt
from streamquake.harness.campaign.suite.durations import duration_text
from streamquake.harness.coverage.recorded_coverage import read_hits
from streamquake.harness.experiment.loader import experiment_document
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.verdict.recorded_run import recorded_experiment
from streamquake.reports.coverage.hit import Hit
from streamquake.reports.record.outcome import Outcome
from streamquake.reports.record.run_folder import RunFolder
from streamquake.reports.render import run_sentences
from streamquake.topologies.errors import StreamquakeError
from streamquake.topologies.limits import SEED_LIMIT

SHOWN = 3
"""How many kinds of new behaviour of a trial are shown; all of them are in its file."""


class RunsTrials(Protocol):
    """Runs one trial; an error of its run is in the attempt."""

    def __call__(self, trial: Experiment) -> RunAttempt: ...


@dataclass(frozen=True, kw_only=True)
class ExplorationLimits:
    """When an exploration ends."""

    trials: int | None = None
    """The number of trials in all, with those of earlier calls; None for no limit."""
    seconds: float | None = None
    """No further trial begins after this time; None for no limit."""
    repeats: int = 3
    """How often a violated trial is repeated."""
    keeps_going: bool = False
    """Whether it goes on after a violated trial."""


@dataclass
class Exploration:
    """An exploration in progress."""

    space: TrialSpace
    seed: int
    out: Path
    limits: ExplorationLimits
    run: RunsTrials
    elapsed_s: Callable[[], float]
    """The duration of the run that just ended, in seconds."""
    show_message: Callable[[str], None]
    guidance: Guidance
    spent_s: float = 0.0
    failed_in_a_row: int = 0
    ended: str = ""
    """Why it ended; empty before that."""
    is_interrupted: bool = False
    """Whether the user ended it."""
    log: TrialLog = field(init=False)

    def __post_init__(self) -> None:
        base = self.space.base
        # Its own seed is drawn at each call, and each trial gets one of its own.
        document = {**experiment_document(base), "seed": None}
        digest = hashlib.sha256(
            json.dumps(document, sort_keys=True, default=str).encode()
        ).hexdigest()
        path = self.out / f"exploration-{base.name}-{self.seed}" / "trials.jsonl"
        head = LogHead(experiment=base.name, seed=self.seed, digest=digest)
        self.log = TrialLog(path, head)
        self._remember()

    def explore(self) -> None:
        """Run trials until a limit is reached, or a trial was violated and repeated."""
        if self.log.trials:
            self.show_message(f"going on after {len(self.log.first_runs)} trials: {self.log.path}")
        self._repeat_unfinished()
        while not self.ended and (reason := self._limit()) is None:
            logged = self._first_run(len(self.log.first_runs) + 1)
            if logged.is_violated and not self.ended:
                self._repeat(logged)
        self.ended = self.ended or reason or ""

    def interrupt(self) -> None:
        """End it at the user's request; the same command goes on."""
        self.is_interrupted, self.ended = True, "interrupted"

    def trial(self, number: int) -> Experiment:
        """The trial of this number, drawn by what is known now."""
        rng = random.Random(f"{self.seed}:{number}")
        drawn = self.guidance.next_trial(rng)
        name = f"{self.space.base.name}-{self.seed}-{number}"
        return drawn.model_copy(update={"name": name, "seed": rng.randrange(SEED_LIMIT)})

    def _remember(self) -> None:
        """Learn what earlier calls tried and saw. The trials that showed something new are read
        from their records; one whose record is gone is not changed any more."""
        for logged in self.log.first_runs:
            self.guidance.count((*logged.cells, *logged.in_vain), logged.cells)
            self.guidance.count_injections(logged.injected, logged.effective)
            self.guidance.seen.update(logged.new)
            if logged.new and (trial := self._recorded(logged)) is not None:
                self.guidance.interesting.append(trial)

    def _recorded(self, logged: LoggedTrial) -> Experiment | None:
        if logged.run is None:
            return None
        try:
            folder = RunFolder(self.out / logged.run)
            return self.space.taken_over(recorded_experiment(folder))
        except StreamquakeError as error:
            self.show_message(f"trial {logged.trial} cannot be read and is left out: {error}")
            return None

    def _limit(self) -> str | None:
        """Why no further trial begins; None where one does."""
        limits = self.limits
        if limits.trials is not None and len(self.log.first_runs) >= limits.trials:
            return f"{limits.trials} trials were run"
        if limits.seconds is not None and self.spent_s >= limits.seconds:
            return f"the time is used: {duration_text(limits.seconds)}"
        if self.failed_in_a_row >= MOST_FAILED_IN_A_ROW:
            return f"{self.failed_in_a_row} trials in a row failed to run"
        return None

    @property
    def confirmed(self) -> LoggedTrial | None:
        """The last violated trial of which a repeat was violated too."""
        for trial in reversed(self.log.first_runs):
            if trial.is_violated and any(r.is_violated for r in self.log.repeats_of(trial.trial)):
                return trial
        return None

    @property
    def verdict(self) -> Outcome:
        """Violated where a trial was, undecided where none was held."""
        outcomes = {Outcome.parse(trial.outcome) for trial in self.log.trials}
        if Outcome.VIOLATED in outcomes:
            return Outcome.VIOLATED
        return Outcome.HELD if Outcome.HELD in outcomes else Outcome.UNDECIDED

    def _first_run(self, number: int) -> LoggedTrial:
        trial = self.trial(number)
        schedule = "; ".join(f"{step.fault} on {step.target} {step.when}" for step in trial.faults)
        self.show_message(f"[{self._time()}] trial {number}: {schedule}")
        logged = self._run(trial, number)
        for new in logged.new[:SHOWN]:
            self.show_message(f"    new: {new}")
        if (more := len(logged.new) - SHOWN) > 0:
            self.show_message(f"    and {more} more kinds of new behaviour")
        return logged

    def _repeat_unfinished(self) -> None:
        """Finish the repeats that an interruption cut off."""
        violated = [trial for trial in self.log.first_runs if trial.is_violated]
        if violated and len(self.log.repeats_of(violated[-1].trial)) < self.limits.repeats:
            self._repeat(violated[-1])
        elif violated and not self.limits.keeps_going:
            self.ended = self._confirmation(violated[-1])

    def _repeat(self, violated: LoggedTrial) -> None:
        """Repeat a violated trial, to tell a frequent failure from a rare one."""
        trial = self._recorded(violated)
        done = len(self.log.repeats_of(violated.trial))
        for repeat in range(done + 1, self.limits.repeats + 1 if trial is not None else 0):
            assert trial is not None
            self.show_message(f"[{self._time()}] trial {violated.trial}, repeat {repeat}")
            self._run(trial, violated.trial, repeat)
            if self.ended:
                return
        confirmation = self._confirmation(violated)
        self.show_message(confirmation)
        if not self.limits.keeps_going:
            self.ended = confirmation

    def _confirmation(self, violated: LoggedTrial) -> str:
        runs = [violated, *self.log.repeats_of(violated.trial)]
        count = sum(run.is_violated for run in runs)
        return f"trial {violated.trial} was violated in {count} of {len(runs)} runs"

    def _run(self, trial: Experiment, number: int, repeat: int = 0) -> LoggedTrial:
        attempt = self.run(trial)
        seconds = self.elapsed_s()
        self.spent_s += seconds
        logged = self._logged(trial, attempt, number, repeat, seconds)
        if logged.ended == "interrupted":
            self.interrupt()
            return logged
        self.failed_in_a_row = self.failed_in_a_row + 1 if logged.ended == "failed_to_run" else 0
        self.log.add(logged)
        self.show_message(f"    {logged.outcome}: {logged.why}")
        return logged

    def _logged(
        self, trial: Experiment, attempt: RunAttempt, number: int, repeat: int, seconds: float
    ) -> LoggedTrial:
        results = attempt.results
        if results is None:
            return LoggedTrial(
                trial=number,
                repeat=repeat,
                run=None,
                outcome="undecided",
                ended="failed_to_run",
                why=attempt.error,
                seconds=seconds,
            )
        planned = planned_cells(trial).all
        injected, acted = injections(trial), effective(trial, results.faults)
        cells = tried_cells(trial, results.faults, self._hits(results.run_id)).all
        new: Sequence[str] = ()
        if results.ended != "interrupted" and not repeat:
            behaviour = behaviour_of(RunFolder(self.out / results.run_id), results)
            new = self.guidance.learn(trial, behaviour)
            self.guidance.count(planned, cells)
            self.guidance.count_injections(injected, acted)
        return LoggedTrial(
            trial=number,
            repeat=repeat,
            run=results.run_id,
            outcome=str(results.outcome),
            ended=results.ended,
            why=run_sentences.why(results),
            seconds=seconds,
            cells=tuple(sorted(cells)),
            in_vain=tuple(sorted(planned - cells)),
            injected=injected,
            effective=acted,
            new=tuple(new),
        )

    def _hits(self, run_id: str) -> Sequence[Hit]:
        """What the record of a run proves that its faults hit; nothing where it is damaged."""
        try:
            return read_hits(RunFolder(self.out / run_id))[1]
        except StreamquakeError as error:
            self.show_message(f"    its coverage is not known: {error}")
            return ()

    def _time(self) -> str:
        spent = duration_text(self.spent_s)
        if self.limits.seconds is None:
            return spent
        return f"{spent} of {duration_text(self.limits.seconds)}"

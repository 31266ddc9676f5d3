"""Drawing the trials of an exploration: schedules of faults, and settings of the job."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from streamquake.cluster.engines.engine import JobVariations, VariesJobs, job_runner
from streamquake.faults.fault import Fault, faults
from streamquake.faults.schedule.candidates import FaultCandidate
from streamquake.faults.schedule.drawn_parameters import draw_parameters
from streamquake.faults.schedule.profiles import PROFILES
from streamquake.faults.schedule.random_schedule import ScheduledCandidate, may_overlap
from streamquake.faults.schedule.step import Step, TriggerSpec
from streamquake.harness.experiment.loader import experiment_document, experiment_of_plan
from streamquake.harness.experiment.model import Experiment, Job
from streamquake.harness.experiment.schedule_drawing import BEFORE_THE_END_S, candidates_for
from streamquake.harness.experiment.validation import broken_rules, job_workers
from streamquake.reports.record.event import Action
from streamquake.topologies.problems import bad_input

PROFILE = PROFILES["swarm"]
STEPS = (1, 1, 2, 2, 3)
"""Numbers of steps, each as likely as the others."""
FOR_S = (2.0, 8.0)
MOST_NTH = 4
WINDOW_TRIES = 5
OPTION_SHARE = 0.25
"""The share of a job's options that a trial sets."""
MOST_SUBTASKS = 4
TRIES = 40
"""How often a valid part is drawn before the trial is left as it is."""
NOTHING_VARIES = JobVariations(options={}, windows=(), reactions=())


@dataclass(frozen=True)
class TrialSpace:
    """The trials that are possible with an experiment: its job, load and checks stay."""

    base: Experiment

    @classmethod
    def of(cls, experiment: Experiment) -> TrialSpace:
        """The space of an experiment, whose own schedule does not count. Raises BadInput where its
        load is too short for a fault, no fault fits, or a check is about one of its faults."""
        # A trigger that does not fire must not make a trial several times longer than its load.
        trigger_s = min(experiment.limits.trigger_s, experiment.workload.seconds)
        limits = experiment.limits.model_copy(update={"trigger_s": trigger_s})
        base = experiment.model_copy(update={"faults": (), "expect": "held", "limits": limits})
        experiment_of_plan(
            experiment_document(base), f"{base.name} without its own faults", base.seed
        )
        space = cls(base)
        if space.within_s < FOR_S[1]:
            raise bad_input(
                base.name,
                f"expected a load of at least {FOR_S[1] + BEFORE_THE_END_S:g} s, so that a fault "
                f"can be injected and verified under it, got {base.workload.seconds:.0f} s: send "
                "more records, or more slowly",
            )
        if not space.candidates:
            raise bad_input(base.name, f"no fault makes sense on {base.topology.name}")
        return space

    @cached_property
    def candidates(self) -> dict[str, list[FaultCandidate]]:
        """Fault -> its candidates, one for each target."""
        found: dict[str, list[FaultCandidate]] = {}
        for candidate in candidates_for(self.base):
            found.setdefault(candidate.fault, []).append(candidate)
        return found

    @cached_property
    def variations(self) -> JobVariations:
        runner = job_runner(self.base.topology)
        job = self.base.job
        if job is None or runner is None or not isinstance(runner[1], VariesJobs):
            return NOTHING_VARIES
        variations = runner[1].variations()
        if job.sink == "exactly-once":
            return variations
        windows = tuple(w for w in variations.windows if Action.SINK_COMMITTED not in w)
        return replace(variations, windows=windows)

    @property
    def within_s(self) -> float:
        """Every fault begins and ends within so many seconds from steady state."""
        return min(
            self.base.workload.seconds - BEFORE_THE_END_S,
            self.base.limits.trigger_s,
            PROFILE.within_s,
        )

    def draw(self, rng: random.Random, steps: int) -> Experiment:
        """A trial with new settings and a new schedule of so many steps, or fewer if they do not
        fit."""
        trial = self._with_settings(rng)
        for _ in range(steps):
            trial = self._with_one_more_step(trial, rng)
        return trial

    def changed(self, trial: Experiment, rng: random.Random) -> Experiment:
        """The trial with one thing changed: its settings, or one step of its schedule."""
        changes: list[Callable[[], Experiment]] = [
            lambda: self._with_settings(rng).model_copy(update={"faults": trial.faults}),
            lambda: self._with_one_more_step(trial, rng),
            lambda: self._with_another_step(trial, rng),
            lambda: self._without_a_step(trial, rng),
        ]
        for _ in range(TRIES):
            changed = rng.choice(changes)()
            if changed.faults and changed != trial and not broken_rules(changed):
                return changed
        return self.draw(rng, len(trial.faults))

    def taken_over(self, recorded: Experiment) -> Experiment:
        """The trial of a record, which another person may have written: only what is drawn is taken
        over from it, so the job, the images and the checks are those of the base. Raises BadInput
        for a trial that cannot be drawn here."""
        update = {"name": recorded.name, "seed": recorded.seed, "faults": recorded.faults}
        trial = self.base.model_copy(update=update)
        if self.base.job is not None and recorded.job is not None:
            options = {
                option: value
                for option, value in recorded.job.config.items()
                if value in self.variations.options.get(option, ())
            }
            job = self._with_options(self.base.job, options, recorded.job.parallelism)
            trial = trial.model_copy(update={"job": job})
        if not all(map(self._may_draw, trial.faults)) or broken_rules(trial):
            raise bad_input(recorded.name, f"it is no trial of {self.base.name}")
        return trial

    def _may_draw(self, step: Step) -> bool:
        return any(step.target == each.target for each in self.candidates.get(step.fault, ()))

    def _with_settings(self, rng: random.Random) -> Experiment:
        job = self.base.job
        if job is None or job.existing is not None:
            return self.base
        for _ in range(TRIES):
            trial = self.base.model_copy(update={"job": self._varied(job, rng)})
            if not broken_rules(trial):
                return trial
        return self.base

    def _varied(self, job: Job, rng: random.Random) -> Job:
        options = {
            option: rng.choice(values)
            for option, values in self.variations.options.items()
            if rng.random() < OPTION_SHARE
        }
        # With fewer subtasks than workers some would have none, and most faults on those no effect.
        workers = sum(group.count for group in job_workers(self.base).values())
        fewest = min(workers, job.parallelism)
        parallelism = rng.randint(fewest, max(job.parallelism, MOST_SUBTASKS))
        return self._with_options(job, options, parallelism)

    @staticmethod
    def _with_options(job: Job, options: Mapping[str, Any], parallelism: int) -> Job:
        config = {**job.config, **options}
        return job.model_copy(update={"config": config, "parallelism": parallelism})

    def _with_one_more_step(self, trial: Experiment, rng: random.Random) -> Experiment:
        return self._with_step(trial, len(trial.faults), rng)

    def _with_another_step(self, trial: Experiment, rng: random.Random) -> Experiment:
        return self._with_step(trial, rng.randrange(len(trial.faults)), rng)

    def _without_a_step(self, trial: Experiment, rng: random.Random) -> Experiment:
        number = rng.randrange(len(trial.faults))
        return _with_faults(trial, (*trial.faults[:number], *trial.faults[number + 1 :]))

    def _with_step(self, trial: Experiment, number: int, rng: random.Random) -> Experiment:
        """The trial with a drawn step at a place of its schedule, which is the first one that obeys
        the rules; the trial itself where none does."""
        for _ in range(TRIES):
            step = self._step(trial.faults[:number], rng)
            changed = _with_faults(
                trial, (*trial.faults[:number], step, *trial.faults[number + 1 :])
            )
            if self._overlaps_well(changed.faults) and not broken_rules(changed):
                return changed
        return trial

    def _step(self, earlier: Sequence[Step], rng: random.Random) -> Step:
        fault = rng.choice(sorted(self.candidates))
        candidate = rng.choice(self.candidates[fault])
        for_s = round(rng.uniform(*FOR_S), 1)
        return Step(
            fault=fault,
            params=draw_parameters(faults[fault], rng),
            target=candidate.target,
            when=self._moment(earlier, for_s, rng),
            for_s=for_s,
        )

    def _moment(self, earlier: Sequence[Step], for_s: float, rng: random.Random) -> TriggerSpec:
        """A phase of the protocol, a time, or for a later step the effect of an earlier one; after
        one that ends tasks also an event of the recovery."""
        kinds = ["time", *(["window", "window"] if self.variations.windows else [])]
        kinds += ["effect"] if earlier else []
        if self.variations.reactions and any(_ends_tasks(faults[step.fault]) for step in earlier):
            kinds.append("reaction")
        match rng.choice(kinds):
            case "window":
                return TriggerSpec(
                    between=rng.choice(self.variations.windows),
                    nth=rng.randint(1, MOST_NTH),
                    tries=WINDOW_TRIES,
                )
            case "effect":
                return TriggerSpec(
                    effect_of=rng.randint(1, len(earlier)), delay_s=round(rng.uniform(0, 2), 2)
                )
            case "reaction":
                return TriggerSpec(
                    event=rng.choice(self.variations.reactions),
                    delay_s=round(rng.choice((0, rng.uniform(0, 1))), 2),
                )
            case _:
                return TriggerSpec(after_s=round(rng.uniform(0, self.within_s - for_s), 1))

    def _overlaps_well(self, steps: Sequence[Step]) -> bool:
        return may_overlap([self._scheduled(step) for step in steps], PROFILE)

    def _scheduled(self, step: Step) -> ScheduledCandidate:
        candidate = next(c for c in self.candidates[step.fault] if c.target == step.target)
        return ScheduledCandidate(candidate=candidate, when=step.when, for_s=step.for_s or 0.0)


def _with_faults(trial: Experiment, steps: Sequence[Step]) -> Experiment:
    return trial.model_copy(update={"faults": tuple(steps)})


def _ends_tasks(fault: type[Fault]) -> bool:
    return fault.ends_process or fault.ends_sandbox or fault.fails_tasks

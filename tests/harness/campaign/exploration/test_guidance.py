"""Guidance prefers what was not tried, and changes trials that showed something new."""

from __future__ import annotations

import random
from dataclasses import replace

from streamquake.faults.schedule.step import Step, TriggerSpec
from streamquake.harness.campaign.exploration.guidance import Guidance
from streamquake.harness.campaign.exploration.trial_cells import Cells, planned_cells, tried_cells
from streamquake.harness.experiment.model import Experiment
from streamquake.reports.record.results import FaultRecord
from tests.harness.campaign.exploration.trial_runs import BASE, SPACE

KILL = Step(
    fault="kill",
    target="flink/taskmanager-1",
    when=TriggerSpec(between=("checkpoint triggered", "checkpoint completed"), nth=3),
    for_s=3,
)
SLOW = Step(
    fault="slow_link", target="link sink", when=TriggerSpec(effect_of=1, delay_s=0.5), for_s=3
)
RECORD = FaultRecord(fault="kill", target="x", nodes=(), injected_s=2.0, in_effect=True)


def trial(*steps: Step, **config: str) -> Experiment:
    assert BASE.job is not None
    job = BASE.job.model_copy(update={"config": config, "parallelism": 2})
    return BASE.model_copy(update={"job": job, "faults": steps})


def test_the_cells_are_faults_with_moments_places_settings_and_each_other() -> None:
    assert planned_cells(trial(KILL, SLOW, backend="rocksdb")).all == {
        "kill between checkpoint triggered and checkpoint completed",
        "kill between checkpoint triggered and checkpoint completed on flink/taskmanager",
        "slow_link in effect of kill",
        "slow_link in effect of kill on link sink",
        "kill with backend=rocksdb",
        "kill with parallelism=2",
        "slow_link with backend=rocksdb",
        "slow_link with parallelism=2",
        "kill and slow_link",
    }


def test_only_a_step_that_took_effect_in_its_window_has_tried_something() -> None:
    both = trial(KILL, SLOW)
    only_kill = {
        "kill between checkpoint triggered and checkpoint completed",
        "kill between checkpoint triggered and checkpoint completed on flink/taskmanager",
        "kill with parallelism=2",
    }
    failed = replace(RECORD, in_effect=False)
    missed = replace(RECORD, missed_window=True)
    assert tried_cells(both, (RECORD, RECORD)) == planned_cells(both)
    assert tried_cells(both, (RECORD, failed)).all == only_kill
    assert tried_cells(both, (RECORD, missed)).all == only_kill
    assert tried_cells(both, (RECORD,)).all == only_kill
    assert not tried_cells(both, ()).all


def test_times_are_alike_and_places_are_roles() -> None:
    early, late = (
        trial(Step(fault="kill", target=f"flink/taskmanager-{n}", when=TriggerSpec(after_s=n)))
        for n in (1, 2)
    )
    assert planned_cells(early) == planned_cells(late)


def test_novelty_falls_with_each_trial_of_the_same_cells() -> None:
    guidance = Guidance(SPACE)
    cells = planned_cells(trial(KILL))
    assert guidance.novelty(cells) == 3, "its moment, its place and its setting"
    guidance.count(cells.all, cells.all)
    assert guidance.novelty(cells) == 1.5
    guidance.count(cells.all, cells.all)
    assert guidance.novelty(cells) == 1
    assert guidance.novelty(Cells()) == 0


def test_what_was_planned_in_vain_is_half_as_new() -> None:
    guidance = Guidance(SPACE)
    cells = planned_cells(trial(KILL))
    guidance.count(cells.all, ())
    guidance.count(cells.all, ())
    assert guidance.novelty(cells) == 1.5


def test_more_settings_make_a_trial_not_newer() -> None:
    few, many = (planned_cells(trial(KILL, **config)) for config in ({}, {"a": "1", "b": "2"}))
    assert Guidance(SPACE).novelty(few) == Guidance(SPACE).novelty(many)


def test_a_trial_is_interesting_only_when_it_showed_something_new() -> None:
    guidance = Guidance(SPACE)
    assert guidance.learn(trial(KILL), ("b", "a")) == ("a", "b")
    assert guidance.learn(trial(SLOW), ("b",)) == ()
    assert guidance.interesting == [trial(KILL)]


def test_guided_trials_try_more_cells_than_random_ones() -> None:
    def distinct(*, is_guided: bool, seed: int) -> int:
        guidance = Guidance(SPACE, is_guided=is_guided)
        for number in range(40):
            next_trial = guidance.next_trial(random.Random(f"{seed}:{number}"))
            cells = planned_cells(next_trial).all
            guidance.count(cells, cells)
        return len(guidance.tried)

    for seed in range(3):
        guided, unguided = (distinct(is_guided=is_guided, seed=seed) for is_guided in (True, False))
        assert guided > unguided


def test_interesting_trials_are_changed() -> None:
    guidance = Guidance(SPACE)
    guidance.interesting.append(trial(KILL))
    guidance.tried.update(dict.fromkeys(planned_cells(trial(KILL)).all, 9))
    trials = [guidance._draw(random.Random(seed), 2) for seed in range(60)]
    related = [t for t in trials if any(step == KILL for step in t.faults)]
    assert 5 < len(related) < 40

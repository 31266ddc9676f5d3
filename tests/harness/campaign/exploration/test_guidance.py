"""Guidance prefers what was not tried, and changes trials that showed something new."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from streamquake.faults.schedule.step import Step, TriggerSpec
from streamquake.harness.campaign.exploration.guidance import Guidance
from streamquake.harness.campaign.exploration.trial_cells import (
    Cells,
    effective,
    injections,
    planned_cells,
    tried_cells,
)
from streamquake.harness.experiment.model import Experiment
from streamquake.reports.coverage.cell import CheckpointKind, CoverageCell, Phase, Place
from streamquake.reports.coverage.hit import CoveredRun, Hit
from streamquake.reports.record.results import FaultRecord
from tests.harness.campaign.exploration.trial_runs import BASE, SPACE
from tests.tiers import others_nightly

pytestmark = pytest.mark.slow

KILL = Step(
    fault="kill",
    target="flink/taskmanager-1",
    when=TriggerSpec(between=("checkpoint triggered", "checkpoint acknowledged"), nth=3),
    for_s=3,
)
SLOW = Step(
    fault="slow_link", target="link sink", when=TriggerSpec(effect_of=1, delay_s=0.5), for_s=3
)
RUN = CoveredRun(run_id="r", experiment="e", folder=Path("r"), outcome="held", as_expected=1)
RECORD = FaultRecord(fault="kill", target="x", nodes=(), injected_s=2.0, in_effect=True)


def trial(*steps: Step, **config: str) -> Experiment:
    assert BASE.job is not None
    job = BASE.job.model_copy(update={"config": config, "parallelism": 2})
    return BASE.model_copy(update={"job": job, "faults": steps})


def hit(phase: Phase, place: Place, *, verified: bool = True) -> Hit:
    cell = CoverageCell(fault="kill", phase=phase, place=place, kind=CheckpointKind.ALIGNED)
    return Hit(cell=cell, run=RUN, step=0, at_s=1.0, verified=verified, how="by rule")


def test_the_cells_are_faults_with_moments_places_settings_and_each_other() -> None:
    cells = planned_cells(trial(KILL, SLOW, backend="rocksdb"))
    assert cells.moments == {
        "kill in barrier to acknowledgement",
        "slow_link in effect of kill",
    }
    assert cells.places == {
        "kill in barrier to acknowledgement at source",
        "kill in barrier to acknowledgement at stateful operator",
        "kill in barrier to acknowledgement at sink",
        "slow_link in effect of kill at sink",
    }
    assert cells.settings == {
        "kill with backend=rocksdb",
        "kill with parallelism=2",
        "slow_link with backend=rocksdb",
        "slow_link with parallelism=2",
    }
    assert cells.pairs == {"kill and slow_link"}


def test_a_window_that_is_no_phase_keeps_its_events() -> None:
    when = TriggerSpec(between=("checkpoint triggered", "checkpoint completed"))
    wide = trial(KILL.model_copy(update={"when": when}))
    assert planned_cells(wide).moments == {
        "kill between checkpoint triggered and checkpoint completed"
    }


def test_of_a_window_only_what_the_record_proves_was_tried() -> None:
    tried = tried_cells(
        trial(KILL),
        (RECORD,),
        [
            hit(Phase.BARRIER, Place.SINK),
            hit(Phase.ACKNOWLEDGED, Place.SINK),
            hit(Phase.BARRIER, Place.SOURCE, verified=False),
        ],
    )
    assert tried.moments == {
        "kill in barrier to acknowledgement",
        "kill in acknowledged to completed",
    }
    assert tried.places == {
        "kill in barrier to acknowledgement at sink",
        "kill in acknowledged to completed at sink",
    }
    assert tried.settings == {"kill with parallelism=2"}
    assert not tried_cells(trial(KILL), (RECORD,), []).moments


def test_only_a_step_that_took_effect_in_its_window_has_tried_something() -> None:
    both = trial(KILL, SLOW)
    failed = replace(RECORD, in_effect=False)
    missed = replace(RECORD, missed_window=True)
    assert tried_cells(both, (RECORD, RECORD), []).pairs == {"kill and slow_link"}
    for records in ((RECORD, failed), (RECORD, missed), (RECORD,)):
        assert tried_cells(both, records, []).settings == {"kill with parallelism=2"}
        assert not tried_cells(both, records, []).pairs
    assert not tried_cells(both, (), []).all


def test_times_are_alike_and_workers_have_the_same_places() -> None:
    early, late = (
        trial(Step(fault="kill", target=f"flink/taskmanager-{n}", when=TriggerSpec(after_s=n)))
        for n in (1, 2)
    )
    assert planned_cells(early) == planned_cells(late)
    assert tried_cells(early, (RECORD,), []).places == {
        "kill at a time at source",
        "kill at a time at stateful operator",
        "kill at a time at sink",
    }


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


def test_injections_are_faults_with_their_roles() -> None:
    pair = Step(
        fault="partition",
        target="from kafka/broker-1 to flink/taskmanager-12",
        when=TriggerSpec(after_s=1),
    )
    assert injections(trial(KILL, SLOW, pair)) == (
        "kill on flink/taskmanager",
        "slow_link on link sink",
        "partition on from kafka/broker to flink/taskmanager",
    )


def test_an_injection_is_effective_only_when_it_disturbed_the_system() -> None:
    both = trial(KILL, SLOW)
    probe = replace(RECORD, evidence={"disturbed": "the harness's probe alone"})
    system = replace(RECORD, evidence={"disturbed": "the system"})
    assert effective(both, (RECORD, system)) == injections(both)
    for vain in (replace(RECORD, in_effect=False), replace(RECORD, missed_window=True), probe):
        assert effective(both, (RECORD, vain)) == ("kill on flink/taskmanager",)


def test_a_fault_that_takes_no_effect_loses_value() -> None:
    guidance = Guidance(SPACE)
    kill, both = trial(KILL), trial(KILL, SLOW)
    new, pair = guidance.value(kill), guidance.value(both)
    guidance.count_injections(injections(kill), ())
    assert guidance.value(kill) == new / 2
    assert guidance.value(both) == pair * 0.75, "the mean of its two steps"
    guidance.count_injections(injections(kill), injections(kill))
    assert guidance.value(kill) == new * 2 / 3


def test_more_settings_make_a_trial_not_newer() -> None:
    few, many = (planned_cells(trial(KILL, **config)) for config in ({}, {"a": "1", "b": "2"}))
    assert Guidance(SPACE).novelty(few) == Guidance(SPACE).novelty(many)


def test_a_trial_is_interesting_only_when_it_showed_something_new() -> None:
    guidance = Guidance(SPACE)
    assert guidance.learn(trial(KILL), ("b", "a")) == ("a", "b")
    assert guidance.learn(trial(SLOW), ("b",)) == ()
    assert guidance.interesting == [trial(KILL)]


@pytest.mark.parametrize("seed", others_nightly(range(5), always=[0]))
def test_guided_trials_try_more_cells_than_random_ones(seed: int) -> None:
    def distinct(*, is_guided: bool) -> int:
        guidance = Guidance(SPACE, is_guided=is_guided)
        for number in range(40):
            next_trial = guidance.next_trial(random.Random(f"{seed}:{number}"))
            cells = planned_cells(next_trial).all
            guidance.count(cells, cells)
        return len(guidance.tried)

    assert distinct(is_guided=True) > distinct(is_guided=False)


def test_interesting_trials_are_changed() -> None:
    guidance = Guidance(SPACE)
    guidance.interesting.append(trial(KILL))
    guidance.tried.update(dict.fromkeys(planned_cells(trial(KILL)).all, 9))
    trials = [guidance._draw(random.Random(seed), 2) for seed in range(60)]
    related = [t for t in trials if any(step == KILL for step in t.faults)]
    assert 5 < len(related) < 40

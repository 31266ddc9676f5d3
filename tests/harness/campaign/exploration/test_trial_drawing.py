"""Drawn trials: valid experiments, functions of their seed, with one thing changed at a time."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamquake.faults.fault import faults
from streamquake.harness.campaign.exploration.trial_drawing import FOR_S, MOST_NTH, TrialSpace
from streamquake.harness.experiment.loader import (
    experiment_document,
    experiment_of_plan,
    load_experiment,
)
from streamquake.harness.experiment.validation import broken_rules
from streamquake.topologies.problems import BadInput
from tests.harness.campaign.exploration.trial_runs import BASE, SPACE

pytestmark = pytest.mark.slow

ON_SPARK = TrialSpace.of(load_experiment("undisturbed", sets=["topology=spark-kafka-hdfs"], seed=1))
spaces = st.sampled_from([SPACE, ON_SPARK])
seeds = st.integers(0, 10**6)


@settings(max_examples=60, deadline=None)
@given(spaces, seeds)
def test_a_drawn_trial_is_a_valid_function_of_its_seed(space: TrialSpace, seed: int) -> None:
    trial = space.draw(random.Random(seed), 3)
    assert trial == space.draw(random.Random(seed), 3)
    assert not broken_rules(trial)
    assert 1 <= len(trial.faults) <= 3
    for step in trial.faults:
        step.build_fault()
        assert step.for_s is not None
        assert FOR_S[0] <= step.for_s <= FOR_S[1]
        if step.when.after_s is not None:
            assert step.when.after_s + step.for_s <= space.within_s + 0.1
        assert step.when.nth <= MOST_NTH
    assert (trial.checks, trial.workload, trial.topology) == (
        space.base.checks,
        space.base.workload,
        space.base.topology,
    )


@settings(max_examples=40, deadline=None)
@given(spaces, seeds)
def test_a_recorded_trial_is_read_as_it_was_drawn(space: TrialSpace, seed: int) -> None:
    trial = space.draw(random.Random(seed), 3)
    assert experiment_of_plan(experiment_document(trial), "run.json", trial.seed) == trial


@settings(max_examples=40, deadline=None)
@given(spaces, seeds)
def test_a_changed_trial_differs_in_its_settings_or_one_step(space: TrialSpace, seed: int) -> None:
    rng = random.Random(seed)
    trial = space.draw(rng, 2)
    changed = space.changed(trial, rng)
    assert changed != trial
    assert changed.faults
    assert not broken_rules(changed)
    if changed.job == trial.job:
        kept = [step for step in trial.faults if step in changed.faults]
        assert len(kept) >= min(len(trial.faults), len(changed.faults)) - 1


def test_draws_reach_every_window_reaction_and_option() -> None:
    trials = [SPACE.draw(random.Random(seed), 3) for seed in range(600)]
    steps = [step for trial in trials for step in trial.faults]
    assert {step.when.between for step in steps} >= set(SPACE.variations.windows)
    assert {step.when.event for step in steps} >= set(SPACE.variations.reactions)
    assert any(step.when.effect_of for step in steps)
    assert {step.fault for step in steps} == set(SPACE.candidates)
    tried = {(o, v) for t in trials if t.job for o, v in t.job.config.items()}
    assert tried == {(o, v) for o, values in SPACE.variations.options.items() for v in values}


def test_every_worker_has_a_subtask() -> None:
    jobs = [SPACE.draw(random.Random(seed), 1).job for seed in range(40)]
    assert {job.parallelism for job in jobs if job is not None} == {3, 4}


def test_an_event_of_a_recovery_is_awaited_only_after_a_fault_that_ends_tasks() -> None:
    for seed in range(300):
        steps = SPACE.draw(random.Random(seed), 3).faults
        for number, step in enumerate(steps):
            if step.when.event is not None:
                earlier = [faults[each.fault] for each in steps[:number]]
                assert any(f.ends_process or f.ends_sandbox or f.fails_tasks for f in earlier)


def test_no_step_waits_for_commits_that_a_sink_does_not_make() -> None:
    weak = load_experiment("undisturbed", sets=["job.sink=at-least-once"], seed=1)
    assert [w for w in SPACE.variations.windows if "sink committed" in w]
    assert not [w for w in TrialSpace.of(weak).variations.windows if "sink committed" in w]
    assert len(TrialSpace.of(weak).variations.windows) == len(SPACE.variations.windows) - 1


def test_a_trigger_that_does_not_fire_lasts_no_longer_than_the_load() -> None:
    assert SPACE.base.limits.trigger_s == SPACE.base.workload.seconds


def test_no_candidate_has_a_parameter_in_place_of_a_value() -> None:
    targets = {c.target for found in ON_SPARK.candidates.values() for c in found}
    assert "the transaction coordinator of ID" not in targets
    assert "the controller" in targets


@pytest.mark.parametrize(
    ("name", "sets", "message"),
    [
        ("undisturbed", ["workload.numbered.records=20000"], "expected a load of at least 23 s"),
        (
            "ac-chain-switches",
            [],
            "ac-chain-switches without its own faults: checks[0].checkpoints.fault: the schedule "
            'has no "slow_operator"',
        ),
    ],
)
def test_an_experiment_that_cannot_be_explored_is_rejected(
    name: str, sets: list[str], message: str
) -> None:
    with pytest.raises(BadInput) as rejected:
        TrialSpace.of(load_experiment(name, sets=sets, seed=1))
    assert message in str(rejected.value)


def test_the_schedule_and_the_expectation_of_the_experiment_do_not_count() -> None:
    canary = load_experiment("canary", seed=1)
    assert canary.faults
    base = TrialSpace.of(canary).base
    assert (base.faults, base.expect) == ((), "held")
    assert base.job == canary.job


def test_a_job_that_runs_already_has_only_schedules() -> None:
    experiment = BASE.model_copy(update={"job": None})
    trial = TrialSpace.of(experiment).draw(random.Random(3), 1)
    assert trial.job is None
    assert trial.faults

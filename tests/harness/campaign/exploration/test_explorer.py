"""An exploration: its limits, its repeats, and that it goes on where it was interrupted."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamquake.harness.campaign.exploration import explorer
from streamquake.harness.campaign.exploration.guidance import Guidance
from streamquake.harness.campaign.exploration.knowledge import learn_from_runs
from streamquake.harness.campaign.exploration.trial_drawing import TrialSpace
from streamquake.harness.experiment.loader import load_experiment
from streamquake.harness.experiment.model import Experiment
from streamquake.reports.record.outcome import Outcome
from streamquake.topologies.problems import BadInput
from tests.harness.campaign.exploration.trial_runs import (
    SECONDS,
    SPACE,
    PlannedTrials,
    exploration,
)

pytestmark = pytest.mark.slow


def violated_with_a_kill(trial: Experiment) -> Outcome:
    return Outcome.VIOLATED if any(s.fault == "kill" for s in trial.faults) else Outcome.HELD


def test_it_ends_after_its_trials_and_each_is_recorded(tmp_path: Path) -> None:
    run = PlannedTrials(tmp_path)
    explored = exploration(run, trials=4)
    explored.explore()
    assert explored.ended == "4 trials were run"
    assert explored.verdict == Outcome.HELD
    assert [logged.run for logged in explored.log.trials] == [
        f"run-{n}-{trial.seed}" for n, trial in enumerate(run.trials, 1)
    ]
    assert len({trial.name for trial in run.trials}) == 4
    assert all(logged.cells for logged in explored.log.trials)


def test_much_new_behaviour_is_shown_in_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(explorer, "behaviour_of", lambda *given: {f"b{n}" for n in range(8)})
    lines: list[str] = []
    explored = exploration(PlannedTrials(tmp_path), trials=2, show_message=lines.append)
    explored.explore()
    assert [line for line in lines if "new" in line] == [
        "    new: b0",
        "    new: b1",
        "    new: b2",
        "    and 5 more kinds of new behaviour",
    ]
    assert len(explored.log.trials[0].new) == 8


def test_it_ends_when_its_time_is_used(tmp_path: Path) -> None:
    explored = exploration(PlannedTrials(tmp_path), seconds=2.5 * SECONDS)
    explored.explore()
    assert explored.ended == "the time is used: 100 s"
    assert len(explored.log.trials) == 3


def test_a_violated_trial_is_repeated_and_ends_it(tmp_path: Path) -> None:
    run = PlannedTrials(tmp_path, violated_with_a_kill)
    lines: list[str] = []
    explored = exploration(run, trials=200, repeats=3, show_message=lines.append)
    explored.explore()
    *before, violated = explored.log.first_runs
    assert not any(logged.is_violated for logged in before)
    assert violated.is_violated
    assert [logged.repeat for logged in explored.log.repeats_of(violated.trial)] == [1, 2, 3]
    assert all(trial == run.trials[-1] for trial in run.trials[-4:])
    assert explored.ended == f"trial {violated.trial} was violated in 4 of 4 runs"
    assert explored.ended in lines
    assert explored.verdict == Outcome.VIOLATED


def test_a_rare_failure_is_told_from_a_frequent_one(tmp_path: Path) -> None:
    outcomes = iter([Outcome.VIOLATED, Outcome.HELD, Outcome.VIOLATED, Outcome.UNDECIDED])
    explored = exploration(PlannedTrials(tmp_path, lambda trial: next(outcomes)), trials=9)
    explored.explore()
    assert explored.ended == "trial 1 was violated in 2 of 4 runs"
    assert explored.confirmed == explored.log.trials[0]


def test_a_failure_that_no_repeat_shows_is_not_confirmed(tmp_path: Path) -> None:
    outcomes = iter([Outcome.VIOLATED, Outcome.HELD, Outcome.HELD, Outcome.UNDECIDED])
    explored = exploration(PlannedTrials(tmp_path, lambda trial: next(outcomes)), trials=9)
    explored.explore()
    assert explored.ended == "trial 1 was violated in 1 of 4 runs"
    assert explored.confirmed is None


def test_it_goes_on_after_a_violated_trial_if_asked(tmp_path: Path) -> None:
    run = PlannedTrials(tmp_path, lambda trial: Outcome.VIOLATED)
    explored = exploration(run, trials=3, repeats=1, keeps_going=True)
    explored.explore()
    assert explored.ended == "3 trials were run"
    assert [(t.trial, t.repeat) for t in explored.log.trials] == [
        (number, repeat) for number in (1, 2, 3) for repeat in (0, 1)
    ]


def test_it_goes_on_where_it_ended(tmp_path: Path) -> None:
    whole = PlannedTrials(tmp_path / "whole")
    exploration(whole, trials=6).explore()

    parts = PlannedTrials(tmp_path / "parts")
    exploration(parts, trials=2).explore()
    lines: list[str] = []
    continued = exploration(parts, trials=6, show_message=lines.append)
    continued.explore()
    assert [t.faults for t in parts.trials] == [t.faults for t in whole.trials]
    assert lines[0].startswith("going on after 2 trials: ")
    assert len(continued.log.trials) == 6


def test_it_goes_on_where_the_document_gives_no_seed(tmp_path: Path) -> None:
    """Its seed is then drawn at each call."""
    parts, whole = PlannedTrials(tmp_path / "parts"), PlannedTrials(tmp_path / "whole")
    exploration(whole, trials=2).explore()
    for trials in (1, 2):
        base = load_experiment("undisturbed", seed=100 + trials)
        exploration(parts, trials=trials, space=TrialSpace.of(base)).explore()
    assert [(t.seed, t.faults) for t in parts.trials] == [(t.seed, t.faults) for t in whole.trials]


def test_an_interrupted_trial_is_run_again(tmp_path: Path) -> None:
    run = PlannedTrials(tmp_path, ends={2: "interrupted"})
    interrupted = exploration(run, trials=3)
    interrupted.explore()
    assert interrupted.ended == "interrupted"
    assert [logged.trial for logged in interrupted.log.trials] == [1]

    exploration(run, trials=3).explore()
    assert run.trials[2].faults == run.trials[1].faults


def test_repeats_that_were_interrupted_are_finished(tmp_path: Path) -> None:
    run = PlannedTrials(tmp_path, lambda trial: Outcome.VIOLATED, ends={3: "interrupted"})
    exploration(run, trials=5, repeats=3).explore()
    assert [logged.repeat for logged in exploration(run).log.trials] == [0, 1]

    continued = exploration(run, trials=5, repeats=3)
    continued.explore()
    assert [logged.repeat for logged in continued.log.trials] == [0, 1, 2, 3]
    assert continued.ended == "trial 1 was violated in 4 of 4 runs"

    again = exploration(run, trials=5, repeats=3)
    again.explore()
    assert again.ended == continued.ended
    assert len(again.log.trials) == 4


def test_trials_that_fail_to_run_in_a_row_end_it(tmp_path: Path) -> None:
    run = PlannedTrials(
        tmp_path, errors={1: "no engine", 3: "no engine", 4: "no engine", 5: "no engine"}
    )
    explored = exploration(run, trials=50)
    explored.explore()
    assert explored.ended == "3 trials in a row failed to run"
    assert [logged.why for logged in explored.log.trials if logged.run is None] == ["no engine"] * 4


def test_cells_that_were_planned_in_vain_are_remembered(tmp_path: Path) -> None:
    run = PlannedTrials(tmp_path, acts=False)
    explored = exploration(run, trials=2)
    explored.explore()
    assert all(logged.in_vain and not logged.cells for logged in explored.log.trials)
    assert set(explored.guidance.tried.values()) <= {0.5, 1.0}
    assert not explored.guidance.effective
    again = exploration(run).guidance
    assert again.tried == explored.guidance.tried
    assert again.injected == explored.guidance.injected
    assert again.injected.total() == sum(len(trial.faults) for trial in run.trials)


def test_undecided_trials_alone_prove_nothing(tmp_path: Path) -> None:
    explored = exploration(PlannedTrials(tmp_path, lambda trial: Outcome.UNDECIDED), trials=2)
    assert explored.verdict == Outcome.UNDECIDED
    explored.explore()
    assert explored.verdict == Outcome.UNDECIDED


@pytest.fixture
def log(tmp_path: Path) -> Path:
    explored = exploration(PlannedTrials(tmp_path), trials=3)
    explored.explore()
    return explored.log.path


def test_a_log_without_lines_is_a_new_one(log: Path) -> None:
    log.write_text("")
    assert exploration(PlannedTrials(log.parents[1])).log.trials == []


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            lambda text: text.replace('"schema": 1', '"schema": 2'),
            "1: not a trial of an",
        ),
        (
            lambda text: text.replace('"trial": 2', '"trial": "2"'),
            "3: not a trial of an",
        ),
        (lambda text: text.replace('"held"', '"great"', 1), "2: not a trial of an"),
        (lambda text: text.replace('"run": "run-2', '"run": "../run-2'), "3: not a trial of an"),
        (lambda text: text.replace("held", '1",[', 1), "2: not JSON"),
        (
            lambda text: text.replace('"digest": "', '"digest": "0'),
            "another undisturbed",
        ),
    ],
)
def test_a_log_that_is_not_of_this_exploration_is_rejected(
    log: Path, damage: object, message: str
) -> None:
    assert callable(damage)
    log.write_text(damage(log.read_text()))
    with pytest.raises(BadInput) as rejected:
        exploration(PlannedTrials(log.parents[1]))
    assert message in str(rejected.value)


def test_a_trial_whose_record_is_gone_is_left_out_and_named(tmp_path: Path) -> None:
    run = PlannedTrials(tmp_path, lambda trial: Outcome.UNDECIDED)
    first = exploration(run, trials=1)
    first.explore()
    (logged,) = first.log.trials
    assert logged.new == ("exactly_once undecided",)
    (tmp_path / str(logged.run) / "run.json").write_text("{}")
    lines: list[str] = []
    continued = exploration(run, trials=2, show_message=lines.append)
    assert "trial 1 cannot be read and is left out" in lines[0]
    continued.explore()
    assert len(continued.log.trials) == 2


def _another_program(plan: dict[str, Any]) -> None:
    plan["job"]["sql"] += "\n-- and more"
    plan["job"]["config"]["env.java.opts.all"] = "-javaagent:a.jar"
    plan["checks"] = [{"command": {"name": "mine", "run": ["touch", "started"]}}]
    plan["topology"]["services"]["flink"]["config"]["env.java.opts.all"] = "-javaagent:a.jar"


def _another_target(plan: dict[str, Any]) -> None:
    plan["faults"] = [{"pause": {}, "target": "flink", "when": {"after_s": 1}, "for_s": 2}]


@pytest.mark.parametrize(
    ("change", "repeats"), [(_another_program, 1), (_another_target, 0)], ids=["program", "target"]
)
def test_only_what_is_drawn_is_taken_over_from_the_record_of_a_trial(
    change: Callable[[dict[str, Any]], None], repeats: int, tmp_path: Path
) -> None:
    """A record may be of another person; a repeat would start its programs."""
    run = PlannedTrials(tmp_path, lambda trial: Outcome.VIOLATED, ends={2: "interrupted"})
    exploration(run, trials=1, repeats=1).explore()
    (first, _) = run.trials
    manifest = tmp_path / f"run-1-{first.seed}" / "run.json"
    document = json.loads(manifest.read_text())
    change(document["experiment"])
    manifest.write_text(json.dumps(document))

    exploration(run, trials=1, repeats=1).explore()
    assert run.trials[2:] == [first] * repeats


def test_recorded_runs_count_as_tried(tmp_path: Path) -> None:
    explored = exploration(PlannedTrials(tmp_path / "runs"), trials=3)
    explored.explore()
    runs = tmp_path / "runs"
    (runs / "broken").mkdir()
    (runs / "broken" / "run.json").write_text("{}")
    guidance, lines = Guidance(SPACE), list[str]()
    learn_from_runs(guidance, [runs], lines.append)
    assert set(guidance.tried) == {cell for t in explored.log.trials for cell in t.cells}
    assert guidance.tried
    (line,) = lines
    assert line.startswith(f"left out: {runs / 'broken'}: ")

"""Effect and progress: held with evidence, undecided without."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from streamquake.faults.schedule.step import Step
from streamquake.harness.experiment.check import Check, JudgedRun, check_safely
from streamquake.harness.verdict.checks.effect import Effect
from streamquake.harness.verdict.checks.progress import Progress
from streamquake.harness.verdict.judge import fault_records
from streamquake.reports.record.event import DISTURBED, PROBE_ALONE, SYSTEM, Action
from streamquake.reports.record.history import History
from streamquake.reports.record.job_events import TaskChanged
from streamquake.reports.record.outcome import CheckResult, Outcome
from streamquake.topologies.loader import load_topology
from tests.harness.histories import KILL, KILLED, RESTARTED, Story, case

RULES_HIT = {
    "status": "running",
    "rules": 1,
    "hits": 1,
    "at": ["Map subtask 0"],
    "first_hit": "2026-01-01T10:00:01Z",
    "before": {"agent": "loaded"},
}
IN_EFFECT = {"pause": {"status": "paused"}, "throw_in_task": RULES_HIT}
HEALED = {
    "pause": {"status": "running"},
    "throw_in_task": {"rules": 0, "status": "running"},
}


def test_effect_is_held_when_every_fault_took_effect_and_was_healed(tmp_path: Path) -> None:
    story = Story().effect(1).at(2, Action.FAULT_HEALED, step=0)
    assert Effect().check(case(story, tmp_path)).outcome == Outcome.HELD


def test_a_fault_that_was_never_injected_makes_the_run_undecided(tmp_path: Path) -> None:
    story = Story().at(9, Action.FAULT_SKIPPED, step=0, reason="no checkpoint was triggered")
    result = Effect().check(case(story, tmp_path))
    assert result.outcome == Outcome.UNDECIDED
    assert "no checkpoint was triggered" in result.summary


def test_a_fault_without_effect_and_one_never_healed_are_both_named(tmp_path: Path) -> None:
    story = (
        Story()
        .at(1, Action.FAULT_NOT_IN_EFFECT, step=0, reason="still running")
        .effect(2, step=1)
        .at(3, Action.FAULT_NOT_HEALED, step=1, reason="still paused")
    )
    result = Effect().check(case(story, tmp_path, faults=2))
    assert result.outcome == Outcome.UNDECIDED
    assert [(f.what, f.where) for f in result.findings] == [
        ("not in effect", "faults[0]"),
        ("not healed", "faults[1]"),
    ]


def acknowledged(story: Story, *notes: tuple[float, int], after: int = 0) -> Story:
    """Acknowledgements as (moment, count); `after` so many earlier ones."""
    for at_s, count in notes:
        story.at(
            at_s,
            Action.SENT,
            first=after,
            last=after + count - 1,
            count=count,
            status="acknowledged",
        )
        after += count
    return story


def test_progress_is_held_when_records_flowed_after_the_fault(tmp_path: Path) -> None:
    story = acknowledged(Story(), (1, 500)).effect(2).checkpoint(1, 2, 3)
    acknowledged(story, (2.2, 10), (4, 500), after=500)
    result = Progress().check(case(story, tmp_path))
    assert result.outcome == Outcome.HELD
    assert result.counts["acknowledged_since_first_fault"] == 500


def test_progress_is_undecided_with_too_little_load_or_none_after_the_fault(
    tmp_path: Path,
) -> None:
    little = Story().sent(1, 50).effect(2).sent(3, 10)
    early = Story().sent(1, 5000).effect(2).checkpoint(1, 2, 3)
    unacknowledged = Story().effect(2).sent(3, 5000, status="unknown")
    for story in (little, early, unacknowledged):
        assert Progress().check(case(story, tmp_path)).outcome == Outcome.UNDECIDED


def test_progress_is_undecided_without_any_checkpoint(tmp_path: Path) -> None:
    story = acknowledged(acknowledged(Story(), (1, 500)).effect(2), (3, 100), (4, 500), after=500)
    result = Progress().check(case(story, tmp_path))
    assert result.outcome == Outcome.UNDECIDED
    assert "checkpoint" in result.summary


def test_a_check_that_crashes_is_undecided(tmp_path: Path) -> None:
    class Broken(Check):
        name = "broken"

        def check(self, case: JudgedRun) -> CheckResult:
            raise ZeroDivisionError("oops\n\tat org.apache.spark.Some.call(Some.scala:7)\n")

    result = check_safely(Broken(), case(Story(), tmp_path))
    assert result.outcome == Outcome.UNDECIDED
    assert result.summary.endswith("ZeroDivisionError: oops")


@pytest.mark.parametrize(
    ("end", "reason"),
    [(lambda: sys.exit(0), "it ends the program"), (lambda: None, "got NoneType")],
)
def test_a_check_without_a_result_is_undecided(
    end: Callable[[], Any], reason: str, tmp_path: Path
) -> None:
    class Broken(Check):
        name = "broken"

        def check(self, case: JudgedRun) -> CheckResult:
            return end()  # type: ignore[no-any-return]  # as a plugin may do

    result = check_safely(Broken(), case(Story(), tmp_path))
    assert (result.check, result.outcome) == ("broken", Outcome.UNDECIDED)
    assert result.summary.endswith(reason)


def test_an_event_without_a_field_that_a_check_needs_is_named(tmp_path: Path) -> None:
    class Tasks(Check):
        name = "tasks"

        def check(self, case: JudgedRun) -> CheckResult:
            return self.held(f"subtask {case.history.of(TaskChanged)[0].subtask}")

    result = check_safely(Tasks(), case(Story().at(1, Action.TASK_CHANGED), tmp_path))
    assert result.outcome == Outcome.UNDECIDED
    assert result.summary == "event 0, `task changed`, is recorded without its `subtask`"


def test_progress_needs_load_after_every_fault(tmp_path: Path) -> None:
    story = acknowledged(Story(), (1, 200)).effect(2)
    story = (
        acknowledged(story, (2.5, 100), (3, 100), after=200).effect(4, step=1).checkpoint(1, 4, 5)
    )
    idle = Progress().check(case(story, tmp_path, faults=2))
    assert idle.outcome == Outcome.UNDECIDED
    assert "faults[1]" in idle.summary
    late_range = Progress().check(
        case(acknowledged(story, (5, 100), after=400), tmp_path, faults=2)
    )
    assert late_range.outcome == Outcome.UNDECIDED, "perhaps sent before the effect"
    after = Progress().check(case(acknowledged(story, (6, 100), after=500), tmp_path, faults=2))
    assert after.outcome == Outcome.HELD
    assert after.counts["acknowledged_since_last_fault"] == 100


def test_progress_counts_up_to_its_threshold(tmp_path: Path) -> None:
    story = Story().sent(1, 150).checkpoint(1, 1, 2)
    assert Progress(records=150).check(case(story, tmp_path, faults=0)).outcome == Outcome.HELD
    assert Progress(records=151).check(case(story, tmp_path, faults=0)).outcome == Outcome.UNDECIDED


def test_an_experiment_cannot_lower_the_minimum_of_progress(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="greater than or equal to 100"):
        Progress(records=99)


def test_a_fault_that_ended_before_its_heal_makes_the_run_undecided(tmp_path: Path) -> None:
    story = (
        Story()
        .effect(1)
        .at(
            10,
            Action.FAULT_ENDED_EARLY,
            step=0,
            last_seen_ns=6 * 10**9,
            seen_ns=10 * 10**9,
            reason="gone on kafka/broker-1 before the heal was called",
        )
        .at(61, Action.FAULT_HEALED, step=0)
    )
    judged = case(story, tmp_path)
    result = Effect().check(judged)
    assert result.outcome == Outcome.UNDECIDED
    (recorded,) = fault_records(judged.experiment, judged.history)
    assert recorded.ended_early_s == 10.0
    assert [(f.what, f.where) for f in result.findings] == [("ended early", "faults[0]")]
    assert "verified last after 5.0 s and found ended after 9.0 s" in result.summary
    assert "gone on kafka/broker-1" in result.summary


@pytest.mark.parametrize(
    ("verifications", "outcome"),
    [
        ((SYSTEM, SYSTEM), Outcome.HELD),
        ((PROBE_ALONE, SYSTEM), Outcome.HELD),
        ((SYSTEM, PROBE_ALONE), Outcome.HELD),
        ((PROBE_ALONE, PROBE_ALONE), Outcome.UNDECIDED),
    ],
)
def test_a_fault_that_disturbed_only_the_probe_makes_the_run_undecided(
    tmp_path: Path, verifications: tuple[str, str], outcome: Outcome
) -> None:
    first, second = (
        {"a->b": {**KILLED, DISTURBED: SYSTEM}, "a->c": {**KILLED, DISTURBED: each}}
        for each in verifications
    )
    called = Story().at(1, Action.FAULT_CALLED, step=0)
    in_effect = called.at(1, Action.FAULT_IN_EFFECT, step=0, seen_ns=10**9, evidence=first)
    story = in_effect.at(2, Action.FAULT_STILL_IN_EFFECT, step=0, seen_ns=2, evidence=second)
    story.at(3, Action.FAULT_HEALED, step=0)

    result = Effect().check(case(story, tmp_path))

    assert result.outcome == outcome
    assert ("on a->c only the harness's own probe" in result.summary) == (outcome != Outcome.HELD)


@pytest.mark.parametrize(
    ("second", "outcome"), [(SYSTEM, Outcome.HELD), (PROBE_ALONE, Outcome.UNDECIDED)]
)
def test_where_idle_faults_are_allowed_one_must_disturb_the_system(
    tmp_path: Path, second: str, outcome: Outcome
) -> None:
    story = Story()
    for step, disturbed in enumerate((PROBE_ALONE, second)):
        story.at(2 * step + 1, Action.FAULT_CALLED, step=step)
        seen = {
            "seen_ns": (2 * step + 1) * 10**9,
            "evidence": {"a->b": {**KILLED, DISTURBED: disturbed}},
        }
        story.at(2 * step + 1, Action.FAULT_IN_EFFECT, step=step, **seen)
        story.at(2 * step + 2, Action.FAULT_HEALED, step=step, seen_ns=(2 * step + 2) * 10**9)

    result = Effect(idle_allowed=True).check(case(story, tmp_path, faults=2))

    assert result.outcome == outcome
    assert "faults[0]" in result.summary
    assert "only the harness's own probe was disturbed" in result.summary
    assert Effect().check(case(story, tmp_path, faults=2)).outcome == Outcome.UNDECIDED


def test_a_fault_that_was_not_verified_again_makes_the_run_undecided(tmp_path: Path) -> None:
    story = Story().at(1, Action.FAULT_CALLED, step=0)
    story.at(1, Action.FAULT_IN_EFFECT, step=0, seen_ns=10**9, evidence={})
    story.at(40, Action.FAULT_NOT_VERIFIED, step=0, reason="verified last 39.0 s before the heal")
    story.at(41, Action.FAULT_HEALED, step=0, seen_ns=41 * 10**9)

    result = Effect().check(case(story, tmp_path))

    assert result.outcome == Outcome.UNDECIDED
    assert "faults[0] not verified again: verified last 39.0 s before" in result.summary


@pytest.mark.parametrize(
    ("verifications", "last_s", "outcome"),
    [
        ((6, 11), 11, Outcome.HELD),
        ((6,), 11, Outcome.UNDECIDED),
        ((), 11, Outcome.UNDECIDED),
        ((), 1, Outcome.HELD),
        ((6, 11), None, Outcome.HELD),
    ],
)
def test_the_last_verification_that_the_heal_names_must_be_in_the_record(
    tmp_path: Path, verifications: tuple[int, ...], last_s: int | None, outcome: Outcome
) -> None:
    story = Story().at(1, Action.FAULT_CALLED, step=0)
    story.at(1, Action.FAULT_IN_EFFECT, step=0, seen_ns=10**9, evidence={})
    for at_s in verifications:
        story.at(at_s, Action.FAULT_STILL_IN_EFFECT, step=0, seen_ns=at_s * 10**9, evidence={})
    message = {} if last_s is None else {"last_seen_ns": last_s * 10**9, "in_place_ns": 60 * 10**9}
    story.at(61, Action.HEAL_CALLED, step=0, **message)
    story.at(62, Action.FAULT_HEALED, step=0, seen_ns=62 * 10**9)

    result = Effect().check(case(story, tmp_path))

    assert result.outcome == outcome
    missing = "no evidence of its last verification, 10.0 s after it took effect"
    assert (missing in result.summary) == (outcome == Outcome.UNDECIDED)


@pytest.mark.parametrize(
    ("seen_s", "reported_s", "outcome"),
    [
        (11.0, 10.0, Outcome.HELD),
        (10.0, 10.0, Outcome.HELD),
        (4.0, 10.0, Outcome.UNDECIDED),
        (4.0, None, Outcome.UNDECIDED),  # then the event of the call has the moment
    ],
)
def test_an_effect_before_its_injection_is_undecided(
    tmp_path: Path, seen_s: float, reported_s: float | None, outcome: Outcome
) -> None:
    recorded = {} if reported_s is None else {"called_ns": int(reported_s * 1e9)}
    story = Story().at(10, Action.FAULT_CALLED, step=0)
    story.at(12, Action.FAULT_IN_EFFECT, step=0, seen_ns=int(seen_s * 1e9), evidence={}, **recorded)
    story.at(16, Action.FAULT_HEALED, step=0, seen_ns=16 * 10**9)

    result = Effect().check(case(story, tmp_path))

    assert result.outcome == outcome, result.summary
    early = "its effect was seen 6.0 s before its injection was called"
    assert (early in result.summary) == (outcome == Outcome.UNDECIDED)


def test_only_the_newest_attempt_shows_what_it_disturbed(tmp_path: Path) -> None:
    story = Story()
    for at_s, disturbed in ((1, SYSTEM), (3, PROBE_ALONE)):
        story.at(at_s, Action.FAULT_CALLED, step=0)
        seen = {
            "seen_ns": (at_s + 1) * 10**9,
            "evidence": {"a->b": {**KILLED, DISTURBED: disturbed}},
        }
        story.at(at_s + 1, Action.FAULT_IN_EFFECT, step=0, **seen)
        story.at(at_s + 1.5, Action.FAULT_HEALED, step=0)

    assert Effect().check(case(story, tmp_path)).outcome == Outcome.UNDECIDED


def test_faults_that_overlapped_are_named(tmp_path: Path) -> None:
    def acted(story: Story, step: int, begin_s: float, end_s: float) -> Story:
        about = {"step": step, "fault": "kill", "target": KILL["target"]}
        seen_ns = int(begin_s * 1e9)
        story.at(begin_s, Action.FAULT_CALLED, **about)
        story.at(begin_s, Action.FAULT_IN_EFFECT, **about, seen_ns=seen_ns, evidence={})
        return story.at(end_s, Action.FAULT_HEALED, **about)

    def judged(second_s: float) -> CheckResult:
        story = Story()
        for step, begin_s in enumerate((1.0, second_s)):
            acted(story, step, begin_s, begin_s + 5)
        return Effect().check(case(story, tmp_path, faults=2))

    assert "faults[0] kill and faults[1] kill overlapped" in judged(3.0).summary
    assert judged(3.0).counts["overlapping"] == 1
    assert judged(3.0).outcome == Outcome.HELD
    assert "overlapped" not in judged(8.0).summary


def effect_of(step: Step, story: Story, folder: Path) -> CheckResult:
    """The result of an experiment with one planned step."""
    judged = case(story, folder)
    experiment = judged.experiment.model_copy(update={"faults": (step,)})
    return Effect().check(replace(judged, experiment=experiment))


@pytest.mark.parametrize(
    ("later", "outcome"),
    [
        (None, Outcome.UNDECIDED),
        ((Action.CHECKPOINT_COMPLETED, 4), Outcome.HELD),
        ((Action.CHECKPOINT_COMPLETED, 5), Outcome.HELD),
        ((Action.CHECKPOINT_COMPLETED, 3), Outcome.UNDECIDED),
        ((Action.CHECKPOINT_FAILED, 4), Outcome.HELD),
        ((Action.CHECKPOINT_FAILED, 5), Outcome.UNDECIDED),
        ((Action.JOB_RESTARTING, None), Outcome.HELD),
    ],
)
def test_a_window_that_never_closed_is_undecided(
    later: tuple[Action, int | None] | None, outcome: Outcome, tmp_path: Path
) -> None:
    story = Story().at(1, Action.CHECKPOINT_TRIGGERED, checkpoint=4)
    about = {"step": 0, "fault": "kill", "target": "one of flink/taskmanager"}
    story.at(2, Action.FAULT_CALLED, **about, trigger_index=0)
    story.effect(2).at(4, Action.FAULT_HEALED, step=0)
    if later is not None:
        story.at(5, later[0], checkpoint=later[1])
    when = {"between": ("checkpoint triggered", "checkpoint completed")}
    step = Step(fault="kill", target="one of flink/taskmanager", when=when)  # type: ignore[arg-type]
    result = effect_of(step, story, tmp_path)
    assert result.outcome == outcome
    assert ("never closed" in result.summary) == (outcome == Outcome.UNDECIDED)


def acting(story: Story, verifications: Sequence[Mapping[str, Any]] = (), **seen: Any) -> Story:
    """One kill from 1 s on whose heal is called after 5 s; `verifications` is the evidence of those
    from 3 s on, `seen` are fields of its effect."""
    about = {"step": 0, "fault": "kill", "target": "one of flink/taskmanager"}
    story.at(1, Action.FAULT_CALLED, **about, nodes=["flink/taskmanager-1"])
    recorded = {"nodes": ["flink/taskmanager-1"], "evidence": {"flink/taskmanager-1": KILLED}}
    story.at(1, Action.FAULT_IN_EFFECT, **{**about, **recorded, "seen_ns": 10**9, **seen})
    for at_s, evidence in enumerate(verifications, 3):
        verified = {"seen_ns": at_s * 10**9, "evidence": evidence}
        story.at(at_s, Action.FAULT_STILL_IN_EFFECT, step=0, **verified)
    story.at(6, Action.HEAL_CALLED, **about)
    healed = {"seen_ns": 7 * 10**9, "evidence": {"flink/taskmanager-1": RESTARTED}}
    return story.at(7, Action.FAULT_HEALED, **about, **healed)


@pytest.mark.parametrize(
    ("seen", "text"),
    [
        ({}, ""),
        ({"nodes": None, "evidence": None}, ""),  # an older record
        ({"evidence": {}}, "no effect was seen on flink/taskmanager-1"),
        ({"nodes": None, "evidence": {}}, "no effect was seen on flink/taskmanager-1"),
        (
            {"evidence": {"flink/taskmanager-2": KILLED}},
            "no effect was seen on flink/taskmanager-1",
        ),
        ({"evidence": {"flink/taskmanager-1": {}}}, "no effect was seen on flink/taskmanager-1"),
        ({"nodes": []}, "it was injected on no target"),
        ({"fault": "pause"}, "kill was planned, and pause is recorded"),
        ({"fault": ""}, "kill was planned, and  is recorded"),
        *(
            ({"evidence": {"flink/taskmanager-1": text}}, "no effect was seen on flink/taskmanager")
            for text in ("seen", -1, True, ["running"])
        ),
    ],
)
def test_an_effect_must_be_as_planned_with_evidence_on_every_target(
    tmp_path: Path, seen: dict[str, Any], text: str
) -> None:
    result = Effect().check(case(acting(Story(), **seen), tmp_path))

    assert result.outcome == (Outcome.UNDECIDED if text else Outcome.HELD)
    assert text in result.summary


@pytest.mark.parametrize(
    ("verifications", "outcome"),
    [
        (({"flink/taskmanager-1": KILLED},), Outcome.HELD),
        (({},), Outcome.UNDECIDED),
        (({"kafka/broker-1": KILLED},), Outcome.UNDECIDED),
        (({"flink/taskmanager-1": {}},), Outcome.UNDECIDED),
        (({}, {"flink/taskmanager-1": KILLED}), Outcome.HELD),
        (({"flink/taskmanager-1": "seen"},), Outcome.UNDECIDED),
    ],
)
def test_the_last_verification_has_evidence_on_every_target(
    tmp_path: Path, verifications: tuple[dict[str, Any], ...], outcome: Outcome
) -> None:
    result = Effect().check(case(acting(Story(), verifications), tmp_path))

    assert result.outcome == outcome, result.summary
    unseen = "not verified again: its last verification saw no effect on flink/taskmanager-1"
    assert (unseen in result.summary) == (outcome == Outcome.UNDECIDED)


@pytest.mark.parametrize("called", [{"target": ""}, {"params": None}, {"params": {"signal": 15}}])
def test_a_call_with_an_empty_field_is_not_as_planned(
    tmp_path: Path, called: dict[str, Any]
) -> None:
    events = acting(Story()).history()
    changed = [
        replace(event, value={**event.value, **called})
        if event.action == Action.FAULT_CALLED
        else event
        for event in events
    ]
    whole = case(acting(Story()), tmp_path)

    assert Effect().check(whole).outcome == Outcome.HELD
    result = Effect().check(replace(whole, history=History(changed)))
    assert result.outcome == Outcome.UNDECIDED
    assert "was planned, and" in result.summary


@pytest.mark.parametrize(
    ("target", "nodes", "other"),
    [
        ("one of flink/taskmanager", ["flink/taskmanager-2"], ""),
        ("one of flink/taskmanager", ["kafka/broker-1"], "kafka/broker-1"),
        (
            "one of flink/taskmanager",
            ["flink/taskmanager-1", "flink/taskmanager-2"],
            "flink/taskmanager-2",
        ),
        ("all of flink/taskmanager", [f"flink/taskmanager-{number}" for number in (1, 2, 3)], ""),
        ("all but flink/taskmanager-1", ["flink/taskmanager-1"], "flink/taskmanager-1"),
        ("flink/taskmanager-1", ["flink/taskmanager-1"], ""),
        ("flink/taskmanager-1", ["flink/taskmanager-2"], "flink/taskmanager-2"),
        ("the active jobmanager", ["flink/jobmanager-1"], ""),
        ("link sink", ["sink"], ""),
        ("link sink", ["checkpoints"], "checkpoints"),
        ("the job", ["the job"], ""),
        ("the job", ["the workload"], "the workload"),
        (
            "between flink/jobmanager-1 and all of flink/taskmanager",
            [f"flink/jobmanager-1<->flink/taskmanager-{number}" for number in (1, 2, 3)],
            "",
        ),
        (
            "from flink/jobmanager-1 to all of flink/taskmanager",
            ["flink/taskmanager-1->flink/jobmanager-1"],
            "flink/taskmanager-1->flink/jobmanager-1",
        ),
    ],
)
def test_a_fault_is_injected_into_the_nodes_of_its_target(
    tmp_path: Path, target: str, nodes: list[str], other: str
) -> None:
    result = injected_into(target, nodes, tmp_path)

    assert result.outcome == (Outcome.UNDECIDED if other else Outcome.HELD), result.summary
    assert (f"{target} was planned, and {other} is recorded" in result.summary) == bool(other)


@pytest.mark.parametrize(
    ("target", "nodes", "left_out"),
    [
        ("all of flink/taskmanager", ["flink/taskmanager-1", "flink/taskmanager-3"], "r-2"),
        ("all of flink/taskmanager", ["flink/taskmanager-2"], "r-1, flink/taskmanager-3"),
        ("all but flink/taskmanager-1", ["flink/taskmanager-3"], "r-2"),
        ("between one of kafka/broker and flink/taskmanager-1", [], None),
        (
            "from all of flink/taskmanager to flink/taskmanager-3",
            ["flink/taskmanager-2->flink/taskmanager-3"],
            "r-1->flink/taskmanager-3",
        ),
        (
            "between flink/taskmanager-1 and one of kafka/broker",
            ["flink/taskmanager-1<->kafka/broker-2"],
            "",
        ),
        ("the active jobmanager", ["flink/jobmanager-1"], ""),
    ],
)
def test_a_fault_is_injected_into_all_nodes_of_its_target(
    tmp_path: Path, target: str, nodes: list[str], left_out: str | None
) -> None:
    result = injected_into(target, nodes, tmp_path)

    assert result.outcome == (Outcome.HELD if left_out == "" else Outcome.UNDECIDED), result.summary
    text = f"{target} was planned, and not flink/taskmanage{left_out}"
    assert result.summary.endswith(text) == bool(left_out)


def injected_into(target: str, nodes: list[str], folder: Path) -> CheckResult:
    """The result of a fault on these nodes, or pairs of nodes, of a topology with three
    TaskManagers."""
    step = Step(fault="kill", target=target, when={"after_s": 1.0})  # type: ignore[arg-type]
    about = {"step": 0, "fault": "kill", "target": target, "nodes": nodes}
    story = Story().at(1, Action.FAULT_CALLED, **about)
    seen = dict.fromkeys(nodes, KILLED)
    story.at(1, Action.FAULT_IN_EFFECT, **about, seen_ns=10**9, evidence=seen)
    story.at(6, Action.HEAL_CALLED, **about)
    healed = {"seen_ns": 7 * 10**9, "evidence": dict.fromkeys(nodes, RESTARTED)}
    judged = case(story.at(7, Action.FAULT_HEALED, **about, **healed), folder)
    topology = load_topology("flink-kafka-hdfs")
    plan = judged.experiment.model_copy(update={"faults": (step,), "topology": topology})
    return Effect().check(replace(judged, experiment=plan))


@pytest.mark.parametrize("step", [1, -1])
def test_an_unplanned_fault_makes_the_run_undecided(tmp_path: Path, step: int) -> None:
    result = Effect().check(case(acting(Story()).effect(9, step=step), tmp_path))

    assert result.outcome == Outcome.UNDECIDED
    assert f"faults[{step}] not planned" in result.summary


@pytest.mark.parametrize(
    ("for_s", "outcome"), [(None, Outcome.HELD), (5, Outcome.HELD), (5.1, Outcome.UNDECIDED)]
)
def test_a_fault_whose_heal_was_called_too_early_makes_the_run_undecided(
    tmp_path: Path, for_s: float | None, outcome: Outcome
) -> None:
    judged = case(acting(Story()), tmp_path)
    steps = (judged.experiment.faults[0].model_copy(update={"for_s": for_s}),)
    experiment = judged.experiment.model_copy(update={"faults": steps})

    result = Effect().check(replace(judged, experiment=experiment))

    assert result.outcome == outcome
    assert ("its heal was called after 5.0 s" in result.summary) == (outcome != Outcome.HELD)


@pytest.mark.parametrize(("step", "early"), [(0, True), (1, False)])
def test_a_removal_before_the_first_call_of_the_heal_is_no_removal(
    step: int, early: bool, tmp_path: Path
) -> None:
    story = Story().effect(1).at(2, Action.FAULT_HEALED, step=step, seen_ns=2 * 10**9)
    story.at(3, Action.HEAL_CALLED, step=0).at(4, Action.FAULT_HEALED, step=0, seen_ns=4 * 10**9)
    findings = Effect().check(case(story, tmp_path)).findings
    reasons = [each.detail["reason"] for each in findings if each.where == "faults[0]"]
    after = [f"`{name}` is recorded after its heal" for name in ("heal called", "fault healed")]
    before = "its removal was seen before its heal was called"
    assert reasons == ([before, *after] if early else [])


def test_a_second_call_of_the_heal_hides_no_early_first_one(tmp_path: Path) -> None:
    """In effect at 1 s, healed at 3 s and again at 9 s; it should have lasted for 5 s."""
    story = Story().effect(1)
    for called_s in (3, 9):
        story.at(called_s, Action.HEAL_CALLED, step=0)
    story.at(10, Action.FAULT_HEALED, step=0)
    step = Step(fault="kill", target=KILL["target"], for_s=5, when={"after_s": 1})  # type: ignore[arg-type]
    result = effect_of(step, story, tmp_path)
    assert "it should have lasted for 5 s, and its heal was called after 2.0 s" in result.summary


@pytest.mark.parametrize(
    ("later", "seen_ns", "text"),
    [
        (Action.FAULT_NOT_HEALED, 7 * 10**9, "faults[0] not healed: still there"),
        (Action.PHASE, 10**8, "faults[0] not healed: its removal was seen before its effect"),
        (Action.PHASE, 7 * 10**9, ""),
    ],
)
def test_the_last_verification_of_a_removal_counts(
    tmp_path: Path, later: Action, seen_ns: int, text: str
) -> None:
    evidence = {"flink/taskmanager-1": RESTARTED}
    story = Story()
    for event in acting(Story()).history()[:-1]:
        story.at(event.at_s, event.action, **event.value)
    story.at(7, Action.FAULT_NOT_HEALED, step=0, reason="it does not run")
    story.at(8, Action.FAULT_HEALED, step=0, seen_ns=seen_ns, evidence=evidence)
    story.at(9, later, step=0, reason="still there", phase="drain")

    result = Effect().check(case(story, tmp_path))

    assert result.outcome == (Outcome.UNDECIDED if text else Outcome.HELD)
    assert text in result.summary


def test_a_heal_that_failed_is_no_removal_where_the_record_lacks_its_reason(tmp_path: Path) -> None:
    story = acting(Story()).at(8, Action.FAULT_NOT_HEALED, step=0)

    result = Effect().check(case(story, tmp_path))

    assert result.outcome == Outcome.UNDECIDED
    assert "faults[0] not healed: its removal was not seen" in result.summary


@pytest.mark.parametrize("for_s", [None, 60.0])
def test_an_early_end_has_the_planned_duration(tmp_path: Path, for_s: float | None) -> None:
    """Older records have neither the last verification nor the reason."""
    story = Story().effect(1).at(10, Action.FAULT_ENDED_EARLY, step=0, seen_ns=9 * 10**9)
    judged = case(story.at(61, Action.FAULT_HEALED, step=0), tmp_path)
    step = judged.experiment.faults[0].model_copy(update={"for_s": for_s})
    experiment = judged.experiment.model_copy(update={"faults": (step,)})
    result = Effect().check(replace(judged, experiment=experiment))
    planned = "until the end of the schedule" if for_s is None else "for 60 s"
    assert result.summary == (
        f"faults[0] ended early: it should have lasted {planned}, was verified last after 0.0 s "
        "and found ended after 8.0 s: "
    )


def test_every_target_with_only_the_probe_disturbed_is_named(tmp_path: Path) -> None:
    probe_alone = {**KILLED, DISTURBED: PROBE_ALONE}
    alone = {"a->b": probe_alone, "a->c": probe_alone, "watched": "ss"}
    story = Story().at(1, Action.FAULT_IN_EFFECT, step=0, seen_ns=10**9, evidence=alone)
    result = Effect().check(case(story.at(3, Action.FAULT_HEALED, step=0), tmp_path))
    assert result.summary.startswith(
        "faults[0] without effect on the system: on a->b, a->c only the harness's own probe"
    )


def test_at_most_three_faults_without_effect_are_named(tmp_path: Path) -> None:
    story = Story().effect(1, step=1)
    result = Effect().check(case(story, tmp_path, faults=5))
    assert result.summary == (
        "faults[0] not in effect: it was never attempted; faults[1] not healed: no heal was seen; "
        "faults[2] not in effect: it was never attempted"
    )
    assert len(result.findings) == 5
    assert result.counts == {"planned": 5, "in_effect": 1, "healed": 0}


def test_a_late_and_unhealed_fault_has_both_problems(tmp_path: Path) -> None:
    story = Story().effect(1).at(2, Action.FAULT_MISSED_WINDOW, step=0, reason="40 ms late")
    story.at(3, Action.FAULT_NOT_HEALED, step=0, reason="still paused")
    result = Effect().check(case(story, tmp_path))
    message = [(each.what, each.detail["reason"]) for each in result.findings]
    assert message == [("not in its window", "40 ms late"), ("not healed", "still paused")]


def test_a_run_without_faults_is_held(tmp_path: Path) -> None:
    result = Effect().check(case(Story(), tmp_path, faults=0))
    assert (result.outcome, result.summary) == (Outcome.HELD, "no fault was planned")


def test_progress_counts_ranges_sent_entirely_after_the_effect(tmp_path: Path) -> None:
    story = acknowledged(acknowledged(Story(), (1, 200)).effect(1), (2, 100), after=200).checkpoint(
        1, 1, 2
    )
    result = Progress().check(case(story, tmp_path))
    assert result.counts["acknowledged_since_first_fault"] == 100, (
        "without the records of unknown age"
    )
    assert (result.outcome, result.summary) == (Outcome.HELD, "300 records acknowledged")
    one = Progress().check(case(acknowledged(Story(), (1, 100)), tmp_path, faults=0))
    assert one.counts["acknowledged_since_last_fault"] == 0


def test_the_first_range_proves_no_load_after_a_fault(tmp_path: Path) -> None:
    """Its records may all have been sent before the effect."""
    story = acknowledged(Story().effect(1), (2, 500)).checkpoint(1, 3, 4)
    result = Progress().check(case(story, tmp_path))
    assert result.outcome == Outcome.UNDECIDED
    assert "it disturbed nothing" in result.summary


def test_every_fault_that_disturbed_nothing_is_named(tmp_path: Path) -> None:
    story = acknowledged(Story(), (1, 500)).effect(2).effect(3, step=1).checkpoint(1, 2, 3)
    result = Progress().check(case(story, tmp_path, faults=2))
    assert "after  (faults[0]),  (faults[1]) took effect" in result.summary


@pytest.mark.parametrize("job", [True, False])
def test_only_a_job_has_checkpoints_to_complete(tmp_path: Path, job: bool) -> None:
    judged = case(acknowledged(Story(), (1, 5000)), tmp_path, faults=0)
    plan = judged.experiment if job else judged.experiment.model_copy(update={"job": None})
    result = Progress().check(replace(judged, experiment=plan))
    assert result.outcome == (Outcome.UNDECIDED if job else Outcome.HELD)
    assert result.counts["checkpoints_completed"] == 0


def test_a_fault_may_take_effect_at_the_very_beginning(tmp_path: Path) -> None:
    story = acknowledged(Story().effect(0), (0.5, 200), (0.9, 100)).checkpoint(1, 1, 2)
    result = Progress().check(case(story, tmp_path))
    assert result.counts["acknowledged_since_first_fault"] == 100


def injected(story: Story, at_s: float, **other: object) -> Story:
    """The planned kill was called and took effect on its node."""
    about = {"step": 0, "fault": "kill", "target": KILL["target"], "nodes": ["flink/taskmanager-2"]}
    story.at(at_s, Action.FAULT_CALLED, **{**about, "params": {}, **other})
    return story.at(
        at_s + 0.1,
        Action.FAULT_IN_EFFECT,
        **about,
        seen_ns=int((at_s + 0.1) * 1e9),
        evidence={"flink/taskmanager-2": KILLED},
    )


def healed(story: Story, at_s: float, seen_s: float | None = None, **other: object) -> Story:
    seen_ns = int((at_s + 0.3 if seen_s is None else seen_s) * 1e9)
    evidence = {"watched": "api", "flink/taskmanager-2": RESTARTED}
    story.at(at_s, Action.HEAL_CALLED, step=0)
    seen = {"called_ns": int(at_s * 1e9), "seen_ns": seen_ns, "evidence": evidence, **other}
    return story.at(at_s + 0.4, Action.FAULT_HEALED, step=0, **seen)


@pytest.mark.parametrize(
    ("heal", "text"),
    [
        ({}, ""),
        ({"evidence": {}}, "no removal was seen on flink/taskmanager-2"),
        ({"evidence": {"watched": "api"}}, "no removal was seen on flink/taskmanager"),
        ({"evidence": {"flink/taskmanager-2": None}}, "no removal was seen on flink/taskmanager-2"),
        ({"seen_ns": None}, "the moment of its removal is not recorded"),
        ({"nodes": ["flink/taskmanager-1"]}, "nodes of `fault healed` is ['flink/taskmanager-1']"),
        ({"nodes": ["flink/taskmanager-2"], "target": KILL["target"]}, ""),
        ({"fault": "pause"}, "fault of `fault healed` is pause, and of its effect kill"),
        ({"seen_s": 66.4}, "`fault healed` was observed 60.0 s after it was recorded"),
        ({"evidence": {}, "gone": ["flink/taskmanager-2"]}, "no removal was seen on flink/task"),
        ({"seen_s": 5.995}, ""),
        ({"seen_s": 5.98}, "its removal was seen before its heal was called"),
        ({"called_ns": 5_995_000_000}, ""),
        ({"called_ns": 5_980_000_000}, "its removal was seen before its heal was called"),
        ({"called_ns": None}, ""),
        ({"seen_s": 0.5}, "its removal was seen before its effect"),
        ({"evidence": {"flink/taskmanager-2": -1}}, "no removal was seen on flink/taskmanager-2"),
    ],
)
def test_a_removal_must_be_verified_on_each_target_after_the_heal_call(
    tmp_path: Path, heal: dict[str, Any], text: str
) -> None:
    result = Effect().check(case(healed(injected(Story(), 1.0), 6.0, **heal), tmp_path))
    assert result.outcome == (Outcome.UNDECIDED if text else Outcome.HELD)
    assert text in result.summary


@pytest.mark.parametrize(
    ("called_s", "text"),
    [
        ((6.0,), ""),
        ((0.5, 6.0), ""),  # a call of an earlier attempt
        ((), "no call of its heal is recorded"),
        ((1.05,), "its heal was called before its effect was seen"),
    ],
)
def test_the_heal_is_called_after_the_effect(
    called_s: tuple[float, ...], text: str, tmp_path: Path
) -> None:
    seen = {"step": 0, "seen_ns": 65 * 10**8, "evidence": {"flink/taskmanager-2": RESTARTED}}
    events: list[tuple[float, Action, Mapping[str, Any]]] = [
        *((each.at_s, each.action, each.value) for each in injected(Story(), 1.0).history()),
        *((at_s, Action.HEAL_CALLED, {"step": 0}) for at_s in called_s),
        (6.6, Action.FAULT_HEALED, seen),
    ]
    story = Story()
    for at_s, action, value in sorted(events, key=lambda each: each[0]):
        story.at(at_s, action, **value)
    result = Effect().check(case(story, tmp_path))
    assert result.outcome == (Outcome.UNDECIDED if text else Outcome.HELD)
    assert text in result.summary


@pytest.mark.parametrize(
    ("called", "text"),
    [
        ({}, ""),
        ({"target": "link sink"}, "target: one of flink/taskmanager was planned, and link sink"),
        ({"params": {"signal": "CONT"}}, "params: {} was planned, and {'signal': 'CONT'}"),
        ({"fault": "pause"}, "fault: kill was planned, and pause is recorded"),
    ],
)
def test_an_injection_is_on_the_planned_target_with_the_planned_parameters(
    tmp_path: Path, called: dict[str, Any], text: str
) -> None:
    result = Effect().check(case(healed(injected(Story(), 1.0, **called), 6.0), tmp_path))
    assert result.outcome == (Outcome.UNDECIDED if text else Outcome.HELD)
    assert text in result.summary


@pytest.mark.parametrize(("signal", "proven"), [(None, True), ("KILL", False)])
def test_planned_parameters_must_be_recorded(
    tmp_path: Path, signal: str | None, proven: bool
) -> None:
    params = {} if signal is None else {"signal": signal}
    target = KILL["target"]
    step = Step(fault="kill", target=target, params=params, when={"after_s": 1})  # type: ignore[arg-type]
    story = Story()
    for event in healed(injected(Story(), 1.0), 6.0).history():
        value = {name: held for name, held in event.value.items() if name != "params"}
        story.at(event.at_s, event.action, **value)
    result = effect_of(step, story, tmp_path)
    assert result.outcome == (Outcome.HELD if proven else Outcome.UNDECIDED)
    assert ("its parameters are not recorded" in result.summary) != proven


@pytest.mark.parametrize(
    ("nodes", "text"),
    [
        (["flink/taskmanager-2"], ""),
        (None, ""),  # an older record
        (["flink/taskmanager-1"], "it was called on flink/taskmanager-1, and its effect was seen"),
        ([], "it was called on nothing, and its effect was seen on flink/taskmanager-2"),
    ],
)
def test_an_effect_is_on_the_targets_of_its_call(
    tmp_path: Path, nodes: list[str] | None, text: str
) -> None:
    result = Effect().check(case(healed(injected(Story(), 1.0, nodes=nodes), 6.0), tmp_path))
    assert result.outcome == (Outcome.UNDECIDED if text else Outcome.HELD)
    assert text in result.summary


@pytest.mark.parametrize(
    ("was_healed", "outcome"), [(True, Outcome.HELD), (False, Outcome.UNDECIDED)]
)
def test_an_earlier_attempt_with_effect_must_be_healed_too(
    tmp_path: Path, was_healed: bool, outcome: Outcome
) -> None:
    story = injected(Story(), 1.0)
    if was_healed:
        healed(story, 2.0)
    result = Effect().check(case(healed(injected(story, 4.0), 6.0), tmp_path))
    assert result.outcome == outcome
    assert was_healed or "an injection called at 1.0 s was not healed" in result.summary


def test_an_earlier_attempt_without_effect_needs_no_heal(tmp_path: Path) -> None:
    about = {"step": 0, "fault": "kill", "target": KILL["target"]}
    story = Story().at(1, Action.FAULT_CALLED, **about, params={})
    story.at(2, Action.FAULT_NOT_IN_EFFECT, **about, reason="it runs")
    result = Effect().check(case(healed(injected(story, 4.0), 6.0), tmp_path))
    assert result.outcome == Outcome.HELD, result.summary


@pytest.mark.parametrize(("called_s", "early"), [(6.1, False), (6.0, True)])
def test_without_a_heal_call_the_heal_shows_how_long_the_fault_lasted(
    tmp_path: Path, called_s: float, early: bool
) -> None:
    story = injected(Story(), 1.0)
    seen = {"flink/taskmanager-2": RESTARTED}
    story.at(
        6.5,
        Action.FAULT_HEALED,
        step=0,
        called_ns=int(called_s * 1e9),
        seen_ns=int(6.3e9),
        evidence=seen,
    )
    judged = case(story, tmp_path)
    step = judged.experiment.faults[0].model_copy(update={"for_s": 5.0})
    planned = judged.experiment.model_copy(update={"faults": (step,)})
    result = Effect().check(replace(judged, experiment=planned))
    assert [finding.what for finding in result.findings] == ["healed early"] * early + [
        "not healed"
    ]
    assert result.outcome == Outcome.UNDECIDED


@pytest.mark.parametrize("action", [Action.FAULT_NOT_IN_EFFECT, Action.FAULT_SKIPPED])
def test_an_effect_that_is_also_denied_makes_the_run_undecided(
    tmp_path: Path, action: Action
) -> None:
    story = Story().effect(2).at(2.5, action, step=0, reason="it was not seen")
    result = Effect().check(case(story, tmp_path))
    assert result.outcome == Outcome.UNDECIDED
    assert "it is also recorded that it was not seen" in result.summary


@pytest.mark.parametrize(("steady_s", "outcome"), [(0.8, Outcome.UNDECIDED), (0, Outcome.HELD)])
def test_a_fault_is_injected_when_its_trigger_says(
    tmp_path: Path, steady_s: float, outcome: Outcome
) -> None:
    """It was planned for one second after the steady state, and was called at 1 s."""
    story = acting(Story().at(steady_s, Action.PHASE, phase="disturb"))
    result = Effect().check(case(story, tmp_path))
    assert result.outcome == outcome, result.summary
    early = [("not by its trigger", "faults[0]")] if outcome == Outcome.UNDECIDED else []
    assert [(finding.what, finding.where) for finding in result.findings] == early


def test_an_effect_whose_call_is_missing_makes_the_run_undecided(tmp_path: Path) -> None:
    """Older records do not name the call in the effect."""
    about = {"step": 0, "seen_ns": 2 * 10**9, "evidence": {}}
    healed = {"step": 0, "seen_ns": 9 * 10**9}
    for called, outcome in (({"called_ns": 10**9}, Outcome.UNDECIDED), ({}, Outcome.HELD)):
        story = Story().at(2, Action.FAULT_IN_EFFECT, **about, **called)
        story.at(9, Action.FAULT_HEALED, **healed)
        result = Effect().check(case(story, tmp_path))
        assert result.outcome == outcome, result.summary


@pytest.mark.parametrize(
    ("first", "second", "later", "outcome"),
    [
        ("checkpoint triggered", "checkpoint completed", {}, Outcome.HELD),
        ("checkpoint triggered", "checkpoint completed", {"completed": 5}, Outcome.UNDECIDED),
        ("checkpoint triggered", "checkpoint completed", {"completed": 3}, Outcome.HELD),
        ("checkpoint triggered", "checkpoint completed", {"failing": None}, Outcome.UNDECIDED),
        ("job failing", "job running", {"failing": None}, Outcome.HELD),
    ],
)
def test_a_checkpoint_that_could_no_longer_complete_had_closed_the_window(
    first: str, second: str, later: dict[str, int | None], outcome: Outcome, tmp_path: Path
) -> None:
    """The fault was injected long after the job had failed, or a later checkpoint completed. A
    window of the job itself is open while the job fails."""
    about_window = {"checkpoint": 4} if first == "checkpoint triggered" else {"job": None}
    story = Story().at(1, Action(first), **about_window)
    for name, number in later.items():
        completed = name == "completed"
        action = Action.CHECKPOINT_COMPLETED if completed else Action.JOB_RESTARTING
        story.at(2, action, **({"checkpoint": number} if completed else {"job": None}))
    about = {"step": 0, "fault": "kill", "target": "one of flink/taskmanager"}
    story.at(20, Action.FAULT_CALLED, **about, trigger_index=0)
    story.effect(20).at(22, Action.FAULT_HEALED, step=0)
    story.at(23, Action(second), **about_window)
    step = Step(fault="kill", target=about["target"], when={"between": (first, second)})  # type: ignore[arg-type]
    result = effect_of(step, story, tmp_path)
    assert result.outcome == outcome, result.summary
    assert ("had closed its window" in result.summary) == (outcome == Outcome.UNDECIDED)


@pytest.mark.parametrize(
    ("fault", "healed_s", "outcome"),
    [
        ("pause", 46.1, Outcome.HELD),
        ("pause", 45.99, Outcome.HELD),
        ("pause", 3.0, Outcome.UNDECIDED),
        ("throw_in_task", 3.0, Outcome.HELD),
    ],
)
def test_a_fault_without_a_duration_lasts_until_the_schedule_ends(
    fault: str, healed_s: float, outcome: Outcome, tmp_path: Path
) -> None:
    """Nothing of an exception in a task lasts."""
    node = "flink/taskmanager-1"
    about = {"step": 0, "fault": fault, "target": node, "nodes": [node]}
    story = Story().at(0, Action.PHASE, phase="disturb").at(1, Action.FAULT_CALLED, **about)
    evidence = {"called_ns": 10**9, "seen_ns": 11 * 10**8, "evidence": {node: IN_EFFECT[fault]}}
    story.at(1.1, Action.FAULT_IN_EFFECT, **about, **evidence)
    last = {"last_seen_ns": evidence["seen_ns"], "in_place_ns": int(healed_s * 1e9)}
    story.at(healed_s, Action.HEAL_CALLED, **about, **last)
    seen = {"seen_ns": int((healed_s + 0.1) * 1e9), "evidence": {node: HEALED[fault]}}
    story.at(healed_s + 0.2, Action.FAULT_HEALED, **about, **seen)
    story.at(46, Action.PHASE, phase="heal")
    step = Step(fault=fault, target=node, when={"after_s": 1})  # type: ignore[arg-type]
    result = effect_of(step, story, tmp_path)
    assert result.outcome == outcome, result.summary
    assert ("healed early" in result.summary) == (outcome == Outcome.UNDECIDED)


@pytest.mark.parametrize(
    ("failed_s", "outcome"),
    [(19.5, Outcome.UNDECIDED), (19.95, Outcome.HELD), (20.5, Outcome.HELD)],
)
def test_a_failure_after_the_call_is_of_the_fault_and_closed_no_window_before(
    failed_s: float, outcome: Outcome, tmp_path: Path
) -> None:
    """The effect is seen a second after the call; the failure that it causes may be seen before."""
    story = Story().at(1, Action.CHECKPOINT_TRIGGERED, checkpoint=4)
    about = {"step": 0, "fault": "kill", "target": "one of flink/taskmanager"}
    for at_s, action in sorted([(20.0, Action.FAULT_CALLED), (failed_s, Action.JOB_RESTARTING)]):
        fields = {**about, "trigger_index": 0} if action == Action.FAULT_CALLED else {"job": None}
        story.at(at_s, action, **fields)
    in_effect = {"called_ns": 20 * 10**9, "seen_ns": 21 * 10**9}
    story.at(21, Action.FAULT_IN_EFFECT, step=0, **in_effect, evidence={"node": KILLED})
    story.at(22, Action.FAULT_HEALED, step=0)
    when = {"between": ("checkpoint triggered", "checkpoint completed")}
    step = Step(fault="kill", target=about["target"], when=when)  # type: ignore[arg-type]
    result = effect_of(step, story, tmp_path)
    assert result.outcome == outcome, result.summary


@pytest.mark.parametrize(
    ("changed", "opens", "text"),
    [
        ({}, "checkpoint triggered", '"checkpoint completed" may have closed its window 0.8 s'),
        ({"seen_s": 19.8}, "checkpoint triggered", '"checkpoint completed" had closed its window'),
        ({"in_progress_s": 20.1}, "checkpoint triggered", ""),
        ({"in_progress_s": 19.9}, "checkpoint triggered", "may have closed its window"),
        ({"duration_ms": 950}, "checkpoint triggered", ""),  # within the tolerance
        ({"duration_ms": 850}, "checkpoint triggered", "may have closed its window 0.1 s before"),
        ({"duration_ms": -1}, "checkpoint triggered", ""),  # not measured
        ({"trigger_ms": None}, "checkpoint triggered", ""),  # an older record
        ({}, "checkpoint all acknowledged", ""),
    ],
)
def test_a_checkpoint_may_complete_at_its_last_acknowledgement(
    changed: dict[str, Any], opens: str, text: str, tmp_path: Path
) -> None:
    """It was triggered at 19 s, took 200 ms and was seen completed at 20.3 s; the fault was called
    at 19.95 s and took effect at 20 s. Stamps are 100 s ahead of the run."""
    seen_s, duration_ms = changed.get("seen_s", 20.3), changed.get("duration_ms", 200)
    about, trigger_ms = {"checkpoint": 4}, changed.get("trigger_ms", 119_000)
    story = Story().at(19, Action.CHECKPOINT_TRIGGERED, **about, trigger_ms=119_000)
    story.at(19.3, Action(opens), **about, trigger_ms=trigger_ms)
    step = {"step": 0, "fault": "kill", "target": "one of flink/taskmanager"}
    story.at(19.95, Action.FAULT_CALLED, **step, trigger_index=1)
    if "in_progress_s" in changed:
        story.at(changed["in_progress_s"], Action.CHECKPOINT_ACKNOWLEDGED, **about)
    ended = {"trigger_ms": trigger_ms, "duration_ms": duration_ms}
    story.at(seen_s, Action.CHECKPOINT_COMPLETED, **about, **ended)
    story.effect(20).at(22, Action.FAULT_HEALED, step=0)
    when = {"between": (opens, "checkpoint completed")}
    result = effect_of(Step(fault="kill", target=step["target"], when=when), story, tmp_path)  # type: ignore[arg-type]
    assert result.outcome == (Outcome.UNDECIDED if text else Outcome.HELD), result.summary
    assert text in result.summary


@pytest.mark.parametrize(
    ("completed", "closed"),
    [
        ({"checkpoint": 4}, True),
        ({"checkpoint": 4, "job": "b"}, False),
        ({"checkpoint": 3}, False),
    ],
)
def test_a_completion_that_was_observed_before_its_trigger_had_closed_the_window(
    completed: dict[str, Any], closed: bool, tmp_path: Path
) -> None:
    """Checkpoint 4 was triggered at 19 s and completed by 19.2 s, which was observed at 19.25 s;
    its trigger was observed at 19.3 s. The fault took effect at 20 s."""
    stamps = {"trigger_ms": 119_000, "job": "a"}
    story = Story().at(18, Action.CHECKPOINT_TRIGGERED, checkpoint=2, trigger_ms=118_000)
    about = {**stamps, "duration_ms": 200, **completed}
    story.at(19.25, Action.CHECKPOINT_COMPLETED, **about)
    story.at(19.3, Action.CHECKPOINT_TRIGGERED, checkpoint=4, **stamps)
    step = {"step": 0, "fault": "kill", "target": "one of flink/taskmanager"}
    story.at(19.95, Action.FAULT_CALLED, **step, trigger_index=2)
    story.effect(20).at(22, Action.FAULT_HEALED, step=0)
    story.at(23, Action.JOB_FAILING)
    when = {"between": ("checkpoint triggered", "checkpoint completed")}
    result = effect_of(Step(fault="kill", target=step["target"], when=when), story, tmp_path)  # type: ignore[arg-type]
    assert ("closed its window" in result.summary) == closed, result.summary


@pytest.mark.parametrize("seen", [{"seen_ns": None}, {}])
def test_an_effect_without_its_moment_makes_the_run_undecided(
    seen: dict[str, None], tmp_path: Path
) -> None:
    story = Story().at(1, Action.FAULT_IN_EFFECT, step=0, evidence={}, **seen)
    result = Effect().check(case(story.at(2, Action.FAULT_HEALED, step=0), tmp_path))
    assert (result.outcome, result.summary) == (
        Outcome.UNDECIDED,
        "faults[0] without evidence: the moment of its effect is not recorded",
    )


def test_an_early_end_without_its_moment_counts_from_its_record(tmp_path: Path) -> None:
    story = Story().effect(1).at(10, Action.FAULT_ENDED_EARLY, step=0, seen_ns=None, reason="gone")
    result = Effect().check(case(story.at(61, Action.FAULT_HEALED, step=0), tmp_path))
    assert "found ended after 9.0 s: gone" in result.summary

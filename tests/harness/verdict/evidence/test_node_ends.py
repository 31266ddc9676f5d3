"""The ends and starts of the containers of a fault's nodes."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from streamquake.faults.schedule.step import Step
from streamquake.harness.verdict.checks.effect import Effect
from streamquake.harness.verdict.evidence.node_ends import (
    ended_before_call,
    ended_by_another,
    not_running_at_call,
    ran_while_down,
    started_early,
    started_outside_heal,
    unreported_ends,
)
from streamquake.harness.verdict.evidence.step_attempts import StepAttempt, last_attempt
from streamquake.reports.record.event import Action
from streamquake.reports.record.history import History
from streamquake.reports.record.outcome import Outcome
from tests.harness.histories import KILL, KILLED, RESTARTED, Story, case

NODE, OTHER = "flink/taskmanager-1", "flink/taskmanager-2"
DIED, STARTED = Action.CONTAINER_DIED, Action.CONTAINER_STARTED
SANDBOX, REVIVED = Action.SANDBOX_DIED, Action.NODE_REVIVED


def acted(*containers: tuple[float, Action, str], healed_s: float | None = 20.0) -> Story:
    """A fault on a node, called at 9 s and in effect from 10 s until its heal."""
    about = {"step": 0, "fault": "kill", "target": KILL["target"], "nodes": [NODE]}
    story = Story().at(9, Action.FAULT_CALLED, **about, params={})
    for at_s, action, node in containers:
        story.at(at_s, action, node=node)
    seen = {"called_ns": 9 * 10**9, "seen_ns": 10 * 10**9, "evidence": {NODE: KILLED}}
    story.at(10, Action.FAULT_IN_EFFECT, **about, **seen)
    if healed_s is not None:
        story.at(healed_s, Action.HEAL_CALLED, **about)
    return story.at(21, Action.FAULT_HEALED, **about, seen_ns=21 * 10**9)


def judged(story: Story, fault: str) -> tuple[Step, StepAttempt, History]:
    history = story.history()
    step = Step(fault=fault, target=NODE, when={"after_s": 1})  # type: ignore[arg-type]
    return step, last_attempt(history, 0), history


@pytest.mark.parametrize(
    ("fault", "at_s", "node", "early"),
    [
        ("kill", 15, NODE, True),
        ("pause", 15, NODE, True),
        ("kill", 10.2, NODE, True),
        ("kill", 10.1, NODE, False),  # within the tolerance
        ("kill", 5, NODE, False),
        ("kill", 19.8, NODE, True),
        ("kill", 19.9, NODE, False),
        ("kill", 20.3, NODE, False),
        ("kill", 15, OTHER, False),
        ("crash_loop", 15, NODE, False),  # the container engine restarts it
        ("slow_operator", 15, NODE, False),  # another fault may have killed it
    ],
)
def test_a_node_that_is_kept_down_starts_at_its_heal(
    fault: str, at_s: float, node: str, early: bool
) -> None:
    found = started_early(*judged(acted((at_s, STARTED, node)), fault))
    assert bool(found) == early


@pytest.mark.parametrize(
    ("fault", "containers", "early"),
    [
        ("kill", [(15, REVIVED, NODE)], True),
        ("kill", [(1, STARTED, NODE), (15, REVIVED, NODE)], True),
        ("kill", [(8.5, STARTED, NODE), (10.5, REVIVED, NODE)], False),  # started before the call
        ("kill", [(8.5, STARTED, OTHER), (10.5, REVIVED, NODE)], True),
        ("kill", [(10.1, REVIVED, NODE)], False),
        ("kill", [(20.3, REVIVED, NODE)], False),
        ("kill", [(15, REVIVED, OTHER)], False),
        ("crash_loop", [(15, REVIVED, NODE)], False),
    ],
)
def test_the_harness_revives_no_node_that_is_kept_down(
    fault: str, containers: list[tuple[float, Action, str]], early: bool
) -> None:
    found = started_early(*judged(acted(*containers), fault))
    assert found.startswith(f"{NODE} was started again") == early


def test_an_early_start_is_named_with_its_distance_to_the_heal() -> None:
    found = started_early(*judged(acted((15, STARTED, NODE)), "kill"))
    assert found == f"{NODE} was started again after 5.0 s, 5.0 s before the heal was called"


def test_a_fault_may_start_the_node_itself_before_its_effect_is_seen() -> None:
    """As the JVM that ends with too small a heap: its first process was ended at 10 s."""
    story = Story()
    for event in acted((10.5, STARTED, NODE), healed_s=20.0).history():
        late = event.action == Action.FAULT_IN_EFFECT
        story.at(12 if late else event.at_s, event.action, **event.value)
    assert started_early(*judged(story, "oom_heap")) == ""
    found = started_early(*judged(story.at(22, STARTED, node=NODE), "oom_heap"))
    assert found == "", "after the heal"
    early = acted((15, STARTED, NODE))
    assert started_early(*judged(early, "oom_heap")).startswith(f"{NODE} was started again after 5")


def test_a_node_may_start_between_two_calls_of_its_heal() -> None:
    story = acted(healed_s=14.0).at(15, STARTED, node=NODE)
    story.at(20, Action.HEAL_CALLED, step=0)
    assert started_early(*judged(story, "kill")) == ""


def test_a_fault_without_a_recorded_heal_has_no_early_start() -> None:
    story = acted((15, STARTED, NODE), healed_s=None).history()
    kept = Story()
    for event in story:
        if event.action != Action.FAULT_HEALED:
            kept.at(event.at_s, event.action, **event.value)
    assert started_early(*judged(kept, "kill")) == ""


@pytest.mark.parametrize(
    ("fault", "containers", "ended"),
    [
        ("kill", [(7, DIED, NODE)], True),
        ("kill", [(7, DIED, NODE), (8, STARTED, NODE)], False),
        ("kill", [(8, STARTED, NODE), (7, DIED, NODE)], False),  # recorded in another order
        ("kill", [(8.9, DIED, NODE)], False),  # within the tolerance
        ("kill", [(9.1, DIED, NODE)], False),
        ("kill", [(7, DIED, OTHER)], False),
        ("pause", [(7, DIED, NODE)], False),
        ("crash_loop", [(7, DIED, NODE)], False),
    ],
)
def test_a_process_that_had_ended_was_not_ended_by_the_fault(
    fault: str, containers: list[tuple[float, Action, str]], ended: bool
) -> None:
    found = ended_before_call(*judged(acted(*containers), fault))
    assert found == (f"{NODE} had ended 2.0 s before its injection was called" if ended else "")


@pytest.mark.parametrize(
    ("fault", "containers", "messages"),
    [
        ("kill", [], []),  # an older record
        ("kill", [(9.5, DIED, NODE), (20.5, STARTED, NODE)], []),
        ("kill", [(12, DIED, NODE), (20.5, STARTED, NODE)], []),  # reported late
        ("kill", [(8.9, DIED, NODE), (20, STARTED, NODE)], []),
        ("kill", [(9.5, DIED, OTHER)], ["ended", "started after the heal"]),
        ("kill", [(7, DIED, NODE), (20.5, STARTED, NODE)], ["ended"]),
        ("kill", [(20.4, DIED, NODE), (20.5, STARTED, NODE)], ["ended"]),
        ("kill", [(9.5, DIED, NODE), (15, STARTED, NODE)], ["started after the heal"]),
        ("pause", [(9.5, DIED, OTHER)], []),
        ("slow_operator", [(9.5, DIED, OTHER)], []),
    ],
)
def test_the_container_engine_reports_what_the_fault_ended_and_started(
    fault: str, containers: list[tuple[float, Action, str]], messages: list[str]
) -> None:
    found = list(unreported_ends(*judged(acted(*containers), fault)))
    begin = f"the container engine did not report that {NODE} "
    assert found == [begin + message for message in messages]


def test_an_end_at_the_call_of_the_heal_is_reported_and_late() -> None:
    found = list(unreported_ends(*judged(acted((20, DIED, NODE), (20, STARTED, NODE)), "kill")))
    assert found == [f"{NODE} ended 10.0 s after it was seen to have ended"]


@pytest.mark.parametrize("missing", [Action.HEAL_CALLED, Action.FAULT_HEALED])
def test_without_a_heal_no_start_is_missed(missing: Action) -> None:
    story = Story()
    for event in acted((9.5, DIED, NODE)).history():
        if event.action != missing:
            story.at(event.at_s, event.action, **event.value)
    assert list(unreported_ends(*judged(story, "kill"))) == []
    assert started_outside_heal(*judged(story, "kill")) == ""


def test_evidence_without_fields_has_no_exit_code() -> None:
    story = Story().at(9.6, DIED, node=NODE, exit_code=0)
    seen = {"seen_ns": 96 * 10**8, "evidence": {NODE: "down"}}
    story.at(9.6, Action.FAULT_IN_EFFECT, step=0, nodes=[NODE], **seen)
    assert list(unreported_ends(*judged(story, "kill"))) == []


@pytest.mark.parametrize("ends", [(12.2,), (12.2, 13)])
def test_an_end_long_after_it_was_seen_is_another(ends: tuple[float, ...]) -> None:
    containers = [*((at_s, DIED, NODE) for at_s in ends), (20.5, STARTED, NODE)]
    found = list(unreported_ends(*judged(acted(*containers), "kill")))
    assert found == [f"{NODE} ended 2.2 s after it was seen to have ended"]


@pytest.mark.parametrize(("exit_code", "differs"), [(137, False), (0, True), (None, False)])
def test_the_reported_exit_code_is_the_observed_one(exit_code: int | None, differs: bool) -> None:
    story = Story()
    for event in acted((20.5, STARTED, NODE)).history():
        if event.action == Action.FAULT_IN_EFFECT:
            story.at(9.5, DIED, node=NODE, exit_code=exit_code)
        story.at(event.at_s, event.action, **event.value)
    found = list(unreported_ends(*judged(story, "kill")))
    assert found == [f"{NODE} ended with {exit_code}, and 137 was observed"] * differs


BEGAN_MS = datetime(2026, 1, 1, tzinfo=UTC).timestamp() * 1000


def started_at(at_s: float) -> str:
    """The container engine's stamp of a moment of the run."""
    return datetime.fromtimestamp(BEGAN_MS / 1000 + at_s, UTC).isoformat()


@pytest.mark.parametrize(
    ("fault", "stamp", "message"),
    [
        ("kill", started_at(20.5), ""),
        ("kill", started_at(19), ""),  # the two clocks are related by an observation
        ("kill", started_at(15), f"{NODE} is recorded to have started 5.0 s before the heal was "),
        ("kill", started_at(5), f"{NODE} is recorded to have started 15.0 s before the heal was "),
        ("kill", started_at(22), ""),
        ("crash_loop", started_at(20.5), ""),
        ("crash_loop", started_at(5), f"{NODE} is recorded to have started 15.0 s before the heal"),
        ("rolling_restart", started_at(5), ""),  # it started each node itself
        ("kill", started_at(24), f"{NODE} is recorded to have started 3.0 s after it was seen to"),
        ("pause", started_at(5), ""),  # the process goes on
        ("slow_operator", started_at(5), ""),
        ("kill", "before lunch", ""),
        ("kill", None, ""),
    ],
)
def test_the_process_after_the_heal_was_started_by_it(
    fault: str, stamp: str | None, message: str
) -> None:
    story = Story()
    story.at(1, Action.CHECKPOINT_TRIGGERED, checkpoint=1, trigger_ms=BEGAN_MS + 1000)
    for event in acted().history():
        healed = {OTHER: {}, NODE: {**RESTARTED, "started_at": stamp}, "watched": "api"}
        changed = {"evidence": healed} if event.action == Action.FAULT_HEALED else {}
        story.at(event.at_s, event.action, **{**event.value, **changed})
    found = started_outside_heal(*judged(story, fault))
    assert found.startswith(message) if message else found == ""


def test_without_a_stamp_of_the_engine_no_start_is_judged() -> None:
    story = acted()
    healed = {NODE: {**RESTARTED, "started_at": started_at(5)}}
    story.at(22, Action.FAULT_HEALED, step=0, seen_ns=22 * 10**9, evidence=healed)
    assert started_outside_heal(*judged(story, "kill")) == ""


PROCESS = f"the process that ended on {NODE} is recorded to have started"


@pytest.mark.parametrize(
    ("fault", "before", "seen", "message"),
    [
        ("kill", started_at(4), started_at(4), ""),
        ("kill", started_at(3), started_at(3), ""),  # the two clocks are related by an observation
        ("kill", started_at(2), started_at(2), f"{PROCESS} 2.0 s before the last start of the no"),
        # It was started again since `before` was measured.
        ("crash_loop", started_at(2), started_at(4), ""),
        ("kill", started_at(9.5), started_at(9.5), ""),
        ("kill", started_at(12), started_at(12), f"{PROCESS} 3.0 s after the injection was called"),
        ("rolling_restart", started_at(12), started_at(13), f"{PROCESS} 3.0 s after the injection"),
        ("kill", "at noon", "at noon", f"{PROCESS} at at noon, which is no moment"),
        ("kill", None, None, f"{PROCESS} at None, which is no moment"),
        ("pause", started_at(12), started_at(12), ""),  # its process goes on
    ],
)
def test_the_process_that_a_fault_ended_ran_at_its_call(
    fault: str, before: str | None, seen: str | None, message: str
) -> None:
    """The node was started at 4 s, and by the heal."""
    story = Story().at(1, Action.CHECKPOINT_TRIGGERED, checkpoint=1, trigger_ms=BEGAN_MS + 1000)
    observed = {**KILLED, "started_at": seen, "before": {"status": "running", "started_at": before}}
    for event in acted((4, STARTED, NODE), (8, STARTED, OTHER), (20.5, STARTED, NODE)).history():
        evidence = {"watched": "api", OTHER: {}, NODE: observed}
        changed = {"evidence": evidence} if event.action == Action.FAULT_IN_EFFECT else {}
        story.at(event.at_s, event.action, **{**event.value, **changed})
    found = list(not_running_at_call(*judged(story, fault)))
    assert len(found) == bool(message)
    assert "".join(found).startswith(message)


def test_without_a_stamp_of_the_engine_no_process_starts_after_the_call() -> None:
    story = Story()
    for event in acted().history():
        seen = {NODE: {**KILLED, "before": {"started_at": started_at(99)}}}
        changed = {"evidence": seen} if event.action == Action.FAULT_IN_EFFECT else {}
        story.at(event.at_s, event.action, **{**event.value, **changed})
    assert list(not_running_at_call(*judged(story, "kill"))) == []


def ran(at_s: float, start_s: float | None, **value: Any) -> Story:
    """A task on the node of the fault, which has ended from 10 s until the heal, called at 20 s;
    `start_s` is the engine's stamp of its start."""
    story = Story()
    story.at(1, Action.CHECKPOINT_TRIGGERED, checkpoint=1, trigger_ms=BEGAN_MS + 1000)
    for event in acted().history():
        story.at(event.at_s, event.action, **event.value)
    known = {"vertex": "v", "vertex_name": "Count", "subtask": 0, "attempt": 1, "node": NODE}
    start_ms = None if start_s is None else BEGAN_MS + start_s * 1000
    known |= {"state": "RUNNING", "start_ms": start_ms}
    return story.at(at_s, Action.TASK_CHANGED, **known | value)


@pytest.mark.parametrize("state", ["INITIALIZING", "RUNNING", "FINISHED"])
def test_no_task_begins_and_runs_on_a_node_that_has_ended(state: str) -> None:
    found = ran_while_down(*judged(ran(12, 11, state=state), "kill"))
    message = f"Count (0) began 1.0 s after {NODE} had ended, and is recorded there as {state}"
    assert found == f"{message} before the heal was called"


@pytest.mark.parametrize(
    ("at_s", "start_s", "value", "fault"),
    [
        (12, 8, {}, "kill"),  # it had begun before, and was observed late
        (12, 10.4, {}, "kill"),  # within the tolerance of the stamps
        (20.1, 19, {}, "kill"),  # observed after the call of the heal
        (12, 11, {"state": "DEPLOYING"}, "kill"),  # the engine has not noticed the end yet
        (12, 11, {"state": "FAILED"}, "kill"),
        (12, 11, {"node": OTHER}, "kill"),
        (12, 11, {"node": None}, "kill"),
        (12, -BEGAN_MS / 1000 - 0.001, {}, "kill"),  # not deployed
        (12, None, {}, "kill"),  # an older record
        (12, 11, {}, "pause"),
        (12, 11, {}, "crash_loop"),
        (12, 11, {}, "slow_operator"),
    ],
)
def test_a_task_may_have_begun_before_the_end_or_after_the_heal(
    at_s: float, start_s: float | None, value: dict[str, Any], fault: str
) -> None:
    assert ran_while_down(*judged(ran(at_s, start_s, **value), fault)) == ""


def test_where_a_fault_moved_the_clocks_no_start_of_a_task_is_judged() -> None:
    story = ran(12, 11).at(5, Action.FAULT_CALLED, step=1, fault="clock_skew")
    assert ran_while_down(*judged(story, "kill")) == ""


def test_without_a_call_of_the_heal_no_start_of_a_task_is_judged() -> None:
    story = Story()
    for event in ran(12, 11).history():
        if event.action != Action.HEAL_CALLED:
            story.at(event.at_s, event.action, **event.value)
    assert ran_while_down(*judged(story, "kill")) == ""


def test_a_task_on_a_node_that_has_ended_makes_the_run_undecided(tmp_path: Path) -> None:
    result = Effect().check(case(ran(12, 11), tmp_path))
    assert result.outcome == Outcome.UNDECIDED
    assert f"contradictory evidence: Count (0) began 1.0 s after {NODE} had ended" in result.summary


@pytest.mark.parametrize(
    ("container", "text"),
    [
        ((15, REVIVED, NODE), f"faults[0] ended early: {NODE} was started again after 5.0 s"),
        ((15, STARTED, NODE), f"faults[0] ended early: {NODE} was started again after 5.0 s"),
        ((7, DIED, NODE), f"faults[0] without evidence: {NODE} had ended 2.0 s before"),
    ],
)
def test_ends_and_starts_that_contradict_the_fault_make_the_run_undecided(
    tmp_path: Path, container: tuple[float, Action, str], text: str
) -> None:
    result = Effect().check(case(acted(container), tmp_path))
    assert result.outcome == Outcome.UNDECIDED
    assert result.summary.startswith(text)


@pytest.mark.parametrize(
    ("fault", "containers", "message"),
    [
        ("kill", [], f"the container engine did not report that {NODE} ended"),
        ("crash_loop", [(9.5, DIED, NODE), (9.6, STARTED, NODE), (12, DIED, NODE)], ""),
        ("crash_loop", [(8, DIED, NODE)], f"the container engine did not report that {NODE} ended"),
        (
            "power_off",
            [(9.5, DIED, NODE), (20.5, STARTED, NODE)],
            f"the container engine did not report that the sandbox of {NODE} ended",
        ),
        (
            "power_off",
            [(8, SANDBOX, NODE), (9.5, SANDBOX, OTHER), (9.5, DIED, NODE), (20.5, STARTED, NODE)],
            f"the container engine did not report that the sandbox of {NODE} ended",
        ),
        (
            "power_off",
            [(9.5, DIED, NODE), (9.6, SANDBOX, NODE), (20.5, STARTED, NODE)],
            "",
        ),
        ("memory_limit", [], ""),  # the kernel may end it
        ("pause", [], ""),
    ],
)
def test_a_newer_record_has_the_reports_of_the_container_engine(
    fault: str, containers: list[tuple[float, Action, str]], message: str
) -> None:
    story = Story()
    for event in acted(*containers).history():
        due = {"due_ns": 9 * 10**9} if event.action == Action.FAULT_IN_EFFECT else {}
        story.at(event.at_s, event.action, **event.value, **due)
    assert next(unreported_ends(*judged(story, fault)), "") == message


@pytest.mark.parametrize(
    ("ends_s", "reported"),
    [((9.5, 11, 13), ""), ((9.5, 11, 13, 15), ""), ((9.5, 11), "2"), ((8, 9.5, 11), "2")],
)
def test_each_end_of_a_crash_loop_is_reported(ends_s: tuple[float, ...], reported: str) -> None:
    """The container engine restarted the node twice, so that it ended three times at least."""
    story = Story()
    for event in acted(*((at_s, DIED, NODE) for at_s in ends_s)).history():
        seen = {NODE: {"status": "restarting", "exit_code": None, "ends": 2}}
        changed = {"evidence": seen} if event.action == Action.FAULT_IN_EFFECT else {}
        story.at(event.at_s, event.action, **{**event.value, **changed})
    found = list(unreported_ends(*judged(story, "crash_loop")))
    times = f"{NODE} is recorded to have ended 3 times, and was reported to have ended"
    assert found == [f"{times} {reported} times"] * bool(reported)


@pytest.mark.parametrize(
    ("fault", "code", "message"),
    [
        ("crash_loop", 70, ""),
        ("crash_loop", 137, ""),  # its heal kills it, and a lack of memory may
        ("crash_loop", None, ""),
        ("crash_loop", 1, f"{NODE} ended with 1, and crash_loop makes it end with 70"),
        ("crash_loop", 143, f"{NODE} ended with 143, and crash_loop makes it end with 70"),
        ("oom_heap", 1, ""),  # an error that the process caught
    ],
)
def test_a_crash_loop_makes_a_node_end_with_its_exit_code(
    fault: str, code: int | None, message: str
) -> None:
    story = Story()
    for event in acted((9.5, DIED, NODE), (11, DIED, NODE), (20.5, STARTED, NODE)).history():
        exit_code = {9.5: 137, 11: code}.get(event.at_s)
        changed: dict[str, Any] = {"exit_code": exit_code} if event.action == DIED else {}
        if event.action == Action.FAULT_IN_EFFECT:
            changed = {"evidence": {NODE: {"status": "running"}}}
        story.at(event.at_s, event.action, **{**event.value, **changed})
    found = list(unreported_ends(*judged(story, fault)))
    assert found == [message] * bool(message)


def acted_again(*deaths_s: float, fault: str = "kill", node: str = NODE, at_s: float = 9) -> Story:
    """The fault `acted`, and one of another step that is seen in effect after it."""
    story = acted(*((death_s, DIED, NODE) for death_s in deaths_s))
    about = {"step": 1, "fault": fault, "target": node, "nodes": [node]}
    story.at(at_s, Action.FAULT_CALLED, **about, params={})
    seen = {"called_ns": at_s * 10**9, "seen_ns": (at_s + 1) * 10**9, "evidence": {node: KILLED}}
    story.at(at_s + 1, Action.FAULT_IN_EFFECT, **about, **seen)
    story.at(at_s + 11, Action.HEAL_CALLED, **about)
    return story.at(at_s + 12, Action.FAULT_HEALED, **about, seen_ns=(at_s + 12) * 10**9)


@pytest.mark.parametrize(
    ("story", "shared"),
    [
        (acted_again(9.5), True),
        (acted_again(9.5, 9.8), False),
        (acted_again(9.5, 31.5, at_s=31), False),  # one after the other
        (acted_again(9.5, node=OTHER), False),
        (acted_again(9.5, fault="pause"), False),
    ],
)
def test_one_end_of_a_node_proves_one_fault(story: Story, shared: bool) -> None:
    history = story.history()
    fault = history.of(Action.FAULT_IN_EFFECT)[1].value["fault"]
    step = Step(fault=fault, target=NODE, when={"after_s": 1})  # type: ignore[arg-type]
    message = f"the end of {NODE} was that of faults[0]" if shared else ""
    assert ended_by_another(step, last_attempt(history, 1), history) == message
    first = Step(fault="kill", target=NODE, when={"after_s": 1})  # type: ignore[arg-type]
    assert ended_by_another(first, last_attempt(history, 0), history) == ""

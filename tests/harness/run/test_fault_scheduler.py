"""The fault scheduler on the fake runtime: triggers, heals, skips, no open intent at the end."""

from __future__ import annotations

import random
from collections import Counter
from concurrent.futures import wait
from itertools import pairwise
from pathlib import Path
from queue import SimpleQueue
from threading import Barrier, current_thread
from threading import Event as Signal
from threading import enumerate as enumerate_threads
from typing import Any

import pytest

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.runtime.clock import FakeClock
from streamquake.cluster.runtime.runtime import ContainerStatus, InjectionTimes, ResponseLost
from streamquake.faults.catalogue.pause import Pause
from streamquake.faults.fault import Evidence, LinkTarget, Target
from streamquake.faults.injection.injection import InjectionResult
from streamquake.faults.injection.intents import Intent, IntentLog
from streamquake.faults.injection.verification import RepeatedVerification
from streamquake.faults.schedule.step import Step
from streamquake.harness.run import fault_scheduler
from streamquake.harness.run.event_loop import EventLoop
from streamquake.harness.run.fault_scheduler import FaultScheduler
from streamquake.harness.run.step_run import StepState
from streamquake.harness.verdict.evidence.step_attempts import last_attempt
from streamquake.harness.verdict.evidence.trigger_evidence import trigger_problem
from streamquake.reports.record.event import Action, Event, Kind
from streamquake.reports.record.fault_events import (
    FaultCalled,
    FaultHealed,
    FaultInEffect,
    FaultMissedWindow,
    HealCalled,
)
from streamquake.reports.record.history import History, HistoryWriter
from streamquake.reports.record.metrics import Metrics
from tests.event_drafts import undeclared_fields
from tests.fakes import fake_cluster

EPOCH_MS = FakeClock().epoch_ms()
END_S = 120
"""Every schedule of these tests is over by then."""


def step(fault: str, target: str, for_s: float | None = 1.0, **when: Any) -> Step:
    params = {"slow_link": {"latency_ms": 10}, "fd_limit": {"spare": 2}}.get(fault, {})
    return Step(fault=fault, params=params, target=target, when=when, for_s=for_s)  # type: ignore[arg-type]


class Testbed:
    """A fake cluster with an event loop and a scheduler of these steps."""

    def __init__(self, folder: Path, *steps: Step, trigger_s: float = 30) -> None:
        self.cluster: Cluster = fake_cluster()
        writer = HistoryWriter(folder / "history.jsonl")
        metrics = Metrics(folder / "metrics.parquet")
        self.loop = EventLoop(writer, metrics, self.cluster.clock, show=lambda: None)
        self.intents = IntentLog(folder / "intents.jsonl")
        self.scheduler = FaultScheduler(
            steps,
            cluster=self.cluster,
            loop=self.loop,
            intents=self.intents,
            seed=1,
            effect_s=1,
            trigger_s=trigger_s,
        )

    def record_after(self, first: Action, action: Action, **value: Any) -> None:
        """Record an event once, when `first` is recorded."""
        due = [True]

        def listen(event: Event) -> None:
            if due and event.action == first:
                due.clear()
                self.loop.record(action, **value)

        self.loop.listen(listen)

    def tick(self) -> None:
        self.loop.tick()
        assert self.loop.clock.now_ns() < END_S * 1e9, self.scheduler.pending()

    def run(self) -> History:
        """Run the schedule to its end, then heal the open faults. Time does not pass during an
        injection; otherwise a later step might be injected first on a busy machine."""
        while self.scheduler.pending() is not None:
            runs = self.scheduler.runs
            wait([run.work for run in runs if run.work is not None], timeout=60)
            checks = [run.watch.check_under_way for run in runs if run.watch is not None]
            wait([check for check in checks if check is not None], timeout=60)
            self.tick()
        self.scheduler.heal_all()
        self.loop.tick()
        history = self.loop.history()
        assert undeclared_fields(history) == []
        return history


def actions_of(history: History) -> list[str]:
    return [str(event.action) for event in history]


def test_a_step_is_injected_verified_healed_and_verified_again(tmp_path: Path) -> None:
    testbed = Testbed(tmp_path, step("kill", "flink/taskmanager-1", after_s=2.0))
    history = testbed.run()
    assert actions_of(history) == [
        "fault called",
        "fault in effect",
        "fault still in effect",
        "heal called",
        "fault healed",
    ]
    effect, healed = history.of(Action.FAULT_IN_EFFECT, Action.FAULT_HEALED)
    assert effect.value["seen_ns"] >= 2e9
    assert healed.value["called_ns"] - effect.value["seen_ns"] >= 1e9
    assert testbed.intents.open_intents() == ()


def test_a_step_is_injected_on_its_event(tmp_path: Path) -> None:
    testbed = Testbed(
        tmp_path, step("pause", "flink/taskmanager-1", event="checkpoint triggered", nth=2)
    )
    for number in (1, 2):
        testbed.loop.record(Action.CHECKPOINT_TRIGGERED, checkpoint=number)
    history = testbed.run()
    (called,) = history.of(Action.FAULT_CALLED)
    assert history[called.value["trigger_index"]].value["checkpoint"] == 2


def test_a_step_whose_trigger_never_fires_is_skipped_with_the_reason(tmp_path: Path) -> None:
    testbed = Testbed(
        tmp_path, step("kill", "flink/taskmanager-1", event="job restarting"), trigger_s=3
    )
    (skipped,) = testbed.run().of(Action.FAULT_SKIPPED)
    assert "observed 0 of 1 times" in skipped.value["reason"]
    assert testbed.intents.open_intents() == ()


def test_a_step_on_a_target_disturbed_in_the_same_way_is_skipped(tmp_path: Path) -> None:
    first = step("pause", "flink/taskmanager-1", for_s=5.0, after_s=1.0)
    second = step("kill", "all of flink/taskmanager", after_s=2.0)
    other = step("slow_link", "link sink", after_s=2.0)
    history = Testbed(tmp_path, first, second, other).run()
    (skipped,) = history.of(Action.FAULT_SKIPPED)
    assert skipped.value["step"] == 1
    assert {e.value["step"] for e in history.of(Action.FAULT_IN_EFFECT)} == {0, 2}


def test_a_step_without_duration_is_healed_when_the_others_are_done(tmp_path: Path) -> None:
    open_end = step("pause", "flink/taskmanager-1", for_s=None, after_s=0.5)
    testbed = Testbed(tmp_path, open_end, step("kill", "flink/taskmanager-2", after_s=1.0))
    history = testbed.run()
    healed = [event.value["step"] for event in history.of(Action.FAULT_HEALED)]
    assert healed == [1, 0]


def test_a_fault_without_effect_is_recorded_and_undone_at_once(tmp_path: Path) -> None:
    testbed = Testbed(tmp_path, step("slow_link", "link sink", after_s=0.5))
    testbed.cluster.links.proxy.busy = False  # type: ignore[union-attr]
    history = testbed.run()
    assert actions_of(history)[:3] == ["fault called", "fault not in effect", "heal called"]
    assert testbed.intents.open_intents() == ()


def test_a_fault_without_effect_is_undone_before_the_next_step(tmp_path: Path) -> None:
    """A part of it may be in effect."""
    without = step("slow_link", "link sink", for_s=60.0, after_s=0.5)
    testbed = Testbed(tmp_path, without, step("pause", "flink/taskmanager-1", after_s=6.0))
    testbed.cluster.links.proxy.busy = False  # type: ignore[union-attr]
    called = testbed.run().of(Action.FAULT_CALLED, Action.HEAL_CALLED)
    assert [(str(event.action), event.value["step"]) for event in called] == [
        ("fault called", 0),
        ("heal called", 0),
        ("fault called", 1),
        ("heal called", 1),
    ]


def test_the_loop_is_woken_by_each_injection_check_and_heal_that_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It acts at once, and not only with its next poll."""
    woken: list[str] = []
    monkeypatch.setattr(EventLoop, "wake", lambda self: woken.append(current_thread().name))
    testbed = Testbed(tmp_path, step("pause", "flink/taskmanager-1", after_s=0.5))
    testbed.run()
    assert len(woken) == 3


def test_heal_all_heals_every_fault_in_effect_at_any_time(tmp_path: Path) -> None:
    testbed = Testbed(
        tmp_path, step("pause", "all of flink/taskmanager", for_s=1000.0, after_s=0.0)
    )
    while not testbed.loop.history().of(Action.FAULT_IN_EFFECT):
        testbed.scheduler.pending()
        testbed.tick()
    testbed.scheduler.heal_all()
    states = {testbed.cluster.state(node).status for node in testbed.cluster.nodes.values()}
    assert states == {ContainerStatus.RUNNING}
    assert testbed.intents.open_intents() == ()


def test_heal_all_waits_for_an_injection_under_way(tmp_path: Path) -> None:
    testbed = Testbed(tmp_path, step("pause", "flink/taskmanager-1", for_s=1000.0, after_s=0.0))
    (run,) = testbed.scheduler.runs
    while run.work is None:
        testbed.scheduler.pending()
        testbed.tick()
    testbed.scheduler.heal_all()
    testbed.loop.tick()
    history = testbed.loop.history()
    assert actions_of(history) == ["fault called", "fault in effect", "heal called", "fault healed"]
    assert {event.value["step"] for event in history} == {0}
    assert testbed.intents.open_intents() == ()


def test_heal_all_records_a_check_that_has_just_ended(tmp_path: Path) -> None:
    testbed = Testbed(tmp_path, step("pause", "flink/taskmanager-1", for_s=1000.0, after_s=0.0))
    (run,) = testbed.scheduler.runs
    while run.watch is None or run.watch.check_under_way is None:
        testbed.scheduler.pending()
        testbed.tick()
    wait([run.watch.check_under_way], timeout=60)
    testbed.scheduler.heal_all()
    testbed.loop.tick()
    history = testbed.loop.history()
    assert actions_of(history)[1:] == [
        "fault in effect",
        "fault still in effect",
        "heal called",
        "fault healed",
    ]
    still, called = history[2:4]
    assert set(still.value["evidence"]) == {"flink/taskmanager-1"}
    assert called.value["last_seen_ns"] == still.value["seen_ns"]


def test_heal_all_records_an_early_end_that_its_last_check_found(tmp_path: Path) -> None:
    testbed = Testbed(tmp_path, step("pause", "flink/taskmanager-1", for_s=1000.0, after_s=0.0))
    (run,) = testbed.scheduler.runs

    def listen(event: Event) -> None:
        if event.action == Action.FAULT_IN_EFFECT:
            end_effect(testbed, "flink/taskmanager-1", "unpause")

    testbed.loop.listen(listen)
    while run.watch is None or run.watch.check_under_way is None:
        testbed.scheduler.pending()
        testbed.tick()
    wait([run.watch.check_under_way], timeout=60)
    testbed.scheduler.heal_all()
    testbed.loop.tick()
    history = testbed.loop.history()
    effect, ended, called = history.of(
        Action.FAULT_IN_EFFECT, Action.FAULT_ENDED_EARLY, Action.HEAL_CALLED
    )
    assert ended.value["last_seen_ns"] == called.value["last_seen_ns"] == effect.value["seen_ns"]


def test_an_intent_names_its_step_and_its_target(tmp_path: Path) -> None:
    first = step("pause", "flink/taskmanager-1", for_s=5.0, after_s=1.0)
    testbed = Testbed(tmp_path, first, step("pause", "flink/taskmanager-2", after_s=2.0))
    named: list[tuple[int | None, str]] = []

    def listen(event: Event) -> None:
        if event.action == Action.FAULT_IN_EFFECT:
            named[:] = [(each.step, each.target) for each in testbed.intents.open_intents()]

    testbed.loop.listen(listen)
    testbed.run()
    assert named == [(0, "flink/taskmanager-1"), (1, "flink/taskmanager-2")]


def test_what_an_injection_reports_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How late it was, to a microsecond, and targets that were gone when it was healed."""
    injected = InjectionResult(done=True, called_ns=10**9, seen_ns=10**9 + 1_234_567)
    healed = InjectionResult(
        done=True, called_ns=3 * 10**9, seen_ns=3 * 10**9, removed_targets=("flink/taskmanager-1",)
    )
    monkeypatch.setattr(fault_scheduler, "inject_fault", lambda *args, **limits: injected)
    monkeypatch.setattr(fault_scheduler, "undo", lambda *args, **limits: healed)
    history = Testbed(tmp_path, step("pause", "flink/taskmanager-1", after_s=1.0)).run()
    assert history.of(Action.FAULT_IN_EFFECT)[0].value["lateness_ms"] == 1.235
    (removed, *_) = history.of(FaultHealed)
    assert removed.value["gone"] == ["flink/taskmanager-1"]
    assert (removed.value["called_ns"], removed.seen_ns) == (healed.called_ns, healed.seen_ns)


@pytest.mark.parametrize(("done", "seen_ns"), [(False, None), (False, 10**9), (True, None)])
def test_an_effect_without_proof_or_without_its_moment_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, done: bool, seen_ns: int | None
) -> None:
    result = InjectionResult(done=done, called_ns=10**9, seen_ns=seen_ns, reason="not seen")
    monkeypatch.setattr(fault_scheduler, "inject_fault", lambda *args, **limits: result)
    history = Testbed(tmp_path, step("pause", "flink/taskmanager-1", after_s=1.0)).run()
    assert not history.of(Action.FAULT_IN_EFFECT)
    assert history.of(Action.FAULT_NOT_IN_EFFECT)[0].value["reason"] == "not seen"


ACKNOWLEDGED = ("checkpoint triggered", "checkpoint acknowledged")


def test_the_lateness_of_an_injection_is_recorded(tmp_path: Path) -> None:
    testbed = Testbed(tmp_path, step("kill", "flink/taskmanager-1", after_s=1.0))
    (effect,) = testbed.run().of(Action.FAULT_IN_EFFECT)
    assert effect.value["due_ns"] == 10**9
    assert effect.value["lateness_ms"] == (effect.value["seen_ns"] - 10**9) / 1e6


def test_an_effect_before_the_second_event_is_in_its_window(tmp_path: Path) -> None:
    testbed = Testbed(tmp_path, step("pause", "flink/taskmanager-1", between=ACKNOWLEDGED))
    testbed.record_after(Action.HEAL_CALLED, Action.CHECKPOINT_ACKNOWLEDGED, checkpoint=1)
    testbed.loop.record(Action.CHECKPOINT_TRIGGERED, checkpoint=1)
    history = testbed.run()
    assert history.of(Action.FAULT_HEALED)
    assert not history.of(Action.FAULT_MISSED_WINDOW)


def test_a_missed_window_is_recorded_and_the_fault_healed_as_planned(tmp_path: Path) -> None:
    testbed = Testbed(tmp_path, step("pause", "flink/taskmanager-1", between=ACKNOWLEDGED))
    testbed.record_after(
        Action.FAULT_CALLED, Action.CHECKPOINT_ACKNOWLEDGED, checkpoint=1, ack_ms=EPOCH_MS
    )
    testbed.loop.record(Action.CHECKPOINT_TRIGGERED, checkpoint=1, trigger_ms=EPOCH_MS)
    history = testbed.run()
    (missed,) = history.of(Action.FAULT_MISSED_WINDOW)
    assert "checkpoint acknowledged" in missed.value["reason"]
    attempt = last_attempt(history, 0)
    assert FaultMissedWindow in attempt
    assert FaultHealed in attempt


@pytest.mark.parametrize(("called_ns", "missed"), [(5 * 10**8, False), (2 * 10**9, True)])
def test_a_window_is_missed_when_its_checkpoint_fails_before_the_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, called_ns: int, missed: bool
) -> None:
    """The checkpoint fails at 1 s, and the effect is verified at 3 s. After the call it fails
    because of the fault."""
    result = InjectionResult(done=True, called_ns=called_ns, seen_ns=3 * 10**9)
    monkeypatch.setattr(fault_scheduler, "inject_fault", lambda *args, **limits: result)
    monkeypatch.setattr(fault_scheduler, "undo", lambda *args, **limits: result)
    testbed = Testbed(tmp_path, step("pause", "flink/taskmanager-1", between=ACKNOWLEDGED))
    testbed.loop.clock.sleep(1.0)
    testbed.record_after(Action.FAULT_CALLED, Action.CHECKPOINT_FAILED, checkpoint=1)
    testbed.loop.record(Action.CHECKPOINT_TRIGGERED, checkpoint=1)
    assert bool(testbed.run().of(Action.FAULT_MISSED_WINDOW)) == missed


def test_a_missed_window_is_tried_again_at_the_next_one(tmp_path: Path) -> None:
    testbed = Testbed(tmp_path, step("pause", "flink/taskmanager-1", between=ACKNOWLEDGED, tries=2))
    testbed.record_after(
        Action.FAULT_CALLED, Action.CHECKPOINT_ACKNOWLEDGED, checkpoint=1, ack_ms=EPOCH_MS
    )
    testbed.record_after(Action.FAULT_HEALED, Action.CHECKPOINT_TRIGGERED, checkpoint=2)
    testbed.loop.record(Action.CHECKPOINT_TRIGGERED, checkpoint=1, trigger_ms=EPOCH_MS)
    history = testbed.run()
    assert len(history.of(Action.FAULT_CALLED)) == 2
    assert len(history.of(Action.FAULT_MISSED_WINDOW)) == 1
    assert FaultMissedWindow not in last_attempt(history, 0)
    assert testbed.intents.open_intents() == ()


@pytest.mark.parametrize(
    "when",
    [
        {"event": "checkpoint triggered", "nth": 2},
        {"event": "checkpoint triggered", "delay_s": 2.0},
        {"event": "checkpoint triggered", "nth": 2, "delay_s": 0.5},
        {"between": ACKNOWLEDGED, "tries": 2},
        {"between": ACKNOWLEDGED, "delay_s": 0.2},
    ],
)
def test_the_event_that_triggered_an_injection_is_recorded(
    tmp_path: Path, when: dict[str, Any]
) -> None:
    """Also for a second try, and for a trigger that waits for the effect of another step."""
    first = step("pause", "flink/taskmanager-1", **when)
    second = step("kill", "flink/taskmanager-2", effect_of=1, delay_s=1.0)
    testbed = Testbed(tmp_path, first, second)
    testbed.record_after(
        Action.FAULT_CALLED, Action.CHECKPOINT_ACKNOWLEDGED, checkpoint=1, ack_ms=EPOCH_MS
    )
    testbed.record_after(Action.FAULT_HEALED, Action.CHECKPOINT_TRIGGERED, checkpoint=3)
    for number in (1, 2):
        testbed.loop.record(Action.CHECKPOINT_TRIGGERED, checkpoint=number, trigger_ms=EPOCH_MS)
    history = testbed.run()
    for number, triggered in enumerate((first, second)):
        called = last_attempt(history, number)[FaultCalled]
        assert trigger_problem(triggered.when, called, history, (first, second)[:number]) == ""


def test_a_missed_window_known_only_after_the_heal_is_recorded(tmp_path: Path) -> None:
    testbed = Testbed(tmp_path, step("pause", "flink/taskmanager-1", between=ACKNOWLEDGED))
    testbed.loop.record(Action.CHECKPOINT_TRIGGERED, checkpoint=1, trigger_ms=EPOCH_MS)
    testbed.run()
    testbed.loop.record(Action.CHECKPOINT_FAILED, checkpoint=1, first_ack_ms=EPOCH_MS)
    testbed.loop.tick()
    testbed.loop.tick()
    assert testbed.loop.history().of(Action.FAULT_MISSED_WINDOW)


def test_a_step_is_injected_when_a_metric_passes_its_threshold(tmp_path: Path) -> None:
    testbed = Testbed(tmp_path, step("pause", "flink/taskmanager-1", metric="lag", above=100.0))
    testbed.loop.measure("lag", "input", 50.0)
    testbed.scheduler.pending()
    testbed.loop.tick()
    assert testbed.scheduler.pending() is not None
    testbed.loop.measure("lag", "input", 500.0)
    assert testbed.run().of(Action.FAULT_HEALED)


def test_each_label_of_a_metric_is_compared_by_itself(tmp_path: Path) -> None:
    testbed = Testbed(tmp_path, step("pause", "flink/taskmanager-1", metric="lag", below=100.0))
    testbed.scheduler.pending()
    testbed.loop.measure("lag", "first", 500.0)
    testbed.loop.measure("lag", "second", 50.0)
    testbed.loop.tick()
    (run,) = testbed.scheduler.runs
    assert run.trigger.due_ns is None
    testbed.loop.measure("lag", "first", 99.0)
    assert testbed.run().of(Action.FAULT_HEALED)


def test_a_step_is_injected_when_another_is_in_effect(tmp_path: Path) -> None:
    first = step("pause", "flink/taskmanager-1", for_s=5.0, after_s=1.0)
    second = step("slow_link", "link sink", effect_of="pause", delay_s=1.0)
    effects = Testbed(tmp_path, first, second).run().of(Action.FAULT_IN_EFFECT)
    assert [e.value["step"] for e in effects] == [0, 1]
    assert effects[1].value["due_ns"] == effects[0].value["seen_ns"] + 10**9


def test_a_step_that_waits_for_a_skipped_step_is_skipped_at_once(tmp_path: Path) -> None:
    first = step("slow_link", "link sink", after_s=0.5)
    second = step("kill", "flink/taskmanager-2", effect_of=1)
    testbed = Testbed(tmp_path, first, second)
    testbed.cluster.links.proxy.busy = False  # type: ignore[union-attr]
    (skipped,) = testbed.run().of(Action.FAULT_SKIPPED)
    assert "when #1 is in effect: it never was in effect (" in skipped.value["reason"]


def test_a_step_whose_target_is_not_found_is_skipped_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_target(*_: object) -> tuple[Target, ...]:
        raise ConnectionError("the JobManager does not answer")

    monkeypatch.setattr("streamquake.harness.run.fault_scheduler.resolve", no_target)
    testbed = Testbed(tmp_path, step("kill", "flink/taskmanager-2", after_s=1.0))
    (skipped,) = testbed.run().of(Action.FAULT_SKIPPED)
    assert skipped.value["reason"] == "ConnectionError: the JobManager does not answer"


def test_a_step_whose_target_is_not_a_node_is_skipped_with_the_reason(tmp_path: Path) -> None:
    history = Testbed(tmp_path, step("kill", "all but kafka/broker-1", after_s=1.0)).run()
    (skipped,) = history.of(Action.FAULT_SKIPPED)
    assert "no node at this moment" in skipped.value["reason"]
    assert not history.of(Action.FAULT_CALLED, Action.FAULT_IN_EFFECT)


EXTERNAL_ENDS = {
    "kill": ("flink/taskmanager-1", "restart"),
    "pause": ("flink/taskmanager-1", "unpause"),
    "isolate": ("kafka/broker-1", "restart"),
    "partition": ("between kafka/broker-1 and flink/taskmanager-1", "restart"),
    "slow_link": ("link sink", "toxics"),
}


def end_effect(testbed: Testbed, name: str, how: str) -> None:
    """End the effect without a heal of the scheduler."""
    (run,) = testbed.scheduler.runs
    node = testbed.cluster.nodes.get(name)
    if how == "toxics":
        run.fault.heal(testbed.cluster, run.targets[0], {})
    elif how == "unpause":
        assert node is not None
        testbed.cluster.runtime.unpause(node.container)
    else:
        node = testbed.cluster.node("kafka/broker-1") if node is None else node
        if testbed.cluster.state(node).status == ContainerStatus.RUNNING:
            testbed.cluster.runtime.kill(node.container)
        testbed.cluster.runtime.kill(node.sandbox)
        testbed.cluster.start_again(node)


@pytest.mark.parametrize("fault", EXTERNAL_ENDS)
def test_an_effect_that_ends_before_its_heal_is_recorded_with_its_moments(
    fault: str, tmp_path: Path
) -> None:
    target, how = EXTERNAL_ENDS[fault]
    testbed = Testbed(tmp_path, step(fault, target, for_s=14.0, after_s=1.0))

    def listen(event: Event) -> None:
        if event.action == Action.FAULT_STILL_IN_EFFECT:
            end_effect(testbed, target, how)

    testbed.loop.listen(listen)
    history = testbed.run()
    (effect,) = history.of(Action.FAULT_IN_EFFECT)
    (still,) = history.of(Action.FAULT_STILL_IN_EFFECT)
    (ended,) = history.of(Action.FAULT_ENDED_EARLY)
    (healed,) = history.of(Action.HEAL_CALLED)
    assert ended.value["last_seen_ns"] == still.value["seen_ns"]
    assert still.value["seen_ns"] < ended.value["seen_ns"] < still.value["seen_ns"] + 20e9
    assert ended.at_ns < healed.at_ns
    assert healed.at_ns >= effect.value["seen_ns"] + 14e9
    assert "before the heal" in ended.value["reason"]
    assert testbed.intents.open_intents() == ()


def test_a_long_fault_is_verified_every_few_seconds_and_once_before_its_heal(
    tmp_path: Path,
) -> None:
    history = Testbed(tmp_path, step("pause", "flink/taskmanager-1", for_s=18.0, after_s=1.0)).run()
    checks_s = [e.value["seen_ns"] / 1e9 for e in history.of(Action.FAULT_STILL_IN_EFFECT)]
    (healed,) = history.of(Action.HEAL_CALLED)
    assert len(checks_s) == 3
    assert all(later - earlier > 4.5 for earlier, later in pairwise(checks_s))
    assert healed.at_s - 3.5 < checks_s[-1] < healed.at_s
    assert healed.value["last_seen_ns"] / 1e9 == checks_s[-1]


def test_a_fault_without_duration_is_verified_once_more_at_the_end(tmp_path: Path) -> None:
    open_end = step("pause", "flink/taskmanager-1", for_s=None, after_s=0.5)
    history = Testbed(tmp_path, open_end).run()
    (still,) = history.of(Action.FAULT_STILL_IN_EFFECT)
    (healed,) = history.of(Action.HEAL_CALLED)
    assert still.index < healed.index


@pytest.mark.parametrize("for_s", [8.0, 25.0])
def test_checks_without_an_answer_do_not_prove_an_end_but_are_recorded_as_unverified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, for_s: float
) -> None:
    testbed = Testbed(tmp_path, step("pause", "flink/taskmanager-1", for_s=for_s, after_s=1.0))

    def unreachable(*_: object) -> None:
        raise ResponseLost("connection closed before the end of the response")

    def listen(event: Event) -> None:
        if event.action == Action.FAULT_IN_EFFECT:
            monkeypatch.setattr(Pause, "evidence", unreachable)
        elif event.action == Action.HEAL_CALLED:
            monkeypatch.undo()

    testbed.loop.listen(listen)
    history = testbed.run()
    assert not history.of(Action.FAULT_STILL_IN_EFFECT, Action.FAULT_ENDED_EARLY)
    assert history.of(Action.FAULT_HEALED)
    unverified = history.of(Action.FAULT_NOT_VERIFIED)
    assert len(unverified) == (for_s > 15)
    for event in unverified:
        assert event.kind == Kind.FAIL
        (effect,) = history.of(Action.FAULT_IN_EFFECT)
        assert event.value["last_seen_ns"] == effect.value["seen_ns"]
        assert event.value["seen_ns"] == event.at_ns
        assert "in effect or in place in the 25.0 s before its heal" in event.value["reason"]


def test_a_fault_in_place_on_an_idle_system_is_not_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    testbed = Testbed(tmp_path, step("pause", "flink/taskmanager-1", for_s=25.0, after_s=1.0))

    def idle(*_: object) -> Evidence:
        return Evidence(in_effect=False, healed=False, in_place=True)

    def listen(event: Event) -> None:
        if event.action == Action.FAULT_IN_EFFECT:
            monkeypatch.setattr(Pause, "evidence", idle)
        elif event.action == Action.HEAL_CALLED:
            monkeypatch.undo()

    testbed.loop.listen(listen)
    history = testbed.run()
    assert not history.of(
        Action.FAULT_STILL_IN_EFFECT, Action.FAULT_ENDED_EARLY, Action.FAULT_NOT_VERIFIED
    )
    healed, *_ = history.of(Action.HEAL_CALLED)
    assert healed.value["last_seen_ns"] == history.of(FaultInEffect)[0].seen_ns
    assert 0 < healed.at_s - healed.value["in_place_ns"] / 1e9 < 4


def test_a_heal_does_not_wait_for_a_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    testbed = Testbed(tmp_path, step("pause", "flink/taskmanager-1", for_s=2.0, after_s=1.0))
    healed, checked, heal = Signal(), Pause.evidence, Pause.heal

    def blocked_evidence(*args: Any) -> Evidence:
        if not healed.is_set() and testbed.loop.history().of(Action.FAULT_IN_EFFECT):
            assert healed.wait(60)
        return checked(*args)

    def signalling_heal(*args: Any) -> InjectionTimes:
        healed.set()
        return heal(*args)

    monkeypatch.setattr(Pause, "evidence", blocked_evidence)
    monkeypatch.setattr(Pause, "heal", signalling_heal)
    while testbed.scheduler.pending() is not None:
        wait([run.work for run in testbed.scheduler.runs if run.work is not None], timeout=60)
        testbed.tick()
    testbed.scheduler.heal_all()
    testbed.loop.tick()
    assert actions_of(testbed.loop.history()) == [
        "fault called",
        "fault in effect",
        "heal called",
        "fault healed",
    ]


def test_a_fault_on_a_node_kept_down_by_another_step_has_not_ended(tmp_path: Path) -> None:
    limit = step("fd_limit", "flink/taskmanager-1", for_s=24.0, after_s=1.0)
    kill = step("kill", "flink/taskmanager-1", for_s=30.0, after_s=2.0)

    history = Testbed(tmp_path, limit, kill).run()

    assert len(history.of(Action.FAULT_IN_EFFECT)) == 2
    assert not history.of(Action.FAULT_ENDED_EARLY, Action.FAULT_NOT_VERIFIED)
    assert len(history.of(Action.FAULT_HEALED)) == 2


def summaries(history: History, *actions: Action) -> list[tuple[str, str, str, str]]:
    """The recorded events: action, process, kind and fields."""
    chosen = history.of(*actions) if actions else tuple(history)
    common = {"step", "fault", "target", "nodes"}
    for event in chosen:
        assert common <= event.value.keys()
    return [
        (str(e.action), str(e.kind), e.process, " ".join(sorted(e.value.keys() - common)))
        for e in chosen
    ]


def test_every_event_of_a_step_has_its_fields(tmp_path: Path) -> None:
    testbed = Testbed(tmp_path, step("slow_link", "link sink", for_s=2.0, after_s=2.0))
    history = testbed.run()
    assert summaries(history) == [
        ("fault called", "invoke", "fault-0", "params"),
        ("fault in effect", "ok", "fault-0", "called_ns due_ns evidence lateness_ms seen_ns"),
        ("fault still in effect", "info", "fault-0", "evidence seen_ns"),
        ("heal called", "invoke", "fault-0", "in_place_ns last_seen_ns"),
        ("fault healed", "ok", "fault-0", "called_ns evidence seen_ns"),
    ]
    called, effect, still, _, healed = history
    assert called.value["params"] == {"latency_ms": 10}
    assert {e.value["fault"] for e in history} == {"slow_link"}
    assert {e.value["target"] for e in history} == {"link sink"}
    assert {tuple(e.value["nodes"]) for e in history} == {("sink",)}
    assert effect.value["called_ns"] <= effect.value["seen_ns"] <= effect.at_ns
    assert set(effect.value["evidence"]) == {"watched", "sink"}
    assert set(still.value["evidence"]) == {"sink"}
    assert set(healed.value["evidence"]) == {"watched", "sink"}


def test_a_step_without_effect_is_recorded_with_its_reason(tmp_path: Path) -> None:
    testbed = Testbed(tmp_path, step("slow_link", "link sink", after_s=0.5))
    testbed.cluster.links.proxy.busy = False  # type: ignore[union-attr]
    history = testbed.run()
    assert summaries(history) == [
        ("fault called", "invoke", "fault-0", "params"),
        ("fault not in effect", "fail", "fault-0", "reason"),
        ("heal called", "invoke", "fault-0", ""),
        ("fault healed", "ok", "fault-0", "called_ns evidence seen_ns"),
    ]
    (failed,) = history.of(Action.FAULT_NOT_IN_EFFECT)
    assert failed.value["reason"].startswith("NotInEffect: slow_link on sink in effect: not within")


@pytest.mark.parametrize(
    ("before", "after", "kept_down"),
    [
        (StepState.ACTIVE, StepState.OVER, True),
        (StepState.WAITING, StepState.INJECTING, True),
        (StepState.ACTIVE, StepState.ACTIVE, True),
        (StepState.OVER, StepState.OVER, False),
    ],
)
def test_a_node_kept_down_at_the_begin_or_the_end_of_a_check_proves_no_end(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    before: StepState,
    after: StepState,
    kept_down: bool,
) -> None:
    node = "flink/taskmanager-1"
    steps = [step(fault, node, after_s=1.0) for fault in ("fd_limit", "kill")]
    scheduler = Testbed(tmp_path, *steps).scheduler
    limit, kill = scheduler.runs
    limit.targets = kill.targets = (LinkTarget(name=node, paths=()),)
    kill.state = before

    def check(*_: object) -> RepeatedVerification:
        kill.state = after
        evidence = {node: Evidence(in_effect=False, healed=True)}
        return RepeatedVerification(seen_ns=1, evidence=evidence, targets=1)

    monkeypatch.setattr(fault_scheduler, "verify_again", check)
    intent: Any = None
    verification = scheduler._verify_again(limit, intent)
    assert verification.kept_down == kept_down
    assert verification.ended_on == (() if kept_down else (node,))
    scheduler.heal_all()


def test_a_skipped_step_names_the_target_already_disturbed(tmp_path: Path) -> None:
    first = step("pause", "all of flink/taskmanager", for_s=5.0, after_s=1.0)
    second = step("kill", "all of flink/taskmanager", after_s=2.0)
    history = Testbed(tmp_path, first, second).run()
    assert summaries(history, Action.FAULT_SKIPPED) == [
        ("fault skipped", "info", "fault-1", "reason")
    ]
    (skipped,) = history.of(Action.FAULT_SKIPPED)
    assert skipped.value["reason"] == "flink/taskmanager-1 is already disturbed in the same way"
    assert skipped.value["nodes"] == []


def test_a_target_may_be_disturbed_again_once_it_is_healed(tmp_path: Path) -> None:
    first = step("pause", "flink/taskmanager-1", for_s=1.0, after_s=1.0)
    second = step("kill", "flink/taskmanager-1", after_s=9.0)
    history = Testbed(tmp_path, first, second).run()
    assert not history.of(Action.FAULT_SKIPPED)
    assert [e.value["step"] for e in history.of(Action.FAULT_HEALED)] == [0, 1]


def test_an_effect_that_ended_early_is_recorded_as_a_failure(tmp_path: Path) -> None:
    testbed = Testbed(tmp_path, step("pause", "flink/taskmanager-1", for_s=14.0, after_s=1.0))

    def listen(event: Event) -> None:
        if event.action == Action.FAULT_IN_EFFECT:
            end_effect(testbed, "flink/taskmanager-1", "unpause")

    testbed.loop.listen(listen)
    history = testbed.run()
    assert summaries(history, Action.FAULT_ENDED_EARLY, Action.FAULT_STILL_IN_EFFECT) == [
        ("fault ended early", "fail", "fault-0", "evidence last_seen_ns reason seen_ns")
    ]
    (effect,) = history.of(Action.FAULT_IN_EFFECT)
    (ended,) = history.of(Action.FAULT_ENDED_EARLY)
    assert ended.value["reason"] == "no longer in effect on flink/taskmanager-1 before the heal"
    assert ended.value["last_seen_ns"] == effect.value["seen_ns"]


def test_all_targets_whose_effect_ended_early_are_named(tmp_path: Path) -> None:
    testbed = Testbed(tmp_path, step("pause", "all of flink/taskmanager", for_s=14.0, after_s=1.0))

    def listen(event: Event) -> None:
        if event.action == Action.FAULT_IN_EFFECT:
            for number in (1, 3):
                end_effect(testbed, f"flink/taskmanager-{number}", "unpause")

    testbed.loop.listen(listen)
    (ended,) = testbed.run().of(Action.FAULT_ENDED_EARLY)
    named = "flink/taskmanager-1, flink/taskmanager-3"
    assert ended.value["reason"] == f"no longer in effect on {named} before the heal"


def test_a_missed_window_is_recorded_once_as_a_failure(tmp_path: Path) -> None:
    testbed = Testbed(tmp_path, step("pause", "flink/taskmanager-1", between=ACKNOWLEDGED))
    testbed.record_after(
        Action.FAULT_CALLED, Action.CHECKPOINT_ACKNOWLEDGED, checkpoint=1, ack_ms=EPOCH_MS
    )
    testbed.loop.record(Action.CHECKPOINT_TRIGGERED, checkpoint=1, trigger_ms=EPOCH_MS)
    history = testbed.run()
    assert summaries(history, Action.FAULT_MISSED_WINDOW) == [
        ("fault missed its window", "fail", "fault-0", "reason seen_ns")
    ]
    called, effect, missed = history.of(
        Action.FAULT_CALLED, Action.FAULT_IN_EFFECT, Action.FAULT_MISSED_WINDOW
    )
    assert called.value["trigger_index"] == 0
    assert missed.value["seen_ns"] == effect.value["seen_ns"]


def test_a_failed_heal_is_tried_once_more_and_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    testbed = Testbed(tmp_path, step("pause", "flink/taskmanager-1", after_s=1.0))
    tries = list[Any]()

    def failing_heal(self: Pause, *args: object) -> InjectionTimes:
        tries.append(args)
        raise RuntimeError("still paused")

    monkeypatch.setattr(Pause, "heal", failing_heal)
    history = testbed.run()
    assert summaries(history, Action.HEAL_CALLED, Action.FAULT_NOT_HEALED, Action.FAULT_HEALED) == [
        ("heal called", "invoke", "fault-0", "in_place_ns last_seen_ns"),
        ("fault not healed", "fail", "fault-0", "reason"),
        ("heal called", "invoke", "fault-0", "in_place_ns last_seen_ns"),
        ("fault not healed", "fail", "fault-0", "reason"),
    ]
    (last_seen_ns,) = {e.value["last_seen_ns"] for e in history.of(Action.HEAL_CALLED)}
    assert last_seen_ns == history.of(Action.FAULT_STILL_IN_EFFECT)[-1].value["seen_ns"]
    reasons = {e.value["reason"] for e in history.of(Action.FAULT_NOT_HEALED)}
    assert reasons == {"RuntimeError: still paused"}
    assert len(tries) == 2
    assert len(testbed.intents.open_intents()) == 1


def test_a_heal_that_failed_at_first_succeeds_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    testbed = Testbed(tmp_path, step("pause", "flink/taskmanager-1", after_s=1.0))
    heal, tries = Pause.heal, list[Any]()

    def heal_fails_once(self: Pause, *args: Any) -> InjectionTimes:
        tries.append(args)
        if len(tries) == 1:
            raise RuntimeError("still paused")
        return heal(self, *args)

    monkeypatch.setattr(Pause, "heal", heal_fails_once)
    history = testbed.run()
    assert actions_of(history)[-4:] == [
        "heal called",
        "fault not healed",
        "heal called",
        "fault healed",
    ]
    assert testbed.intents.open_intents() == ()


def test_the_schedule_reports_what_it_waits_for(tmp_path: Path) -> None:
    pause = step("pause", "all of flink/taskmanager", for_s=3.0, after_s=1.0)
    stall = step("slow_link", "link sink", for_s=None, after_s=0.0)
    testbed = Testbed(tmp_path, stall, pause)
    reasons, active, nodes_kept_down = [], [], []
    while (pending := testbed.scheduler.pending()) is not None:
        wait([run.work for run in testbed.scheduler.runs if run.work is not None], timeout=60)
        reasons.append(pending)
        active.append(testbed.scheduler.active_faults())
        nodes_kept_down.append(testbed.scheduler.nodes_kept_down())
        testbed.tick()
    workers = "flink/taskmanager-1, flink/taskmanager-2, flink/taskmanager-3"
    assert list(dict.fromkeys(reasons)) == [
        "slow_link on link sink is being injected",
        "pause on all of flink/taskmanager is waiting for its trigger",
        "pause on all of flink/taskmanager is being injected",
        "pause on all of flink/taskmanager is in effect",
        "pause on all of flink/taskmanager is being healed",
        "slow_link on link sink is verified once more",
    ]
    stalled = "slow_link on sink"
    assert set(active) == {(), (stalled,), (stalled, f"pause on {workers}")}
    assert set(nodes_kept_down) == {(), tuple(workers.split(", "))}, "a link is not a node"
    testbed.scheduler.heal_all()
    assert testbed.scheduler.active_faults() == ()
    assert testbed.scheduler.nodes_kept_down() == ()


def test_a_trigger_is_awaited_until_its_limit(tmp_path: Path) -> None:
    testbed = Testbed(
        tmp_path, step("kill", "flink/taskmanager-1", event="job restarting"), trigger_s=3
    )
    (skipped,) = testbed.run().of(Action.FAULT_SKIPPED)
    assert skipped.at_ns == 3e9


def test_a_trigger_with_a_known_moment_has_no_limit(tmp_path: Path) -> None:
    testbed = Testbed(tmp_path, step("kill", "flink/taskmanager-1", after_s=6.0), trigger_s=3)
    assert testbed.run().of(Action.FAULT_HEALED)


def test_the_random_choice_of_a_target_depends_on_seed_and_step(tmp_path: Path) -> None:
    steps = [step("kill", "one of flink/taskmanager", after_s=1.0 + 9 * n) for n in range(6)]
    effects = Testbed(tmp_path, *steps).run().of(Action.FAULT_IN_EFFECT)
    workers = [f"flink/taskmanager-{number}" for number in (1, 2, 3)]
    drawn = [[random.Random(f"1:faults:{n}").choice(workers)] for n in range(6)]
    assert [e.value["nodes"] for e in effects] == drawn
    assert len({tuple(nodes) for nodes in drawn}) > 1


def run_missing_two_windows(
    folder: Path, tries: int, target: str = "flink/taskmanager-1"
) -> History:
    """The history of a pause that misses its first two windows and meets the third."""
    testbed = Testbed(folder, step("pause", target, between=ACKNOWLEDGED, tries=tries))
    calls: list[int] = []

    def listen(event: Event) -> None:
        number = len(calls) + 1
        if event.action == Action.FAULT_CALLED:
            calls.append(number)
            if number <= 2:
                testbed.loop.record(
                    Action.CHECKPOINT_ACKNOWLEDGED, checkpoint=number, ack_ms=EPOCH_MS
                )
        elif event.action == Action.FAULT_HEALED:
            testbed.loop.record(Action.CHECKPOINT_TRIGGERED, checkpoint=number)

    testbed.loop.listen(listen)
    testbed.loop.record(Action.CHECKPOINT_TRIGGERED, checkpoint=1, trigger_ms=EPOCH_MS)
    return testbed.run()


@pytest.mark.parametrize(
    ("tries", "called", "missed"), [(1, 1, 1), (2, 2, 2), (3, 3, 2), (4, 3, 2)]
)
def test_every_missed_window_is_recorded_until_one_is_met(
    tmp_path: Path, tries: int, called: int, missed: int
) -> None:
    history = run_missing_two_windows(tmp_path, tries)
    assert len(history.of(Action.FAULT_CALLED)) == called
    assert len(history.of(Action.FAULT_HEALED)) == called
    assert len(history.of(Action.FAULT_MISSED_WINDOW)) == missed
    assert (FaultMissedWindow in last_attempt(history, 0)) == (called <= 2)
    newest = last_attempt(history, 0)
    effect_ns = newest[FaultInEffect].seen_ns
    if called > 2:
        assert newest[HealCalled].at_ns - effect_ns >= 1e9, (
            "the fault stays in effect as long as planned"
        )


def test_each_try_chooses_another_node(tmp_path: Path) -> None:
    """A TaskManager that was killed has no task when it runs again."""
    history = run_missing_two_windows(tmp_path, 3, target="one of flink/taskmanager")
    first, second, third = (event.nodes for event in history.of(FaultCalled))
    assert first != second != third


@pytest.fixture
def measured_at_s(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Give the pause a baseline. Returns the moments of its measurements, in seconds of the run."""
    moments: list[float] = []

    def baseline(self: Pause, cluster: Cluster, target: Target) -> dict[str, Any]:
        assert current_thread().name.startswith("baseline")
        moments.append(cluster.clock.now_ns() / 1e9)
        return {"measurement": len(moments)}

    monkeypatch.setattr(Pause, "baseline", baseline)
    return moments


def run_until(testbed: Testbed, seconds: float) -> None:
    """Run the schedule for `seconds`; no time passes while a baseline is measured."""
    while testbed.loop.clock.now_ns() < seconds * 1e9:
        testbed.scheduler.pending()
        measurements = [run.baselines._measuring for run in testbed.scheduler.runs]
        wait([work for work in measurements if work is not None], timeout=60)
        testbed.tick()


def test_baselines_are_measured_shortly_before_a_known_moment(
    tmp_path: Path, measured_at_s: list[float]
) -> None:
    testbed = Testbed(tmp_path, step("pause", "flink/taskmanager-1", after_s=7.0))
    run_until(testbed, 6.5)
    assert [round(moment) for moment in measured_at_s] == [1, 4]
    (effect,) = testbed.run().of(Action.FAULT_IN_EFFECT)
    before = effect.value["evidence"]["flink/taskmanager-1"]["before"]
    assert before["measurement"] in (2, 3), "the injection waits for no measurement of its own"


def test_baselines_are_measured_again_after_a_cluster_change(
    tmp_path: Path, measured_at_s: list[float]
) -> None:
    testbed = Testbed(tmp_path, step("pause", "flink/taskmanager-1", event="job restarting"))
    run_until(testbed, 1.0)
    testbed.loop.record(Action.CHECKPOINT_TRIGGERED, checkpoint=1)
    run_until(testbed, 2.0)
    assert [round(moment) for moment in measured_at_s] == [0]
    testbed.loop.record(Action.CONTAINER_DIED, node="flink/taskmanager-2")
    run_until(testbed, 4.0)
    assert [round(moment) for moment in measured_at_s] == [0, 2]
    testbed.scheduler.heal_all()


def test_heal_all_does_not_wait_for_baselines_or_checks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two baselines are measured at a time; those that have not started are cancelled."""
    end, started, ended = Signal(), list[str](), list[str]()

    def blocked_baseline(self: Pause, cluster: Cluster, target: Target) -> dict[str, Any]:
        started.append(target.name)
        end.wait(60)
        ended.append(target.name)
        return {}

    monkeypatch.setattr(Pause, "baseline", blocked_baseline)
    names = [f"flink/taskmanager-{n}" for n in (1, 2, 3)]
    waiting = [step("pause", name, event="job restarting") for name in names]
    testbed = Testbed(tmp_path, *waiting, step("kill", "kafka/broker-1", for_s=60.0, after_s=0.0))

    def blocked_check(*_: object) -> RepeatedVerification:
        end.wait(60)
        ended.append("check")
        return RepeatedVerification(seen_ns=1, evidence={}, targets=1)

    monkeypatch.setattr(fault_scheduler, "verify_again", blocked_check)
    while (
        testbed.scheduler.runs[3].watch is None
        or testbed.scheduler.runs[3].watch.check_under_way is None
    ):
        testbed.scheduler.pending()
        wait([run.work for run in testbed.scheduler.runs if run.work is not None], timeout=60)
        testbed.tick()
    testbed.scheduler.heal_all()
    testbed.loop.tick()
    assert testbed.intents.open_intents() == ()
    assert ended == []
    assert len(started) == 2
    end.set()
    for thread in enumerate_threads():
        if thread.name.startswith("baseline"):
            thread.join(60)
    assert len(started) == 2


def test_heal_all_cancels_checks_that_have_not_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two checks run at a time. Those of the first two attempts get no answer; while each runs, its
    attempt is known to have missed the window."""
    testbed = Testbed(tmp_path, step("pause", "flink/taskmanager-1", between=ACKNOWLEDGED, tries=3))
    (run,), end = testbed.scheduler.runs, Signal()
    started, threads = SimpleQueue[str](), list[str]()

    def blocked_check(*_: object) -> RepeatedVerification:
        testbed.loop.record(Action.CHECKPOINT_ACKNOWLEDGED, checkpoint=run.tries, ack_ms=EPOCH_MS)
        started.put(current_thread().name)
        assert end.wait(60)
        return RepeatedVerification(seen_ns=1, evidence={}, targets=1)

    def listen(event: Event) -> None:
        if event.action == Action.FAULT_HEALED:
            testbed.loop.record(Action.CHECKPOINT_TRIGGERED, checkpoint=run.tries + 1)

    monkeypatch.setattr(fault_scheduler, "verify_again", blocked_check)
    testbed.loop.listen(listen)
    testbed.loop.record(Action.CHECKPOINT_TRIGGERED, checkpoint=1, trigger_ms=EPOCH_MS)
    while testbed.scheduler.pending() is not None:
        wait([run.work] if run.work is not None else [], timeout=60)
        if run.watch is not None and run.watch.check_under_way and len(threads) < run.tries < 3:
            threads.append(started.get(timeout=60))
        testbed.tick()
    testbed.scheduler.heal_all()
    end.set()
    for thread in enumerate_threads():
        if thread.name in threads:
            thread.join(60)
    assert (run.tries, len(threads)) == (3, 2)
    assert started.empty()


def test_many_steps_are_injected_checked_and_healed_at_the_same_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More steps than a thread pool has threads by default."""
    many = 34
    barrier, threads, drawn = Barrier(many), list[str](), iter(range(many))

    def return_together(result: object) -> Any:
        threads.append(current_thread().name.partition("_")[0])
        barrier.wait(60)
        return result

    def undo(intent: Intent, cluster: Cluster, log: IntentLog, *, limit_s: float) -> Any:
        log.record_heal(intent)
        return return_together(done)

    done = InjectionResult(done=True, called_ns=0, seen_ns=0)
    verified = RepeatedVerification(seen_ns=1, evidence={}, targets=1)
    module = "streamquake.harness.run.fault_scheduler"
    monkeypatch.setattr(f"{module}.inject_fault", lambda *args, **limits: return_together(done))
    monkeypatch.setattr(f"{module}.undo", undo)
    monkeypatch.setattr(f"{module}.verify_again", lambda *args: return_together(verified))
    monkeypatch.setattr(
        f"{module}.resolve", lambda *args: (LinkTarget(name=f"t{next(drawn)}", paths=()),)
    )
    steps = [step("pause", "flink/taskmanager-1", after_s=0.0, for_s=1.0)] * many
    history = Testbed(tmp_path, *steps).run()
    assert len(history.of(Action.FAULT_HEALED)) == many
    assert Counter(threads) == {"fault": 2 * many, "check": many}

"""The scheduler on the fake runtime: triggers, heals, skips, and nothing left open."""

from __future__ import annotations

import random
from collections import Counter
from concurrent.futures import wait
from itertools import pairwise
from pathlib import Path
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
from streamquake.harness.run.event_loop import EventLoop
from streamquake.harness.run.fault_scheduler import FaultScheduler
from streamquake.harness.verdict.evidence.step_attempts import last_attempt
from streamquake.harness.verdict.evidence.trigger_evidence import not_set_off
from streamquake.reports.record.event import Action, Event
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


def step(fault: str, target: str, for_s: float | None = 1.0, **when: Any) -> Step:
    params = {"slow_link": {"latency_ms": 10}, "fd_limit": {"spare": 2}}.get(fault, {})
    return Step(fault=fault, params=params, target=target, when=when, for_s=for_s)  # type: ignore[arg-type]


class Testbed:
    """A fake cluster with a loop and a scheduler over some steps."""

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

    def after(self, seen: Action, show_message: Action, **value: Any) -> None:
        """Record one event once, when another one is recorded."""
        due = [True]

        def listen(event: Event) -> None:
            if due and event.action == seen:
                due.clear()
                self.loop.record(show_message, **value)

        self.loop.listen(listen)

    def play(self) -> History:
        """Run the schedule to its end, then heal the rest. Time does not pass during an injection:
        else a later step might be injected first on a busy machine."""
        while self.scheduler.pending() is not None:
            runs = self.scheduler.runs
            wait([run.work for run in runs if run.work is not None], timeout=60)
            checks = [run.watch.check_under_way for run in runs if run.watch is not None]
            wait([check for check in checks if check is not None], timeout=60)
            self.loop.tick()
        self.scheduler.heal_all()
        self.loop.tick()
        history = self.loop.history()
        assert undeclared_fields(history) == []
        return history


def actions(history: History) -> list[str]:
    return [str(event.action) for event in history]


def test_a_step_is_injected_verified_healed_and_verified_again(tmp_path: Path) -> None:
    dataset = Testbed(tmp_path, step("kill", "flink/taskmanager-1", after_s=2.0))
    history = dataset.play()
    assert actions(history) == [
        "fault called",
        "fault in effect",
        "fault still in effect",
        "heal called",
        "fault healed",
    ]
    effect, healed = history.of(Action.FAULT_IN_EFFECT, Action.FAULT_HEALED)
    assert effect.value["seen_ns"] >= 2e9
    assert healed.value["called_ns"] - effect.value["seen_ns"] >= 1e9
    assert dataset.intents.open() == ()


def test_a_step_is_injected_on_its_event(tmp_path: Path) -> None:
    dataset = Testbed(
        tmp_path, step("pause", "flink/taskmanager-1", event="checkpoint triggered", nth=2)
    )
    for number in (1, 2):
        dataset.loop.record(Action.CHECKPOINT_TRIGGERED, checkpoint=number)
    history = dataset.play()
    (called,) = history.of(Action.FAULT_CALLED)
    assert history[called.value["trigger_index"]].value["checkpoint"] == 2


def test_a_step_whose_trigger_never_fires_is_skipped_with_the_reason(tmp_path: Path) -> None:
    dataset = Testbed(
        tmp_path, step("kill", "flink/taskmanager-1", event="job restarting"), trigger_s=3
    )
    (skipped,) = dataset.play().of(Action.FAULT_SKIPPED)
    assert "observed 0 of 1 times" in skipped.value["reason"]
    assert dataset.intents.open() == ()


def test_a_step_on_a_target_disturbed_in_the_same_way_is_skipped(tmp_path: Path) -> None:
    first = step("pause", "flink/taskmanager-1", for_s=5.0, after_s=1.0)
    second = step("kill", "all of flink/taskmanager", after_s=2.0)
    other = step("slow_link", "link sink", after_s=2.0)
    history = Testbed(tmp_path, first, second, other).play()
    (skipped,) = history.of(Action.FAULT_SKIPPED)
    assert skipped.value["step"] == 1
    assert {e.value["step"] for e in history.of(Action.FAULT_IN_EFFECT)} == {0, 2}


def test_a_step_without_duration_is_healed_when_the_others_are_done(tmp_path: Path) -> None:
    open_end = step("pause", "flink/taskmanager-1", for_s=None, after_s=0.5)
    dataset = Testbed(tmp_path, open_end, step("kill", "flink/taskmanager-2", after_s=1.0))
    history = dataset.play()
    healed = [event.value["step"] for event in history.of(Action.FAULT_HEALED)]
    assert healed == [1, 0]


def test_a_fault_without_effect_is_recorded_and_undone_at_once(tmp_path: Path) -> None:
    dataset = Testbed(tmp_path, step("slow_link", "link sink", after_s=0.5))
    dataset.cluster.links.proxy.busy = False  # type: ignore[union-attr]
    history = dataset.play()
    assert actions(history)[:3] == ["fault called", "fault not in effect", "heal called"]
    assert dataset.intents.open() == ()


def test_heal_all_ends_every_fault_in_effect_at_any_time(tmp_path: Path) -> None:
    dataset = Testbed(
        tmp_path, step("pause", "all of flink/taskmanager", for_s=1000.0, after_s=0.0)
    )
    while not dataset.loop.history().of(Action.FAULT_IN_EFFECT):
        dataset.scheduler.pending()
        dataset.loop.tick()
    dataset.scheduler.heal_all()
    states = {dataset.cluster.state(node).status for node in dataset.cluster.nodes.values()}
    assert states == {ContainerStatus.RUNNING}
    assert dataset.intents.open() == ()


ACKNOWLEDGED = ("checkpoint triggered", "checkpoint acknowledged")


def test_the_lateness_of_an_injection_is_recorded(tmp_path: Path) -> None:
    dataset = Testbed(tmp_path, step("kill", "flink/taskmanager-1", after_s=1.0))
    (effect,) = dataset.play().of(Action.FAULT_IN_EFFECT)
    assert effect.value["due_ns"] == 10**9
    assert effect.value["lateness_ms"] == (effect.value["seen_ns"] - 10**9) / 1e6


def test_an_effect_before_the_second_event_is_in_its_window(tmp_path: Path) -> None:
    dataset = Testbed(tmp_path, step("pause", "flink/taskmanager-1", between=ACKNOWLEDGED))
    dataset.after(Action.HEAL_CALLED, Action.CHECKPOINT_ACKNOWLEDGED, checkpoint=1)
    dataset.loop.record(Action.CHECKPOINT_TRIGGERED, checkpoint=1)
    history = dataset.play()
    assert history.of(Action.FAULT_HEALED)
    assert not history.of(Action.FAULT_MISSED_WINDOW)


def test_a_missed_window_is_recorded_and_the_fault_healed_as_planned(tmp_path: Path) -> None:
    dataset = Testbed(tmp_path, step("pause", "flink/taskmanager-1", between=ACKNOWLEDGED))
    dataset.after(
        Action.FAULT_CALLED, Action.CHECKPOINT_ACKNOWLEDGED, checkpoint=1, ack_ms=EPOCH_MS
    )
    dataset.loop.record(Action.CHECKPOINT_TRIGGERED, checkpoint=1, trigger_ms=EPOCH_MS)
    history = dataset.play()
    (missed,) = history.of(Action.FAULT_MISSED_WINDOW)
    assert "checkpoint acknowledged" in missed.value["reason"]
    attempt = last_attempt(history, 0)
    assert FaultMissedWindow in attempt
    assert FaultHealed in attempt


def test_a_missed_window_is_tried_again_at_the_next_one(tmp_path: Path) -> None:
    dataset = Testbed(tmp_path, step("pause", "flink/taskmanager-1", between=ACKNOWLEDGED, tries=2))
    dataset.after(
        Action.FAULT_CALLED, Action.CHECKPOINT_ACKNOWLEDGED, checkpoint=1, ack_ms=EPOCH_MS
    )
    dataset.after(Action.FAULT_HEALED, Action.CHECKPOINT_TRIGGERED, checkpoint=2)
    dataset.loop.record(Action.CHECKPOINT_TRIGGERED, checkpoint=1, trigger_ms=EPOCH_MS)
    history = dataset.play()
    assert len(history.of(Action.FAULT_CALLED)) == 2
    assert len(history.of(Action.FAULT_MISSED_WINDOW)) == 1
    assert FaultMissedWindow not in last_attempt(history, 0)
    assert dataset.intents.open() == ()


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
    """It is recorded for a second try, and for an awaited effect, too."""
    first = step("pause", "flink/taskmanager-1", **when)
    second = step("kill", "flink/taskmanager-2", effect_of=1, delay_s=1.0)
    dataset = Testbed(tmp_path, first, second)
    dataset.after(
        Action.FAULT_CALLED, Action.CHECKPOINT_ACKNOWLEDGED, checkpoint=1, ack_ms=EPOCH_MS
    )
    dataset.after(Action.FAULT_HEALED, Action.CHECKPOINT_TRIGGERED, checkpoint=3)
    for number in (1, 2):
        dataset.loop.record(Action.CHECKPOINT_TRIGGERED, checkpoint=number, trigger_ms=EPOCH_MS)
    history = dataset.play()
    for number, each in enumerate((first, second)):
        called = last_attempt(history, number)[FaultCalled]
        assert not_set_off(each.when, called, history, (first, second)[:number]) == ""


def test_a_missed_window_known_only_after_the_heal_is_recorded(tmp_path: Path) -> None:
    dataset = Testbed(tmp_path, step("pause", "flink/taskmanager-1", between=ACKNOWLEDGED))
    dataset.loop.record(Action.CHECKPOINT_TRIGGERED, checkpoint=1, trigger_ms=EPOCH_MS)
    dataset.play()
    dataset.loop.record(Action.CHECKPOINT_FAILED, checkpoint=1, first_ack_ms=EPOCH_MS)
    dataset.loop.tick()
    dataset.loop.tick()
    assert dataset.loop.history().of(Action.FAULT_MISSED_WINDOW)


def test_a_step_is_injected_when_a_metric_passes_its_threshold(tmp_path: Path) -> None:
    dataset = Testbed(tmp_path, step("pause", "flink/taskmanager-1", metric="lag", above=100.0))
    dataset.loop.measure("lag", "input", 50.0)
    dataset.scheduler.pending()
    dataset.loop.tick()
    assert dataset.scheduler.pending() is not None
    dataset.loop.measure("lag", "input", 500.0)
    assert dataset.play().of(Action.FAULT_HEALED)


def test_each_label_of_a_metric_is_compared_by_itself(tmp_path: Path) -> None:
    dataset = Testbed(tmp_path, step("pause", "flink/taskmanager-1", metric="lag", below=100.0))
    dataset.scheduler.pending()
    dataset.loop.measure("lag", "first", 500.0)
    dataset.loop.measure("lag", "second", 50.0)
    dataset.loop.tick()
    (run,) = dataset.scheduler.runs
    assert run.trigger.due_ns is None
    dataset.loop.measure("lag", "first", 99.0)
    assert dataset.play().of(Action.FAULT_HEALED)


def test_a_step_is_injected_when_another_is_in_effect(tmp_path: Path) -> None:
    first = step("pause", "flink/taskmanager-1", for_s=5.0, after_s=1.0)
    second = step("slow_link", "link sink", effect_of="pause", delay_s=1.0)
    effects = Testbed(tmp_path, first, second).play().of(Action.FAULT_IN_EFFECT)
    assert [e.value["step"] for e in effects] == [0, 1]
    assert effects[1].value["due_ns"] == effects[0].value["seen_ns"] + 10**9


def test_a_step_that_waits_for_a_skipped_step_is_skipped_at_once(tmp_path: Path) -> None:
    first = step("slow_link", "link sink", after_s=0.5)
    second = step("kill", "flink/taskmanager-2", effect_of=1)
    dataset = Testbed(tmp_path, first, second)
    dataset.cluster.links.proxy.busy = False  # type: ignore[union-attr]
    (skipped,) = dataset.play().of(Action.FAULT_SKIPPED)
    assert "when #1 is in effect: it never was in effect (" in skipped.value["reason"]


def test_a_step_whose_target_is_not_found_is_skipped_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_target(*_: object) -> tuple[Target, ...]:
        raise ConnectionError("the JobManager does not answer")

    monkeypatch.setattr("streamquake.harness.run.fault_scheduler.resolve", no_target)
    dataset = Testbed(tmp_path, step("kill", "flink/taskmanager-2", after_s=1.0))
    (skipped,) = dataset.play().of(Action.FAULT_SKIPPED)
    assert skipped.value["reason"] == "ConnectionError: the JobManager does not answer"


def test_a_step_whose_target_is_not_a_node_is_skipped_with_the_reason(tmp_path: Path) -> None:
    history = Testbed(tmp_path, step("kill", "all but kafka/broker-1", after_s=1.0)).play()
    (skipped,) = history.of(Action.FAULT_SKIPPED)
    assert "no node at this moment" in skipped.value["reason"]
    assert not history.of(Action.FAULT_CALLED, Action.FAULT_IN_EFFECT)


LOST = {
    "kill": ("flink/taskmanager-1", "restart"),
    "pause": ("flink/taskmanager-1", "unpause"),
    "isolate": ("kafka/broker-1", "restart"),
    "partition": ("between kafka/broker-1 and flink/taskmanager-1", "restart"),
    "slow_link": ("link sink", "toxics"),
}


def lose(testbed: Testbed, name: str, how: str) -> None:
    """End the effect without the harness."""
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
        testbed.cluster.start_again(node)


@pytest.mark.parametrize("fault", LOST)
def test_an_effect_that_ends_before_its_heal_is_recorded_with_its_moments(
    fault: str, tmp_path: Path
) -> None:
    target, how = LOST[fault]
    dataset = Testbed(tmp_path, step(fault, target, for_s=14.0, after_s=1.0))

    def listen(event: Event) -> None:
        if event.action == Action.FAULT_STILL_IN_EFFECT:
            lose(dataset, target, how)

    dataset.loop.listen(listen)
    history = dataset.play()
    (effect,) = history.of(Action.FAULT_IN_EFFECT)
    (still,) = history.of(Action.FAULT_STILL_IN_EFFECT)
    (ended,) = history.of(Action.FAULT_ENDED_EARLY)
    (healed,) = history.of(Action.HEAL_CALLED)
    assert ended.value["last_seen_ns"] == still.value["seen_ns"]
    assert still.value["seen_ns"] < ended.value["seen_ns"] < still.value["seen_ns"] + 20e9
    assert ended.at_ns < healed.at_ns
    assert healed.at_ns >= effect.value["seen_ns"] + 14e9
    assert "before the heal" in ended.value["reason"]
    assert dataset.intents.open() == ()


def test_a_long_fault_is_verified_every_few_seconds_and_once_before_its_heal(
    tmp_path: Path,
) -> None:
    history = Testbed(
        tmp_path, step("pause", "flink/taskmanager-1", for_s=18.0, after_s=1.0)
    ).play()
    looks = [e.value["seen_ns"] / 1e9 for e in history.of(Action.FAULT_STILL_IN_EFFECT)]
    (healed,) = history.of(Action.HEAL_CALLED)
    assert len(looks) == 3
    assert all(later - earlier > 4.5 for earlier, later in pairwise(looks))
    assert healed.at_s - 3.5 < looks[-1] < healed.at_s
    assert healed.value["last_seen_ns"] / 1e9 == looks[-1]


def test_a_fault_without_duration_is_verified_once_more_at_the_end(tmp_path: Path) -> None:
    open_end = step("pause", "flink/taskmanager-1", for_s=None, after_s=0.5)
    history = Testbed(tmp_path, open_end).play()
    (still,) = history.of(Action.FAULT_STILL_IN_EFFECT)
    (healed,) = history.of(Action.HEAL_CALLED)
    assert still.index < healed.index


@pytest.mark.parametrize("for_s", [8.0, 25.0])
def test_unanswered_checks_do_not_prove_an_end_but_are_recorded_as_unverified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, for_s: float
) -> None:
    dataset = Testbed(tmp_path, step("pause", "flink/taskmanager-1", for_s=for_s, after_s=1.0))

    def unreachable(*_: object) -> None:
        raise ResponseLost("closed before all of it was read")

    def listen(event: Event) -> None:
        if event.action == Action.FAULT_IN_EFFECT:
            monkeypatch.setattr(Pause, "evidence", unreachable)
        elif event.action == Action.HEAL_CALLED:
            monkeypatch.undo()

    dataset.loop.listen(listen)
    history = dataset.play()
    assert not history.of(Action.FAULT_STILL_IN_EFFECT, Action.FAULT_ENDED_EARLY)
    assert history.of(Action.FAULT_HEALED)
    unverified = history.of(Action.FAULT_NOT_VERIFIED)
    assert len(unverified) == (for_s > 15)
    for event in unverified:
        (effect,) = history.of(Action.FAULT_IN_EFFECT)
        assert event.value["last_seen_ns"] == effect.value["seen_ns"]
        assert "in effect or in place in the 25.0 s before its heal" in event.value["reason"]


def test_a_fault_in_place_on_an_idle_system_is_not_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = Testbed(tmp_path, step("pause", "flink/taskmanager-1", for_s=25.0, after_s=1.0))

    def idle(*_: object) -> Evidence:
        return Evidence(in_effect=False, gone=False, in_place=True)

    def listen(event: Event) -> None:
        if event.action == Action.FAULT_IN_EFFECT:
            monkeypatch.setattr(Pause, "evidence", idle)
        elif event.action == Action.HEAL_CALLED:
            monkeypatch.undo()

    dataset.loop.listen(listen)
    assert not dataset.play().of(
        Action.FAULT_STILL_IN_EFFECT, Action.FAULT_ENDED_EARLY, Action.FAULT_NOT_VERIFIED
    )


def test_a_heal_does_not_wait_for_a_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = Testbed(tmp_path, step("pause", "flink/taskmanager-1", for_s=2.0, after_s=1.0))
    healed, checked, heal = Signal(), Pause.evidence, Pause.heal

    def held_up(*poll: Any) -> Evidence:
        if not healed.is_set() and dataset.loop.history().of(Action.FAULT_IN_EFFECT):
            assert healed.wait(60)
        return checked(*poll)

    def healing(*about: Any) -> InjectionTimes:
        healed.set()
        return heal(*about)

    monkeypatch.setattr(Pause, "evidence", held_up)
    monkeypatch.setattr(Pause, "heal", healing)
    while dataset.scheduler.pending() is not None:
        wait([run.work for run in dataset.scheduler.runs if run.work is not None], timeout=60)
        dataset.loop.tick()
    dataset.scheduler.heal_all()
    dataset.loop.tick()
    assert actions(dataset.loop.history()) == [
        "fault called",
        "fault in effect",
        "heal called",
        "fault healed",
    ]


def test_a_fault_on_a_node_kept_down_by_another_step_has_not_ended(tmp_path: Path) -> None:
    limit = step("fd_limit", "flink/taskmanager-1", for_s=24.0, after_s=1.0)
    kill = step("kill", "flink/taskmanager-1", for_s=30.0, after_s=2.0)

    history = Testbed(tmp_path, limit, kill).play()

    assert len(history.of(Action.FAULT_IN_EFFECT)) == 2
    assert not history.of(Action.FAULT_ENDED_EARLY, Action.FAULT_NOT_VERIFIED)
    assert len(history.of(Action.FAULT_HEALED)) == 2


def reported(history: History, *actions: Action) -> list[tuple[str, str, str, str]]:
    """The recorded events: action, process, kind and fields."""
    chosen = history.of(*actions) if actions else tuple(history)
    about = {"step", "fault", "target", "nodes"}
    for event in chosen:
        assert about <= event.value.keys()
    return [
        (str(e.action), str(e.kind), e.process, " ".join(sorted(e.value.keys() - about)))
        for e in chosen
    ]


def test_every_event_of_a_step_has_its_fields(tmp_path: Path) -> None:
    dataset = Testbed(tmp_path, step("slow_link", "link sink", for_s=2.0, after_s=2.0))
    history = dataset.play()
    assert reported(history) == [
        ("fault called", "invoke", "fault-0", "params"),
        ("fault in effect", "ok", "fault-0", "called_ns due_ns evidence lateness_ms seen_ns"),
        ("fault still in effect", "info", "fault-0", "evidence seen_ns"),
        ("heal called", "invoke", "fault-0", "last_seen_ns"),
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
    dataset = Testbed(tmp_path, step("slow_link", "link sink", after_s=0.5))
    dataset.cluster.links.proxy.busy = False  # type: ignore[union-attr]
    history = dataset.play()
    assert reported(history) == [
        ("fault called", "invoke", "fault-0", "params"),
        ("fault not in effect", "fail", "fault-0", "reason"),
        ("heal called", "invoke", "fault-0", ""),
        ("fault healed", "ok", "fault-0", "called_ns evidence seen_ns"),
    ]
    (failed,) = history.of(Action.FAULT_NOT_IN_EFFECT)
    assert failed.value["reason"].startswith("NotInEffect: slow_link on sink in effect: not within")


def test_a_skipped_step_names_the_target_already_disturbed(tmp_path: Path) -> None:
    first = step("pause", "all of flink/taskmanager", for_s=5.0, after_s=1.0)
    second = step("kill", "all of flink/taskmanager", after_s=2.0)
    history = Testbed(tmp_path, first, second).play()
    assert reported(history, Action.FAULT_SKIPPED) == [
        ("fault skipped", "info", "fault-1", "reason")
    ]
    (skipped,) = history.of(Action.FAULT_SKIPPED)
    assert skipped.value["reason"] == "flink/taskmanager-1 is already disturbed in the same way"
    assert skipped.value["nodes"] == []


def test_a_target_may_be_disturbed_again_once_it_is_healed(tmp_path: Path) -> None:
    first = step("pause", "flink/taskmanager-1", for_s=1.0, after_s=1.0)
    second = step("kill", "flink/taskmanager-1", after_s=9.0)
    history = Testbed(tmp_path, first, second).play()
    assert not history.of(Action.FAULT_SKIPPED)
    assert [e.value["step"] for e in history.of(Action.FAULT_HEALED)] == [0, 1]


def test_an_effect_that_ended_early_is_recorded_as_a_failure(tmp_path: Path) -> None:
    dataset = Testbed(tmp_path, step("pause", "flink/taskmanager-1", for_s=14.0, after_s=1.0))

    def listen(event: Event) -> None:
        if event.action == Action.FAULT_IN_EFFECT:
            lose(dataset, "flink/taskmanager-1", "unpause")

    dataset.loop.listen(listen)
    history = dataset.play()
    assert reported(history, Action.FAULT_ENDED_EARLY, Action.FAULT_STILL_IN_EFFECT) == [
        ("fault ended early", "fail", "fault-0", "evidence last_seen_ns reason seen_ns")
    ]
    (effect,) = history.of(Action.FAULT_IN_EFFECT)
    (ended,) = history.of(Action.FAULT_ENDED_EARLY)
    assert ended.value["reason"] == "no longer in effect on flink/taskmanager-1 before the heal"
    assert ended.value["last_seen_ns"] == effect.value["seen_ns"]


def test_a_missed_window_is_recorded_once_as_a_failure(tmp_path: Path) -> None:
    dataset = Testbed(tmp_path, step("pause", "flink/taskmanager-1", between=ACKNOWLEDGED))
    dataset.after(
        Action.FAULT_CALLED, Action.CHECKPOINT_ACKNOWLEDGED, checkpoint=1, ack_ms=EPOCH_MS
    )
    dataset.loop.record(Action.CHECKPOINT_TRIGGERED, checkpoint=1, trigger_ms=EPOCH_MS)
    history = dataset.play()
    assert reported(history, Action.FAULT_MISSED_WINDOW) == [
        ("fault missed its window", "fail", "fault-0", "reason seen_ns")
    ]
    (called,) = history.of(Action.FAULT_CALLED)
    assert called.value["trigger_index"] == 0


def test_a_failed_heal_is_tried_once_more_and_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = Testbed(tmp_path, step("pause", "flink/taskmanager-1", after_s=1.0))
    tries = list[Any]()

    def stuck(self: Pause, *about: object) -> InjectionTimes:
        tries.append(about)
        raise RuntimeError("still paused")

    monkeypatch.setattr(Pause, "heal", stuck)
    history = dataset.play()
    assert reported(history, Action.HEAL_CALLED, Action.FAULT_NOT_HEALED, Action.FAULT_HEALED) == [
        ("heal called", "invoke", "fault-0", "last_seen_ns"),
        ("fault not healed", "fail", "fault-0", "reason"),
        ("heal called", "invoke", "fault-0", "last_seen_ns"),
        ("fault not healed", "fail", "fault-0", "reason"),
    ]
    (last_seen_ns,) = {e.value["last_seen_ns"] for e in history.of(Action.HEAL_CALLED)}
    assert last_seen_ns == history.of(Action.FAULT_STILL_IN_EFFECT)[-1].value["seen_ns"]
    reasons = {e.value["reason"] for e in history.of(Action.FAULT_NOT_HEALED)}
    assert reasons == {"RuntimeError: still paused"}
    assert len(tries) == 2
    assert len(dataset.intents.open()) == 1


def test_a_heal_that_failed_at_first_succeeds_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = Testbed(tmp_path, step("pause", "flink/taskmanager-1", after_s=1.0))
    heal, tries = Pause.heal, list[Any]()

    def once(self: Pause, *about: Any) -> InjectionTimes:
        tries.append(about)
        if len(tries) == 1:
            raise RuntimeError("still paused")
        return heal(self, *about)

    monkeypatch.setattr(Pause, "heal", once)
    history = dataset.play()
    assert actions(history)[-4:] == [
        "heal called",
        "fault not healed",
        "heal called",
        "fault healed",
    ]
    assert dataset.intents.open() == ()


def test_the_schedule_reports_what_it_waits_for(tmp_path: Path) -> None:
    pause = step("pause", "all of flink/taskmanager", for_s=3.0, after_s=1.0)
    stall = step("slow_link", "link sink", for_s=None, after_s=0.0)
    dataset = Testbed(tmp_path, stall, pause)
    message, active, nodes_kept_down = [], [], []
    while (pending := dataset.scheduler.pending()) is not None:
        wait([run.work for run in dataset.scheduler.runs if run.work is not None], timeout=60)
        message.append(pending)
        active.append(dataset.scheduler.active_faults())
        nodes_kept_down.append(dataset.scheduler.nodes_kept_down())
        dataset.loop.tick()
    workers = "flink/taskmanager-1, flink/taskmanager-2, flink/taskmanager-3"
    assert list(dict.fromkeys(message)) == [
        "slow_link on link sink is being injected",
        "pause on all of flink/taskmanager is waiting for its trigger",
        "pause on all of flink/taskmanager is being injected",
        "pause on all of flink/taskmanager is in effect",
        "pause on all of flink/taskmanager is being healed",
        "slow_link on link sink is verified once more",
    ]
    stalled = "slow_link on sink"
    assert set(active) == {(), (stalled,), (stalled, f"pause on {workers}")}
    assert set(nodes_kept_down) == {(), tuple(workers.split(", "))}, "a link is no node"
    dataset.scheduler.heal_all()
    assert dataset.scheduler.active_faults() == ()
    assert dataset.scheduler.nodes_kept_down() == ()


def test_a_trigger_is_awaited_until_its_limit(tmp_path: Path) -> None:
    dataset = Testbed(
        tmp_path, step("kill", "flink/taskmanager-1", event="job restarting"), trigger_s=3
    )
    (skipped,) = dataset.play().of(Action.FAULT_SKIPPED)
    assert 3e9 <= skipped.at_ns < 4e9


def test_a_trigger_with_a_known_moment_has_no_limit(tmp_path: Path) -> None:
    dataset = Testbed(tmp_path, step("kill", "flink/taskmanager-1", after_s=6.0), trigger_s=3)
    assert dataset.play().of(Action.FAULT_HEALED)


def test_the_choice_among_targets_follows_the_seed_and_the_step(tmp_path: Path) -> None:
    steps = [step("kill", "one of flink/taskmanager", after_s=1.0 + 9 * n) for n in range(6)]
    effects = Testbed(tmp_path, *steps).play().of(Action.FAULT_IN_EFFECT)
    workers = [f"flink/taskmanager-{number}" for number in (1, 2, 3)]
    drawn = [[random.Random(f"1:faults:{n}").choice(workers)] for n in range(6)]
    assert [e.value["nodes"] for e in effects] == drawn
    assert len({tuple(each) for each in drawn}) > 1


def missed_twice(folder: Path, tries: int) -> History:
    """A pause that misses its first two windows and meets the third."""
    dataset = Testbed(
        folder, step("pause", "flink/taskmanager-1", between=ACKNOWLEDGED, tries=tries)
    )
    calls: list[int] = []

    def listen(event: Event) -> None:
        number = len(calls) + 1
        if event.action == Action.FAULT_CALLED:
            calls.append(number)
            if number <= 2:
                dataset.loop.record(
                    Action.CHECKPOINT_ACKNOWLEDGED, checkpoint=number, ack_ms=EPOCH_MS
                )
        elif event.action == Action.FAULT_HEALED:
            dataset.loop.record(Action.CHECKPOINT_TRIGGERED, checkpoint=number)

    dataset.loop.listen(listen)
    dataset.loop.record(Action.CHECKPOINT_TRIGGERED, checkpoint=1, trigger_ms=EPOCH_MS)
    return dataset.play()


@pytest.mark.parametrize(
    ("tries", "called", "missed"), [(1, 1, 1), (2, 2, 2), (3, 3, 2), (4, 3, 2)]
)
def test_every_missed_window_is_recorded_until_one_is_met(
    tmp_path: Path, tries: int, called: int, missed: int
) -> None:
    history = missed_twice(tmp_path, tries)
    assert len(history.of(Action.FAULT_CALLED)) == called
    assert len(history.of(Action.FAULT_HEALED)) == called
    assert len(history.of(Action.FAULT_MISSED_WINDOW)) == missed
    assert (FaultMissedWindow in last_attempt(history, 0)) == (called <= 2)
    newest = last_attempt(history, 0)
    effect_ns = newest[FaultInEffect].seen_ns
    if called > 2:
        assert newest[HealCalled].at_ns - effect_ns >= 1e9, "held as long as planned"


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Give the pause a baseline; the moments of its measurements, in seconds of the run."""
    moments: list[float] = []

    def baseline(self: Pause, cluster: Cluster, target: Target) -> dict[str, Any]:
        assert current_thread().name.startswith("baseline")
        moments.append(cluster.clock.now_ns() / 1e9)
        return {"measurement": len(moments)}

    monkeypatch.setattr(Pause, "baseline", baseline)
    return moments


def until(testbed: Testbed, seconds: float) -> None:
    """Run the schedule for `seconds`; no time passes while a baseline is measured."""
    while testbed.loop.clock.now_ns() < seconds * 1e9:
        testbed.scheduler.pending()
        under_way = [run.baselines._measuring for run in testbed.scheduler.runs]
        wait([work for work in under_way if work is not None], timeout=60)
        testbed.loop.tick()


def test_baselines_are_measured_shortly_before_a_known_moment(
    tmp_path: Path, measured: list[float]
) -> None:
    dataset = Testbed(tmp_path, step("pause", "flink/taskmanager-1", after_s=7.0))
    until(dataset, 6.5)
    assert [round(moment) for moment in measured] == [1, 4]
    (effect,) = dataset.play().of(Action.FAULT_IN_EFFECT)
    before = effect.value["evidence"]["flink/taskmanager-1"]["before"]
    assert before["measurement"] in (2, 3), "its own measurement does not delay the injection"


def test_baselines_are_measured_again_after_a_cluster_change(
    tmp_path: Path, measured: list[float]
) -> None:
    dataset = Testbed(tmp_path, step("pause", "flink/taskmanager-1", event="job restarting"))
    until(dataset, 1.0)
    dataset.loop.record(Action.CHECKPOINT_TRIGGERED, checkpoint=1)
    until(dataset, 2.0)
    assert [round(moment) for moment in measured] == [0]
    dataset.loop.record(Action.CONTAINER_DIED, node="flink/taskmanager-2")
    until(dataset, 4.0)
    assert [round(moment) for moment in measured] == [0, 2]
    dataset.scheduler.heal_all()


def test_the_end_does_not_wait_for_baselines_or_checks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two baselines are measured at a time; those that have not started are cancelled."""
    end, started = Signal(), list[str]()

    def held_up(self: Pause, cluster: Cluster, target: Target) -> dict[str, Any]:
        started.append(target.name)
        assert end.wait(60)
        return {}

    monkeypatch.setattr(Pause, "baseline", held_up)
    names = [f"flink/taskmanager-{n}" for n in (1, 2, 3)]
    waiting = [step("pause", name, event="job restarting") for name in names]
    dataset = Testbed(tmp_path, *waiting, step("kill", "kafka/broker-1", for_s=60.0, after_s=0.0))
    monkeypatch.setattr(
        "streamquake.harness.run.fault_scheduler.verify_again", lambda *about: end.wait(60)
    )  # never looks before it is over
    while (
        dataset.scheduler.runs[3].watch is None
        or dataset.scheduler.runs[3].watch.check_under_way is None
    ):
        dataset.scheduler.pending()
        wait([run.work for run in dataset.scheduler.runs if run.work is not None], timeout=60)
        dataset.loop.tick()
    dataset.scheduler.heal_all()
    dataset.loop.tick()
    assert dataset.intents.open() == ()
    assert not end.is_set()
    assert len(started) == 2
    end.set()
    for thread in enumerate_threads():
        if thread.name.startswith("baseline"):
            thread.join(60)
    assert len(started) == 2


def test_many_steps_are_injected_checked_and_healed_at_the_same_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More steps than a thread pool has threads by default."""
    many = 34
    together, threads, drawn = Barrier(many), list[str](), iter(range(many))

    def at_once(come: object) -> Any:
        threads.append(current_thread().name.partition("_")[0])
        together.wait(60)
        return come

    def undo(intent: Intent, cluster: Cluster, log: IntentLog, *, limit_s: float) -> Any:
        log.healed(intent)
        return at_once(done)

    done = InjectionResult(done=True, called_ns=0, seen_ns=0)
    seen = RepeatedVerification(seen_ns=1, evidence={}, targets=1)
    module = "streamquake.harness.run.fault_scheduler"
    monkeypatch.setattr(f"{module}.inject_fault", lambda *about, **limits: at_once(done))
    monkeypatch.setattr(f"{module}.undo", undo)
    monkeypatch.setattr(f"{module}.verify_again", lambda *about: at_once(seen))
    monkeypatch.setattr(
        f"{module}.resolve", lambda *about: (LinkTarget(name=f"t{next(drawn)}", paths=()),)
    )
    steps = [step("pause", "flink/taskmanager-1", after_s=0.0, for_s=1.0)] * many
    history = Testbed(tmp_path, *steps).play()
    assert len(history.of(Action.FAULT_HEALED)) == many
    assert Counter(threads) == {"fault": 2 * many, "look": many}

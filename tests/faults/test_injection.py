"""Injection: the intent is written first, a missing effect is reported, and the heal is
verified."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.runtime.clock import on_run_clock_ns
from streamquake.cluster.runtime.runtime import ContainerStatus, InjectionTimes, ResponseLost
from streamquake.faults.catalogue.kill import Kill
from streamquake.faults.catalogue.slow_link import SlowLink
from streamquake.faults.fault import Evidence, Fault, Target, faults
from streamquake.faults.injection.injection import (
    InjectionResult,
    baselines_of,
    evidence_now,
    inject_fault,
    targets_of,
    undo,
)
from streamquake.faults.injection.intents import Intent, IntentLog
from streamquake.faults.injection.verification import verify_again
from streamquake.faults.schedule.target import find_target
from streamquake.topologies.errors import ErrorKind
from tests.fakes import FakeToxiproxy, fake_cluster, use_proxy

WORKER = "flink/taskmanager-1"


def write_intent(
    log: IntentLog,
    fault: Fault,
    *names: str,
    baselines: Mapping[str, Mapping[str, Any]] | None = None,
) -> Intent:
    """An intent on the first of its targets' names, as in an experiment."""
    return log.write_intent(step=0, fault=fault, target=names[0], names=names, baselines=baselines)


def status(cluster: Cluster, name: str) -> ContainerStatus:
    return cluster.state(cluster.node(name)).status


def test_a_kill_is_verified_and_healed(tmp_path: Path) -> None:
    cluster, log = fake_cluster(), IntentLog(tmp_path / "intents.jsonl")
    intent = write_intent(log, Kill(), WORKER)
    injected = inject_fault(intent, cluster, [cluster.node(WORKER)], limit_s=1)
    assert injected.done
    assert injected.seen_ns is not None
    assert injected.called_ns < injected.seen_ns
    assert injected.evidence[WORKER]["exit_code"] == 137
    assert [open_.id for open_ in log.open_intents()] == [intent.id]

    assert undo(intent, cluster, log, limit_s=1).done
    assert status(cluster, WORKER) == ContainerStatus.RUNNING
    assert log.open_intents() == ()


def test_a_second_undo_is_harmless(tmp_path: Path) -> None:
    cluster, log = fake_cluster(), IntentLog(tmp_path / "intents.jsonl")
    intent = write_intent(log, Kill(), WORKER)
    inject_fault(intent, cluster, [cluster.node(WORKER)], limit_s=1)
    assert undo(intent, cluster, log, limit_s=1).done
    assert undo(intent, cluster, log, limit_s=1).done
    assert status(cluster, WORKER) == ContainerStatus.RUNNING


@pytest.mark.parametrize(("losses", "done"), [(5, True), (1_000_000, False)])
def test_a_poll_whose_answer_was_lost_is_no_evidence(
    losses: int, done: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, lost, evidence = fake_cluster(), iter(range(losses)), Kill.evidence

    def lose_response(*poll: Any) -> Evidence:
        if next(lost, None) is not None:
            raise ResponseLost("closed before all of it was read")
        return evidence(*poll)

    monkeypatch.setattr(Kill, "evidence", lose_response)
    intent = write_intent(IntentLog(tmp_path / "intents.jsonl"), Kill(), WORKER)
    injected = inject_fault(intent, cluster, [cluster.node(WORKER)], limit_s=1)
    assert injected.done == done
    assert done or "closed before all of it was read" in injected.reason


def test_a_link_without_traffic_is_not_slowed(tmp_path: Path) -> None:
    cluster = fake_cluster()
    use_proxy(cluster, FakeToxiproxy(busy=False))
    intent = write_intent(IntentLog(tmp_path / "intents.jsonl"), SlowLink(latency_ms=50), "sink")
    injected = inject_fault(intent, cluster, [find_target("sink", cluster)], limit_s=1)
    assert not injected.done
    assert "bytes_while_watched" in injected.reason


def test_a_proxy_whose_toxic_cannot_be_removed_is_recreated_by_the_heal(tmp_path: Path) -> None:
    cluster, log = fake_cluster(), IntentLog(tmp_path / "intents.jsonl")
    proxy = FakeToxiproxy()
    use_proxy(cluster, proxy)
    fault = SlowLink(latency_ms=50)
    intent = write_intent(log, fault, "sink")
    assert inject_fault(intent, cluster, [find_target("sink", cluster)], limit_s=1).done
    proxy.hangs = True
    assert undo(intent, cluster, log, limit_s=1).done
    assert set(proxy.created) == {path.name for path in cluster.links.of("sink")}


def test_a_removed_target_is_healed(tmp_path: Path) -> None:
    cluster, log = fake_cluster(), IntentLog(tmp_path / "intents.jsonl")
    intent = write_intent(log, Kill(), WORKER)
    del cluster.nodes[WORKER]
    healed = undo(intent, cluster, log, limit_s=1)
    assert healed.done
    assert log.open_intents() == ()


def test_an_error_of_a_fault_is_the_reason_of_the_result(tmp_path: Path) -> None:
    cluster = fake_cluster()
    intent = write_intent(IntentLog(tmp_path / "intents.jsonl"), Kill(), WORKER)
    cluster.runtime.remove(cluster.node(WORKER).container)
    injected = inject_fault(intent, cluster, [cluster.node(WORKER)], limit_s=1)
    assert not injected.done
    assert "ContainerError" in injected.reason


@pytest.mark.parametrize("part", ["inject", "evidence"])
def test_a_fault_that_ends_the_program_ends_only_its_injection(
    part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def end(*given: Any) -> None:
        sys.exit(0)

    cluster = fake_cluster()
    monkeypatch.setattr(Kill, part, end)
    intent = write_intent(IntentLog(tmp_path / "intents.jsonl"), Kill(), WORKER)
    injected = inject_fault(intent, cluster, [cluster.node(WORKER)], limit_s=1)
    assert not injected.done
    assert injected.reason


def test_an_intent_that_a_crash_cut_off_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "intents.jsonl"
    log = IntentLog(path)
    write_intent(log, SlowLink(latency_ms=50), "sink")
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"schema": 1})[:-3])
    (found,) = IntentLog(path).open_intents()
    assert found.build_fault() == SlowLink(latency_ms=50)


def test_an_injection_on_no_target_is_not_in_effect(tmp_path: Path) -> None:
    cluster, log = fake_cluster(), IntentLog(tmp_path / "intents.jsonl")
    intent = log.write_intent(step=0, fault=Kill(), target="all but kafka/broker-1", names=[])
    injected = inject_fault(intent, cluster, [], limit_s=1)
    assert not injected.done
    assert "no target" in injected.reason
    assert undo(intent, cluster, log, limit_s=1).done


class RecordedFault(Fault):
    """A fault that records its calls and polls, and returns the evidence that a test prepares."""

    name = "recorded"
    target_kind = "nodes"
    touches = "process"

    def baseline(self, cluster: Cluster, target: Target) -> dict[str, Any]:
        return {"of": target.name}

    def inject(self, cluster: Cluster, target: Target) -> InjectionTimes:
        RECORDED["calls"].append(("inject", target.name))
        number = int(target.name[-1])
        return InjectionTimes(
            called_ns=number * 100, seen_ns=number * 100 + 7, how=f"watch {number}"
        )

    def evidence(self, cluster: Cluster, target: Target, baseline: Any) -> Evidence:
        RECORDED["polls"].append((target.name, dict(baseline)))
        return (
            RECORDED["evidence"].pop(0)
            if RECORDED["evidence"]
            else Evidence(in_effect=True, healed=True)
        )

    def heal(self, cluster: Cluster, target: Target, baseline: Any) -> InjectionTimes:
        RECORDED["calls"].append(("heal", target.name, dict(baseline)))
        return InjectionTimes(called_ns=1, seen_ns=2, how="heal")


class SequentialFault(RecordedFault):
    name = "sequential"
    one_by_one = True


RECORDED: dict[str, list[Any]] = {}
OTHER = "flink/taskmanager-2"


@pytest.fixture(params=[RecordedFault, SequentialFault])
def recorded_fault(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Fault:
    """A fault that is registered for one test only."""
    monkeypatch.setitem(faults._members, request.param.name, request.param)
    RECORDED.update(calls=[], polls=[], evidence=[])
    fault: Fault = request.param()
    return fault


def test_an_injection_uses_the_baseline_of_each_target(
    recorded_fault: Fault, tmp_path: Path
) -> None:
    cluster, log = fake_cluster(), IntentLog(tmp_path / "intents.jsonl")
    targets = [cluster.node(WORKER), cluster.node(OTHER)]
    baselines = baselines_of(recorded_fault, cluster, targets)
    assert baselines == {WORKER: {"of": WORKER}, OTHER: {"of": OTHER}}
    intent = log.write_intent(
        step=0,
        fault=recorded_fault,
        target="all of flink/taskmanager",
        names=[WORKER, OTHER],
        baselines={WORKER: {"of": WORKER}},
    )
    RECORDED["evidence"] = [
        Evidence(in_effect=True, healed=False, observations={"sign": 1}),
        Evidence(in_effect=True, healed=False, observations={"sign": 2}),
    ]
    injected = inject_fault(intent, cluster, targets, limit_s=1)
    assert sorted(RECORDED["calls"]) == [("inject", WORKER), ("inject", OTHER)]
    assert RECORDED["polls"] == [(WORKER, {"of": WORKER}), (OTHER, {})]
    assert (injected.done, injected.reason) == (True, "")
    assert dict(injected.evidence) == {
        "watched": "watch 1",
        WORKER: {"sign": 1, "before": {"of": WORKER}},
        OTHER: {"sign": 2},
    }
    first_ns, last_ns = (on_run_clock_ns(cluster.clock, moment) for moment in (100, 207))
    assert (injected.called_ns, injected.seen_ns) == (first_ns, last_ns)
    assert injected.width_ms == 0.0

    healed = undo(intent, cluster, log, limit_s=1)
    assert healed.done
    assert sorted(RECORDED["calls"][2:]) == [
        ("heal", WORKER, {"of": WORKER}),
        ("heal", OTHER, {}),
    ]


def test_the_width_of_a_result_is_in_milliseconds() -> None:
    assert InjectionResult(done=True, called_ns=10**9, seen_ns=1_002_345_678).width_ms == 2.35
    assert InjectionResult(done=False, called_ns=10**9).width_ms is None


@pytest.mark.parametrize(("wanted", "state"), [(True, "in effect"), (False, "healed")])
def test_a_result_without_a_verified_effect_has_a_reason(
    recorded_fault: Fault, tmp_path: Path, wanted: bool, state: str
) -> None:
    cluster, log = fake_cluster(), IntentLog(tmp_path / "intents.jsonl")
    intent = write_intent(log, recorded_fault, WORKER)
    RECORDED["evidence"] = [
        Evidence(in_effect=not wanted, healed=wanted, observations={"sign": 1})
    ] * 1000
    began_ns = cluster.clock.now_ns()
    if wanted:
        injected = inject_fault(intent, cluster, [cluster.node(WORKER)], limit_s=2)
    else:
        injected = undo(intent, cluster, log, limit_s=2)
    assert (injected.done, injected.called_ns, injected.seen_ns) == (False, began_ns, None)
    assert injected.cause == ErrorKind.UNDECIDED, "neither the cluster nor the harness failed"
    assert injected.reason == (
        f"NotInEffect: {recorded_fault.name} on {WORKER} {state}: not within 2 s: "
        "last observation: {'sign': 1}"
    )
    assert [open_.id for open_ in log.open_intents()] == [intent.id], "it may still be in effect"
    assert 35 < len(RECORDED["polls"]) < 50, "polled for 2 s, twenty times per second"


def test_a_heal_names_the_targets_that_were_removed(tmp_path: Path, recorded_fault: Fault) -> None:
    cluster, log = fake_cluster(), IntentLog(tmp_path / "intents.jsonl")
    intent = write_intent(log, recorded_fault, WORKER, OTHER)
    del cluster.nodes[WORKER]
    assert [target.name for target in targets_of(intent, cluster)] == [OTHER]
    assert set(evidence_now(intent, cluster)) == {OTHER}
    del cluster.nodes[OTHER]
    injected = undo(intent, cluster, log, limit_s=1)
    assert (injected.done, injected.reason) == (True, "target removed")
    assert injected.removed_targets == intent.names
    assert injected.seen_ns == injected.called_ns == cluster.clock.now_ns()
    nothing = inject_fault(intent, cluster, [], limit_s=1)
    assert nothing.reason == "there is no target to inject into"
    assert (nothing.called_ns, nothing.done) == (cluster.clock.now_ns(), False)


def test_current_evidence_is_compared_with_the_baseline(
    recorded_fault: Fault, tmp_path: Path
) -> None:
    cluster, log = fake_cluster(), IntentLog(tmp_path / "intents.jsonl")
    intent = write_intent(log, recorded_fault, WORKER, OTHER, baselines={WORKER: {"of": 1}})
    RECORDED["evidence"] = [
        Evidence(in_effect=True, healed=False),
        Evidence(in_effect=False, healed=True),
    ]
    found = evidence_now(intent, cluster)
    in_effect = {name: evidence.in_effect for name, evidence in found.items()}
    assert in_effect == {WORKER: True, OTHER: False}
    assert RECORDED["polls"] == [(WORKER, {"of": 1}), (OTHER, {})]


def test_sequential_injection_ends_with_the_first_target_that_fails(
    recorded_fault: Fault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    barrier = Barrier(2)

    def reject(self: Fault, cluster: Cluster, target: Target) -> InjectionTimes:
        RECORDED["calls"].append(target.name)
        if not self.one_by_one:
            barrier.wait(timeout=60)
        raise RuntimeError("no")

    monkeypatch.setattr(type(recorded_fault), "inject", reject)
    cluster, log = fake_cluster(), IntentLog(tmp_path / "intents.jsonl")
    intent = write_intent(log, recorded_fault, WORKER, OTHER)
    injected = inject_fault(intent, cluster, [cluster.node(WORKER), cluster.node(OTHER)], limit_s=1)
    assert (injected.done, injected.reason) == (False, "RuntimeError: no")
    assert injected.cause == ErrorKind.INTERNAL
    in_turn = [WORKER] if recorded_fault.one_by_one else [WORKER, OTHER]
    assert sorted(RECORDED["calls"]) == in_turn
    began_ns = cluster.clock.now_ns()
    assert injected.called_ns == began_ns


def test_an_undo_that_fails_leaves_the_intent_open(recorded_fault: Fault, tmp_path: Path) -> None:
    cluster, log = fake_cluster(), IntentLog(tmp_path / "intents.jsonl")
    intent = write_intent(log, recorded_fault, WORKER)
    RECORDED["evidence"] = [Evidence(in_effect=False, healed=False)] * 1000
    assert not undo(intent, cluster, log, limit_s=1).done
    assert log.open_intents() != ()
    RECORDED["evidence"] = []
    assert undo(intent, cluster, log, limit_s=1).done
    assert log.open_intents() == ()


@pytest.mark.parametrize(
    ("first", "second", "in_effect", "ended_on"),
    [
        ((True, False), (True, False), True, ()),
        ((True, False), (False, False), False, ()),
        ((True, False), (False, True), False, (OTHER,)),
        ((False, True), (False, True), False, (WORKER, OTHER)),
        ((True, False), None, False, ()),
        ((False, True), None, False, (WORKER,)),
        (None, None, False, ()),
    ],
)
def test_a_repeated_verification_covers_every_target(
    recorded_fault: Fault,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    first: tuple[bool, bool] | None,
    second: tuple[bool, bool] | None,
    in_effect: bool,
    ended_on: tuple[str, ...],
) -> None:
    cluster, log = fake_cluster(), IntentLog(tmp_path / "intents.jsonl")
    prepared = {WORKER: first, OTHER: second}

    def evidence(self: Fault, of: Cluster, target: Target, baseline: Any) -> Evidence:
        assert of is cluster
        assert dict(baseline) == ({"of": 1} if target.name == WORKER else {})
        flags = prepared[target.name]
        if flags is None:
            raise ResponseLost("closed")
        return Evidence(in_effect=flags[0], healed=flags[1])

    monkeypatch.setattr(type(recorded_fault), "evidence", evidence)
    intent = write_intent(log, recorded_fault, WORKER, OTHER, baselines={WORKER: {"of": 1}})
    found = verify_again(intent, cluster)
    assert (found.in_effect, found.ended_on) == (in_effect, ended_on)
    assert set(found.evidence) == {name for name, flags in prepared.items() if flags is not None}
    assert (found.targets, found.seen_ns) == (2, cluster.clock.now_ns())


def test_a_poll_of_removed_targets_proves_nothing(recorded_fault: Fault, tmp_path: Path) -> None:
    cluster, log = fake_cluster(), IntentLog(tmp_path / "intents.jsonl")
    intent = write_intent(log, recorded_fault, WORKER)
    without_target = log.write_intent(
        step=1, fault=recorded_fault, target="all but kafka/broker-1", names=[]
    )
    del cluster.nodes[WORKER]
    found = verify_again(intent, cluster)
    assert (found.in_effect, found.ended_on, found.targets) == (False, (), 1)
    assert not verify_again(without_target, cluster).in_effect

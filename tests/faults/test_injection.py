"""Injection: the intent is saved first, a missing effect is reported, the heal is certain."""

from __future__ import annotations

import json
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
from tests.fakes import FakeToxiproxy, fake_cluster, use_proxy

WORKER = "flink/taskmanager-1"


def intended(log: IntentLog, fault: Fault, name: str) -> Intent:
    return log.write_intent(step=0, fault=fault, target=name, names=[name])


def status(cluster: Cluster, name: str) -> ContainerStatus:
    return cluster.state(cluster.node(name)).status


def test_a_kill_is_verified_and_healed(tmp_path: Path) -> None:
    cluster, log = fake_cluster(), IntentLog(tmp_path / "intents.jsonl")
    intent = intended(log, Kill(), WORKER)
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
    intent = intended(log, Kill(), WORKER)
    inject_fault(intent, cluster, [cluster.node(WORKER)], limit_s=1)
    assert undo(intent, cluster, log, limit_s=1).done
    assert undo(intent, cluster, log, limit_s=1).done
    assert status(cluster, WORKER) == ContainerStatus.RUNNING


@pytest.mark.parametrize(("losses", "done"), [(5, True), (1_000_000, False)])
def test_a_poll_whose_answer_was_lost_is_no_evidence(
    losses: int, done: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, lost, checked = fake_cluster(), iter(range(losses)), Kill.evidence

    def losing(*poll: Any) -> Evidence:
        if next(lost, None) is not None:
            raise ResponseLost("closed before all of it was read")
        return checked(*poll)

    monkeypatch.setattr(Kill, "evidence", losing)
    intent = intended(IntentLog(tmp_path / "intents.jsonl"), Kill(), WORKER)
    injected = inject_fault(intent, cluster, [cluster.node(WORKER)], limit_s=1)
    assert injected.done == done
    assert done or "closed before all of it was read" in injected.reason


def test_a_link_without_traffic_is_not_slowed(tmp_path: Path) -> None:
    cluster = fake_cluster()
    use_proxy(cluster, FakeToxiproxy(busy=False))
    intent = intended(IntentLog(tmp_path / "intents.jsonl"), SlowLink(latency_ms=50), "sink")
    injected = inject_fault(intent, cluster, [find_target("sink", cluster)], limit_s=1)
    assert not injected.done
    assert "bytes_while_watched" in injected.reason


def test_a_toxic_that_cannot_be_removed_costs_the_proxy_not_the_heal(tmp_path: Path) -> None:
    cluster, log = fake_cluster(), IntentLog(tmp_path / "intents.jsonl")
    proxy = FakeToxiproxy()
    use_proxy(cluster, proxy)
    fault = SlowLink(latency_ms=50)
    intent = intended(log, fault, "sink")
    assert inject_fault(intent, cluster, [find_target("sink", cluster)], limit_s=1).done
    proxy.hangs = True
    assert undo(intent, cluster, log, limit_s=1).done
    assert set(proxy.created) == {path.name for path in cluster.links.of("sink")}


def test_a_removed_target_is_healed(tmp_path: Path) -> None:
    cluster, log = fake_cluster(), IntentLog(tmp_path / "intents.jsonl")
    intent = intended(log, Kill(), WORKER)
    del cluster.nodes[WORKER]
    healed = undo(intent, cluster, log, limit_s=1)
    assert healed.done
    assert log.open_intents() == ()


def test_a_fault_that_raises_is_a_reason_not_a_crash(tmp_path: Path) -> None:
    cluster = fake_cluster()
    intent = intended(IntentLog(tmp_path / "intents.jsonl"), Kill(), WORKER)
    cluster.runtime.remove(cluster.node(WORKER).container)
    injected = inject_fault(intent, cluster, [cluster.node(WORKER)], limit_s=1)
    assert not injected.done
    assert "ContainerError" in injected.reason


def test_an_intent_cut_off_by_a_crash_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "intents.jsonl"
    log = IntentLog(path)
    intended(log, SlowLink(latency_ms=50), "sink")
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


class Acts(Fault):
    """A fault that a test watches: which targets are acted on, and what is seen of them."""

    name = "acts"
    target_kind = "nodes"
    touches = "process"

    def baseline(self, cluster: Cluster, target: Target) -> dict[str, Any]:
        return {"of": target.name}

    def inject(self, cluster: Cluster, target: Target) -> InjectionTimes:
        SHOWN["acted"].append(("inject", target.name))
        number = int(target.name[-1])
        return InjectionTimes(
            called_ns=number * 100, seen_ns=number * 100 + 7, how=f"watch {number}"
        )

    def evidence(self, cluster: Cluster, target: Target, baseline: Any) -> Evidence:
        SHOWN["looked"].append((target.name, dict(baseline)))
        return (
            SHOWN["evidence"].pop(0) if SHOWN["evidence"] else Evidence(in_effect=True, healed=True)
        )

    def heal(self, cluster: Cluster, target: Target, baseline: Any) -> InjectionTimes:
        SHOWN["acted"].append(("heal", target.name, dict(baseline)))
        return InjectionTimes(called_ns=1, seen_ns=2, how="heal")


class InTurn(Acts):
    name = "acts-in-turn"
    one_by_one = True


SHOWN: dict[str, list[Any]] = {}
OTHER = "flink/taskmanager-2"


@pytest.fixture(params=[Acts, InTurn])
def acts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Fault:
    """A fault that is registered for one test only."""
    monkeypatch.setitem(faults._members, request.param.name, request.param)
    SHOWN.update(acted=[], looked=[], evidence=[])
    made: Fault = request.param()
    return made


def test_an_injection_uses_the_own_baseline_of_every_target(acts: Fault, tmp_path: Path) -> None:
    cluster, log = fake_cluster(), IntentLog(tmp_path / "intents.jsonl")
    targets = [cluster.node(WORKER), cluster.node(OTHER)]
    baselines = baselines_of(acts, cluster, targets)
    assert baselines == {WORKER: {"of": WORKER}, OTHER: {"of": OTHER}}
    intent = log.write_intent(
        step=0,
        fault=acts,
        target="all of flink/taskmanager",
        names=[WORKER, OTHER],
        baselines={WORKER: {"of": WORKER}},
    )
    SHOWN["evidence"] = [
        Evidence(in_effect=True, healed=False, observations={"sign": 1}),
        Evidence(in_effect=True, healed=False, observations={"sign": 2}),
    ]
    injected = inject_fault(intent, cluster, targets, limit_s=1)
    assert sorted(SHOWN["acted"]) == [("inject", WORKER), ("inject", OTHER)]
    assert SHOWN["looked"] == [(WORKER, {"of": WORKER}), (OTHER, {})]
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
    assert sorted(SHOWN["acted"][2:]) == [
        ("heal", WORKER, {"of": WORKER}),
        ("heal", OTHER, {}),
    ]


def test_how_exactly_a_moment_is_known_is_told_in_milliseconds() -> None:
    assert InjectionResult(done=True, called_ns=10**9, seen_ns=1_002_345_678).width_ms == 2.35
    assert InjectionResult(done=False, called_ns=10**9).width_ms is None


@pytest.mark.parametrize(("wanted", "state"), [(True, "in effect"), (False, "healed")])
def test_an_effect_that_is_not_verified_within_its_limit_is_a_reason(
    acts: Fault, tmp_path: Path, wanted: bool, state: str
) -> None:
    cluster, log = fake_cluster(), IntentLog(tmp_path / "intents.jsonl")
    intent = log.write_intent(step=0, fault=acts, target=WORKER, names=[WORKER])
    SHOWN["evidence"] = [
        Evidence(in_effect=not wanted, healed=wanted, observations={"sign": 1})
    ] * 1000
    began_ns = cluster.clock.now_ns()
    if wanted:
        injected = inject_fault(intent, cluster, [cluster.node(WORKER)], limit_s=2)
    else:
        injected = undo(intent, cluster, log, limit_s=2)
    assert (injected.done, injected.called_ns, injected.seen_ns) == (False, began_ns, None)
    assert injected.reason == (
        f"NotInEffect: {acts.name} on {WORKER} {state}: not within 2 s: "
        "last observation: {'sign': 1}"
    )
    assert [open_.id for open_ in log.open_intents()] == [intent.id], "it may still be there"
    assert 35 < len(SHOWN["looked"]) < 50, "looked for 2 s, twenty times a second"


def test_what_is_gone_before_it_is_undone_is_said(tmp_path: Path, acts: Fault) -> None:
    cluster, log = fake_cluster(), IntentLog(tmp_path / "intents.jsonl")
    intent = log.write_intent(step=0, fault=acts, target=WORKER, names=[WORKER, OTHER])
    del cluster.nodes[WORKER]
    assert [each.name for each in targets_of(intent, cluster)] == [OTHER]
    assert set(evidence_now(intent, cluster)) == {OTHER}
    del cluster.nodes[OTHER]
    injected = undo(intent, cluster, log, limit_s=1)
    assert (injected.done, injected.reason) == (True, "target removed")
    assert injected.removed_targets == intent.names
    assert injected.seen_ns == injected.called_ns == cluster.clock.now_ns()
    nothing = inject_fault(intent, cluster, [], limit_s=1)
    assert nothing.reason == "there is no target to inject into"
    assert (nothing.called_ns, nothing.done) == (cluster.clock.now_ns(), False)


def test_what_is_seen_now_is_held_against_the_baseline(acts: Fault, tmp_path: Path) -> None:
    cluster, log = fake_cluster(), IntentLog(tmp_path / "intents.jsonl")
    intent = log.write_intent(
        step=0, fault=acts, target=WORKER, names=[WORKER, OTHER], baselines={WORKER: {"of": 1}}
    )
    SHOWN["evidence"] = [
        Evidence(in_effect=True, healed=False),
        Evidence(in_effect=False, healed=True),
    ]
    seen = evidence_now(intent, cluster)
    assert {name: each.in_effect for name, each in seen.items()} == {WORKER: True, OTHER: False}
    assert SHOWN["looked"] == [(WORKER, {"of": 1}), (OTHER, {})]


def test_sequential_injection_ends_with_the_first_target_that_fails(
    acts: Fault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = Barrier(2)

    def reject(self: Fault, cluster: Cluster, target: Target) -> InjectionTimes:
        SHOWN["acted"].append(target.name)
        if not self.one_by_one:
            together.wait(timeout=60)
        raise RuntimeError("no")

    monkeypatch.setattr(type(acts), "inject", reject)
    cluster, log = fake_cluster(), IntentLog(tmp_path / "intents.jsonl")
    intent = log.write_intent(step=0, fault=acts, target=WORKER, names=[WORKER, OTHER])
    injected = inject_fault(intent, cluster, [cluster.node(WORKER), cluster.node(OTHER)], limit_s=1)
    assert (injected.done, injected.reason) == (False, "RuntimeError: no")
    in_turn = [WORKER] if acts.one_by_one else [WORKER, OTHER]
    assert sorted(SHOWN["acted"]) == in_turn
    began_ns = cluster.clock.now_ns()
    assert injected.called_ns == began_ns


def test_an_undo_that_fails_leaves_the_intent_open(acts: Fault, tmp_path: Path) -> None:
    cluster, log = fake_cluster(), IntentLog(tmp_path / "intents.jsonl")
    intent = log.write_intent(step=0, fault=acts, target=WORKER, names=[WORKER])
    SHOWN["evidence"] = [Evidence(in_effect=False, healed=False)] * 1000
    assert not undo(intent, cluster, log, limit_s=1).done
    assert log.open_intents() != ()
    SHOWN["evidence"] = []
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
    acts: Fault,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    first: tuple[bool, bool] | None,
    second: tuple[bool, bool] | None,
    in_effect: bool,
    ended_on: tuple[str, ...],
) -> None:
    cluster, log = fake_cluster(), IntentLog(tmp_path / "intents.jsonl")
    shown = {WORKER: first, OTHER: second}

    def evidence(self: Fault, of: Cluster, target: Target, baseline: Any) -> Evidence:
        assert of is cluster
        assert dict(baseline) == ({"of": 1} if target.name == WORKER else {})
        seen = shown[target.name]
        if seen is None:
            raise ResponseLost("closed")
        return Evidence(in_effect=seen[0], healed=seen[1])

    monkeypatch.setattr(type(acts), "evidence", evidence)
    intent = log.write_intent(
        step=0, fault=acts, target=WORKER, names=[WORKER, OTHER], baselines={WORKER: {"of": 1}}
    )
    found = verify_again(intent, cluster)
    assert (found.in_effect, found.ended_on) == (in_effect, ended_on)
    assert set(found.evidence) == {name for name, seen in shown.items() if seen is not None}
    assert (found.targets, found.seen_ns) == (2, cluster.clock.now_ns())


def test_a_poll_of_removed_targets_proves_nothing(acts: Fault, tmp_path: Path) -> None:
    cluster, log = fake_cluster(), IntentLog(tmp_path / "intents.jsonl")
    intent = log.write_intent(step=0, fault=acts, target=WORKER, names=[WORKER])
    without_target = log.write_intent(step=1, fault=acts, target="all but kafka/broker-1", names=[])
    del cluster.nodes[WORKER]
    found = verify_again(intent, cluster)
    assert (found.in_effect, found.ended_on, found.targets) == (False, (), 1)
    assert not verify_again(without_target, cluster).in_effect

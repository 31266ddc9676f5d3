"""The injector of the tests must itself fail if a fault has no effect or is not removed."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamquake.cluster.runtime.runtime import InjectionTimes
from streamquake.faults.catalogue.kill import Kill
from streamquake.faults.catalogue.pause import Pause
from streamquake.faults.catalogue.stall_link import StallLink
from streamquake.faults.injection.intents import IntentLog
from streamquake.faults.requirement import one_of
from tests.fakes import FakeToxiproxy, fake_cluster, use_proxy
from tests.injecting import FaultInjector

WORKER = "flink/taskmanager-2"


@pytest.fixture
def injector(tmp_path: Path) -> FaultInjector:
    return FaultInjector(fake_cluster(), IntentLog(tmp_path / "intents.jsonl"), limit_s=1)


def no_effect(*_: object) -> InjectionTimes:
    return InjectionTimes(called_ns=0, seen_ns=0, how="nothing")


def test_a_fault_with_effect_is_verified_and_then_healed(injector: FaultInjector) -> None:
    assert injector.took_effect(Kill(), WORKER)[WORKER]["exit_code"] == 137
    assert injector.log.open_intents() == ()


def test_a_fault_without_effect_fails_the_test_and_is_healed(injector: FaultInjector) -> None:
    use_proxy(injector.cluster, FakeToxiproxy(busy=False))

    with pytest.raises(AssertionError, match="stall_link on sink in effect: not within 1 s"):
        injector.took_effect(StallLink(), "link sink")

    assert injector.log.open_intents() == ()


def test_a_fault_that_cannot_be_healed_fails_the_test(
    injector: FaultInjector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Pause, "heal", no_effect)

    with pytest.raises(AssertionError, match=f"pause on {WORKER} healed: not within 1 s"):
        injector.took_effect(Pause(), WORKER)


def test_a_second_heal_with_an_effect_fails_the_test(
    injector: FaultInjector, monkeypatch: pytest.MonkeyPatch
) -> None:
    intent, _ = injector.inject_fault(Pause(), WORKER)
    node = injector.cluster.node(WORKER)
    monkeypatch.setattr(
        Pause,
        "heal",
        lambda *_: (
            injector.cluster.runtime.unpause(node.container)
            if intent in injector.log.open_intents()
            else injector.cluster.runtime.pause(node.container)
        ),
    )

    with pytest.raises(AssertionError, match=f"pause on {WORKER} healed"):
        injector.heal(intent)


@pytest.mark.parametrize("requires", ["effect_requires", "heal_requires"])
def test_evidence_that_contradicts_its_conclusion_fails_the_test(
    injector: FaultInjector, monkeypatch: pytest.MonkeyPatch, requires: str
) -> None:
    monkeypatch.setattr(Kill, requires, lambda *_: {"status": one_of("frozen")})

    with pytest.raises(AssertionError, match="status: expected frozen, got"):
        injector.took_effect(Kill(), WORKER)


def test_a_fault_is_healed_if_the_block_raises(injector: FaultInjector) -> None:
    with pytest.raises(ZeroDivisionError), injector.in_effect(Kill(), WORKER):
        raise ZeroDivisionError

    assert injector.log.open_intents() == ()


@pytest.mark.parametrize(
    ("own", "named", "injected"),
    [
        (None, None, Kill.usual),
        (WORKER, None, WORKER),
        (WORKER, "flink/taskmanager-3", "flink/taskmanager-3"),
    ],
)
def test_the_target_is_that_of_the_call_else_of_the_injector_else_of_the_fault(
    own: str | None, named: str | None, injected: str, injector: FaultInjector
) -> None:
    injector_with_target = FaultInjector(injector.cluster, injector.log, limit_s=1, at=own)

    assert injector_with_target.intend(Kill(), named).names == (injected,)

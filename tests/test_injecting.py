"""What strikes faults for the tests must itself fail where a fault does not bite or does not go."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamquake.cluster.runtime.runtime import Bracket
from streamquake.faults.catalogue.kill import Kill
from streamquake.faults.catalogue.pause import Pause
from streamquake.faults.catalogue.stall_link import StallLink
from streamquake.faults.injection.intents import IntentLog
from tests.fakes import FakeToxiproxy, fake_cluster, use_proxy
from tests.injecting import Striker

WORKER = "flink/taskmanager-2"


@pytest.fixture
def striker(tmp_path: Path) -> Striker:
    return Striker(fake_cluster(), IntentLog(tmp_path / "intents.jsonl"), limit_s=1)


def nothing(*_: object) -> Bracket:
    return Bracket(called_ns=0, seen_ns=0, how="nothing")


def test_what_bites_is_seen_and_then_healed(striker: Striker) -> None:
    assert striker.bites(Kill(), WORKER)[WORKER]["exit_code"] == 137
    assert striker.log.open() == ()


def test_what_does_not_bite_fails_the_test_and_is_healed(striker: Striker) -> None:
    use_proxy(striker.cluster, FakeToxiproxy(busy=False))

    with pytest.raises(AssertionError, match="stall_link on sink in effect: not within 1 s"):
        striker.bites(StallLink(), "link sink")

    assert striker.log.open() == ()


def test_what_does_not_go_fails_the_test(striker: Striker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pause, "heal", nothing)

    with pytest.raises(AssertionError, match=f"pause on {WORKER} healed: not within 1 s"):
        striker.bites(Pause(), WORKER)


def test_a_second_heal_that_does_harm_fails_the_test(
    striker: Striker, monkeypatch: pytest.MonkeyPatch
) -> None:
    intent, _ = striker.strike(Pause(), WORKER)
    node = striker.cluster.node(WORKER)
    monkeypatch.setattr(
        Pause,
        "heal",
        lambda *_: (
            striker.cluster.runtime.unpause(node.container)
            if intent in striker.log.open()
            else striker.cluster.runtime.pause(node.container)
        ),
    )

    with pytest.raises(AssertionError, match=f"pause on {WORKER} healed"):
        striker.heal(intent)


def test_a_block_that_fails_leaves_nothing_struck(striker: Striker) -> None:
    with pytest.raises(ZeroDivisionError), striker.in_effect(Kill(), WORKER):
        raise ZeroDivisionError

    assert striker.log.open() == ()


@pytest.mark.parametrize(
    ("own", "named", "struck"),
    [
        (None, None, Kill.usual),
        (WORKER, None, WORKER),
        (WORKER, "flink/taskmanager-3", "flink/taskmanager-3"),
    ],
)
def test_a_target_is_named_by_the_call_or_the_striker_or_the_fault(
    own: str | None, named: str | None, struck: str, striker: Striker
) -> None:
    aimed = Striker(striker.cluster, striker.log, limit_s=1, at=own)

    assert aimed.intend(Kill(), named).names == (struck,)

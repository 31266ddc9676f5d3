"""What every registered fault must do, on the fake runtime; a new fault is covered by itself."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.runtime import Bracket
from streamquake.faults.fault import Evidence, Fault, Target, faults
from streamquake.faults.intents import Intent, IntentLog
from streamquake.faults.strike import baselines_of, strike, undo
from streamquake.faults.target import parse_target, resolve
from streamquake.harness.rules import target_trouble
from tests.fakes import WIDE, fake_cluster


class Bed:
    """A fake cluster with one fault aimed at its usual target."""

    def __init__(self, fault: Fault, folder: Path) -> None:
        self.fault = fault
        self.cluster: Cluster = fake_cluster(WIDE)
        self.log = IntentLog(folder / "intents.jsonl")
        choice = parse_target(fault.usual)
        self.target: Target = resolve(choice, self.cluster, random.Random(0))[0]
        self.baselines = baselines_of(fault, self.cluster, [self.target])

    def intend(self) -> Intent:
        return self.log.intend(
            step=0, fault=self.fault, target=self.fault.usual, names=[self.target.name],
            baselines=self.baselines,
        )  # fmt: skip

    def evidence(self) -> Evidence:
        return self.fault.evidence(
            self.cluster, self.target, self.baselines.get(self.target.name, {})
        )


@pytest.fixture(params=sorted(faults))
def bed(request: pytest.FixtureRequest, tmp_path: Path) -> Bed:
    made = faults[request.param]
    return Bed(made(**made.example), tmp_path)


def test_its_usual_target_makes_sense(bed: Bed) -> None:
    assert target_trouble(bed.fault, bed.fault.usual, bed.cluster.topology) is None


def test_it_is_not_in_effect_before_it_is_injected(bed: Bed) -> None:
    evidence = bed.evidence()
    assert not evidence.in_effect
    assert evidence.gone


def test_it_is_seen_to_bite_and_seen_gone_and_heals_twice(bed: Bed) -> None:
    intent = bed.intend()
    struck = strike(intent, bed.cluster, [bed.target], limit_s=2)
    assert struck.done, struck.reason
    for _ in range(2):
        healed = undo(intent, bed.cluster, bed.log, limit_s=2)
        assert healed.done, healed.reason
        assert bed.evidence().gone
    assert bed.log.open() == ()


def test_it_heals_though_it_was_never_injected(bed: Bed) -> None:
    healed = undo(bed.intend(), bed.cluster, bed.log, limit_s=2)
    assert healed.done, healed.reason
    assert bed.evidence().gone


def test_its_intent_survives_the_file(bed: Bed) -> None:
    intent = bed.intend()
    (found,) = bed.log.open()
    assert found == intent
    assert found.made() == bed.fault


def test_it_says_what_it_is_and_writes_plain_evidence(bed: Bed) -> None:
    assert type(bed.fault).__doc__
    assert json.loads(json.dumps(dict(bed.evidence().seen)))


def test_an_injection_that_does_nothing_is_said_not_to_bite(
    bed: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(*_: object) -> Bracket:
        return Bracket(called_ns=0, seen_ns=0, how="nothing")

    monkeypatch.setattr(type(bed.fault), "inject", nothing)
    struck = strike(bed.intend(), bed.cluster, [bed.target], limit_s=1)
    assert not struck.done
    assert "not within 1 s" in struck.reason

"""What every registered fault must do, on the fake runtime; a new fault is covered by itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import ClassVar

import pytest

from streamquake.cluster.node import Node
from streamquake.cluster.runtime.runtime import Bracket
from streamquake.faults.fault import (
    Aim,
    Evidence,
    Fault,
    JobTarget,
    LinkTarget,
    PairTarget,
    WorkloadTarget,
    faults,
)
from streamquake.faults.injection.injection import evidence_now, targets_of
from streamquake.faults.injection.intents import Intent, IntentLog
from streamquake.faults.injection.verification import look_again
from streamquake.harness.experiment.validation import target_trouble
from tests.contract.member_rules import lost_in_json, takes_unknown, undescribed, wrong_units
from tests.fakes import WIDE, fake_cluster
from tests.injecting import Striker


class Bed(Striker):
    """A fake cluster and one fault, which is struck at its usual target."""

    def __init__(self, fault: Fault, folder: Path) -> None:
        super().__init__(fake_cluster(WIDE), IntentLog(folder / "intents.jsonl"), limit_s=2)
        self.fault = fault

    def evidence(self, intent: Intent) -> list[Evidence]:
        """What is seen on each target of the intent."""
        found = evidence_now(intent, self.cluster)
        assert found
        assert tuple(found) == intent.names
        return list(found.values())


@pytest.fixture(params=sorted(faults))
def bed(request: pytest.FixtureRequest, tmp_path: Path) -> Bed:
    made = faults[request.param]
    return Bed(made(**made.example), tmp_path)


TARGETS = {
    "nodes": Node, "links": LinkTarget, "pairs": PairTarget, "workload": WorkloadTarget,
    "job": JobTarget,
}  # fmt: skip


def typed_for(fault: type[Fault]) -> object:
    """The type of target that its nearest generic base names."""
    given = (base.__dict__.get("__pydantic_generic_metadata__", {}) for base in fault.__mro__)
    return next((found["args"][0] for found in given if found.get("args")), None)


@pytest.mark.parametrize("name", sorted(faults))
def test_its_base_is_typed_for_what_it_aims_at(name: str) -> None:
    assert typed_for(faults[name]) is TARGETS[faults[name].aims]


def test_a_base_of_another_target_is_found() -> None:
    class Odd(Fault[Node]):
        aims: ClassVar[Aim] = "links"

    assert typed_for(Odd) is not TARGETS[Odd.aims]
    assert typed_for(Fault) is None


@pytest.mark.parametrize("name", sorted(faults))
def test_its_parameters_keep_the_rules_of_every_registry(name: str) -> None:
    kind = faults[name]
    made = kind(**kind.example)
    broken = [*undescribed(kind), *wrong_units(kind), *takes_unknown(made), *lost_in_json(made)]
    assert broken == []


def test_its_usual_target_makes_sense(bed: Bed) -> None:
    assert target_trouble(bed.fault, bed.fault.usual, bed.cluster.topology) is None


def test_it_is_not_in_effect_before_it_is_injected(bed: Bed) -> None:
    evidence = bed.evidence(bed.intend(bed.fault))
    assert not any(seen.in_effect for seen in evidence)
    assert all(seen.gone for seen in evidence)


def test_it_is_seen_to_bite_and_seen_gone_and_heals_twice(bed: Bed) -> None:
    intent, struck = bed.strike(bed.fault)
    assert struck.done, struck.reason
    for _ in range(2):
        healed = bed.undo(intent)
        assert healed.done, healed.reason
        assert all(seen.gone for seen in bed.evidence(intent))
    assert bed.log.open() == ()


def test_it_heals_though_it_was_never_injected(bed: Bed) -> None:
    intent = bed.intend(bed.fault)
    healed = bed.undo(intent)
    assert healed.done, healed.reason
    assert all(seen.gone for seen in bed.evidence(intent))


def test_its_intent_survives_the_file(bed: Bed) -> None:
    intent = bed.intend(bed.fault)
    (found,) = bed.log.open()
    assert found == intent
    assert found.made() == bed.fault


def test_it_writes_plain_evidence(bed: Bed) -> None:
    for evidence in bed.evidence(bed.intend(bed.fault)):
        assert json.loads(json.dumps(dict(evidence.seen)))


def test_an_injection_that_does_nothing_is_said_not_to_bite(
    bed: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(*_: object) -> Bracket:
        return Bracket(called_ns=0, seen_ns=0, how="nothing")

    monkeypatch.setattr(type(bed.fault), "inject", nothing)
    intent, struck = bed.strike(bed.fault, limit_s=1)
    assert not struck.done
    assert "not within 1 s" in struck.reason
    assert not any(seen.in_effect for seen in bed.evidence(intent))


@pytest.mark.parametrize("bed", [n for n in sorted(faults) if faults[n].lasts], indirect=True)
def test_an_effect_that_lasts_is_verified_again_until_it_is_removed(bed: Bed) -> None:
    intent, struck = bed.strike(bed.fault)
    assert struck.done, struck.reason
    for _ in range(2):
        found = look_again(intent, bed.cluster)
        assert found.in_effect, found
        assert found.ended_on == ()
    for target in targets_of(intent, bed.cluster):  # behind the harness's back
        bed.fault.heal(bed.cluster, target, intent.baselines.get(target.name, {}))
    found = look_again(intent, bed.cluster)
    assert not found.in_effect
    assert found.ended_on == intent.names


def test_parameters_that_name_files_are_parameters(bed: Bed) -> None:
    assert set(bed.fault.statement_files) <= set(type(bed.fault).model_fields)
    assert set(bed.fault.statement_texts()) <= set(bed.fault.statement_files)

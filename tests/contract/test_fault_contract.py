"""The contract of every registered fault, on the fake runtime; a new fault is covered
automatically."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from streamquake.cluster.node import Node
from streamquake.cluster.runtime.runtime import InjectionTimes
from streamquake.faults.fault import (
    Evidence,
    Fault,
    JobTarget,
    LinkTarget,
    PairTarget,
    TargetKind,
    WorkloadTarget,
    faults,
)
from streamquake.faults.injection.injection import evidence_now, targets_of
from streamquake.faults.injection.intents import Intent, IntentLog
from streamquake.faults.injection.verification import verify_again
from streamquake.faults.requirement import unmet
from streamquake.harness.experiment.validation import fault_target_problem
from tests.contract.member_rules import (
    accepts_unknown_parameter,
    lost_in_json,
    without_docstring,
    wrong_units,
)
from tests.fakes import WIDE, fake_cluster
from tests.injecting import FaultInjector


class Testbed(FaultInjector):
    """A fake cluster and one fault, which is injected into its usual target."""

    def __init__(self, fault: Fault, folder: Path) -> None:
        super().__init__(fake_cluster(WIDE), IntentLog(folder / "intents.jsonl"), limit_s=2)
        self.fault = fault

    def evidence(self, intent: Intent) -> list[Evidence]:
        """The evidence on each target of the intent."""
        found = evidence_now(intent, self.cluster)
        assert found
        assert tuple(found) == intent.names
        return list(found.values())


@pytest.fixture(params=sorted(faults))
def testbed(request: pytest.FixtureRequest, tmp_path: Path) -> Testbed:
    member = faults[request.param]
    return Testbed(member(**member.example), tmp_path)


TARGETS = {
    "nodes": Node,
    "links": LinkTarget,
    "pairs": PairTarget,
    "workload": WorkloadTarget,
    "job": JobTarget,
}


def target_type(fault: type[Fault]) -> object:
    """The type parameter of its nearest generic base."""
    given = (base.__dict__.get("__pydantic_generic_metadata__", {}) for base in fault.__mro__)
    return next((found["args"][0] for found in given if found.get("args")), None)


@pytest.mark.parametrize("name", sorted(faults))
def test_the_type_parameter_of_its_base_is_its_target_type(name: str) -> None:
    assert target_type(faults[name]) is TARGETS[faults[name].target_kind]


def test_a_base_with_another_target_type_is_detected() -> None:
    class Odd(Fault[Node]):
        target_kind: ClassVar[TargetKind] = "links"

    assert target_type(Odd) is not TARGETS[Odd.target_kind]
    assert target_type(Fault) is None


@pytest.mark.parametrize("name", sorted(faults))
def test_its_parameters_fulfil_the_rules_of_every_registry(name: str) -> None:
    kind = faults[name]
    member = kind(**kind.example)
    violations = [
        *without_docstring(kind),
        *wrong_units(kind),
        *accepts_unknown_parameter(member),
        *lost_in_json(member),
    ]
    assert violations == []


def test_its_usual_target_is_valid(testbed: Testbed) -> None:
    assert (
        fault_target_problem(testbed.fault, testbed.fault.usual, testbed.cluster.topology) is None
    )


def test_it_is_not_in_effect_before_it_is_injected(testbed: Testbed) -> None:
    evidence = testbed.evidence(testbed.intend(testbed.fault))
    assert not any(found.in_effect for found in evidence)
    assert all(found.healed for found in evidence)


def test_its_effect_and_two_heals_are_verified(testbed: Testbed) -> None:
    intent, injected = testbed.inject_fault(testbed.fault)
    assert injected.done, injected.reason
    for _ in range(2):
        healed = testbed.undo(intent)
        assert healed.done, healed.reason
        assert all(found.healed for found in testbed.evidence(intent))
    assert testbed.log.open_intents() == ()


def test_it_can_be_healed_without_an_injection(testbed: Testbed) -> None:
    intent = testbed.intend(testbed.fault)
    healed = testbed.undo(intent)
    assert healed.done, healed.reason
    assert all(found.healed for found in testbed.evidence(intent))


def test_its_intent_is_read_back_from_the_file(testbed: Testbed) -> None:
    intent = testbed.intend(testbed.fault)
    (found,) = testbed.log.open_intents()
    assert found == intent
    assert found.build_fault() == testbed.fault


def test_its_evidence_is_plain_json(testbed: Testbed) -> None:
    for evidence in testbed.evidence(testbed.intend(testbed.fault)):
        assert json.loads(json.dumps(dict(evidence.observations)))


def test_an_injection_that_does_nothing_is_not_in_effect(
    testbed: Testbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(*_: object) -> InjectionTimes:
        return InjectionTimes(called_ns=0, seen_ns=0, how="nothing")

    monkeypatch.setattr(type(testbed.fault), "inject", nothing)
    intent, injected = testbed.inject_fault(testbed.fault, limit_s=1)
    assert not injected.done
    assert "not within 1 s" in injected.reason
    assert not any(found.in_effect for found in testbed.evidence(intent))


@pytest.mark.parametrize("testbed", [n for n in sorted(faults) if faults[n].lasts], indirect=True)
def test_an_effect_that_lasts_is_verified_again_until_it_is_removed(testbed: Testbed) -> None:
    intent, injected = testbed.inject_fault(testbed.fault)
    assert injected.done, injected.reason
    for _ in range(2):
        found = verify_again(intent, testbed.cluster)
        assert found.in_effect, found
        assert found.ended_on == ()
    for target in targets_of(intent, testbed.cluster):  # without the harness
        testbed.fault.heal(testbed.cluster, target, intent.baselines.get(target.name, {}))
    found = verify_again(intent, testbed.cluster)
    assert not found.in_effect
    assert found.ended_on == intent.names


def recorded(evidence: Evidence, before: Mapping[str, Any]) -> Mapping[str, Any]:
    """The observations as a record has them."""
    found: Mapping[str, Any] = json.loads(json.dumps({**evidence.observations, "before": before}))
    return found


def test_its_requirements_are_met_by_its_own_evidence(testbed: Testbed) -> None:
    fault = testbed.fault
    intent, injected = testbed.inject_fault(fault)
    assert injected.done, injected.reason
    for name, evidence in zip(intent.names, testbed.evidence(intent), strict=True):
        before = intent.baselines.get(name, {})
        found = recorded(evidence, before)
        assert list(fault.contradicted_effect(found, before)) == []
        assert set(fault.effect_requires(before)) <= set(found)
        for part, names in fault.observed_parts(testbed.cluster.topology, name).items():
            assert set(found[part]) == names != set()
    assert testbed.undo(intent).done
    for name, evidence in zip(intent.names, testbed.evidence(intent), strict=True):
        before = intent.baselines.get(name, {})
        found = recorded(evidence, before)
        assert list(unmet(found, fault.heal_requires(before))) == []
        assert set(fault.heal_requires(before)) <= set(found)


ENDED_BY_HEAL = [name for name in sorted(faults) if faults[name].lasts]


@pytest.mark.parametrize("testbed", ENDED_BY_HEAL, indirect=True)
def test_its_healed_state_contradicts_its_effect(testbed: Testbed) -> None:
    fault = testbed.fault
    intent, injected = testbed.inject_fault(fault)
    assert injected.done, injected.reason
    in_effect = testbed.evidence(intent)
    assert testbed.undo(intent).done
    healed = testbed.evidence(intent)
    for name, evidence, later in zip(intent.names, in_effect, healed, strict=True):
        before = intent.baselines.get(name, {})
        assert list(fault.contradicted_effect(recorded(later, before), before))
        assert list(unmet(recorded(evidence, before), fault.heal_requires(before)))


def test_parameters_that_name_files_are_parameters(testbed: Testbed) -> None:
    assert set(testbed.fault.statement_files) <= set(type(testbed.fault).model_fields)
    assert set(testbed.fault.statement_texts()) <= set(testbed.fault.statement_files)

"""Faults inside the JVM: the text of their rules, their evidence, and their removal."""

from __future__ import annotations

import re
from typing import Any

import pytest
from pydantic import ValidationError

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.jvm_agent import CONVERSE, NO_ANSWER, AgentError, JvmAgent
from streamquake.cluster.node import Node
from streamquake.cluster.runtime.fake_runtime import FakeRuntime
from streamquake.cluster.runtime.runtime import ContainerSpec, ExecResult
from streamquake.faults.fault import Fault, faults
from streamquake.faults.mechanisms.jvm_rules import JvmFault
from streamquake.topologies.model import Topology
from tests.fakes import WIDE, fake_cluster
from tests.fakes.worlds.jvm import OPERATORS

JVM_FAULTS = sorted(name for name, kind in faults.items() if issubclass(kind, JvmFault))
ONE = "flink/taskmanager-1"


@pytest.fixture
def cluster() -> Cluster:
    return fake_cluster(WIDE)


@pytest.fixture
def runtime(cluster: Cluster) -> FakeRuntime:
    assert isinstance(cluster.runtime, FakeRuntime)
    return cluster.runtime


def fault_named(name: str, **parameters: Any) -> Fault:
    return faults[name](**{**faults[name].example, **parameters})


def agent(cluster: Cluster, node: Node) -> JvmAgent:
    return JvmAgent(cluster.runtime, node.container)


@pytest.mark.parametrize(
    ("name", "wrong", "text"),
    [
        ("slow_operator", {"delay_ms": 0}, "greater than 0"),
        ("delay_checkpoint", {"delay_ms": 5, "phase": "late"}, "'sync' or 'async'"),
        ("throw_in_task", {"message": 'say "no"'}, "should match pattern"),
        ("throw_in_task", {"operator": "two\nlines"}, "should match pattern"),
        ("fail_commit", {"times": 0}, "greater than 0"),
        ("fail_restore", {"subtask": -1}, "greater than or equal to 0"),
        ("hold_buffers", {}, "hold_ms"),
    ],
)
def test_parameters_that_give_no_valid_rule_are_rejected(
    name: str, wrong: dict[str, Any], text: str
) -> None:
    with pytest.raises(ValidationError, match=re.escape(text)):
        faults[name](**wrong)


@pytest.mark.parametrize("name", JVM_FAULTS)
def test_only_taskmanagers_with_the_agent_are_valid_targets(name: str) -> None:
    fault = faults[name]
    assert fault.role_problem(WIDE, "flink/taskmanager") is None
    assert "target a taskmanager" in str(fault.role_problem(WIDE, "flink/jobmanager"))
    foreign = WIDE.model_dump(by_alias=True, exclude_none=True)
    foreign["services"]["flink"]["image"] = "example/flink:9"
    message = fault.role_problem(Topology.model_validate(foreign), "flink/taskmanager")
    assert "image example/flink:9 does not contain" in str(message)


def test_a_rule_names_operator_and_subtask(cluster: Cluster) -> None:
    fault = fault_named("throw_in_task", operator="Calc", subtask=2, times=3)
    assert isinstance(fault, JvmFault)
    script = fault.script("once")
    assert script.count("RULE ") == script.count("ENDRULE") == 5
    assert 'name.contains("Calc") AND subtask.equals("2")' in script
    assert 'incrementCounter("once entered") <= 3' in script
    assert 'throw new RuntimeException("no such luck")' in script


def test_a_buffer_pool_knows_its_task_by_the_thread(cluster: Cluster) -> None:
    fault = fault_named("hold_buffers", subtask=2)
    assert isinstance(fault, JvmFault)
    assert 'name.contains("(3/")' in fault.script("once")


def test_evidence_contains_the_affected_subtasks_and_the_first_hit(cluster: Cluster) -> None:
    fault, node = fault_named("slow_operator", operator="Calc"), cluster.node(ONE)
    fault.inject(cluster, node)
    observations = fault.evidence(cluster, node, {}).observations
    assert observations["at"] == [f"{OPERATORS[1]} subtask 0"]
    assert observations["hits"] > 0
    assert observations["first_hit"].startswith("20")


@pytest.mark.parametrize("name", JVM_FAULTS)
def test_a_hit_is_counted_after_its_moment_and_place_are_set(name: str) -> None:
    fault = fault_named(name)
    assert isinstance(fault, JvmFault)
    rules = fault.script(nonce="0").split("ENDRULE\n")
    orders = [re.findall(r'setProperty\("[^"]*\.(first|at|hits)\b', rule) for rule in rules]
    counting = [order for order in orders if order]
    assert counting == [["first", "at", "hits"]] * len([*fault.points()])


def test_a_rule_that_no_task_enters_is_in_place_but_not_in_effect(cluster: Cluster) -> None:
    fault, node = fault_named("slow_operator", operator="no such operator"), cluster.node(ONE)
    fault.inject(cluster, node)
    evidence = fault.evidence(cluster, node, {})
    assert (evidence.in_effect, evidence.healed) == (False, False)
    assert (evidence.observations["rules"], evidence.observations["hits"]) == (5, 0)


def test_a_rule_acts_the_given_number_of_times_per_injection(cluster: Cluster) -> None:
    fault, node = fault_named("fail_checkpoint", times=2), cluster.node(ONE)
    for _ in range(2):
        fault.inject(cluster, node)
        for _ in range(5):
            last = fault.evidence(cluster, node, {})
        assert last.observations["hits"] == 2
        fault.heal(cluster, node, {})


def test_a_restore_is_caused_or_awaited(cluster: Cluster) -> None:
    node = cluster.node(ONE)
    waiting, causing = fault_named("delay_restore", restart=False), fault_named("delay_restore")
    waiting.inject(cluster, node)
    assert not any(waiting.evidence(cluster, node, {}).in_effect for _ in range(5))
    causing.inject(cluster, node)
    assert any(causing.evidence(cluster, node, {}).in_effect for _ in range(5))


def test_two_faults_in_one_jvm_are_independent(cluster: Cluster) -> None:
    first, second, node = (
        fault_named("delay_commit"),
        fault_named("slow_operator"),
        cluster.node(ONE),
    )
    for fault in (first, second):
        fault.inject(cluster, node)
        assert fault.evidence(cluster, node, {}).in_effect
    first.heal(cluster, node, {})
    assert first.evidence(cluster, node, {}).healed
    assert second.evidence(cluster, node, {}).in_effect


def test_a_heal_removes_all_rules_and_properties(cluster: Cluster) -> None:
    fault, node = fault_named("throw_in_task"), cluster.node(ONE)
    fault.inject(cluster, node)
    assert fault.evidence(cluster, node, {}).in_effect
    fault.heal(cluster, node, {})
    remaining = agent(cluster, node).rules()
    assert remaining is not None
    assert (remaining.texts, remaining.properties) == ({}, {})


def test_a_restarted_jvm_has_no_rule(cluster: Cluster) -> None:
    fault, node = fault_named("slow_operator"), cluster.node(ONE)
    fault.inject(cluster, node)
    cluster.runtime.kill(node.container)
    assert fault.evidence(cluster, node, {}).healed
    fault.heal(cluster, node, {})
    cluster.start_again(node)
    assert fault.evidence(cluster, node, {}).healed
    assert agent(cluster, node).rules() is None


def test_a_jvm_that_ends_during_the_heal_is_healed(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault, node = fault_named("slow_operator"), cluster.node(ONE)
    fault.inject(cluster, node)

    def end(self: JvmAgent, names: object) -> None:
        cluster.runtime.kill(node.container)
        raise AgentError("no answer")

    monkeypatch.setattr(JvmAgent, "remove", end)
    fault.heal(cluster, node, {})
    assert fault.evidence(cluster, node, {}).healed


def test_a_rule_that_cannot_be_removed_fails_the_heal(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault, node = fault_named("slow_operator"), cluster.node(ONE)
    fault.inject(cluster, node)

    def fail(self: JvmAgent, names: object) -> None:
        raise AgentError("no answer")

    monkeypatch.setattr(JvmAgent, "remove", fail)
    with pytest.raises(AgentError, match="no answer"):
        fault.heal(cluster, node, {})


def test_a_frozen_jvm_is_neither_injected_into_nor_healed(cluster: Cluster) -> None:
    fault, node = fault_named("slow_operator"), cluster.node(ONE)
    fault.inject(cluster, node)
    cluster.runtime.pause(node.container)
    evidence = fault.evidence(cluster, node, {})
    assert (evidence.in_effect, evidence.healed) == (False, False)
    with pytest.raises(AgentError, match="is frozen"):
        fault.heal(cluster, node, {})
    cluster.runtime.unpause(node.container)
    fault.heal(cluster, node, {})
    assert fault.evidence(cluster, node, {}).healed


def test_the_jvms_error_about_a_rule_is_in_the_evidence(
    cluster: Cluster, runtime: FakeRuntime
) -> None:
    fault, node = fault_named("delay_commit"), cluster.node(ONE)
    assert isinstance(fault, JvmFault)
    error = "org.jboss.byteman.rule.exception.TypeException: no such field"
    listed = f"# File streamquake line 1\nRULE {fault.mark} 1\nENDRULE\n{error}\nEND-OF-ANSWER\n"
    answer_always(runtime, ExecResult(exit_code=0, output=f"{listed}END-OF-ANSWER\n"))
    assert fault.evidence(cluster, node, {}).observations["refused"] == error


def test_an_agent_that_does_not_answer_is_an_error(cluster: Cluster, runtime: FakeRuntime) -> None:
    answer_always(runtime, ExecResult(exit_code=NO_ANSWER, output=""))
    with pytest.raises(AgentError, match="did not answer LIST within 10 s"):
        agent(cluster, cluster.node(ONE)).rules()


def test_a_rejected_rule_is_an_error(cluster: Cluster) -> None:
    with pytest.raises(AgentError, match="rejected a rule: EXCEPTION"):
        agent(cluster, cluster.node(ONE)).install("this is no rule\n")


def test_a_process_that_cannot_load_the_agent_is_an_error(
    cluster: Cluster, runtime: FakeRuntime
) -> None:
    runtime.on_exec.insert(0, lambda spec, argv: ExecResult(exit_code=2, output="no socket"))
    with pytest.raises(AgentError, match="no socket; is the main process a HotSpot JVM"):
        agent(cluster, cluster.node(ONE)).load()


def answer_always(runtime: FakeRuntime, answer: ExecResult) -> None:
    """Let every listener send this answer."""

    def respond(spec: ContainerSpec, argv: list[str]) -> ExecResult | None:
        return answer if CONVERSE in argv else None

    runtime.on_network_tool.insert(0, respond)  # type: ignore[arg-type]

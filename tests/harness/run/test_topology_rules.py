"""Rules of a topology that a JVM refuses end a run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.jvm_agent import NO_ANSWER, NOT_LISTENING
from streamquake.cluster.runtime.fake_runtime import FakeRuntime
from streamquake.cluster.runtime.runtime import ExecResult
from streamquake.harness.run.topology_rules import reject_refused_rules
from streamquake.topologies.problems import BadInput
from tests.fakes import WIDE, fake_cluster

ERROR = "org.jboss.byteman.rule.exception.ParseException: rule cut line 9 : invalid expression"
APPLIED = "RULE kept\nENDRULE\nTransformed in:\ncompiled successfully\n"
REFUSED = f"RULE cut\nENDRULE\nTransformed in:\nthrew an exception\n{ERROR}\n"


def cluster_with(answer: str, exit_code: int = 0, nodes: Iterable[str] = ()) -> Cluster:
    """Named nodes have rules; every agent gives this answer to LIST, and no properties."""
    cluster = fake_cluster(WIDE)
    assert isinstance(cluster.runtime, FakeRuntime)
    output = f"{answer}END-OF-ANSWER\nEND-OF-ANSWER\n"
    cluster.runtime.on_network_tool.insert(
        0, lambda spec, argv: ExecResult(exit_code=exit_code, output=output)
    )
    for name in nodes:
        node = cluster.nodes[name]
        group = node.spec.group.model_copy(update={"rules": (APPLIED,)})
        cluster.nodes[name] = replace(node, spec=replace(node.spec, group=group))
    return cluster


def test_a_refused_rule_is_bad_input_with_its_node_and_the_error() -> None:
    listed = f"# File a line 1\n{APPLIED}# File a line 9\n{REFUSED}"
    with pytest.raises(BadInput) as raised:
        reject_refused_rules(cluster_with(listed, nodes=["flink/taskmanager-1"]))
    expected = f'rules of flink/taskmanager-1: "cut" is not applied: {ERROR}'
    assert str(raised.value) == expected


@pytest.mark.parametrize(
    ("answer", "exit_code", "nodes"),
    [
        (f"# File a line 1\n{APPLIED}", 0, ["flink/taskmanager-1"]),
        ("# File a line 1\nRULE not loaded yet\nENDRULE\n", 0, ["flink/taskmanager-1"]),
        (f"# File a line 1\n{REFUSED}", 0, []),  # the rules of a fault
        ("", NOT_LISTENING, ["flink/taskmanager-1"]),  # the JVM was killed
        ("", NO_ANSWER, ["flink/taskmanager-1"]),
    ],
)
def test_rules_that_are_applied_or_not_known_are_no_error(
    answer: str, exit_code: int, nodes: list[str]
) -> None:
    reject_refused_rules(cluster_with(answer, exit_code, nodes))

"""Rules of a topology that a JVM refuses end a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import replace

import pytest

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.jvm_agent import NO_ANSWER, NOT_LISTENING
from streamquake.cluster.runtime.fake_runtime import FakeRuntime
from streamquake.cluster.runtime.runtime import ContainerSpec, ExecResult
from streamquake.harness.run.topology_rules import reject_refused_rules, reject_unreadable_rules
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


CHECKED = """Checking rule cut against class a.B
ERROR : Failed to parse rule "cut" loaded from /tmp/rules line 8
org.jboss.byteman.rule.exception.ParseException: rule cut
/tmp/rules line 9 : invalid expression

TestScript: 1 total errors
"""


@pytest.mark.parametrize("printed", [CHECKED, "ERROR : Could not load class a.B declared in rule"])
def test_only_rules_that_cannot_be_parsed_are_unreadable(printed: str) -> None:
    """A class may be one of the job, which the checker does not know."""
    cluster = cluster_with("", nodes=["flink/taskmanager-1", "flink/taskmanager-2"])
    assert isinstance(cluster.runtime, FakeRuntime)
    checked: list[str] = []

    def check(spec: ContainerSpec, argv: Sequence[str]) -> ExecResult:
        checked.append(argv[-1])
        return ExecResult(exit_code=0, output=printed)

    cluster.runtime.on_exec.insert(0, check)
    with nullcontext() if printed != CHECKED else pytest.raises(BadInput) as raised:
        reject_unreadable_rules(cluster)
    if raised is not None:
        place = "rules of flink/taskmanager-2"
        assert str(raised.value) == f'{place}: "cut" is not applied: line 9 : invalid expression'
    assert checked == [APPLIED]


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

"""Targets: their grammar, and the nodes that they match at the injection."""

from __future__ import annotations

import random

import pytest

from streamquake.cluster.engines.flink.engine import FlinkEngine
from streamquake.cluster.job import CurrentJob
from streamquake.faults.fault import JobTarget
from streamquake.faults.schedule.target import find_target, parse_target, resolve, target_problem
from tests.fakes import TOPOLOGY, fake_cluster


@pytest.mark.parametrize(
    ("text", "how", "name"),
    [
        ("one of flink/taskmanager", "one of", "flink/taskmanager"),
        ("all of flink/taskmanager", "all of", "flink/taskmanager"),
        ("kafka/broker-1", "node", "kafka/broker-1"),
        ("link sink", "link", "sink"),
    ],
)
def test_a_target_is_parsed_by_the_grammar(text: str, how: str, name: str) -> None:
    choice = parse_target(text)
    assert (choice.how, choice.name) == (how, name)


@pytest.mark.parametrize("text", ["", "taskmanager", "some of flink/taskmanager", "link"])
def test_an_invalid_target_is_rejected_with_the_grammar(text: str) -> None:
    with pytest.raises(ValueError, match="one of ROLE"):
        parse_target(text)


def test_one_of_depends_only_on_the_seed() -> None:
    choice = parse_target("one of flink/taskmanager")

    def drawn(seed: int) -> str:
        return resolve(choice, fake_cluster(), random.Random(seed))[0].name

    assert drawn(7) == drawn(7)
    assert len({drawn(seed) for seed in range(30)}) == 3


def test_one_of_avoids_nodes_where_there_are_others() -> None:
    choice, names = parse_target("one of flink/taskmanager"), set[str]()
    for seed in range(30):
        avoided = [f"flink/taskmanager-{n}" for n in (1, 2)]
        (found,) = resolve(choice, fake_cluster(), random.Random(seed), avoided)
        names.add(found.name)
    assert names == {"flink/taskmanager-3"}
    everywhere = [f"flink/taskmanager-{n}" for n in (1, 2, 3)]
    assert resolve(choice, fake_cluster(), random.Random(7), everywhere)
    named = parse_target("flink/taskmanager-1")
    assert resolve(named, fake_cluster(), random.Random(7), everywhere)[0].name == named.name


def test_all_of_resolves_to_every_node_of_the_role() -> None:
    found = resolve(parse_target("all of flink/taskmanager"), fake_cluster(), random.Random(0))
    assert [target.name for target in found] == [f"flink/taskmanager-{n}" for n in (1, 2, 3)]


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("one of flink/taskmanagr", "flink/taskmanager"),
        ("link snik", "sink"),
        ("kafka/broker-2", "kafka/broker-1"),
    ],
)
def test_the_problem_of_an_unknown_target_names_the_nearest(text: str, near: str) -> None:
    problem = target_problem(parse_target(text), TOPOLOGY)
    assert problem is not None
    assert f'did you mean "{near}"?' in problem


def test_a_removed_node_is_not_found() -> None:
    cluster = fake_cluster()
    del cluster.nodes["flink/taskmanager-2"]
    with pytest.raises(LookupError, match="does not exist"):
        find_target("flink/taskmanager-2", cluster)


def test_an_existing_job_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = fake_cluster()
    cluster.run.job = None
    monkeypatch.setattr(FlinkEngine, "only_job", lambda *_: "b0b")
    (found,) = resolve(parse_target("the job"), cluster, random.Random(0))
    assert found == JobTarget(job=CurrentJob(service="flink", id="b0b"))


def test_the_job_is_not_found_unless_there_is_exactly_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object) -> str:
        raise LookupError("expected one running job of flink, got 0")

    cluster = fake_cluster()
    cluster.run.job = None
    monkeypatch.setattr(FlinkEngine, "only_job", none)
    with pytest.raises(LookupError, match="got 0"):
        resolve(parse_target("the job"), cluster, random.Random(0))


def test_a_duty_that_needs_two_nodes_is_unknown_with_one_node() -> None:
    problem = target_problem(parse_target("the standby jobmanager"), TOPOLOGY)
    assert problem is not None
    assert 'knows "the standby jobmanager"' in problem
    assert '"the active jobmanager"' in problem
    assert '"the standby jobmanager"' not in problem.partition("known:")[2]


@pytest.mark.parametrize(
    "text",
    [
        "all but kafka/broker-1",
        "between kafka/broker-1 and kafka/broker-1",
        "from kafka/broker-1 to one of kafka/broker",
        "between all of kafka/broker and kafka/broker-1",
        "between all but kafka/broker-1 and flink/taskmanager-1",
    ],
)
def test_a_target_that_matches_no_node_is_a_problem_and_does_not_resolve(text: str) -> None:
    choice = parse_target(text)
    problem = target_problem(choice, TOPOLOGY)
    assert problem is not None
    assert "kafka/broker" in problem
    with pytest.raises(LookupError, match="at this moment"):
        resolve(choice, fake_cluster(), random.Random(0))


@pytest.mark.parametrize(
    "text",
    [
        "all but flink/taskmanager-1",
        "between one of flink/taskmanager and all of flink/taskmanager",
    ],
)
def test_a_target_that_matches_other_nodes_is_valid(text: str) -> None:
    assert target_problem(parse_target(text), TOPOLOGY) is None

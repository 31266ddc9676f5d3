"""Experiments by hand, from `up` to `down`, each command an invocation, on the fake runtime."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from streamquake.cluster import labels
from streamquake.cluster.clock import FakeClock
from streamquake.cluster.fake_runtime import FakeRuntime
from streamquake.cluster.runtime import ContainerError, ExecResult, Status
from streamquake.harness.cli import by_hand, program
from streamquake.harness.cli.guard import guarded

TOPOLOGY = """\
name: echo
services: {echo: {engine: test-echo, nodes: {server: 2, client: 1}}}
"""
Says = Callable[..., tuple[int, str, str]]

pytestmark = pytest.mark.usefixtures("echo_engine")


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> FakeRuntime:
    """One engine for all invocations; every server listens."""
    clock = FakeClock()
    fake = FakeRuntime(clock)
    fake.on_network_tool.append(lambda spec, argv: ExecResult(exit_code=0, output=":7000"))
    monkeypatch.setattr(by_hand, "DockerRuntime", lambda clock: fake)
    monkeypatch.setattr(by_hand, "SystemClock", lambda: clock)
    return fake


@pytest.fixture
def says(
    runtime: FakeRuntime, capsys: pytest.CaptureFixture[str], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Says:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    (tmp_path / "echo.yaml").write_text(TOPOLOGY)

    def run(*argv: str) -> tuple[int, str, str]:
        status = guarded(program, argv)
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


@pytest.fixture
def up(says: Says) -> Says:
    status, out, _ = says("up", "echo.yaml")
    assert status == 0
    assert "127.0.0.1:" in out
    assert "streamquake down" in out
    return says


def state(runtime: FakeRuntime, node: str) -> Status:
    (found,) = runtime.find({labels.NODE: node})
    return runtime.inspect(found.id).status


def test_a_kept_cluster_has_no_owner_and_is_found_by_the_next_command(
    up: Says, runtime: FakeRuntime
) -> None:
    document = json.loads(up("status", "--json")[1])

    assert {found.labels[labels.OWNER] for found in runtime.find({labels.RUN: ""})} == {""}
    assert [node["node"] for node in document["nodes"]] == [
        "echo/server-1", "echo/server-2", "echo/client-1",
    ]  # fmt: skip
    assert document["services"] == [{"service": "echo", "pending": None}]
    assert document["faults"] == []


def test_inject_shows_evidence_and_heal_undoes_it(up: Says, runtime: FakeRuntime) -> None:
    status, out, _ = up("inject", "pause", "echo/server-1")
    assert (status, '"status": "paused"' in out) == (0, True)
    assert state(runtime, "echo/server-1") == Status.PAUSED
    assert "open: pause on echo/server-1" in up("status")[1]

    status, out, _ = up("heal")
    assert (status, out) == (0, "pause on echo/server-1: healed\n")
    assert state(runtime, "echo/server-1") == Status.RUNNING
    assert up("heal")[1] == "no disturbance is open\n"


def test_all_of_a_role_and_one_by_seed(up: Says, runtime: FakeRuntime) -> None:
    assert up("inject", "kill", "all of echo/server")[0] == 0
    assert state(runtime, "echo/server-1") == state(runtime, "echo/server-2") == Status.EXITED
    assert up("heal")[0] == 0

    chosen = set()
    for _ in range(3):
        chosen.add(up("inject", "pause", "one of echo/server", "--seed", "1")[1])
        assert up("heal")[0] == 0
    assert len(chosen) == 1


def test_what_is_disturbed_already_is_left_alone(up: Says) -> None:
    up("inject", "pause", "echo/server-1")

    status, _, err = up("inject", "kill", "echo/server-1")

    assert (status, "already under pause; `streamquake heal` first" in err) == (2, True)


def test_a_fault_that_does_not_bite_is_undone_and_said(
    up: Says, runtime: FakeRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(container: str) -> None:
        raise ContainerError("the freezer is not there")

    monkeypatch.setattr(runtime, "pause", refused)

    status, _, err = up("inject", "pause", "echo/server-1")

    assert status == 3
    assert "was not seen to bite: ContainerError: the freezer is not there" in err
    assert json.loads(up("status", "--json")[1])["faults"] == []


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("inject", "puase", "echo/server-1"), 'did you mean "pause"'),
        (("inject", "pause", "echo/server-9"), 'no node is called "echo/server-9"'),
        (("inject", "pause", "any server"), 'expected "one of ROLE"'),
        (("inject", "pause", "link line"), "pause disturbs nodes"),
        (("inject", "pause", "echo/server-1", "for=3"), 'unknown key "for"'),
        (("inject", "slow_link", "link line", "latency_ms"), "expected NAME=VALUE"),
        (("inject", "slow_link", "link line", "latency_ms=1"), 'no link is called "line"'),
        (("logs", "echo/sever-1"), 'did you mean "echo/server-1"'),
        (("status", "--run", "other"), 'not one kept cluster is called "other"'),
    ],
)
def test_bad_input_by_hand(up: Says, argv: tuple[str, ...], said: str) -> None:
    status, _, err = up(*argv)

    assert (status, said in err) == (2, True), err


def test_a_dead_node_is_told_by_status(up: Says, runtime: FakeRuntime) -> None:
    up("inject", "kill", "echo/server-2")

    document = json.loads(up("status", "--json")[1])

    assert "echo/server-2 ended with exit code 137" in document["services"][0]["pending"]
    assert document["nodes"][1]["state"] == "exited"


def test_logs_and_down_leave_the_logs_and_nothing_else(up: Says, runtime: FakeRuntime) -> None:
    (found,) = runtime.find({labels.NODE: "echo/server-1"})
    runtime.say(found.id, "listening")
    assert up("logs", "echo/server-1")[1].strip() == "listening"

    status, out, _ = up("down")

    folder = Path(out.strip().split("logs: ")[1])
    assert status == 0
    assert "listening" in (folder / "echo-server-1" / "log.txt").read_text()
    assert runtime.find({labels.RUN: ""}) == ()
    assert runtime.find_networks({labels.RUN: ""}) == ()


def test_without_a_cluster_each_command_says_how_to_start_one(says: Says) -> None:
    for argv in (("status",), ("heal",), ("down",), ("logs", "x"), ("inject", "pause", "x")):
        status, _, err = says(*argv)
        assert (status, "streamquake up TOPOLOGY" in err) == (2, True)


def test_a_start_that_fails_leaves_nothing(says: Says, runtime: FakeRuntime) -> None:
    runtime.on_network_tool.clear()

    status, _, err = says("up", "echo.yaml", "--limit", "1")

    assert status == 3
    assert "a server does not listen yet" in err
    assert runtime.find({labels.RUN: ""}) == ()
    assert runtime.find_networks({labels.RUN: ""}) == ()


def test_without_an_engine_the_next_step_is_said(says: Says, runtime: FakeRuntime) -> None:
    runtime.unavailable = "no container engine answers; start it"

    assert says("up", "echo.yaml") == (
        3, "", "streamquake: no container engine answers; start it\n"
    )  # fmt: skip

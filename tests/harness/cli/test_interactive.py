"""Interactive clusters on the fake runtime, from `up` to `down`; each command is a separate
invocation."""

from __future__ import annotations

import json
import os
import random
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from streamquake.cluster.runtime import labels
from streamquake.cluster.runtime.clock import FakeClock
from streamquake.cluster.runtime.fake_runtime import FakeRuntime
from streamquake.cluster.runtime.runtime import ContainerError, ContainerStatus, ExecResult
from streamquake.harness.cli import interactive
from streamquake.harness.interactive import injection
from streamquake.harness.interactive.injection import heal_faults, hold, inject_now
from streamquake.harness.interactive.session import attach
from streamquake.harness.interrupts import Interrupted
from streamquake.topologies.problems import BadInput
from tests.harness.conftest import RunCommand

TOPOLOGY = """\
name: echo
services: {echo: {engine: test-echo, nodes: {server: 2, client: 1}}}
"""

pytestmark = pytest.mark.usefixtures("echo_engine")


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> FakeRuntime:
    """One container runtime for all invocations; every server listens."""
    clock = FakeClock()
    fake = FakeRuntime(clock)
    fake.on_network_tool.append(lambda spec, argv: ExecResult(exit_code=0, output=":7000"))
    monkeypatch.setattr(interactive, "DockerRuntime", lambda clock: fake)
    monkeypatch.setattr(interactive, "SystemClock", lambda: clock)
    return fake


@pytest.fixture
def run_command(run_command: RunCommand, runtime: FakeRuntime, tmp_path: Path) -> RunCommand:
    (tmp_path / "echo.yaml").write_text(TOPOLOGY)
    return run_command


@pytest.fixture
def up(run_command: RunCommand) -> RunCommand:
    status, out, _ = run_command("up", "echo.yaml")
    assert status == 0
    assert "127.0.0.1:" in out
    assert "streamquake down" in out
    return run_command


def state(runtime: FakeRuntime, node: str) -> ContainerStatus:
    (found,) = runtime.find({labels.NODE: node})
    return runtime.inspect(found.id).status


def test_a_kept_cluster_has_no_owner_and_the_next_command_finds_it(
    up: RunCommand, runtime: FakeRuntime
) -> None:
    document = json.loads(up("status", "--json")[1])

    assert {found.labels[labels.OWNER] for found in runtime.find({labels.RUN: ""})} == {""}
    assert [node["node"] for node in document["nodes"]] == [
        "echo/server-1",
        "echo/server-2",
        "echo/client-1",
    ]
    assert document["services"] == [{"service": "echo", "pending": None}]
    assert document["faults"] == []


def test_inject_prints_evidence_and_heal_removes_the_fault(
    up: RunCommand, runtime: FakeRuntime
) -> None:
    status, out, _ = up("inject", "pause", "echo/server-1")
    assert (status, '"status": "paused"' in out) == (0, True)
    assert state(runtime, "echo/server-1") == ContainerStatus.PAUSED
    assert "open: pause on echo/server-1" in up("status")[1]

    status, out, _ = up("heal")
    assert (status, out) == (0, "pause on echo/server-1: healed\n")
    assert state(runtime, "echo/server-1") == ContainerStatus.RUNNING
    assert up("heal")[1] == "no fault is open\n"


def test_a_target_may_be_all_nodes_of_a_role_or_one_by_seed(
    up: RunCommand, runtime: FakeRuntime
) -> None:
    assert up("inject", "kill", "all of echo/server")[0] == 0
    assert (
        state(runtime, "echo/server-1") == state(runtime, "echo/server-2") == ContainerStatus.EXITED
    )
    assert up("heal")[0] == 0

    chosen = set()
    for _ in range(3):
        out = up("inject", "pause", "one of echo/server", "--seed", "1")[1]
        chosen.add(out.splitlines()[0])
        assert up("heal")[0] == 0
    assert len(chosen) == 1


def test_a_fault_on_a_disturbed_target_is_rejected(up: RunCommand) -> None:
    up("inject", "pause", "echo/server-1")

    status, _, err = up("inject", "kill", "echo/server-1")

    assert (status, "already under pause (by " in err) == (2, True)
    assert f"`streamquake heal {open_faults(up)[0]['id']}` first" in err


def open_faults(run_command: RunCommand) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(run_command("status", "--json")[1])["faults"]
    return found


def test_status_shows_evidence_start_and_user_of_open_faults(
    up: RunCommand, runtime: FakeRuntime
) -> None:
    up("inject", "pause", "all of echo/server")
    runtime.unpause(runtime.find({labels.NODE: "echo/server-2"})[0].id)

    (fault,) = open_faults(up)
    assert fault["evidence"]["echo/server-1"] == {
        "in_effect": True,
        "gone": False,
        "seen": {"status": "paused"},
    }
    assert fault["evidence"]["echo/server-2"]["gone"]
    assert fault["by"].endswith(f"@{socket.gethostname()}:{os.getpid()}")
    assert fault["since"].startswith("20")
    out = up("status")[1]
    assert f"id {fault['id']}, since {fault['since']}, by {fault['by']}" in out
    assert "echo/server-1: in effect; status paused" in out
    assert "echo/server-2: healed" in out


def test_heal_undoes_only_the_named_faults(up: RunCommand, runtime: FakeRuntime) -> None:
    up("inject", "pause", "echo/server-1")
    up("inject", "kill", "echo/server-2")
    up("inject", "pause", "echo/client-1")
    first, _, client = open_faults(up)

    assert up("heal", "kill", client["id"][:5])[1].splitlines() == [
        "pause on echo/client-1: healed",
        "kill on echo/server-2: healed",
    ]
    assert [fault["id"] for fault in open_faults(up)] == [first["id"]]
    status, _, err = up("heal", "pasue")
    assert (status, 'no open disturbance is called "pasue"; did you mean "pause"' in err) == (
        2,
        True,
    )


def test_an_inject_with_a_duration_heals_automatically(
    up: RunCommand, runtime: FakeRuntime
) -> None:
    status, out, _ = up("inject", "pause", "echo/server-1", "--for", "30s")
    assert (status, out.splitlines()[-1]) == (0, "pause on echo/server-1: healed")
    assert state(runtime, "echo/server-1") == ContainerStatus.RUNNING
    assert open_faults(up) == []
    assert up("inject", "pause", "echo/server-1", "--for", "soon")[0] == 2


def test_an_interrupted_inject_with_a_duration_heals(
    up: RunCommand, runtime: FakeRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(seconds: float) -> None:
        if seconds == injection.POLL_EVERY_S:
            raise Interrupted("SIGINT")

    monkeypatch.setattr(runtime.clock, "sleep", interrupted)
    status, out, _ = up("inject", "pause", "echo/server-1", "--for", "1m")
    assert (status, out.splitlines()[-1]) == (0, "pause on echo/server-1: healed")


def test_an_interrupted_injection_is_healed(
    up: RunCommand, runtime: FakeRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*args: object, **limits: object) -> None:
        raise Interrupted("SIGINT")

    monkeypatch.setattr(injection, "inject_fault", interrupted)
    assert up("inject", "pause", "echo/server-1")[0] == 130
    assert open_faults(up) == []


def test_an_inject_with_a_duration_notices_a_heal_by_another_process(
    up: RunCommand, runtime: FakeRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    def heal(seconds: float) -> None:
        monkeypatch.undo()
        heal_faults(attach(runtime, runtime.clock), [], limit_s=1)

    monkeypatch.setattr(runtime.clock, "sleep", heal)
    session = attach(runtime, runtime.clock)
    injection = inject_now(session, "pause", "echo/server-1", [], rng=random.Random(1), limit_s=1)
    assert hold(session, injection.intent, seconds=60, limit_s=1) is None


def test_one_of_two_concurrent_injections_is_rejected(up: RunCommand, runtime: FakeRuntime) -> None:
    def inject_fault() -> str:
        session = attach(runtime, runtime.clock)
        try:
            inject_now(session, "pause", "echo/server-1", [], rng=random.Random(1), limit_s=1)
        except BadInput as error:
            return str(error)
        return "injected"

    with ThreadPoolExecutor(max_workers=8) as pool:
        injection = list(pool.map(lambda _: inject_fault(), range(8)))
    assert injection.count("injected") == 1
    assert all("already under pause" in message for message in injection if message != "injected")
    assert len(open_faults(up)) == 1


def test_a_fault_without_effect_is_healed_and_reported(
    up: RunCommand, runtime: FakeRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing_call(container: str) -> None:
        raise ContainerError("the cgroup freezer is missing")

    monkeypatch.setattr(runtime, "pause", failing_call)

    status, _, err = up("inject", "pause", "echo/server-1")

    assert status == 3
    assert "effect not verified: ContainerError: the cgroup freezer is missing" in err
    assert err.splitlines()[-1] == "exit status 3: cluster failed"
    assert json.loads(up("status", "--json")[1])["faults"] == []


def test_an_effect_that_is_not_observed_in_time_is_undecided(
    up: RunCommand, runtime: FakeRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime, "pause", lambda container: None)

    status, _, err = up("inject", "pause", "echo/server-1")

    assert (status, err.splitlines()[-1]) == (3, "exit status 3: undecided")


@pytest.mark.parametrize("argv", [("heal",), ("inject", "pause", "echo/client-1", "--for", "30s")])
def test_the_last_line_of_a_failed_heal_is_the_cause(
    up: RunCommand, runtime: FakeRuntime, monkeypatch: pytest.MonkeyPatch, argv: tuple[str, ...]
) -> None:
    def failing_call(container: str) -> None:
        raise ContainerError("the freezer is stuck")

    up("inject", "pause", "echo/server-1")
    up("inject", "pause", "echo/server-2")
    monkeypatch.setattr(runtime, "unpause", failing_call)

    status, _, err = up(*argv)

    *failures, last = err.splitlines()
    assert (status, last) == (3, "exit status 3: cluster failed")
    assert all("removal not verified: ContainerError: the freezer" in line for line in failures)
    assert len(failures) == (2 if argv == ("heal",) else 1)


def test_a_failed_removal_by_down_has_the_cause_cluster_failed(
    up: RunCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interactive, "remove", lambda session: ("echo/server-1: is busy",))

    status, _, err = up("down")

    assert (status, err) == (3, "echo/server-1: is busy\nexit status 3: cluster failed\n")


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (("inject", "puase", "echo/server-1"), 'did you mean "pause"'),
        (("inject", "pause", "echo/server-9"), 'no node is called "echo/server-9"'),
        (("inject", "pause", "any server"), 'expected NODE, "one of ROLE"'),
        (("inject", "pause", "link line"), "pause disturbs nodes"),
        (("inject", "pause", "echo/server-1", "for=3"), 'unknown key "for"'),
        (("inject", "slow_link", "link line", "latency_ms"), "expected NAME=VALUE"),
        (("inject", "slow_link", "link line", "latency_ms=1"), 'no link is called "line"'),
        (
            ("inject", "skew", "the workload", "hot_share=0.5"),
            "a cluster of `streamquake up` has no workload",
        ),
        (("logs", "echo/sever-1"), 'did you mean "echo/server-1"'),
        (("status", "--run", "other"), 'expected the id of one kept cluster, got "other"'),
    ],
)
def test_bad_input_of_each_command_is_reported(
    up: RunCommand, argv: tuple[str, ...], text: str
) -> None:
    status, _, err = up(*argv)

    assert (status, text in err) == (2, True), err


def test_status_shows_a_node_that_has_exited(up: RunCommand, runtime: FakeRuntime) -> None:
    up("inject", "kill", "echo/server-2")

    document = json.loads(up("status", "--json")[1])

    assert "echo/server-2 ended with exit code 137" in document["services"][0]["pending"]
    assert document["nodes"][1]["state"] == "exited"


def test_down_removes_everything_but_the_logs(up: RunCommand, runtime: FakeRuntime) -> None:
    (found,) = runtime.find({labels.NODE: "echo/server-1"})
    runtime.write_log(found.id, "listening")
    assert up("logs", "echo/server-1")[1].strip() == "listening"

    status, out, _ = up("down")

    folder = Path(out.strip().split("logs: ")[1])
    assert status == 0
    assert "listening" in (folder / "echo-server-1" / "log.txt").read_text()
    assert runtime.find({labels.RUN: ""}) == ()
    assert runtime.find_networks({labels.RUN: ""}) == ()


def test_without_a_cluster_each_command_shows_how_to_start_one(run_command: RunCommand) -> None:
    for argv in (("status",), ("heal",), ("down",), ("logs", "x"), ("inject", "pause", "x")):
        status, _, err = run_command(*argv)
        assert (status, "streamquake up TOPOLOGY" in err) == (2, True)


def test_a_failed_start_leaves_no_containers(run_command: RunCommand, runtime: FakeRuntime) -> None:
    runtime.on_network_tool.clear()

    status, _, err = run_command("up", "echo.yaml", "--limit", "1")

    assert status == 3
    assert "a server does not listen yet" in err
    assert runtime.find({labels.RUN: ""}) == ()
    assert runtime.find_networks({labels.RUN: ""}) == ()


def test_without_a_container_engine_the_message_names_the_next_step(
    run_command: RunCommand, runtime: FakeRuntime
) -> None:
    runtime.unavailable = "no container engine answers; start it"

    assert run_command("up", "echo.yaml") == (
        3,
        "",
        "streamquake: no container engine answers; start it\nexit status 3: engine missing\n",
    )

"""What only a real container engine can show: kernel time stamps, rules in namespaces, limits."""

from __future__ import annotations

import io
import os
import socket
import sys
import tarfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_network
from typing import Any

import docker
import pytest

from streamquake.cluster.images.recipes import recipe
from streamquake.cluster.runtime import labels
from streamquake.cluster.runtime.clock import SystemClock
from streamquake.cluster.runtime.docker import kernel
from streamquake.cluster.runtime.docker.connection import check
from streamquake.cluster.runtime.docker.runtime import DockerRuntime
from streamquake.cluster.runtime.free_ports import free_port
from streamquake.cluster.runtime.runtime import (
    ContainerError,
    ContainerSpec,
    ContainerStatus,
    RuntimeUnavailable,
)
from tests.pace import wait_until

pytestmark = pytest.mark.container

RULE = ["iptables", "-t", "nat", "-A", "OUTPUT", "-p", "tcp", "--dport", "9", "-j", "RETURN"]
RULES = ["iptables", "-t", "nat", "-S", "OUTPUT"]


@pytest.fixture
def start(docker_run: DockerRuntime, run_id: str) -> Callable[..., str]:
    """Start a container of this test, with the settings of ContainerSpec."""
    subnet = docker_run.create_network(run_id, {labels.RUN: run_id})

    def start(**settings: Any) -> str:
        return docker_run.start(
            ContainerSpec(
                name=f"{run_id}-a",
                image=recipe("toolbox").tag,
                command=("sh", "-c", "sleep 600"),
                labels={labels.RUN: run_id},
                network=run_id,
                ip=str(ip_network(subnet)[20]),
                **settings,
            )
        )

    return start


@pytest.fixture
def other_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """The containers' processes run on another kernel, as with Docker Desktop."""
    monkeypatch.setattr(kernel, "_in_control_group", lambda pid, container: False)


@pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="only root can query the kernel"
)
def test_a_kill_is_bracketed_by_the_kernel(start: Callable[..., str]) -> None:
    container = start()
    clock = SystemClock()  # the clock of the session fixture was set long ago and may have drifted
    before_ns = clock.epoch_ns()
    bracket = DockerRuntime(clock).kill(container)

    assert bracket.how == "pidfd"
    assert before_ns <= bracket.called_ns < bracket.seen_ns <= clock.epoch_ns()


@pytest.mark.usefixtures("other_kernel")
def test_a_kill_through_the_engine_has_the_same_exit_code(
    docker_run: DockerRuntime, start: Callable[..., str]
) -> None:
    container = start()

    assert docker_run.kill(container).how == "api"
    assert docker_run.inspect(container).exit_code == 137


@pytest.mark.parametrize("way", ["host", "helper"])
def test_a_network_rule_lives_as_long_as_its_namespace(
    docker_run: DockerRuntime, start: Callable[..., str], way: str, request: pytest.FixtureRequest
) -> None:
    if way == "helper":
        request.getfixturevalue("other_kernel")
    container = start()

    assert docker_run.in_network_namespace(container, RULE).exit_code == 0
    assert "--dport 9" in docker_run.in_network_namespace(container, RULES).output
    docker_run.kill(container)
    docker_run.start_again(container)

    assert "--dport 9" not in docker_run.in_network_namespace(container, RULES).output


@pytest.mark.usefixtures("other_kernel")
def test_the_helper_of_a_network_rule_is_removed(
    docker_run: DockerRuntime, start: Callable[..., str], run_id: str
) -> None:
    container = start()

    assert docker_run.in_network_namespace(container, ["false"]).exit_code == 1
    assert [found.id for found in docker_run.find({labels.RUN: run_id})] == [container]


def test_a_hanging_command_is_killed(docker_run: DockerRuntime, start: Callable[..., str]) -> None:
    container = start()

    # The message differs where the command could not be killed.
    with pytest.raises(ContainerError, match="did not end within 1 s and was killed"):
        docker_run.exec(container, ["sleep", "300"], timeout_s=1)

    listed = docker_run.exec(container, ["sh", "-c", "cat /proc/[0-9]*/cmdline"]).output
    assert "300" not in listed


def test_ports_are_published_on_loopback_only(
    docker_run: DockerRuntime, start: Callable[..., str]
) -> None:
    port = free_port()
    container = start(ports={8474: port})

    bound = docker_run._client.inspect_container(container)["NetworkSettings"]["Ports"]["8474/tcp"]

    assert [(b["HostIp"], b["HostPort"]) for b in bound] == [("127.0.0.1", str(port))]
    with socket.create_connection(("127.0.0.1", port), timeout=5):
        pass


def test_volumes_survive_a_kill_and_memory_does_not(
    docker_run: DockerRuntime, start: Callable[..., str]
) -> None:
    container = start(volumes=("/kept",), tmpfs={"/fleeting": "size=1m"})
    docker_run.exec(container, ["touch", "/kept/x", "/fleeting/x"])
    docker_run.kill(container)
    docker_run.start_again(container)

    assert docker_run.exec(container, ["ls", "/kept", "/fleeting"]).output.count("x") == 1


def test_a_container_beyond_its_memory_limit_is_oom_killed(
    docker_run: DockerRuntime, run_id: str
) -> None:
    container = docker_run.start(
        ContainerSpec(
            name=run_id,
            image=recipe("toolbox").tag,
            command=("perl", "-e", "my $x = 'x' x (1 << 28); sleep 600"),
            labels={labels.RUN: run_id},
            memory_mb=32,
        )
    )

    def pending() -> str | None:
        state = docker_run.inspect(container)  # the engine reports the end and its cause separately
        return None if state.oom_killed and state.status == ContainerStatus.EXITED else str(state)

    wait_until(pending, what="ended for lack of memory", limit_s=60, clock=SystemClock())
    assert docker_run.inspect(container).exit_code == 137


def test_networks_of_runs_that_start_at_once_do_not_collide(
    docker_run: DockerRuntime, run_id: str
) -> None:
    def create(number: int) -> str:
        return docker_run.create_network(f"{run_id}-{number}", {labels.RUN: run_id})

    with ThreadPoolExecutor() as pool:
        subnets = [ip_network(subnet) for subnet in pool.map(create, range(4))]

    assert not any(a.overlaps(b) for a in subnets for b in subnets if a is not b)
    assert len(docker_run.find_networks({labels.RUN: run_id})) == 4


def test_a_missing_image_is_an_error_with_the_next_step(
    docker_run: DockerRuntime, run_id: str
) -> None:
    spec = ContainerSpec(
        name=run_id, image="streamquake/no-such-image", labels={labels.RUN: run_id}
    )

    with pytest.raises(ContainerError, match="streamquake images build"):
        docker_run.start(spec)


def test_a_missing_engine_is_an_error_with_the_next_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")

    with pytest.raises(RuntimeUnavailable, match=r"no container engine answers; start"):
        DockerRuntime().check()


def test_a_socket_without_permission_is_an_error_with_the_next_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(self: socket.socket, address: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(socket.socket, "connect", refused)

    with pytest.raises(RuntimeUnavailable, match="usermod -aG docker"):
        DockerRuntime().check()


@pytest.mark.parametrize(
    ("version", "words"),
    [
        ({"ApiVersion": "1.40", "Version": "19.03", "Os": "linux"}, "update it to Docker 20.10"),
        ({"ApiVersion": "1.45", "Version": "26.1", "Os": "windows"}, "switch Docker Desktop"),
        (
            {"ApiVersion": "1.41", "Os": "linux", "Components": [{"Name": "Podman Engine"}]},
            "point DOCKER_HOST at Docker",
        ),
        ({"ApiVersion": "1.45", "Version": "26.1", "Os": "linux"}, "an engine that runs as root"),
    ],
)
def test_an_unsupported_engine_is_an_error_with_the_next_step(
    version: dict[str, Any], words: str
) -> None:
    class Engine:
        base_url = "http+docker://localhost"

        def version(self) -> dict[str, Any]:
            return version

        def info(self) -> dict[str, Any]:
            return {"SecurityOptions": ["name=seccomp,profile=default", "name=rootless"]}

    with pytest.raises(RuntimeUnavailable, match=words):
        check(Engine())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("url", "is_here"),
    [
        ("http+docker://localhost", True),
        ("http+docker://localnpipe", True),
        ("http://127.0.0.1:2375", True),
        ("http+docker://ssh", False),
        ("https://builder.example:2376", False),
        ("http://10.0.0.7:2375", False),
    ],
)
def test_an_engine_on_another_machine_is_an_error_with_the_next_step(
    url: str, is_here: bool
) -> None:
    class Engine:
        base_url = url

        def version(self) -> dict[str, str]:
            return {"ApiVersion": "1.45", "Version": "26.1", "Os": "linux"}

        def info(self) -> dict[str, list[str] | None]:
            return {"SecurityOptions": None}

    if is_here:
        check(Engine())  # type: ignore[arg-type]
        return
    with pytest.raises(RuntimeUnavailable, match="run Streamquake there"):
        check(Engine())  # type: ignore[arg-type]


def test_an_image_shows_whether_it_is_built_here(docker_run: DockerRuntime, run_id: str) -> None:
    images, client = docker_run.images(), docker.from_env().api
    empty = io.BytesIO()
    tarfile.open(fileobj=empty, mode="w").close()
    client.import_image_from_data(empty.getvalue(), repository="foreign", tag=run_id)
    try:
        assert images.is_built_here(f"foreign:{run_id}") is False
    finally:
        client.remove_image(f"foreign:{run_id}")
    assert images.is_built_here(f"foreign:{run_id}") is None
    assert images.is_built_here(recipe("toolbox").tag) is True
    assert images.is_built_here(recipe("kafka").tag) is True

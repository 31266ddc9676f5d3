"""The freezer of a container, in both versions of the control groups."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamquake.cluster.runtime.clock import FakeClock
from streamquake.cluster.runtime.docker import freezer as freezer_module
from streamquake.cluster.runtime.docker.freezer import freezer_in, freezer_of
from streamquake.cluster.runtime.runtime import ContainerError

VERSION_1 = ["4:memory:/docker/abc", "6:freezer:/docker/abc", "0::/docker/abc"]
VERSION_2 = ["0::/system.slice/docker-abc.scope"]


def test_version_1_has_one_file_for_request_and_state(tmp_path: Path) -> None:
    state = tmp_path / "freezer" / "docker" / "abc" / "freezer.state"
    state.parent.mkdir(parents=True)
    state.write_text("THAWED\n")
    freezer = freezer_in(VERSION_1, tmp_path)
    assert freezer is not None
    assert not freezer.is_frozen()

    freezer.set(True, FakeClock())

    assert state.read_text() == "FROZEN"
    assert freezer.is_frozen()


def test_version_2_has_one_file_for_the_request_and_one_for_the_state(tmp_path: Path) -> None:
    group = tmp_path / "system.slice" / "docker-abc.scope"
    group.mkdir(parents=True)
    (group / "cgroup.freeze").write_text("0\n")
    (group / "cgroup.events").write_text("populated 1\nfrozen 1\n")
    freezer = freezer_in(VERSION_2, tmp_path)
    assert freezer is not None

    freezer.set(True, FakeClock())

    assert (group / "cgroup.freeze").read_text() == "1"
    assert freezer.is_frozen()
    (group / "cgroup.events").write_text("populated 1\nfrozen 0\n")
    assert not freezer.is_frozen()


def test_a_freeze_that_the_kernel_does_not_complete_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(freezer_module, "WITHIN_S", 0.1)
    group = tmp_path / "system.slice" / "docker-abc.scope"
    group.mkdir(parents=True)
    (group / "cgroup.freeze").write_text("0\n")
    (group / "cgroup.events").write_text("populated 1\nfrozen 0\n")
    freezer = freezer_in(VERSION_2, tmp_path)
    assert freezer is not None

    with pytest.raises(ContainerError, match=r"docker-abc\.scope: could not be frozen"):
        freezer.set(True, FakeClock())


@pytest.mark.parametrize("groups", [VERSION_1, VERSION_2, []])
def test_a_missing_freezer_is_none(groups: list[str], tmp_path: Path) -> None:
    assert freezer_in(groups, tmp_path) is None


def test_a_process_of_another_container_is_not_used() -> None:
    assert freezer_of("no-such-container", 1) is None
    assert freezer_of("no-such-container", 0) is None

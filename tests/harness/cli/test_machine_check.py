"""The doctor: every possible problem of a machine is found and has a next step."""

from __future__ import annotations

import shutil
from collections import namedtuple
from dataclasses import replace
from pathlib import Path

import pytest

from streamquake.cluster.images.clients import INSTALL_HINTS
from streamquake.cluster.images.versions import client_image
from streamquake.cluster.runtime import labels
from streamquake.cluster.runtime.clock import FakeClock
from streamquake.cluster.runtime.fake_runtime import CompleteImageStore, FakeRuntime
from streamquake.cluster.runtime.runtime import ContainerSpec
from streamquake.harness.cli.machine_check import MachineCheck, examine, hindrances

Usage = namedtuple("Usage", "total used free")


@pytest.fixture
def runtime() -> FakeRuntime:
    return FakeRuntime(FakeClock())


def verdicts(runtime: FakeRuntime) -> dict[str, MachineCheck]:
    return {each.what: each for each in examine(runtime)}


def install_java(folder: Path, version: str) -> None:
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2026' >&2\n")
    program.chmod(0o755)


def test_a_good_machine_has_no_problem(
    runtime: FakeRuntime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_java(tmp_path, "21.0.2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(shutil, "disk_usage", lambda place: Usage(0, 0, 50 * 2**30))

    found = verdicts(runtime)

    assert [what for what, each in found.items() if each.verdict == "problem"] == []
    assert found["container engine"].finding == "Fake 1 on nowhere"
    assert found["memory"].finding.endswith("GiB for containers")
    assert found["Java"].finding.startswith("21 ")
    assert found["images"].finding == "all built"
    assert hindrances(runtime) == ()


def test_a_missing_engine_has_a_next_step_and_the_other_checks_still_run(
    runtime: FakeRuntime,
) -> None:
    runtime.unavailable = "no container engine answers; start it"

    found = verdicts(runtime)

    assert found["container engine"] == MachineCheck(
        what="container engine",
        verdict="problem",
        finding="no container engine answers",
        next="start it",
    )
    assert {"Java", "disk", "memory"} <= found.keys()
    assert "images" not in found


def test_the_engine_may_have_less_memory_and_disk_than_the_machine(
    runtime: FakeRuntime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = replace(runtime.facts(), memory_bytes=2 << 30, folder=tmp_path)
    monkeypatch.setattr(runtime, "facts", lambda: facts)
    free = {tmp_path: 5 * 2**30}
    usage = lambda place: Usage(0, 0, free.get(place, 50 * 2**30))  # noqa: E731
    monkeypatch.setattr(shutil, "disk_usage", usage)

    found = verdicts(runtime)

    memory, disk = found["memory"], found["disk"]
    assert (memory.verdict, memory.finding) == ("problem", "2 GiB for containers")
    assert (disk.verdict, disk.finding) == ("problem", f"5 GiB free at {tmp_path}")


@pytest.mark.parametrize("version", ["1.8.0_402", "11.0.2"])
def test_an_old_java_is_a_problem(
    runtime: FakeRuntime, version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_java(tmp_path, version)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    found = verdicts(runtime)["Java"]

    assert (found.verdict, version in found.finding) == ("problem", True)
    assert "Java 17 or newer" in found.next
    assert "Java" in [each.what for each in hindrances(runtime)]


def test_a_missing_java_is_a_problem(
    runtime: FakeRuntime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    assert verdicts(runtime)["Java"].finding == "not found"


@pytest.mark.parametrize(("free_gib", "prevents_runs"), [(5, False), (1, True)])
def test_low_disk_space_is_a_problem_and_very_low_space_prevents_runs(
    runtime: FakeRuntime, free_gib: int, prevents_runs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda place: Usage(0, 0, free_gib * 2**30))

    found = verdicts(runtime)["disk"]

    assert (found.verdict, f"{free_gib} GiB free" in found.finding) == ("problem", True)
    assert ("disk" in [each.what for each in hindrances(runtime)]) == prevents_runs


def test_leftovers_of_dead_runs_are_a_problem(runtime: FakeRuntime) -> None:
    dead = {labels.RUN: "old-run", labels.OWNER: f"{labels.owner_of_this_process()}0"}
    runtime.start(ContainerSpec(name="left", image="none", labels=dead))

    found = verdicts(runtime)["leftovers"]

    assert (found.verdict, found.next) == ("problem", "`streamquake sweep`")
    assert "old-run" in found.finding


class StoreOf(CompleteImageStore):
    """An engine with some images."""

    def __init__(self, *tags: str) -> None:
        self.tags = tags

    def exists(self, tag: str) -> bool:
        return tag in self.tags


@pytest.mark.parametrize(
    ("programs", "images", "missing"),
    [
        ("mvn go mmdebstrap", (), []),
        ("go mmdebstrap", (), ["mvn"]),
        ("mvn mmdebstrap", (client_image("go"),), []),
        ("", (client_image("mvn"),), ["go", "mmdebstrap"]),
    ],
)
def test_tools_for_builds_are_here_or_in_the_engine_or_have_a_next_step(
    programs: str,
    images: tuple[str, ...],
    missing: list[str],
    runtime: FakeRuntime,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for program in programs.split():
        (tmp_path / program).write_text("#!/bin/sh\necho go version go1.23.4 linux/amd64\n")
        (tmp_path / program).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(runtime, "images", lambda: StoreOf(*images))

    found = verdicts(runtime)["tools for builds"]

    assert found.verdict == ("note" if missing else "ok")
    assert not missing or found.finding == f"not found: {', '.join(missing)}"
    assert all(INSTALL_HINTS[program] in found.next for program in missing)


@pytest.mark.parametrize("program", ["echo go version go1.19.8 linux/amd64", "exit 1"])
def test_a_go_that_cannot_fetch_newer_ones_is_not_there(
    program: str, runtime: FakeRuntime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "go").write_text(f"#!/bin/sh\n{program}\n")
    (tmp_path / "go").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(runtime, "images", StoreOf)

    assert "go" in verdicts(runtime)["tools for builds"].finding

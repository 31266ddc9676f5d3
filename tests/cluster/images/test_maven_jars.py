"""Jars by Maven coordinates: fetched once, by Maven's own command, or refused with its words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from streamquake.cluster.images.clients import Clients
from streamquake.cluster.images.maven_jars import (
    JarMissing,
    fetch_jars,
    is_coordinates,
    snapshot_problem,
)
from streamquake.cluster.images.store import StepFailed

DRIVER = "org.postgresql:postgresql:42.7.8"


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Sequence[str]]:
    """The commands that were run; each leaves a jar in its folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    called: list[Sequence[str]] = []

    def run(
        self: Clients, step: str, command: Sequence[str], folder: Path, env: Mapping[str, str] = {}
    ) -> str:
        called.append(command)
        (output,) = (word for word in command if word.startswith("-DoutputDirectory="))
        (Path(output.partition("=")[2]) / "found.jar").write_bytes(b"jar")
        return ""

    monkeypatch.setattr(Clients, "run", run)
    return called


def test_a_jar_is_fetched_once_and_paths_stay(commands: list[Sequence[str]]) -> None:
    own, fetched = fetch_jars(["/my/own.jar", DRIVER])

    assert own == "/my/own.jar"
    assert Path(fetched).read_bytes() == b"jar"
    assert fetch_jars([DRIVER]) == (fetched,)
    (command,) = commands
    assert command[0] == "mvn"
    assert f"-Dartifact={DRIVER}" in command


def test_coordinates_that_differ_in_their_parts_are_different_jars(
    commands: list[Sequence[str]],
) -> None:
    first, second = fetch_jars(["a:b-c:1", "a-b:c:1"])

    assert first != second
    assert len(commands) == 2


def test_a_failure_has_the_words_of_maven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def fail(self: Clients, step: str, *arguments: object) -> str:
        raise StepFailed(step, "[ERROR] Could not find artifact\n\nmore\n")

    monkeypatch.setattr(Clients, "run", fail)

    with pytest.raises(JarMissing, match=r"a:b:1 with Maven failed: \[ERROR\] Could not find art"):
        fetch_jars(["a:b:1"])


@pytest.mark.parametrize(
    "version", ["1-SNAPSHOT", "1.0-snapshot", "LATEST", "release", "latest.release"]
)
def test_a_version_that_may_change_is_a_problem(version: str) -> None:
    assert snapshot_problem("a:b:1.0") is None
    assert "may change between runs; name a release" in str(snapshot_problem(f"a:b:{version}"))


def test_a_jar_that_left_the_cache_is_named(commands: list[Sequence[str]]) -> None:
    (fetched,) = fetch_jars([DRIVER])
    Path(fetched).unlink()

    with pytest.raises(JarMissing, match="has no jar any more; remove it"):
        fetch_jars([DRIVER])


@pytest.mark.parametrize(
    "jar", ["own.jar", "/a/b.jar", "a:b", "a:b:c:d", "C:\\a:b:c", "a b:c:d", "..:..:.."]
)
def test_paths_and_other_texts_are_no_coordinates(jar: str) -> None:
    assert not is_coordinates(jar)

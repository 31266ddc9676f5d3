"""The tiers: Spark does not start in the fast one; `make test` has each mechanism of a fault."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from streamquake.faults.fault import faults
from streamquake.harness.reconcile.spark_session import JavaMissing, spark_session
from tests.containers.mechanisms import (
    ON_SMALL_CLUSTERS,
    mechanisms_of,
    others_of_each_mechanism,
)
from tests.tiers import REFUSAL, others_nightly, pytest_collection_modifyitems

CONTAINER_TESTS = Path(__file__).parent / "containers"


@dataclass
class CollectedTest:
    """What the tiers use of a collected test."""

    nodeid: str
    first: int | None = None
    added: list[str] = field(default_factory=list)

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        if self.first is None or name != "nightly_after":
            return None
        return pytest.mark.nightly_after(self.first).mark

    def add_marker(self, name: str) -> None:
        self.added.append(name)


def run_java(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [f"{os.environ['JAVA_HOME']}/bin/java", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_session_of_spark_does_not_start(home_without_spark: Path) -> None:
    with pytest.raises(JavaMissing, match=REFUSAL):
        spark_session()

    log = home_without_spark / "log"
    assert REFUSAL in log.read_text("utf-8")
    log.unlink()  # the test would fail for its attempt


def test_another_program_of_java_starts(home_without_spark: Path) -> None:
    assert run_java("-version").returncode == 0
    assert not (home_without_spark / "log").exists()


def test_temporary_files_are_in_memory_only_where_there_is_some(tmp_path: Path) -> None:
    command = ["bash", "scripts/test-folder.sh"]
    environment = {**os.environ, "TMPDIR": "/usual"}

    def folder(*memory: str) -> str:
        return subprocess.check_output([*command, *memory], env=environment, text=True).strip()

    assert folder() in ("/dev/shm", "/usual")
    assert folder(str(tmp_path)) == str(tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert folder(str(tmp_path / "missing")) == "/usual"
    assert folder("/sys") == "/usual"


def test_every_mechanism_is_injected_by_make_test() -> None:
    on_small_clusters = set(ON_SMALL_CLUSTERS)
    chosen = others_of_each_mechanism(faults)

    assert not chosen & on_small_clusters
    injected = set().union(*map(mechanisms_of, chosen | on_small_clusters))
    assert injected == set().union(*map(mechanisms_of, faults))


@pytest.mark.parametrize(("fault", "file"), ON_SMALL_CLUSTERS.items())
def test_a_fault_on_a_small_cluster_is_injected_by_its_file(fault: str, file: str) -> None:
    assert f'"{fault}"' in (CONTAINER_TESTS / file).read_text("utf-8")


def test_faults_of_one_mechanism_use_the_same_code_on_the_same_kind_of_target() -> None:
    assert mechanisms_of("slow_link") == mechanisms_of("stall_link")
    assert mechanisms_of("slow_link") != mechanisms_of("partition_link")
    assert mechanisms_of("cpu_limit") != mechanisms_of("kill")


def test_the_other_parameters_are_nightly() -> None:
    first, second = others_nightly(["a", "b"], ["a"])

    assert first == "a"
    assert second == pytest.param("b", marks=pytest.mark.nightly)


def test_the_parameters_after_the_first_are_nightly() -> None:
    collected: list[Any] = [CollectedTest(f"test_values[{value}]", first=2) for value in "abcd"]
    other: list[Any] = [CollectedTest(f"test_other[{value}]") for value in "abc"]

    pytest_collection_modifyitems([*collected, *other])

    assert [test.added for test in collected] == [[], [], ["nightly"], ["nightly"]]
    assert [test.added for test in other] == [[], [], []]

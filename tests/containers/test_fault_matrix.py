"""Every registered fault on a real cluster: it takes effect, it heals, and it heals whatever
happens.

A new fault is in the matrix as soon as it is registered; it is injected into its `usual` target
with the parameters of its `example`.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from streamquake.cluster.runtime.docker.runtime import DockerRuntime
from streamquake.faults.fault import Fault, faults
from streamquake.faults.injection.injection import InjectionResult
from streamquake.faults.injection.intents import Intent
from streamquake.harness.experiment.validation import fault_target_problem
from tests.containers.matrix import MatrixTestbed, matrix_testbed

pytestmark = pytest.mark.container

HERE = [name for name in sorted(faults) if faults[name].engines != ("spark",)]
"""The faults of Spark alone are injected in `test_spark.py`."""
OWN = [name for name in HERE if faults[name].target_kind == "workload" or name == "restart_job"]
"""They disturb the harness's own load, which ends with it, or need its job's statements, which no
other process knows: nothing outlives it to be healed."""


@pytest.fixture(scope="module")
def matrix(
    docker_runtime: DockerRuntime, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[MatrixTestbed]:
    with matrix_testbed(tmp_path_factory.mktemp("matrix"), docker_runtime) as dataset:
        yield dataset


@pytest.fixture
def testbed(matrix: MatrixTestbed) -> MatrixTestbed:
    for left in matrix.log.open_intents():  # of a test that failed, which must not make others fail
        matrix.undo(left)
    matrix.await_whole()
    return matrix


@pytest.fixture
def note(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    """What a test measured; the JUnit file has it as properties of the test."""
    noted: dict[str, Any] = {}
    yield noted
    request.node.user_properties += noted.items()


def made(name: str) -> Fault:
    return faults[name](**faults[name].example)


def _healed(dataset: MatrixTestbed, intent: Intent) -> InjectionResult:
    """Healed once and once more, and seen to be gone on every target that is there."""
    first = dataset.heal(intent)
    dataset.await_gone(intent)
    assert intent.id not in {open_.id for open_ in dataset.log.open_intents()}
    return first


@pytest.mark.parametrize("name", [name for name in HERE if name not in OWN])
def test_its_harness_is_killed_and_the_next_one_heals_it_twice(
    name: str, testbed: MatrixTestbed, note: dict[str, Any]
) -> None:
    harness = testbed.inject_and_die(made(name))
    assert harness.returncode == -signal.SIGKILL, harness.stderr
    note |= json.loads(harness.stdout)
    (intent,) = testbed.log.open_intents()
    note["healed_ms"] = _healed(testbed, intent).width_ms


@pytest.mark.parametrize("name", OWN)
def test_it_disturbs_only_containers_of_the_harness_and_is_healed_twice(
    name: str, testbed: MatrixTestbed, note: dict[str, Any]
) -> None:
    intent, injected = testbed.inject_fault(made(name))
    assert injected.done, injected.reason
    note |= {"injection_ms": injected.width_ms, "watched": injected.evidence["watched"]}
    note["healed_ms"] = _healed(testbed, intent).width_ms


@pytest.mark.parametrize(
    "name", [name for name in HERE if faults[name].target_kind in ("nodes", "pairs")]
)
def test_its_target_dies_and_it_is_healed(name: str, testbed: MatrixTestbed) -> None:
    intent, injected = testbed.inject_fault(made(name))
    assert injected.done, injected.reason
    testbed.end_target(intent)
    _healed(testbed, intent)


def test_the_matrix_has_every_fault(matrix: MatrixTestbed) -> None:
    topology = matrix.cluster.topology
    mismatch = {
        name: fault_target_problem(made(name), faults[name].usual, topology) for name in HERE
    }
    assert {name: reason for name, reason in mismatch.items() if reason} == {}

"""Every registered fault on a real cluster: it takes effect, and it is healed even if its harness
or its target dies.

`make test` injects one fault of each mechanism that no test on a smaller cluster shows
(`test_faults_*.py`), and kills its harness; `make nightly` injects the whole matrix. What the death
of a target does to each mechanism, `make test` shows on the smaller clusters. A new fault is in the
matrix as soon as it is registered. It is injected into its `usual` target with the parameters of
its `example`.
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
from tests.containers.mechanisms import others_of_each_mechanism
from tests.tiers import others_nightly

pytestmark = pytest.mark.container

IN_MATRIX = [name for name in sorted(faults) if faults[name].engines != ("spark",)]
"""Faults that only Spark has are injected in `test_spark.py`."""
OWN_PROCESS_ONLY = [
    name for name in IN_MATRIX if faults[name].target_kind == "workload" or name == "restart_job"
]
"""Faults that only their own process can heal: they disturb the harness's own load, which ends with
the harness, or need its job's statements, which no other process knows."""


@pytest.fixture(scope="module")
def matrix(
    docker_runtime: DockerRuntime, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[MatrixTestbed]:
    with matrix_testbed(tmp_path_factory.mktemp("matrix"), docker_runtime) as matrix:
        yield matrix


@pytest.fixture
def testbed(matrix: MatrixTestbed) -> MatrixTestbed:
    for intent in matrix.log.open_intents():  # left by a failed test; must not fail other tests
        matrix.undo(intent)
    matrix.await_ready()
    return matrix


@pytest.fixture
def measurements(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    """The measurements of a test, which become properties of the test in the JUnit file."""
    values: dict[str, Any] = {}
    yield values
    request.node.user_properties += values.items()


def build_fault(name: str) -> Fault:
    return faults[name](**faults[name].example)


def _heal(matrix: MatrixTestbed, intent: Intent) -> InjectionResult:
    """Heal twice, and verify on every existing target that the fault is healed."""
    first = matrix.heal(intent)
    matrix.await_healed(intent)
    assert intent.id not in {open_.id for open_ in matrix.log.open_intents()}
    return first


@pytest.mark.parametrize(
    "name",
    others_nightly(
        [name for name in IN_MATRIX if name not in OWN_PROCESS_ONLY],
        others_of_each_mechanism(IN_MATRIX),
    ),
)
def test_a_fault_is_healed_by_another_process_after_its_harness_was_killed(
    name: str, testbed: MatrixTestbed, measurements: dict[str, Any]
) -> None:
    harness = testbed.inject_and_die(build_fault(name))
    assert harness.returncode == -signal.SIGKILL, harness.stderr
    measurements |= json.loads(harness.stdout)
    (intent,) = testbed.log.open_intents()
    measurements["healed_ms"] = _heal(testbed, intent).width_ms


@pytest.mark.parametrize(
    "name", others_nightly(OWN_PROCESS_ONLY, others_of_each_mechanism(OWN_PROCESS_ONLY))
)
def test_a_fault_of_the_load_or_the_job_is_healed_by_its_own_harness(
    name: str, testbed: MatrixTestbed, measurements: dict[str, Any]
) -> None:
    intent, injected = testbed.inject_fault(build_fault(name))
    assert injected.done, injected.reason
    measurements |= {"injection_ms": injected.width_ms, "watched": injected.evidence["watched"]}
    measurements["healed_ms"] = _heal(testbed, intent).width_ms


@pytest.mark.nightly
@pytest.mark.parametrize(
    "name", [name for name in IN_MATRIX if faults[name].target_kind in ("nodes", "pairs")]
)
def test_a_fault_is_healed_after_its_target_was_killed(name: str, testbed: MatrixTestbed) -> None:
    intent, injected = testbed.inject_fault(build_fault(name))
    assert injected.done, injected.reason
    testbed.end_target(intent)
    _heal(testbed, intent)


def test_the_usual_target_of_every_fault_exists_in_the_matrix(matrix: MatrixTestbed) -> None:
    topology = matrix.cluster.topology
    mismatch = {
        name: fault_target_problem(build_fault(name), faults[name].usual, topology)
        for name in IN_MATRIX
    }
    assert {name: reason for name, reason in mismatch.items() if reason} == {}

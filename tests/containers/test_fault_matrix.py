"""Every registered fault on a real cluster: it bites, it goes, and it goes whatever happens.

A new fault is in the matrix as soon as it is registered; it is struck at its `usual` target with
the parameters of its `example`.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from streamquake.cluster.runtime.docker.runtime import DockerRuntime
from streamquake.faults.fault import Fault, faults
from streamquake.faults.injection.injection import Struck
from streamquake.faults.injection.intents import Intent
from streamquake.harness.experiment.validation import target_trouble
from tests.containers.matrix import MatrixBed, matrix_bed

pytestmark = pytest.mark.container

HERE = [name for name in sorted(faults) if faults[name].engines != ("spark",)]
"""The faults of Spark alone are struck in `test_spark.py`."""
OWN = [name for name in HERE if faults[name].aims == "workload" or name == "restart_job"]
"""They disturb the harness's own load, which ends with it, or need its job's statements, which no
other process knows: nothing outlives it to be healed."""


@pytest.fixture(scope="module")
def matrix(
    docker_runtime: DockerRuntime, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[MatrixBed]:
    with matrix_bed(tmp_path_factory.mktemp("matrix"), docker_runtime) as bed:
        yield bed


@pytest.fixture
def bed(matrix: MatrixBed) -> MatrixBed:
    for left in matrix.log.open():  # of a test that failed, which must not make others fail
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


def _healed(bed: MatrixBed, intent: Intent) -> Struck:
    """Healed once and once more, and seen to be gone on every target that is there."""
    first = bed.heal(intent)
    bed.await_gone(intent)
    assert intent.id not in {open_.id for open_ in bed.log.open()}
    return first


@pytest.mark.parametrize("name", [name for name in HERE if name not in OWN])
def test_its_harness_is_killed_and_the_next_one_heals_it_twice(
    name: str, bed: MatrixBed, note: dict[str, Any]
) -> None:
    harness = bed.strike_and_die(made(name))
    assert harness.returncode == -signal.SIGKILL, harness.stderr
    note |= json.loads(harness.stdout)
    (intent,) = bed.log.open()
    note["healed_ms"] = _healed(bed, intent).width_ms


@pytest.mark.parametrize("name", OWN)
def test_it_strikes_what_is_the_harnesss_own_and_is_healed_twice(
    name: str, bed: MatrixBed, note: dict[str, Any]
) -> None:
    intent, struck = bed.strike(made(name))
    assert struck.done, struck.reason
    note |= {"struck_ms": struck.width_ms, "watched": struck.evidence["watched"]}
    note["healed_ms"] = _healed(bed, intent).width_ms


@pytest.mark.parametrize("name", [name for name in HERE if faults[name].aims in ("nodes", "pairs")])
def test_its_target_dies_and_it_is_healed(name: str, bed: MatrixBed) -> None:
    intent, struck = bed.strike(made(name))
    assert struck.done, struck.reason
    bed.end_target(intent)
    _healed(bed, intent)


def test_the_matrix_has_every_fault(matrix: MatrixBed) -> None:
    topology = matrix.cluster.topology
    unfit = {name: target_trouble(made(name), faults[name].usual, topology) for name in HERE}
    assert {name: reason for name, reason in unfit.items() if reason} == {}

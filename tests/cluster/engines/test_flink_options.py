from __future__ import annotations

import pytest

from streamquake.cluster.engines.flink.options import key_problem


@pytest.mark.parametrize(
    "key",
    [
        "execution.checkpointing.interval",
        "state.backend",  # an older name
        "metrics.reporter.prom.port",
        "flink.hadoop.dfs.replication",
        "taskmanager.memory.managed.fraction",
    ],
)
@pytest.mark.parametrize("version", ["1.20", "2.2", "2.2.1", "2.0.0", "1.18"])
def test_options_that_a_version_reads_are_accepted(key: str, version: str) -> None:
    assert key_problem(key, version) is None


def test_a_key_of_an_older_version_is_rejected_as_ignored() -> None:
    key = "taskmanager.network.memory.max-overdraft-buffers-per-gate"
    assert key_problem(key, "1.20") is None
    assert key_problem(key, "2.2") == f"Flink 2.2 ignores {key}; it is an option of 1.20.5"


def test_the_nearest_key_is_suggested_for_a_misspelt_one() -> None:
    problem = key_problem("execution.checkpointing.intervall", "2.2")
    assert problem is not None
    assert 'did you mean "execution.checkpointing.interval"?' in problem
    assert "known:" not in problem

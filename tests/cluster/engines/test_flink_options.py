from __future__ import annotations

import pytest

from streamquake.cluster.engines.flink.config import SPREAD
from streamquake.cluster.engines.flink.options import as_read_by, key_problem
from streamquake.topologies.model import Scalar


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
    listed = "it is an option of 1.17.0, 1.19.3, 1.20.5"
    assert key_problem(key, "2.2") == f"Flink 2.2 ignores {key}; {listed}"


def test_the_nearest_key_is_suggested_for_a_misspelt_one() -> None:
    problem = key_problem("execution.checkpointing.intervall", "2.2")
    assert problem is not None
    assert 'did you mean "execution.checkpointing.interval"?' in problem
    assert "known:" not in problem


def test_an_option_may_have_its_newer_name_on_an_older_version() -> None:
    assert key_problem("execution.checkpointing.dir", "1.17") is None
    given = {"execution.checkpointing.dir": "hdfs:///checkpoints"}
    assert as_read_by("1.17", given) == {"state.checkpoints.dir": "hdfs:///checkpoints"}
    assert as_read_by("2.2", given) == given


def test_the_own_name_of_an_option_wins_over_a_newer_one() -> None:
    given = {"rest.cache.checkpoint-statistics.timeout": "20 ms", "web.refresh-interval": "1 s"}
    assert as_read_by("1.17", given) == {"web.refresh-interval": 1000}


def test_a_duration_is_in_milliseconds_where_a_version_reads_a_number() -> None:
    assert as_read_by("1.17", {"heartbeat.interval": "1 s"}) == {"heartbeat.interval": 1000}
    assert as_read_by("2.2", {"heartbeat.interval": "1 s"}) == {"heartbeat.interval": "1 s"}


def test_an_option_that_a_version_does_not_have_is_left_out_and_an_unlisted_one_kept() -> None:
    given: dict[str, Scalar] = {SPREAD: "SLOTS", "flink.hadoop.dfs.replication": 1}
    assert as_read_by("1.17", given) == {"flink.hadoop.dfs.replication": 1}

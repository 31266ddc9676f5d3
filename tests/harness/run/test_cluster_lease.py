"""The logs that a run saves from a cluster that earlier runs have used too."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.node_replacement import replace_node, usual_image
from streamquake.cluster.runtime.fake_runtime import FakeRuntime
from streamquake.harness.run.cluster_lease import EarlierRuns, _save_logs
from streamquake.reports.record.run_folder import RunFolder
from tests.fakes import WIDE, fake_cluster

NODE = "hdfs/datanode-1"
LONG = 30_000
"""Lines of a log."""


def lease(folder: Path) -> Any:
    """The parts of a lease that the saving of logs needs; a warning fails the test."""
    return SimpleNamespace(folder=RunFolder(folder), warn=pytest.fail)


def write(cluster: Cluster, line: str) -> None:
    assert isinstance(cluster.runtime, FakeRuntime)
    cluster.runtime.write_log(cluster.node(NODE).container, line)


def replaced(cluster: Cluster) -> None:
    node = cluster.node(NODE)
    replace_node(
        cluster,
        node,
        lambda old: cluster.runtime.kill(old.container),
        image=usual_image(cluster, node),
        settings={},
    )


def saved(cluster: Cluster, folder: Path, earlier: str) -> list[str]:
    folder.mkdir(exist_ok=True)
    _save_logs(cluster, lease(folder), EarlierRuns(logs={NODE: earlier}))
    return (RunFolder(folder).logs / "hdfs-datanode-1" / "log.txt").read_text().splitlines()


@pytest.fixture
def cluster() -> Cluster:
    return fake_cluster(WIDE)


def test_a_run_saves_only_what_was_logged_since_it_began(cluster: Cluster, tmp_path: Path) -> None:
    write(cluster, "of the first run")
    earlier = cluster.log_of(cluster.node(NODE))
    write(cluster, "of the second run")
    assert saved(cluster, tmp_path, earlier) == ["of the second run"]


def test_line_ends_of_an_earlier_run_hide_nothing_of_it(cluster: Cluster, tmp_path: Path) -> None:
    """Such as those of a progress bar."""
    write(cluster, "10 %\r20 %\r")
    earlier = cluster.log_of(cluster.node(NODE))
    write(cluster, "of the second run")
    assert saved(cluster, tmp_path, earlier) == ["of the second run"]


def test_a_replaced_node_keeps_the_part_of_its_log_that_is_the_runs(
    cluster: Cluster, tmp_path: Path
) -> None:
    """Also where the log is longer than what is read of a log in one piece elsewhere."""
    for number in range(LONG):
        write(cluster, f"of the first run {number}")
    earlier = cluster.log_of(cluster.node(NODE))
    write(cluster, "of the second run")
    replaced(cluster)
    write(cluster, "of the new container")
    assert saved(cluster, tmp_path, earlier) == ["of the second run", "of the new container"]


def test_the_log_of_a_container_that_another_process_replaced_is_saved_as_a_whole(
    cluster: Cluster, tmp_path: Path
) -> None:
    write(cluster, "a long line of the first run")
    earlier = cluster.log_of(cluster.node(NODE))
    replaced(cluster)
    cluster.former_logs.clear()
    write(cluster, "of the new container")
    assert saved(cluster, tmp_path, earlier) == ["of the new container"]

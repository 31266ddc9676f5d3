"""What single-task failover dropped, as recorded in the history."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.runtime.fake_runtime import FakeRuntime
from streamquake.harness.run.dropped_records import record_dropped
from streamquake.harness.run.event_loop import EventLoop
from streamquake.reports.record.event import Action
from streamquake.reports.record.history import HistoryWriter, read_history
from streamquake.reports.record.metrics import Metrics
from streamquake.topologies.model import Topology
from streamquake.topologies.named_files import RULES
from tests.fakes import fake_cluster

SINGLE = (RULES / "single-task.btm").read_text(encoding="utf-8")
LOCAL = (RULES / "approximate-local-recovery.btm").read_text(encoding="utf-8")
SOURCE = "Source: input[1] -> Calc[2] (1/2)#1"
ID = "(b07b62eee74059ac9c1734d2705ccbdf_cbc357ccb763df2852fee8c4fc7d55f2_0_1)"


def cluster_with(rules: str) -> Cluster:
    nodes = {"jobmanager": {"rules": [LOCAL, rules]}, "taskmanager": {"count": 2, "rules": rules}}
    return fake_cluster(
        Topology.model_validate(
            {"name": "single", "services": {"flink": {"engine": "flink", "nodes": nodes}}}
        )
    )


def line(records: int, until: str, subpartition: int = 1) -> str:
    """What a task logs, in the words of `DiscardingReader.java`."""
    size = f"{records} records ({records * 9} bytes)"
    return f"Dropped {size} for subpartition {subpartition} of {SOURCE} {ID}: {until}."


LAST = line(70, "until its next consumer")


def log(cluster: Cluster, node: str, after_s: float, message: str) -> None:
    """Append a line, written so many seconds after the run's beginning, to a node's log."""
    runtime = cluster.runtime
    assert isinstance(runtime, FakeRuntime)
    began_s = (cluster.clock.epoch_ns() - cluster.clock.now_ns()) / 1e9
    time = datetime.fromtimestamp(began_s + after_s, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3]
    line = f"{time}Z WARN  DiscardingReader - {message}"
    runtime.containers[cluster.node(node).container].log.append(line)


def recorded(cluster: Cluster, folder: Path) -> list[tuple[str, dict[str, Any]]]:
    loop = EventLoop(
        HistoryWriter(folder / "history.jsonl"),
        Metrics(folder / "metrics.parquet"),
        cluster.clock,
        show=lambda: None,
    )
    record_dropped(cluster, loop)
    loop.tick()
    loop.close()
    stored = read_history(folder / "history.jsonl")
    return [(each.process, dict(each.value)) for each in stored.of(Action.RECORDS_DROPPED)]


def test_each_part_is_recorded_with_its_subpartition_and_checkpoint(tmp_path: Path) -> None:
    cluster = cluster_with(SINGLE)
    log(cluster, "flink/taskmanager-1", 2, "The consumer of X is gone: its records are dropped.")
    log(cluster, "flink/taskmanager-1", 3, line(70, "before checkpoint 4"))
    log(cluster, "flink/taskmanager-2", 4.5, line(9, "until its next consumer", subpartition=0))

    (first, of_first), (second, of_second) = recorded(cluster, tmp_path)
    assert (first, second) == ("flink/taskmanager-1", "flink/taskmanager-2")
    assert of_first.pop("logged_s") == pytest.approx(3, abs=0.01)
    assert of_second.pop("logged_s") == pytest.approx(4.5, abs=0.01)
    assert of_first == {
        "task": SOURCE,
        "subpartition": 1,
        "records": 70,
        "bytes": 630,
        "before_checkpoint": 4,
    }
    assert of_second == {
        "task": SOURCE,
        "subpartition": 0,
        "records": 9,
        "bytes": 81,
        "before_checkpoint": None,
    }


def test_lines_of_earlier_runs_on_the_cluster_are_left_out(tmp_path: Path) -> None:
    cluster = cluster_with(SINGLE)
    log(cluster, "flink/taskmanager-1", -5, LAST)
    log(cluster, "flink/taskmanager-1", 5, LAST)

    assert len(recorded(cluster, tmp_path)) == 1


def test_nodes_without_the_rules_are_not_asked(tmp_path: Path) -> None:
    cluster = cluster_with(LOCAL)
    log(cluster, "flink/taskmanager-1", 5, LAST)

    assert recorded(cluster, tmp_path) == []


def test_a_node_without_a_log_is_passed_over(tmp_path: Path) -> None:
    cluster = cluster_with(SINGLE)
    log(cluster, "flink/taskmanager-2", 5, LAST)
    cluster.runtime.remove(cluster.node("flink/taskmanager-1").container)

    assert [process for process, _ in recorded(cluster, tmp_path)] == ["flink/taskmanager-2"]

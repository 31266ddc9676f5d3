"""Samples of a job: only metrics that a vertex has are requested."""

from __future__ import annotations

from typing import Any, cast

from streamquake.cluster.engines.flink.metrics import MetricsProbe
from streamquake.cluster.engines.flink.rest import FlinkRest
from streamquake.cluster.runtime.clock import FakeClock

JOB = "j"
LOADS = ("softBackPressuredTimeMsPerSecond", "Shuffle.Netty.Output.Buffers.outPoolUsage")
INPUT = "Shuffle.Netty.Input.Buffers.inPoolUsage"
PENDING = "Source__input[1].KafkaSourceReader.pendingRecords"


class Rest:
    """A JobManager that, like Flink's, returns no metric when one requested name is unknown."""

    def __init__(self, **metrics: tuple[str, ...]) -> None:
        self.metrics = metrics

    def get(self, path: str, **parameters: str) -> Any:
        existing = self.metrics[path.split("/")[4]]
        if "get" not in parameters:
            return [{"id": name} for name in (*existing, "numBytesOut", "elsewhere.numRecordsIn")]
        requested = parameters["get"].split(",")
        known = all(name in existing for name in requested)
        return [{"id": n, "avg": 1.0, "max": 2.0, "sum": 3.0} for n in requested] if known else []


def samples(rest: Rest) -> dict[tuple[str, str], float]:
    found: dict[tuple[str, str], float] = {}

    def measure(series: str, where: str, value: float) -> None:
        found[series, where] = value

    probe = MetricsProbe(cast("FlinkRest", rest), JOB, measure, FakeClock())
    counters = {"read-records": 0, "write-records": 0}
    vertices = [{"id": v, "name": v.upper(), "metrics": counters} for v in rest.metrics]
    probe.poll({"vertices": vertices})
    return found


def test_a_vertex_without_an_input_is_sampled_too() -> None:
    found = samples(Rest(source=(*LOADS, PENDING), sink=(*LOADS, INPUT)))
    assert found["output_pool_usage", "SOURCE"] == found["output_pool_usage", "SINK"] == 1.0
    assert found["soft_back_pressured_ms_per_s_max", "SOURCE"] == 2.0
    assert found["input_pool_usage_max", "SINK"] == 2.0
    assert ("input_pool_usage_max", "SOURCE") not in found
    assert found["pending_records", "SOURCE"] == 3.0


def test_operators_of_one_vertex_are_aggregated() -> None:
    window, other = "Window[3].numLateRecordsDropped", "Window[5].numLateRecordsDropped"
    sends = ("Sink__a.currentSendTime", "Sink__b.currentSendTime")

    found = samples(Rest(windows=(window, other, *sends)))

    assert found["late_records_dropped", "WINDOWS"] == 6.0
    assert found["sink_latency_ms", "WINDOWS"] == 2.0


def test_a_vertex_without_metrics_has_no_samples() -> None:
    assert not [series for series, _ in samples(Rest(source=())) if "usage" in series]


def test_running_time_and_records_of_subtasks_are_sampled() -> None:
    found: dict[tuple[str, str], float] = {}
    probe = MetricsProbe(
        cast("FlinkRest", Rest()), JOB, lambda s, w, v: found.__setitem__((s, w), v), FakeClock()
    )
    counters = {"read-records": 5, "write-records": 7}
    ran = {"attempt": 0, "status": "RUNNING", "metrics": counters}
    known = {"subtask": 0, "status-duration": {"RUNNING": 900}, **ran}
    early = {"subtask": 1, "status-duration": {"RUNNING": -1}, **ran}
    probe.poll_subtasks([{"id": "v", "name": "V", "subtasks": [known, early]}])
    assert found["subtask_running_ms", "V/0"] == 900
    assert found["subtask_running_ms", "V/1"] == 0
    assert (found["subtask_read_records", "V/0"], found["subtask_written_records", "V/0"]) == (5, 7)

"""Samples of a Flink job about once a second: throughput, load of the tasks, lag, sink latency.

Flink's own rates are means over a minute; the rates here are differences of its counters.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from streamquake.cluster.engines.engine import RecordSample
from streamquake.cluster.engines.flink.load import TaskLoad
from streamquake.cluster.engines.flink.rest import FlinkRest
from streamquake.cluster.runtime.clock import Clock

LOAD = {
    # Soft back-pressure: no buffer is free for the next record; hard: none for this one. These are
    # means over a minute; Flink has no counters for them.
    "softBackPressuredTimeMsPerSecond": "soft_back_pressured_ms_per_s",
    "hardBackPressuredTimeMsPerSecond": "hard_back_pressured_ms_per_s",
    # The used share of the pools, 1 when full; above 1 for the output when overdraft buffers are
    # used.
    "Shuffle.Netty.Input.Buffers.inPoolUsage": "input_pool_usage",
    "Shuffle.Netty.Input.Buffers.inputExclusiveBuffersUsage": "input_exclusive_usage",
    "Shuffle.Netty.Input.Buffers.inputFloatingBuffersUsage": "input_floating_usage",
    "Shuffle.Netty.Output.Buffers.outPoolUsage": "output_pool_usage",
    "debloatedBufferSize": "debloated_buffer_bytes",
}
OPERATORS = {
    # Records that the source has not read yet, records dropped as late, and the duration of the
    # slowest sink's last send.
    "pendingRecords": ("pending_records", "sum"),
    "numLateRecordsDropped": ("late_records_dropped", "sum"),
    "currentSendTime": ("sink_latency_ms", "max"),
}
RENEW_S = 10.0
"""How often the names of metrics are requested: they change when a job is deployed."""


class MetricsProbe:
    """Takes samples of one job."""

    def __init__(self, rest: FlinkRest, job: str, measure: RecordSample, clock: Clock) -> None:
        self._rest = rest
        self._job = job
        self._measure = measure
        self._clock = clock
        self._load = TaskLoad(measure)
        self._counters: dict[tuple[str, str], tuple[int, int]] = {}
        self._names: dict[str, list[str]] = {}
        self._names_requested_ns = -math.inf

    def poll(self, detail: Mapping[str, Any]) -> None:
        """Take one sample of every series; `detail` is an answer of `GET /jobs/:job`."""
        for vertex in detail["vertices"]:
            counters = vertex["metrics"]
            self._rate("records_in_per_s", vertex["name"], counters["read-records"])
            self._rate("records_out_per_s", vertex["name"], counters["write-records"])
            self._gauges(vertex)

    def poll_subtasks(self, vertices: Sequence[Mapping[str, Any]]) -> None:
        """Take one sample for each subtask, of the answers of `GET /jobs/:job/vertices/:vertex`:
        how long its attempt has been running, the records it has read and written, and its busy,
        back-pressured and idle time."""
        self._load.poll(vertices)
        for vertex in vertices:
            for subtask in vertex["subtasks"]:
                where = f"{vertex['name']}/{subtask['subtask']}"
                counters = subtask["metrics"]
                running_ms = subtask.get("status-duration", {}).get("RUNNING", -1)
                self._sample("subtask_running_ms", where, max(0, running_ms))
                self._sample("subtask_read_records", where, counters["read-records"])
                self._sample("subtask_written_records", where, counters["write-records"])

    def _rate(self, series: str, where: str, count: int) -> None:
        now_ns = self._clock.now_ns()
        before, before_ns = self._counters.get((series, where), (count, now_ns))
        self._counters[series, where] = (count, now_ns)
        # A restart resets the counters: the rate across it is unknown.
        if now_ns > before_ns and count >= before:
            self._measure(series, where, (count - before) / ((now_ns - before_ns) / 1e9))

    def _gauges(self, vertex: Mapping[str, Any]) -> None:
        path = f"/jobs/{self._job}/vertices/{vertex['id']}/subtasks/metrics"
        names = self._known(vertex["id"], path)
        # If one requested name is unknown, Flink returns none of the others either.
        found = self._rest.get(path, get=",".join(names)) if names else []
        of_operators: dict[str, list[float]] = {}
        for metric in found:
            if metric["id"] in LOAD:
                series = LOAD[metric["id"]]
                self._sample(series, vertex["name"], metric["avg"])
                self._sample(f"{series}_max", vertex["name"], metric["max"])
            else:
                name = metric["id"].rpartition(".")[2]
                of_operators.setdefault(name, []).append(float(metric[OPERATORS[name][1]]))
        for name, values in of_operators.items():
            series, aggregate = OPERATORS[name]
            self._sample(series, vertex["name"], sum(values) if aggregate == "sum" else max(values))

    def _known(self, vertex: str, path: str) -> Iterable[str]:
        """The names of the sampled metrics that a vertex has, including those of its operators."""
        now_ns = self._clock.now_ns()
        if now_ns - self._names_requested_ns > RENEW_S * 1e9:
            self._names_requested_ns = now_ns
            self._names.clear()
        if vertex not in self._names:
            listed = (metric["id"] for metric in self._rest.get(path))
            self._names[vertex] = [
                name
                for name in listed
                if name in LOAD or ("." in name and name.rpartition(".")[2] in OPERATORS)
            ]
        return self._names[vertex]

    def _sample(self, series: str, where: str, value: float | str) -> None:
        """Record a value, unless it is NaN, which Flink returns where it has no value."""
        number = float(value)
        if math.isfinite(number):
            self._measure(series, where, number)

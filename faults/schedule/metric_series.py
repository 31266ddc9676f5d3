"""The series of samples that a trigger can wait for, and their meanings."""

from __future__ import annotations

from collections.abc import Mapping

SERIES: Mapping[str, str] = {
    "lag": "records of its topics that the job has not committed as read",
    "sent_per_s": "records acknowledged to the workload, per second",
    "output_per_s": "committed records of an output, per second",
    "checkpoint_duration_ms": "end-to-end duration of the checkpoint that completed last",
    "records_in_per_s": "records that a task reads, per second",
    "records_out_per_s": "records that a task writes, per second",
    "pending_records": "records that the source has not read yet",
    "late_records_dropped": "records that windows dropped as too late, since the attempt began",
    "sink_latency_ms": "the slowest sink's last send",
    "busy_ms_per_s": "how long a task is busy, mean of its subtasks",
    "busy_ms_per_s_max": "how long the busiest subtask is busy",
    "back_pressured_ms_per_s": "how long a task is back-pressured, mean of its subtasks",
    "back_pressured_ms_per_s_max": "how long the most back-pressured subtask is back-pressured",
    "idle_ms_per_s": "how long a task is idle, mean of its subtasks",
    "idle_ms_per_s_max": "how long the idlest subtask is idle",
}
RATIOS: Mapping[str, tuple[str, float]] = {
    "backpressure": ("back_pressured_ms_per_s_max", 1e-3),
    "busy": ("busy_ms_per_s_max", 1e-3),
}
"""Metrics that are shares of time, from 0 to 1 -> the series that the metric is computed from, and
the factor."""


def known_metrics() -> tuple[str, ...]:
    """The names that `when: {metric: NAME}` accepts."""
    return (*SERIES, *RATIOS)


def source_of(metric: str) -> tuple[str, float]:
    """The series that a metric is computed from, and the factor of its samples."""
    return RATIOS.get(metric, (metric, 1.0))

"""Written histories of micro-batches, as the driver of a query with one exchange reports them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamquake.harness.experiment.check import JudgedRun
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.workloads.numbered import Numbered
from streamquake.reports.record.event import MICRO_BATCH, Action
from streamquake.topologies.loader import load_topology
from tests.harness.histories import Story, no_spark

JOB = "query"
EPOCH_MS = 1_700_000_000_000
"""The driver's clock at the zero of the run's clock, in epoch ms."""
OFFSETS_MS = 50
"""How long after the begin of a batch its offsets are in the log."""
EXPERIMENT = Experiment(
    name="by-hand",
    topology=load_topology("spark-kafka-hdfs"),
    job={"pyspark": "x", "promise": {"outputs": {"totals": {"kafka": "totals"}}}},  # type: ignore[arg-type]
    workload=Numbered(records=1, rate_per_s=1),
)


@dataclass(frozen=True, kw_only=True)
class PartDurations:
    """The durations of the parts of a batch, in milliseconds."""

    source: int = 400
    sink: int = 1000
    state: int = 100
    """The state commit of each of its two tasks."""
    log: int = 100
    driver: int = 200

    @property
    def whole(self) -> int:
        return self.source + self.sink + self.state + self.log + self.driver


class BatchStory(Story):
    """A history of a query that is submitted at the start; its batches follow each other."""

    def __init__(self) -> None:
        super().__init__()
        self.at(0, Action.JOB_SUBMITTED, job=JOB, vertices=[], edges=[], config={})
        self.now_ms = 1000
        self._number = 0
        self._done = 0

    def batch(
        self,
        waiting: int,
        took: PartDurations | None = None,
        *,
        rows: int | None = None,
        rest_ms: int = 0,
        exchange: bool = True,
        **changed: Any,
    ) -> BatchStory:
        """The next batch: it reads all waiting records, or only some `rows` of them."""
        took, rows = took or PartDurations(), waiting if rows is None else rows
        self.now_ms += rest_ms
        self.triggered()
        began_ms, start_ms = self.now_ms, self.now_ms + took.driver // 2
        end_ms = start_ms + took.source
        self._attempts(0 if exchange else 1, start_ms, end_ms)
        self._attempts(1, end_ms, end_ms + took.sink + took.state)
        self.now_ms += took.whole
        topic = {"start": self._done, "end": self._done + rows, "latest": self._done + waiting}
        self._done += rows
        # The stage with state has two attempts, which commit their state in parallel.
        operators = [{"commit_ms": 2 * took.state, "custom": {"rocksdbFilesCopied": 4}}]
        value = {
            "job": JOB,
            "checkpoint": self._number,
            "type": MICRO_BATCH,
            "trigger_ms": EPOCH_MS + began_ms + OFFSETS_MS,
            "duration_ms": took.whole - OFFSETS_MS,
            "input_rows": rows,
            "state_rows": 8,
            "state_bytes": 500,
            "checkpointed_bytes": 50,
            "offsets": [{"source": "k", **{n: {"in": {"0": o}} for n, o in topic.items()}}],
            "durations_ms": {
                "latestOffset": 0,
                "getBatch": 0,
                "queryPlanning": took.driver // 2,
                "walCommit": took.log // 2,
                "commitOffsets": took.log // 2,
                "addBatch": took.whole - took.log - took.driver // 2,
                "triggerExecution": took.whole,
            },
            "state_operators": operators,
            **changed,
        }
        self.at(self.now_ms / 1000, Action.CHECKPOINT_COMPLETED, **value)
        self._number += 1
        return self

    def batches(self, *waiting: int, took: PartDurations | None = None) -> BatchStory:
        for each in waiting:
            self.batch(each, took)
        return self

    def fails(self, *, own: bool | None) -> BatchStory:
        """The next batch begins and is not committed; another driver continues with it."""
        self.triggered()
        self.now_ms += 1000
        value = {
            "job": JOB,
            "checkpoint": self._number,
            "type": MICRO_BATCH,
            "reason": "Boom",
            "trigger_ms": EPOCH_MS + self.now_ms - 1000 + OFFSETS_MS,
            "own": own,
        }
        self.at(self.now_ms / 1000, Action.JOB_FAILING, job=JOB, cause="Boom", own=own)
        self.at(self.now_ms / 1000, Action.CHECKPOINT_FAILED, **value)
        self.now_ms += 1000
        self.at(self.now_ms / 1000, Action.JOB_RESTARTING, job=JOB, restart=1)
        self.at(self.now_ms / 1000, Action.JOB_RESTORED, job=JOB, checkpoint=self._number - 1)
        return self

    def injected(self, fault: str, target: str) -> BatchStory:
        about = {"step": 0, "fault": fault, "target": target}
        at_s = self.now_ms / 1000
        self.at(at_s, Action.FAULT_CALLED, **about, params={})
        self.at(at_s, Action.FAULT_IN_EFFECT, **about, seen_ns=self.now_ms * 10**6, evidence={})
        return self

    def healed(self) -> BatchStory:
        self.at(self.now_ms / 1000, Action.HEAL_CALLED, step=0)
        return self

    def judged(self, folder: Path) -> JudgedRun:
        return JudgedRun(
            experiment=EXPERIMENT,
            history=self.history(),
            data=folder / "data",
            metrics=folder / "metrics.parquet",
            spark=no_spark,
        )

    def triggered(self) -> BatchStory:
        """The next batch begins."""
        self.at(
            self.now_ms / 1000,
            Action.CHECKPOINT_TRIGGERED,
            job=JOB,
            checkpoint=self._number,
            type=MICRO_BATCH,
            trigger_ms=EPOCH_MS + self.now_ms + OFFSETS_MS,
        )
        return self

    def _attempts(self, stage: int, start_ms: int, end_ms: int) -> None:
        for task in (0, 1):
            self.at(
                end_ms / 1000,
                Action.TASK_ATTEMPT,
                job=JOB,
                batch=self._number,
                stage=stage,
                task=task,
                attempt=0,
                state="SUCCESS",
                start_ms=EPOCH_MS + start_ms,
                end_ms=EPOCH_MS + end_ms,
            )

"""Delay or fail a checkpoint inside a task, in its synchronous or its asynchronous part."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Literal

from streamquake.faults.fault import faults
from streamquake.faults.mechanisms.jvm_points import SNAPSHOT, UPLOAD, RuleLocation
from streamquake.faults.mechanisms.jvm_rules import DelayingFault, FailingFault

Phase = Literal["sync", "async"]
POINTS: Mapping[Phase, Iterable[RuleLocation]] = {"sync": SNAPSHOT, "async": UPLOAD}


@faults.register
class DelayCheckpoint(DelayingFault):
    """Delay a checkpoint: `sync` delays each operator's snapshot and with it the task's records,
    `async` only the writing of the task's state."""

    name: ClassVar[str] = "delay_checkpoint"
    touches: ClassVar[str] = "checkpoint"
    example: ClassVar[Mapping[str, Any]] = {"phase": "async", "delay_ms": 500}

    phase: Phase = "async"

    def points(self) -> Iterable[RuleLocation]:
        return POINTS[self.phase]


@faults.register
class FailCheckpoint(FailingFault):
    """Fail a checkpoint: an exception in the `sync` part fails the task; in the `async` part it
    makes the task decline the checkpoint, which fails the job if it tolerates no failed
    checkpoints."""

    name: ClassVar[str] = "fail_checkpoint"
    touches: ClassVar[str] = "checkpoint"
    example: ClassVar[Mapping[str, Any]] = {"phase": "async"}

    phase: Phase = "async"

    def points(self) -> Iterable[RuleLocation]:
        return POINTS[self.phase]

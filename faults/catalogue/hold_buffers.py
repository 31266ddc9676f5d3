"""Hold buffers: a task waits whenever it requests a network buffer to write into."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from streamquake.faults.fault import faults
from streamquake.faults.mechanisms.jvm_points import BUFFER, RuleLocation
from streamquake.faults.mechanisms.jvm_rules import JvmFault
from streamquake.topologies.limits import Milliseconds


@faults.register
class HoldBuffers(JvmFault):
    """Delay each request of a task for a network buffer, as an exhausted buffer pool would. Only
    tasks that send records over the network request buffers."""

    name: ClassVar[str] = "hold_buffers"
    touches: ClassVar[str] = "buffers"
    drawn: ClassVar[bool] = False  # a job with forward edges only requests no buffers
    example: ClassVar[Mapping[str, Any]] = {"hold_ms": 100}

    hold_ms: Milliseconds
    """How long each request waits, milliseconds."""

    def points(self) -> Iterable[RuleLocation]:
        return BUFFER

    def action(self) -> str:
        return f"delay({self.hold_ms})"

"""Hold buffers: a task waits whenever it asks for a network buffer to write into."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from streamquake.faults.fault import faults
from streamquake.faults.mechanisms.jvm_points import BUFFER, RuleLocation
from streamquake.faults.mechanisms.jvm_rules import JvmFault
from streamquake.topologies.limits import Milliseconds


@faults.register
class HoldBuffers(JvmFault):
    """Hold up each request of a task for a network buffer, as a drained buffer pool would.

    Only tasks that send records over the network ask for buffers.
    """

    name: ClassVar[str] = "hold_buffers"
    touches: ClassVar[str] = "buffers"
    drawn: ClassVar[bool] = False  # a job of forward edges alone asks for no buffers
    example: ClassVar[Mapping[str, Any]] = {"hold_ms": 100}

    hold_ms: Milliseconds
    """How long each request waits, milliseconds."""

    def points(self) -> Iterable[RuleLocation]:
        return BUFFER

    def action(self) -> str:
        return f"delay({self.hold_ms})"

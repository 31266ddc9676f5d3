"""Slow operator: every record takes extra time, as with a slow function or a slow lookup."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from streamquake.faults.fault import faults
from streamquake.faults.mechanisms.jvm_points import RECORD, RuleLocation
from streamquake.faults.mechanisms.jvm_rules import DelayingFault


@faults.register
class SlowOperator(DelayingFault):
    """Delay every record that an operator receives, or every fetch of a source."""

    name: ClassVar[str] = "slow_operator"
    touches: ClassVar[str] = "records"
    example: ClassVar[Mapping[str, Any]] = {"delay_ms": 5}

    def points(self) -> Iterable[RuleLocation]:
        return RECORD

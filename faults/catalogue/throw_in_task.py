"""Throw in task: an operator fails on a record, as by a bug in its own code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from streamquake.faults.fault import faults
from streamquake.faults.mechanisms.jvm_points import RECORD, RuleLocation
from streamquake.faults.mechanisms.jvm_rules import FailingFault


@faults.register
class ThrowInTask(FailingFault):
    """Throw an exception when an operator receives a record: the task fails and is restarted."""

    name: ClassVar[str] = "throw_in_task"
    touches: ClassVar[str] = "records"
    example: ClassVar[Mapping[str, Any]] = {"message": "no such luck"}

    def points(self) -> Iterable[RuleLocation]:
        return RECORD

"""Delay or fail the restoring of a task's state after a failure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from streamquake.faults.fault import faults
from streamquake.faults.mechanisms.jvm_points import INPUT, RESTORE, RuleLocation
from streamquake.faults.mechanisms.jvm_rules import DelayingFault, FailingFault, JvmFault

FAIL_ONCE = 'throw new RuntimeException("failed by streamquake, so that a task is restored")'


class RestoreFault(JvmFault):
    """The common base: a fault of the restore, which needs a failure first."""

    restart: bool = True
    """Whether to fail one task of the node first, so that its state is restored. With `false`, the
    rule waits for a restart by another fault; only JVMs that survive that restart keep the rule."""

    def points(self) -> Iterable[RuleLocation]:
        return RESTORE

    def script(self, nonce: str) -> str:
        rules = super().script(nonce)
        if self.restart:
            once = (f'incrementCounter("{nonce} restart") <= 1', "")
            rules += self.rule(f"{self.mark} restart", INPUT[0], once, FAIL_ONCE)
        return rules


@faults.register
class DelayRestore(RestoreFault, DelayingFault):
    """Delay the restore of each task on the node: recovery takes that much longer."""

    name: ClassVar[str] = "delay_restore"
    touches: ClassVar[str] = "restore"
    example: ClassVar[Mapping[str, Any]] = {"delay_ms": 1000}


@faults.register
class FailRestore(RestoreFault, FailingFault):
    """Fail the restore of a task on the node: a second failure during recovery from the first."""

    name: ClassVar[str] = "fail_restore"
    touches: ClassVar[str] = "restore"

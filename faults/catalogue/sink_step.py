"""Delay or fail the two steps of a transactional sink: pre-commit and commit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from streamquake.faults.fault import faults
from streamquake.faults.mechanisms.jvm_points import COMMIT, PRECOMMIT, RuleLocation
from streamquake.faults.mechanisms.jvm_rules import DelayingFault, FailingFault


@faults.register
class DelayPrecommit(DelayingFault):
    """Delay the sink's pre-commit, the first step of a checkpoint in the sink's task."""

    name: ClassVar[str] = "delay_precommit"
    touches: ClassVar[str] = "precommit"
    example: ClassVar[Mapping[str, Any]] = {"delay_ms": 500}

    def points(self) -> Iterable[RuleLocation]:
        return PRECOMMIT


@faults.register
class FailPrecommit(FailingFault):
    """Fail the sink's pre-commit: the checkpoint never completes, and the task is restarted."""

    name: ClassVar[str] = "fail_precommit"
    touches: ClassVar[str] = "precommit"

    def points(self) -> Iterable[RuleLocation]:
        return PRECOMMIT


@faults.register
class DelayCommit(DelayingFault):
    """Delay the sink's commit: the checkpoint is complete, its output not yet visible."""

    name: ClassVar[str] = "delay_commit"
    touches: ClassVar[str] = "commit"
    example: ClassVar[Mapping[str, Any]] = {"delay_ms": 500}

    def points(self) -> Iterable[RuleLocation]:
        return COMMIT


@faults.register
class FailCommit(FailingFault):
    """Fail the sink between a complete checkpoint and its commit: the task is restarted, and the
    restored committer must commit what the failed one did not."""

    name: ClassVar[str] = "fail_commit"
    touches: ClassVar[str] = "commit"

    def points(self) -> Iterable[RuleLocation]:
        return COMMIT

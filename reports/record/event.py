"""Events: everything that happened in a run, as one kind of record.

`action` is a phrase of the vocabulary below, the same words that a trigger in YAML uses (`when:
{event: checkpoint triggered}`). `kind` is one of four: *invoke* is the begin of an operation, *ok*
is a certain success, *fail* a certain failure, and *info* is everything else, including results
that are not known. The format is that of Jepsen's history (https://github.com/jepsen-io/jepsen).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, Self, cast

from streamquake.reports.record.event_fields import field_problem, is_moment

MICRO_BATCH = "micro-batch"
"""The `type` of a checkpoint that is a batch of records, read, written and committed as one."""


DISTURBED = "disturbed"
"""Values in the evidence of a target: whose traffic or work the fault was observed to affect."""
SYSTEM, PROBE_ALONE = "the system", "the harness's probe alone"


class Kind(StrEnum):
    INVOKE = "invoke"
    OK = "ok"
    FAIL = "fail"
    INFO = "info"


class Action(StrEnum):
    """The vocabulary of the history. Each has a class of events, with its fields."""

    PHASE = "phase"
    CLUSTER_REUSED = "cluster reused"
    SENT = "records sent"
    WORKLOAD_STEERED = "workload steered"
    WORKLOAD_DONE = "workload finished"
    WORKLOAD_NOT_FINISHED = "workload not finished"
    FAULT_CALLED = "fault called"
    FAULT_IN_EFFECT = "fault in effect"
    FAULT_NOT_IN_EFFECT = "fault not in effect"
    FAULT_STILL_IN_EFFECT = "fault still in effect"
    FAULT_ENDED_EARLY = "fault ended early"
    FAULT_NOT_VERIFIED = "fault not verified again"
    HEAL_CALLED = "heal called"
    FAULT_HEALED = "fault healed"
    FAULT_NOT_HEALED = "fault not healed"
    FAULT_SKIPPED = "fault skipped"
    FAULT_MISSED_WINDOW = "fault missed its window"
    CONTAINER_DIED = "container died"
    CONTAINER_OOM = "container oom"
    CONTAINER_STARTED = "container started"
    SANDBOX_DIED = "sandbox died"
    NODE_REVIVED = "node revived"
    NODE_GIVEN_UP = "node given up"
    HOST_CLOCK_SET = "host clock set"
    JOB_SUBMITTED = "job submitted"
    JOB_RUNNING = "job running"
    JOB_FAILING = "job failing"
    JOB_RESTARTING = "job restarting"
    JOB_RESTORED = "job restored"
    JOB_ENDED = "job ended"
    TASK_CHANGED = "task changed"
    TASK_ATTEMPT = "task attempt"
    EXECUTOR_ADDED = "executor added"
    EXECUTOR_LOST = "executor lost"

    CHECKPOINT_TRIGGERED = "checkpoint triggered"
    CHECKPOINT_ACKNOWLEDGED = "checkpoint acknowledged"
    CHECKPOINT_ALL_ACKNOWLEDGED = "checkpoint all acknowledged"
    CHECKPOINT_COMPLETED = "checkpoint completed"
    CHECKPOINT_FAILED = "checkpoint failed"
    OFFSET_WRITTEN = "offset written"
    BATCH_RUNNING = "batch running"
    SINK_WRITTEN = "sink written"
    COMMIT_WRITTEN = "commit written"
    CHECKPOINT_FILES = "checkpoint files"
    SINK_COMMITTED = "sink committed"

    OUTPUT_SEEN = "output seen"
    PROBE_ANSWERED = "probe answered"
    TRANSACTIONS_SEEN = "transactions seen"
    OTHER_JOBS_SEEN = "other jobs seen"
    RECORDS_DROPPED = "records dropped"
    DRAINED = "drained"
    NOT_RECOVERED = "not recovered"
    INPUT_NOT_READ = "input not read to its end"
    OUTPUTS_NOT_COMMITTED = "outputs not committed"
    OUTPUTS_NOT_QUIET = "outputs not quiet"
    COMMAND_ENDED = "command ended"
    HARNESS_ERROR = "harness error"


@dataclass(frozen=True, kw_only=True)
class EventDraft:
    """An event that a worker passes to the loop. It has no index in the history yet.

    `at_ns` is the run's clock (nanoseconds since the run began) when the worker *observed* what the
    event reports.
    """

    at_ns: int
    process: str
    kind: Kind
    action: Action
    value: Mapping[str, Any] = field(default_factory=dict)
    """The fields of the action, as they are in the record. Writers pass a mapping; tests compare
    its names with the fields of the action's class."""
    error: str | None = None


@dataclass(frozen=True, kw_only=True)
class Event(EventDraft):
    """An event with its index in the one ordered history.

    Every action has a subclass, whose attributes are the fields of `value`, typed. `Event(...)`
    makes an instance of the subclass of its action.
    """

    index: int

    kinds: ClassVar[tuple[Kind, ...]] = (Kind.INFO,)
    """The kinds that events of the action may have; the first one is the usual one."""

    def __init_subclass__(
        cls, action: Action | None = None, kinds: tuple[Kind, ...] = (Kind.INFO,)
    ) -> None:
        """Registers the class of an action, with its kinds; a base of several classes has none."""
        if action is not None:
            EVENT_CLASSES[action] = cls
            cls.kinds = kinds

    def __new__(cls, *, action: Action | None = None, **fields: Any) -> Self:
        """Create an instance of the class of its action, so that every reader gets the typed
        class."""
        found: Any = EVENT_CLASSES.get(action, cls) if action and cls is Event else cls
        return cast(Self, object.__new__(found))

    @property
    def at_s(self) -> float:
        return self.at_ns / 1e9

    @classmethod
    def from_json(cls, document: Any) -> Event:
        """The event from a line of the history. Fields that a later version added stay in `value`.

        Raises ValueError, KeyError or TypeError where the line is not an event or has an unknown
        key."""
        known = {"kind": Kind(document["kind"]), "action": Action(document["action"])}
        event = Event(**{**document, **known})
        if not is_moment(event.at_ns) or not isinstance(event.value, dict):
            raise TypeError("expected `at_ns` a whole number and `value` an object")
        if not isinstance(event.process, str) or not isinstance(event.error, str | None):
            raise TypeError("expected `process` and `error` to be texts")
        if event.kind not in event.kinds:
            expected = " or ".join(event.kinds)
            raise TypeError(
                f"expected `kind` of `{event.action}` to be {expected}, got {event.kind}"
            )
        if problem := field_problem(event.value):
            raise TypeError(problem)
        return event

    def to_json(self) -> dict[str, Any]:
        """The line of the history."""
        return dataclasses.asdict(self)


EVENT_CLASSES: dict[Action, type[Event]] = {}
"""Action -> the class of its events."""

"""Events: everything that happened in a run, as one kind of record.

`action` is a phrase of the vocabulary below, the same words that a trigger in YAML uses
(`when: {event: checkpoint triggered}`). `kind` says what is known: an *invoke* was begun, *ok* and
*fail* are certain ends, *info* is everything else, including ends nobody knows. The shape is
Jepsen's history (https://github.com/jepsen-io/jepsen).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

MICRO_BATCH = "micro-batch"
"""The `type` of a checkpoint that is a batch of records, read, written and committed as one."""


DISTURBED = "disturbed"
"""In the evidence of a target: whose traffic or work was seen to suffer."""
SYSTEM, PROBE_ALONE = "the system", "the harness's probe alone"


class Kind(StrEnum):
    INVOKE = "invoke"
    OK = "ok"
    FAIL = "fail"
    INFO = "info"


class Action(StrEnum):
    """The vocabulary of the history. Values named in brackets stand in `Event.value`."""

    PHASE = "phase"
    """A phase of the run began [phase]."""
    SENT = "records sent"
    """Records by index range [first, last, status: acknowledged|failed|unknown, count]."""
    WORKLOAD_STEERED = "workload steered"
    """From record `at_record` on it is disturbed so, or, with no parameters, no more [at_record,
    disturbance, parameters]."""
    WORKLOAD_DONE = "workload finished"
    """The workload sent all it had [acknowledged, failed, unknown]."""

    WORKLOAD_NOT_FINISHED = "workload not finished"
    """The workload did not end within its limit [reason]."""

    FAULT_CALLED = "fault called"
    """An injection was begun [step, fault, target, nodes, params]."""
    FAULT_IN_EFFECT = "fault in effect"
    """Seen to bite on every target [step, fault, target, nodes, called_ns, seen_ns, evidence,
    lateness_ms: from the moment its trigger meant to the effect]."""
    FAULT_NOT_IN_EFFECT = "fault not in effect"
    """Not seen to bite within its limit [step, fault, target, reason]."""
    FAULT_STILL_IN_EFFECT = "fault still in effect"
    """The effect was verified again on every target, before the heal [step, fault, target, seen_ns,
    evidence]."""
    FAULT_ENDED_EARLY = "fault ended early"
    """The effect was found gone on some target before its heal was called [step, fault, target,
    last_seen_ns: when it was verified last, seen_ns: when it was found gone, evidence, reason]."""
    FAULT_NOT_VERIFIED = "fault not verified again"
    """A fault that lasts was healed, and for long before that no look was answered and found it in
    effect or in place [step, fault, target, last_seen_ns: when its effect was verified last,
    seen_ns, reason]."""
    HEAL_CALLED = "heal called"
    """[step, fault, target]."""
    FAULT_HEALED = "fault healed"
    """Seen to be gone on every target [step, fault, target, called_ns, seen_ns, evidence]."""
    FAULT_NOT_HEALED = "fault not healed"
    """[step, fault, target, reason]."""
    FAULT_SKIPPED = "fault skipped"
    """The trigger never came, or the target was already disturbed [step, fault, reason]."""
    FAULT_MISSED_WINDOW = "fault missed its window"
    """It bit when the second of the two events it was to strike between had come already
    [step, fault, target, seen_ns, reason]."""

    CONTAINER_DIED = "container died"
    """[node, exit_code]."""
    CONTAINER_OOM = "container oom"
    """[node]."""
    CONTAINER_STARTED = "container started"
    """[node]."""

    NODE_REVIVED = "node revived"
    """A node that had ended by itself was started again [node, exit_code, times]."""

    NODE_GIVEN_UP = "node given up"
    """A node that kept ending by itself is not started again [node, exit_code, times]."""

    JOB_SUBMITTED = "job submitted"
    """[job, name, vertices: [{id, name, parallelism}], edges, config, regions, submitted_ms]; of a
    job that was restarted from its state once more, under its new id."""
    JOB_RUNNING = "job running"
    """Every task runs [job]; also after a restart."""
    JOB_FAILING = "job failing"
    """[job, cause; of a query, own: whether it ended over a batch; else its driver was gone]."""
    JOB_RESTARTING = "job restarting"
    """[job, restart]."""
    JOB_RESTORED = "job restored"
    """[job, checkpoint, restored_at_ms, path]."""
    JOB_ENDED = "job ended"
    """[job, state, cause, ended_ms]."""
    TASK_CHANGED = "task changed"
    """A subtask's attempt changed state [job, vertex, vertex_name, subtask, attempt, node, state,
    start_ms, initializing_ms: how long it restored its state, once it runs]."""
    TASK_ATTEMPT = "task attempt"
    """An attempt of a task that lives for one batch has ended [job, batch, stage, stage_attempt,
    task, attempt, executor, node, state, reason, start_ms, end_ms, speculative]."""
    EXECUTOR_ADDED = "executor added"
    """[job, executor, node, added_ms]."""
    EXECUTOR_LOST = "executor lost"
    """[job, executor, node, reason, lost_ms]."""

    CHECKPOINT_TRIGGERED = "checkpoint triggered"
    """[checkpoint, type, trigger_ms]."""
    CHECKPOINT_ACKNOWLEDGED = "checkpoint acknowledged"
    """Some subtasks acknowledged [checkpoint, acknowledged, subtasks, ack_ms: the latest]."""
    CHECKPOINT_ALL_ACKNOWLEDGED = "checkpoint all acknowledged"
    """Every subtask acknowledged; the checkpoint is to be completed [checkpoint, ack_ms]."""
    CHECKPOINT_COMPLETED = "checkpoint completed"
    """[checkpoint, type, trigger_ms, duration_ms, state_bytes, checkpointed_bytes, persisted_bytes,
    alignment_ms, first_ack_ms, last_ack_ms, path, subtasks: those that acknowledged, each {vertex,
    subtask, start_delay_ms, alignment_ms, sync_ms, async_ms, duration_ms, processed_bytes,
    persisted_bytes, unaligned, ack_ms}]. Of a micro-batch: [began_ms, phases_ms, input_rows,
    offsets, durations_ms, state_rows, state_operators] in place of the subtasks."""
    CHECKPOINT_FAILED = "checkpoint failed"
    """[checkpoint, type, trigger_ms, reason, first_ack_ms, subtasks as above]. Of a micro-batch:
    [own: whether its query ended over it; else its driver was gone] in place of the subtasks."""
    OFFSET_WRITTEN = "offset written"
    """A micro-batch's offsets are in its log; its checkpoint is triggered [checkpoint, step_ms]."""
    BATCH_RUNNING = "batch running"
    """Its first tasks were handed out [checkpoint, step_ms]."""
    SINK_WRITTEN = "sink written"
    """Its sink has all of it, and its commit is begun [checkpoint, step_ms]."""
    COMMIT_WRITTEN = "commit written"
    """Its commit is in the log; the checkpoint is completed as soon as the batch has been reported
    [checkpoint, step_ms]."""
    CHECKPOINT_FILES = "checkpoint files"
    """What a completed checkpoint left in its folder, listed soon after [checkpoint, path, files:
    name -> bytes]."""
    SINK_COMMITTED = "sink committed"
    """Committed output grew for the first time since a checkpoint completed
    [checkpoint, output, end]."""

    OUTPUT_SEEN = "output seen"
    """Committed output grew [output, records]: the end offset a committed reader may read to."""
    TRANSACTIONS_SEEN = "transactions seen"
    """What the coordinators said of the run's transactional ids [after: recovery|drain, asked_ms,
    transactions: each {id, state, coordinator, epoch, timeout_ms, started_ms}; unanswered: why
    brokers that run gave no answer]."""
    DRAINED = "drained"
    """The job consumed everything and committed it [lag]."""
    NOT_RECOVERED = "not recovered"
    """Cluster or job were not whole again within their limit [reason]."""
    INPUT_NOT_READ = "input not read to its end"
    """The job had not read all that was sent within its limit [reason]."""
    OUTPUTS_NOT_COMMITTED = "outputs not committed"
    """The job had not committed all that it read within its limit [reason]."""
    OUTPUTS_NOT_QUIET = "outputs not quiet"
    """The outputs of a job that nobody here started went on growing [reason]."""
    HARNESS_ERROR = "harness error"
    """A part of the harness failed; never hidden [part, error]."""


@dataclass(frozen=True, kw_only=True)
class EventDraft:
    """What a worker hands to the loop: an event that has no place in the history yet.

    `at_ns` is the run's clock (nanoseconds since the run began) when the thing was *seen*.
    """

    at_ns: int
    process: str
    kind: Kind
    action: Action
    value: Mapping[str, Any] = field(default_factory=dict)
    error: str | None = None


@dataclass(frozen=True, kw_only=True)
class Event(EventDraft):
    """A note with its place in the one ordered history."""

    index: int

    @property
    def at_s(self) -> float:
        return self.at_ns / 1e9

"""The events of a run itself: its phases, its load, its nodes, its waits and its outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from streamquake.reports.record.event import Action, Event, Kind
from streamquake.reports.record.event_field import EventField


class PhaseBegan(Event, action=Action.PHASE):
    """A phase of the run began."""

    phase = EventField[str]("")
    """The name of the phase."""


class ClusterReused(Event, action=Action.CLUSTER_REUSED):
    """The run got the cluster of earlier runs, after a clean-up that was proven: everything that a
    run could have changed was read and equal to what it was after the deployment."""

    deployed_by = EventField[str]()
    """The run for which the cluster was deployed."""
    runs_before = EventField[int]()
    """The number of runs that have used it."""
    restarted = EventField[Sequence[str]]()
    """The nodes that the clean-up started anew."""
    equal = EventField[Mapping[str, int]]()
    """Kind, such as `packet rules` or `topics`, and how many things of it were there, the same as
    after the deployment."""
    seconds = EventField[float]()
    """The duration of the clean-up."""


class RecordsSent(Event, action=Action.SENT, kinds=(Kind.OK, Kind.FAIL, Kind.INFO)):
    """Records whose sends have the same status, by ranges of their indices."""

    first = EventField[int]()
    """The lowest index."""
    last = EventField[int]()
    """The highest index."""
    status = EventField[str]()
    """`acknowledged`, `failed` or `unknown`."""
    count = EventField[int]()
    """The number of records."""
    ranges = EventField[Sequence[Sequence[int]] | None](None)
    """The ranges [first, last]; missing where there is only one."""
    acknowledged_until_ns = EventField[int | None](None)
    """When the last acknowledgement of any record had arrived, in ns of the run's clock. It is
    earlier than the event where acknowledged records stood behind one that was not settled. Only in
    events of acknowledged records; missing in older records, as the next two fields."""
    sent_by = EventField[Sequence[Sequence[int]] | None](None)
    """Parts [first, last, moment] of the acknowledged records: by then, in ns of the run's clock,
    the part had been sent, since records from it on were acknowledged."""
    pauses_ns = EventField[Sequence[Sequence[int]] | None](None)
    """The intervals [from, until] of half a second or more without any acknowledgement, between the
    event before and the last acknowledgement."""


class WorkloadSteered(Event, action=Action.WORKLOAD_STEERED):
    """A fault of the load begins or ends at a record."""

    at_record = EventField[int]()
    """The index of the first record that is sent with or without the fault."""
    disturbance = EventField[str]()
    """The name of the fault."""
    parameters = EventField[Mapping[str, Any] | None]()
    """The parameters of the fault; null where the fault ends."""


class WorkloadDone(Event, action=Action.WORKLOAD_DONE, kinds=(Kind.OK, Kind.FAIL)):
    """The workload sent all its records. A workload without numbered records may have no counts."""

    acknowledged = EventField[int | None](None)
    """How many sends were acknowledged."""
    failed = EventField[int | None](None)
    """How many sends failed for certain."""
    unknown = EventField[int | None](None)
    """How many sends have an unknown result."""

    @property
    def counts(self) -> Mapping[str, int | None]:
        """Status of a send -> how many sends have it."""
        return {
            "acknowledged": self.acknowledged,
            "failed": self.failed,
            "unknown": self.unknown,
        }


class FailedWaitEvent(Event):
    """A wait of the run reached its limit before its condition was met."""

    reason = EventField[str | None]("")
    """What was still missing at the limit."""


class WorkloadNotFinished(FailedWaitEvent, action=Action.WORKLOAD_NOT_FINISHED):
    """The workload did not end within its limit."""


class SystemNotRecovered(FailedWaitEvent, action=Action.NOT_RECOVERED):
    """The cluster or the job did not recover within the limit."""


class InputNotRead(FailedWaitEvent, action=Action.INPUT_NOT_READ):
    """The job did not read all sent records within its limit."""


class OutputsNotCommitted(FailedWaitEvent, action=Action.OUTPUTS_NOT_COMMITTED):
    """The job did not commit the output of all that it read within its limit."""


class OutputsNotQuiet(FailedWaitEvent, action=Action.OUTPUTS_NOT_QUIET):
    """The outputs of a job that the harness did not start kept growing."""


class RunDrained(Event, action=Action.DRAINED):
    """The job read everything and committed it."""

    lag = EventField[int | None](None)
    """How many records were not read; missing in most records."""


class NodeEvent(Event):
    """An event of a container."""

    node = EventField[str]("")
    """The node's name."""
    exit_code = EventField[int | None](None)
    """The exit code of its process; null where none is known."""


class ContainerDied(NodeEvent, action=Action.CONTAINER_DIED):
    """A container ended."""


class ContainerOom(NodeEvent, action=Action.CONTAINER_OOM):
    """A container was out of memory."""


class ContainerStarted(NodeEvent, action=Action.CONTAINER_STARTED):
    """A container was started."""


class SandboxDied(NodeEvent, action=Action.SANDBOX_DIED):
    """The container that holds a node's network ended. Only the fault `power_off` ends it."""


class NodeRevived(NodeEvent, action=Action.NODE_REVIVED):
    """The harness restarted a node whose process had ended, or had lost its network, on its own."""

    times = EventField[int | None](None)
    """The number of restarts so far."""
    lost_network = EventField[bool](False)
    """Whether its process still ran and had no network; missing in old records."""


class NodeGivenUp(NodeEvent, action=Action.NODE_GIVEN_UP):
    """A node's process ended on its own too often; the harness no longer restarts it."""

    times = EventField[int | None](None)
    """How many times it ended."""


class HostClockSet(Event, action=Action.HOST_CLOCK_SET):
    """The wall clock of the machine was set, so that the stamps of engines before and after do not
    belong together."""

    by_s = EventField[float](0.0)
    """By how many seconds it was set forward; negative if it was set back."""


class OutputSeen(Event, action=Action.OUTPUT_SEEN):
    """The committed part of an output grew."""

    output = EventField[str]("")
    """The name of the output."""
    end = EventField[int | None](None)
    """The end offset up to which a committed reader may read, over all partitions; missing in old
    records."""
    grown = EventField[int | None](None)
    """The number of records by which it grew."""
    records = EventField[int | None](None)
    """The number of its records, where they are counted."""


class SinkCommitted(Event, action=Action.SINK_COMMITTED):
    """The committed part of an output grew for the first time since a checkpoint completed."""

    checkpoint = EventField[int]()
    """The number of the checkpoint."""
    output = EventField[str]()
    """The name of the output."""
    end = EventField[int | None](None)
    """The end offset up to which a committed reader may read."""


class TransactionsSeen(Event, action=Action.TRANSACTIONS_SEEN, kinds=(Kind.OK, Kind.FAIL)):
    """The transaction coordinators' answers about the transactional ids of the run's `job`."""

    after = EventField[Literal["recovery", "drain"]]()
    """The phase that the run had completed: `recovery` or `drain`."""
    asked_ms = EventField[float | None](None)
    """When they were queried, in milliseconds since the epoch."""
    transactions = EventField[Sequence[Mapping[str, Any]] | None](None)
    """Each {id, state, coordinator, epoch, timeout_ms, started_ms}; missing where no coordinator
    answered."""
    unanswered = EventField[str | None](None)
    """Why running brokers did not answer."""


class OtherJobsSeen(Event, action=Action.OTHER_JOBS_SEEN, kinds=(Kind.OK, Kind.FAIL)):
    """Whether the experiment's other jobs run. All other events of jobs are those of `job`."""

    after = EventField[Literal["recovery", "drain"]]()
    """The phase that the run had completed: `recovery` or `drain`."""
    jobs = EventField[Mapping[str, str | None]]()
    """The name of each one, and why it does not run; null where all of its tasks run."""


class RecordsDropped(Event, action=Action.RECORDS_DROPPED):
    """What a task of a job with single-task failover dropped for one of its consumers that was
    away: up to the barrier of a checkpoint, or up to the consumer's next attempt."""

    task = EventField[str]()
    """The vertex, the number of the subtask from 1, and its attempt."""
    subpartition = EventField[int]()
    """The number of the consumer among those of the task, from 0."""
    records = EventField[int]()
    bytes = EventField[int]()
    before_checkpoint = EventField[int | None](None)
    """The checkpoint before whose barrier they were; null for the last ones."""
    logged_s = EventField[float]()
    """When the task wrote it to its log, in seconds since the run began."""


class ProbeAnswered(Event, action=Action.PROBE_ANSWERED):
    """The first answer to a probe of a check, each one with another result than the answer before,
    and the last one."""

    check = EventField[str]()
    """What the experiment calls the check."""
    nth = EventField[int | None](None)
    """Which of the recorded answers it is, counted from 1; null in records of older versions."""
    met = EventField[bool]()
    """Whether the answer was the expected one."""
    reason = EventField[str | None](None)
    """Why it was not."""
    asked_s = EventField[float]()
    """When it was asked, in seconds since the run began."""
    before_asked_s = EventField[float | None](None)
    """When the answer before was asked; null for the first one."""
    before_at_s = EventField[float | None](None)
    """When the answer before came; null for the first one."""
    before_met = EventField[bool | None](None)
    """Whether the answer before was the expected one; null for the first one, and in records of
    older versions."""
    longest_gap_s = EventField[float](0.0)
    """The longest time between two questions so far."""
    is_last = EventField[bool](False)
    """Whether the probe ended with it."""


class CommandEnded(Event, action=Action.COMMAND_ENDED):
    """A program that a check of the experiment names ended, or could not be started."""

    check = EventField[str]()
    """What the experiment calls the check."""
    argv = EventField[Sequence[str]]()
    """The program and its arguments."""
    exit_code = EventField[int | None](None)
    """Its exit status, negative for a signal that ended it; null where it was not started, or did
    not end in time."""
    reason = EventField[str | None](None)
    """Why there is no exit status."""
    last_lines = EventField[Sequence[str]](())
    """The last lines of its standard output."""
    last_errors = EventField[Sequence[str]](())
    """The last lines of its standard error."""


class HarnessError(Event, action=Action.HARNESS_ERROR):
    """A part of the harness failed. Such an error is always recorded."""

    part = EventField[str | None](None)
    """The part that failed."""
    error_text = EventField[str | None](None)
    """The error that it raised; where this is missing, it is in the event's `error`."""

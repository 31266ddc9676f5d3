"""The changes of a recorded run: each causes one violation, and names what the judge must find.

A change is one function here. It is applied to a copy of the record of a real run
(`harness/selftest/record/`), which is then judged as `streamquake check` judges any record. So it
tests the checks, their evidence, and the verdict of all.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from streamquake.harness.selftest.recorded_run_copy import EventRecord, RecordedRunCopy
from streamquake.harness.selftest.second_kill import second_kill
from streamquake.harness.verdict.checks.transactions import ENDS
from streamquake.reports.record.event import DISTURBED, PROBE_ALONE, Action
from streamquake.reports.record.expected_outcome import Written
from streamquake.reports.record.outcome import Outcome

RECORDED_RUN = "recorded_run"
"""The name of the shape in the cells of these changes."""
SECOND_NS = 10**9
MINUTE_MS, HOUR_MS = 60_000, 3_600_000
EFFECT_NS = 54 * SECOND_NS
"""The time from the effect to the heal in the recorded run."""
ApplyChange = Callable[[RecordedRunCopy], None]


@dataclass(frozen=True, kw_only=True)
class Change:
    """One change, and exactly what the judge must find in the changed record (`expect`, see
    `reports/record/expected_outcome.py`)."""

    expect: Written
    apply: ApplyChange

    @property
    def clean(self) -> bool:
        """Whether it changes nothing."""
        return self.expect == str(Outcome.HELD)


changes: dict[str, Change] = {}
"""Name of the function -> change."""


def _change(expect: Written) -> Callable[[ApplyChange], ApplyChange]:
    """Decorator: add a function to `changes`."""

    def add(apply: ApplyChange) -> ApplyChange:
        changes[apply.__name__] = Change(expect=expect, apply=apply)
        return apply

    return add


@_change("held")
def unchanged(record: RecordedRunCopy) -> None:
    """The recorded run without a change."""


@_change({"exactly_once": "lost"})
def lost_record(record: RecordedRunCopy) -> None:
    """A record is removed from the output topic."""
    record.change_rows("totals", lambda rows: rows[:5] + rows[6:])


@_change({"exactly_once": "duplicated"})
def repeated_record(record: RecordedRunCopy) -> None:
    """A record appears a second time, at the end of its partition."""

    def with_copy(rows: list[EventRecord]) -> list[EventRecord]:
        last = max(rows, key=lambda row: int(row["offset"]))
        return [*rows, {**last, "value": rows[5]["value"], "offset": last["offset"] + 1}]

    record.change_rows("totals", with_copy)


@_change({"exactly_once": "changed"})
def changed_total(record: RecordedRunCopy) -> None:
    """A total is off by one."""

    def off_by_one(rows: list[EventRecord]) -> list[EventRecord]:
        total = json.loads(rows[5]["value"])
        value = json.dumps({**total, "total": total["total"] + 1})
        return [*rows[:5], {**rows[5], "value": value}, *rows[6:]]

    record.change_rows("totals", off_by_one)


@_change({"exactly_once": "reordered"})
def reordered_record(record: RecordedRunCopy) -> None:
    """The first two records of a key are exchanged."""

    def with_exchanged_values(rows: list[EventRecord]) -> list[EventRecord]:
        key = json.loads(rows[0]["value"])["key"]
        first, second = [n for n, row in enumerate(rows) if json.loads(row["value"])["key"] == key][
            :2
        ]
        values = {first: rows[second]["value"], second: rows[first]["value"]}
        return [{**row, "value": values.get(n, row["value"])} for n, row in enumerate(rows)]

    record.change_rows("totals", with_exchanged_values)


@_change({"exactly_once": ("lost", "phantom")})
def second_document(record: RecordedRunCopy) -> None:
    """The value of one record also contains the JSON document of the next record."""

    def with_joined_values(rows: list[EventRecord]) -> list[EventRecord]:
        value = rows[5]["value"] + rows[6]["value"]
        return [*rows[:5], {**rows[5], "value": value}, *rows[7:]]

    record.change_rows("totals", with_joined_values)


@_change({"execution": "undecided", "exactly_once": "undecided", "throughput": "undecided"})
def output_not_read(record: RecordedRunCopy) -> None:
    """`read.json` is missing, which is written last when an output is read."""
    (record.folder.data / "totals" / "read.json").unlink()


@_change({"exactly_once": "undecided", "throughput": "undecided"})
def reading_cut(record: RecordedRunCopy) -> None:
    """A file of read records is missing in the run folder: the job did not lose these records."""
    min(record.committed_files("totals")).unlink()


@_change("undecided")
def metrics_missing(record: RecordedRunCopy) -> None:
    """The file of samples is missing, so facts that only samples prove are unknown, such as a task
    that was replaced between two polls."""
    record.folder.metrics.unlink()


@_change({"checkpoints": "unaligned"})
def called_unaligned(record: RecordedRunCopy) -> None:
    """Each completed checkpoint is recorded as unaligned, although it was aligned."""
    record.change_values(
        Action.CHECKPOINT_COMPLETED, lambda value: {**value, "type": f"UNALIGNED_{value['type']}"}
    )


@_change({"checkpoints": "undecided"})
def unacknowledged(record: RecordedRunCopy) -> None:
    """A completed checkpoint without any acknowledgement of a subtask."""
    acknowledgements = (Action.CHECKPOINT_ACKNOWLEDGED, Action.CHECKPOINT_ALL_ACKNOWLEDGED)

    def without_acknowledgements(event: EventRecord) -> Iterable[EventRecord]:
        value = event["value"]
        if value.get("checkpoint") == 2 and event["action"] == Action.CHECKPOINT_COMPLETED:
            yield {**event, "value": {**value, "subtasks": []}}
        elif value.get("checkpoint") != 2 or event["action"] not in acknowledgements:
            yield event

    record.replace_events(without_acknowledgements)


@_change({"restore": "older checkpoint restored"})
def older_checkpoint(record: RecordedRunCopy) -> None:
    """The job restores the checkpoint before the newest one, from its path."""

    def of_older(value: EventRecord) -> EventRecord:
        number, folder = value["checkpoint"] - 1, value["path"].rpartition("/")[0]
        return {**value, "checkpoint": number, "path": f"{folder}/chk-{number}"}

    record.change_values(Action.JOB_RESTORED, of_older)


@_change({"transactions": "hanging transaction"})
def hanging_transaction(record: RecordedRunCopy) -> None:
    """A transaction is ongoing a minute after the coordinator should have aborted it."""

    def with_overdue_transaction(value: EventRecord) -> EventRecord:
        first, *others = sorted(
            value["transactions"], key=lambda transaction: transaction["started_ms"] is None
        )
        return _overdue(value, [first, *others], state="Ongoing", by_ms=MINUTE_MS)

    record.change_values(Action.TRANSACTIONS_SEEN, with_overdue_transaction)


@_change({"transactions": "hanging transaction"})
def never_ended_transaction(record: RecordedRunCopy) -> None:
    """A transaction is in PrepareCommit an hour after its timeout: its partitions got no marker."""
    record.change_values(
        Action.TRANSACTIONS_SEEN,
        lambda value: _overdue(value, value["transactions"], state="PrepareCommit", by_ms=HOUR_MS),
    )


def _overdue(
    value: EventRecord, transactions: list[EventRecord], *, state: str, by_ms: int
) -> EventRecord:
    """Put the first transaction into `state`, `by_ms` after its timeout."""
    first, *others = transactions
    started_ms = value["asked_ms"] - first["timeout_ms"] - by_ms
    return {**value, "transactions": [{**first, "state": state, "started_ms": started_ms}, *others]}


@_change({"effect": "undecided"})
def effect_unseen(record: RecordedRunCopy) -> None:
    """The evidence of a fault is from a node that is not its target."""
    other_node = {"flink/taskmanager-1": {"status": "exited", "exit_code": 137}}
    record.change_values(Action.FAULT_IN_EFFECT, lambda value: {**value, "evidence": other_node})


@_change({"effect": "undecided"})
def probe_alone(record: RecordedRunCopy) -> None:
    """The fault affected only the harness's own probe, and no traffic of the system."""
    evidence = {"flink/taskmanager-3": {DISTURBED: PROBE_ALONE}}
    for action in (Action.FAULT_IN_EFFECT, Action.FAULT_STILL_IN_EFFECT):
        record.change_values(action, lambda value: {**value, "evidence": evidence})


@_change({"effect": "undecided"})
def fault_ended_early(record: RecordedRunCopy) -> None:
    """The last check before the heal found the fault no longer in effect."""
    record.remove_events(Action.FAULT_STILL_IN_EFFECT)
    record.add_after(
        Action.FAULT_IN_EFFECT,
        Action.FAULT_ENDED_EARLY,
        last_seen_ns=EFFECT_NS - SECOND_NS,
        seen_ns=EFFECT_NS,
        evidence={},
        reason="the process runs again",
    )


@_change({"effect": "undecided", "throughput": "undecided"})
def fault_not_healed(record: RecordedRunCopy) -> None:
    """The heal of a fault failed."""
    record.add_after(Action.HEAL_CALLED, Action.FAULT_NOT_HEALED, reason="no process started")
    record.remove_events(Action.FAULT_HEALED)


@_change({"failover_scope": "predicted"})
def task_went_on(record: RecordedRunCopy) -> None:
    """A task did not restart with the others: the events of its end and of its next attempt are
    removed, and the samples of tasks with its number, not of partitions."""
    subtask, ended = 1, ("CANCELING", "CANCELED", "FAILED")

    def without_subtask(event: EventRecord) -> Iterable[EventRecord]:
        value = event["value"]
        matches = event["action"] == Action.TASK_CHANGED and value["subtask"] == subtask
        return [] if matches and (value["attempt"] > 0 or value["state"] in ended) else [event]

    record.replace_events(without_subtask)
    record.keep_samples(
        lambda sample: sample["series"] in ENDS or not sample["where"].endswith(f"/{subtask}")
    )


@_change(
    {
        "failover_scope": "undecided",
        "recovery": "undecided",
        "restore": "undecided",
        "throughput": "undecided",
    }
)
def never_ran_again(record: RecordedRunCopy) -> None:
    """The job is not reported as running after the fault."""
    record.remove_events(Action.JOB_RUNNING, after=Action.FAULT_IN_EFFECT)


@_change(
    {
        "failover_scope": "undecided",
        "recovery": "undecided",
        "restore": "undecided",
        "throughput": "undecided",
    }
)
def second_fault_unrecovered(record: RecordedRunCopy) -> None:
    """After the recovery from the first kill another worker is killed; the job fails, and no event
    reports that it is running again."""

    def with_second_fault(plan: EventRecord) -> EventRecord:
        (first,) = plan["faults"]
        return {**plan, "faults": [first, {**first, "when": {"after_s": 10}}]}

    record.change_experiment(with_second_fault)
    recorded = False
    due: list[EventRecord] = []

    def with_second_kill(event: EventRecord) -> Iterable[EventRecord]:
        nonlocal recorded
        while due and due[0]["at_ns"] <= event["at_ns"]:
            yield due.pop(0)
        yield event
        if event["action"] == Action.TRANSACTIONS_SEEN and not recorded:
            recorded = True
            due.extend(second_kill(event))

    record.replace_events(with_second_kill)


@_change({"execution": "undecided", "exactly_once": "undecided", "transactions": "undecided"})
def not_drained(record: RecordedRunCopy) -> None:
    """The event is missing that all output was committed at the end of the run."""
    record.remove_events(Action.DRAINED)


@_change({"execution": "undecided"})
def node_stayed_down(record: RecordedRunCopy) -> None:
    """A node exited although no fault killed it, and was not restarted."""
    record.add_after(
        Action.FAULT_HEALED, Action.CONTAINER_DIED, node="hdfs/datanode-1", exit_code=1
    )


@_change({"execution": "undecided"})
def network_lost(record: RecordedRunCopy) -> None:
    """The sandbox of a node ended although no fault ended it."""
    record.add_after(
        Action.FAULT_HEALED, Action.SANDBOX_DIED, node="hdfs/datanode-1", exit_code=137
    )


@_change({"execution": "undecided"})
def node_given_up(record: RecordedRunCopy) -> None:
    """A node exited too often, so that the supervisor does not restart it."""
    record.add_after(
        Action.FAULT_HEALED, Action.NODE_GIVEN_UP, node="kafka/broker-1", exit_code=1, times=5
    )


@_change({"execution": "undecided"})
def clock_set_back(record: RecordedRunCopy) -> None:
    """The clock of the machine was set back by five seconds."""
    record.add_after(Action.FAULT_IN_EFFECT, Action.HOST_CLOCK_SET, by_s=-5.0)


@_change({"execution": "undecided"})
def watcher_died(record: RecordedRunCopy) -> None:
    """The part of the harness that polls the checkpoints failed."""
    record.add_after(
        Action.FAULT_IN_EFFECT,
        Action.HARNESS_ERROR,
        part="checkpoints",
        error_text="connection refused",
    )


@_change({"execution": "undecided"})
def load_broke(record: RecordedRunCopy) -> None:
    """The workload failed before its end."""
    record.add_after(
        Action.FAULT_HEALED, Action.WORKLOAD_NOT_FINISHED, reason="the broker was unreachable"
    )


@_change({"execution": "undecided"})
def sends_untold(record: RecordedRunCopy) -> None:
    """One event of sent records is missing: the output contains records that no event reports."""
    removed = False

    def without_first(event: EventRecord) -> Iterable[EventRecord]:
        nonlocal removed
        if not removed and event["action"] == Action.SENT and event["value"]["first"] > 1000:
            removed = True
            return []
        return [event]

    record.replace_events(without_first)

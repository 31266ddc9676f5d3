"""The changes of a recorded run: each makes one thing wrong, and names what the judge must find.

A change is one function here. It is made in a copy of the record of a real run
(`harness/selftest/record/`), which is then judged as `streamquake check` judges any record: the
checks, the evidence, and how they are put together.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from streamquake.harness.selftest.recorded_run_copy import EventRecord, RecordedRunCopy
from streamquake.harness.selftest.second_kill import second_kill
from streamquake.reports.record.event import DISTURBED, PROBE_ALONE, Action
from streamquake.reports.record.expected_outcome import Written
from streamquake.reports.record.outcome import Outcome

RECORDED_RUN = "recorded_run"
"""Stands in the place of a data shape where a recorded run is changed."""
SECOND_NS = 10**9
MINUTE_MS, HOUR_MS = 60_000, 3_600_000
EFFECT_NS = 54 * SECOND_NS
"""Between effect and heal in the recorded run."""
MakeChange = Callable[[RecordedRunCopy], None]


@dataclass(frozen=True, kw_only=True)
class Change:
    """One change, and what the judge must find in the record then, and nothing else (`expect`, see
    `reports/record/expected_outcome.py`)."""

    expect: Written
    make: MakeChange

    @property
    def clean(self) -> bool:
        """Whether it changes nothing."""
        return self.expect == str(Outcome.HELD)


changes: dict[str, Change] = {}
"""By the names of their functions."""


def _change(expect: Written) -> Callable[[MakeChange], MakeChange]:
    """Decorator: add a function to `changes`."""

    def add(make: MakeChange) -> MakeChange:
        changes[make.__name__] = Change(expect=expect, make=make)
        return make

    return add


@_change("held")
def unchanged(record: RecordedRunCopy) -> None:
    """The run as it was recorded."""


@_change({"exactly_once": "lost"})
def lost_record(record: RecordedRunCopy) -> None:
    """A record is removed from the output topic."""
    record.rows("totals", lambda rows: rows[:5] + rows[6:])


@_change({"exactly_once": "duplicated"})
def repeated_record(record: RecordedRunCopy) -> None:
    """A record appears a second time, at the end of its partition."""

    def repeated(rows: list[EventRecord]) -> list[EventRecord]:
        last = max(rows, key=lambda row: int(row["offset"]))
        return [*rows, {**last, "value": rows[5]["value"], "offset": last["offset"] + 1}]

    record.rows("totals", repeated)


@_change({"exactly_once": "changed"})
def changed_total(record: RecordedRunCopy) -> None:
    """A total is off by one."""

    def off_by_one(rows: list[EventRecord]) -> list[EventRecord]:
        total = json.loads(rows[5]["value"])
        value = json.dumps({**total, "total": total["total"] + 1})
        return [*rows[:5], {**rows[5], "value": value}, *rows[6:]]

    record.rows("totals", off_by_one)


@_change({"exactly_once": "reordered"})
def reordered_record(record: RecordedRunCopy) -> None:
    """The first two records of a key are exchanged."""

    def exchanged(rows: list[EventRecord]) -> list[EventRecord]:
        key = json.loads(rows[0]["value"])["key"]
        first, second = [n for n, row in enumerate(rows) if json.loads(row["value"])["key"] == key][
            :2
        ]
        values = {first: rows[second]["value"], second: rows[first]["value"]}
        return [{**row, "value": values.get(n, row["value"])} for n, row in enumerate(rows)]

    record.rows("totals", exchanged)


@_change({"exactly_once": ("lost", "phantom")})
def second_document(record: RecordedRunCopy) -> None:
    """The value of one record holds the next record's JSON document too."""

    def joined(rows: list[EventRecord]) -> list[EventRecord]:
        value = rows[5]["value"] + rows[6]["value"]
        return [*rows[:5], {**rows[5], "value": value}, *rows[7:]]

    record.rows("totals", joined)


@_change({"execution": "undecided", "exactly_once": "undecided", "throughput": "undecided"})
def output_not_read(record: RecordedRunCopy) -> None:
    """The file that is written last when an output is read is missing."""
    (record.folder.data / "totals" / "read.json").unlink()


@_change({"exactly_once": "undecided", "throughput": "undecided"})
def reading_cut(record: RecordedRunCopy) -> None:
    """The run folder holds fewer records than were read: the job did not lose these."""
    min(record.committed("totals")).unlink()


@_change("undecided")
def metrics_missing(record: RecordedRunCopy) -> None:
    """The file of samples is missing: what only samples show is unknown, such as a task that was
    replaced between two polls."""
    record.folder.metrics.unlink()


@_change({"checkpoints": "unaligned"})
def called_unaligned(record: RecordedRunCopy) -> None:
    """Each completed checkpoint is recorded as unaligned, and was aligned."""
    record.changed(
        Action.CHECKPOINT_COMPLETED, lambda value: {**value, "type": f"UNALIGNED_{value['type']}"}
    )


@_change({"checkpoints": "undecided"})
def unacknowledged(record: RecordedRunCopy) -> None:
    """A completed checkpoint without any acknowledgement of a subtask."""
    acknowledgements = (Action.CHECKPOINT_ACKNOWLEDGED, Action.CHECKPOINT_ALL_ACKNOWLEDGED)

    def left_out(event: EventRecord) -> Iterable[EventRecord]:
        value = event["value"]
        if value.get("checkpoint") == 2 and event["action"] == Action.CHECKPOINT_COMPLETED:
            yield {**event, "value": {**value, "subtasks": []}}
        elif value.get("checkpoint") != 2 or event["action"] not in acknowledgements:
            yield event

    record.events(left_out)


@_change({"restore": "older checkpoint restored"})
def older_checkpoint(record: RecordedRunCopy) -> None:
    """The job restores the checkpoint before the newest one."""
    record.changed(
        Action.JOB_RESTORED, lambda value: {**value, "checkpoint": value["checkpoint"] - 1}
    )


@_change({"transactions": "hanging transaction"})
def hanging_transaction(record: RecordedRunCopy) -> None:
    """A transaction is ongoing a minute after the coordinator should have aborted it."""

    def left_open(value: EventRecord) -> EventRecord:
        first, *others = sorted(value["transactions"], key=lambda each: each["started_ms"] is None)
        return _overdue(value, [first, *others], state="Ongoing", by_ms=MINUTE_MS)

    record.changed(Action.TRANSACTIONS_SEEN, left_open)


@_change({"transactions": "hanging transaction"})
def never_ended_transaction(record: RecordedRunCopy) -> None:
    """A transaction is to be committed, and its partitions have no marker an hour later."""
    record.changed(
        Action.TRANSACTIONS_SEEN,
        lambda value: _overdue(value, value["transactions"], state="PrepareCommit", by_ms=HOUR_MS),
    )


def _overdue(
    value: EventRecord, transactions: list[EventRecord], *, state: str, by_ms: int
) -> EventRecord:
    """The first transaction is in this state, so long after its timeout."""
    first, *others = transactions
    started_ms = value["asked_ms"] - first["timeout_ms"] - by_ms
    return {**value, "transactions": [{**first, "state": state, "started_ms": started_ms}, *others]}


@_change({"effect": "undecided"})
def effect_unseen(record: RecordedRunCopy) -> None:
    """The evidence of a fault is of another node than the one that it was injected on."""
    elsewhere = {"flink/taskmanager-1": {"status": "exited", "exit_code": 137}}
    record.changed(Action.FAULT_IN_EFFECT, lambda value: {**value, "evidence": elsewhere})


@_change({"effect": "undecided"})
def probe_alone(record: RecordedRunCopy) -> None:
    """The fault selected only the harness's own probe, and nothing of the system."""
    evidence = {"flink/taskmanager-3": {DISTURBED: PROBE_ALONE}}
    for action in (Action.FAULT_IN_EFFECT, Action.FAULT_STILL_IN_EFFECT):
        record.changed(action, lambda value: {**value, "evidence": evidence})


@_change({"effect": "undecided"})
def fault_ended_early(record: RecordedRunCopy) -> None:
    """The last look before the heal found the fault no longer in effect."""
    record.without(Action.FAULT_STILL_IN_EFFECT)
    record.recorded_after(
        Action.FAULT_IN_EFFECT,
        Action.FAULT_ENDED_EARLY,
        last_seen_ns=EFFECT_NS - SECOND_NS,
        seen_ns=EFFECT_NS,
        evidence={},
        reason="the process runs again",
    )


@_change({"effect": "undecided"})
def fault_not_healed(record: RecordedRunCopy) -> None:
    """The heal of a fault failed."""
    record.recorded_after(Action.HEAL_CALLED, Action.FAULT_NOT_HEALED, reason="no process started")
    record.without(Action.FAULT_HEALED)


@_change({"failover_scope": "predicted"})
def task_went_on(record: RecordedRunCopy) -> None:
    """A task did not restart with the others: its end, its next attempt and its running times are
    removed."""
    subtask, ended = 1, ("CANCELING", "CANCELED", "FAILED")

    def others(event: EventRecord) -> Iterable[EventRecord]:
        value = event["value"]
        meant = event["action"] == Action.TASK_CHANGED and value["subtask"] == subtask
        return [] if meant and (value["attempt"] > 0 or value["state"] in ended) else [event]

    record.events(others)
    record.samples(lambda sample: not sample["where"].endswith(f"/{subtask}"))


@_change({"recovery": "undecided", "failover_scope": "undecided", "throughput": "undecided"})
def never_ran_again(record: RecordedRunCopy) -> None:
    """The job is not reported as running after the fault."""
    record.without(Action.JOB_RUNNING, after=Action.FAULT_IN_EFFECT)


@_change(
    {
        "failover_scope": "undecided",
        "recovery": "undecided",
        "restore": "undecided",
        "throughput": "undecided",
    }
)
def second_fault_unrecovered(record: RecordedRunCopy) -> None:
    """After the job recovered from the first kill another worker is killed; the job fails, and is
    not reported as running again."""

    def again(plan: EventRecord) -> EventRecord:
        (first,) = plan["faults"]
        return {**plan, "faults": [first, {**first, "when": {"after_s": 10}}]}

    record.plan(again)
    recorded = False

    def killed(event: EventRecord) -> Iterable[EventRecord]:
        nonlocal recorded
        yield event
        if event["action"] == Action.TRANSACTIONS_SEEN and not recorded:
            recorded = True
            yield from second_kill(event)

    record.events(killed)


@_change({"execution": "undecided", "exactly_once": "undecided", "transactions": "undecided"})
def not_drained(record: RecordedRunCopy) -> None:
    """No event shows that everything was committed at the end of the run."""
    record.without(Action.DRAINED)


@_change({"execution": "undecided"})
def node_stayed_down(record: RecordedRunCopy) -> None:
    """A node ended, which no fault was to end, and was not started again."""
    record.recorded_after(
        Action.FAULT_HEALED, Action.CONTAINER_DIED, node="hdfs/datanode-1", exit_code=1
    )


@_change({"execution": "undecided"})
def node_given_up(record: RecordedRunCopy) -> None:
    """A node ended so often that it is not started again."""
    record.recorded_after(
        Action.FAULT_HEALED, Action.NODE_GIVEN_UP, node="kafka/broker-1", exit_code=1, times=5
    )


@_change({"execution": "undecided"})
def watcher_died(record: RecordedRunCopy) -> None:
    """The part of the harness that polls the checkpoints failed."""
    record.recorded_after(
        Action.FAULT_IN_EFFECT,
        Action.HARNESS_ERROR,
        part="checkpoints",
        error_text="connection refused",
    )


@_change({"execution": "undecided"})
def load_broke(record: RecordedRunCopy) -> None:
    """The workload failed before its end."""
    record.recorded_after(
        Action.FAULT_HEALED, Action.WORKLOAD_NOT_FINISHED, reason="the broker was unreachable"
    )


@_change({"execution": "undecided"})
def sends_untold(record: RecordedRunCopy) -> None:
    """One event of sent records is missing: they are in the output, and not recorded as sent."""
    left_out = False

    def others(event: EventRecord) -> Iterable[EventRecord]:
        nonlocal left_out
        if not left_out and event["action"] == Action.SENT and event["value"]["first"] > 1000:
            left_out = True
            return []
        return [event]

    record.events(others)

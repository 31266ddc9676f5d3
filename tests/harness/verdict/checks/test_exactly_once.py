"""`exactly_once` on stored outputs: each class found by name, a clean run held, doubt undecided."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from streamquake.harness.experiment.check import JudgedRun, check_safely
from streamquake.harness.experiment.model import Experiment, Job
from streamquake.harness.experiment.outputs import INPUT_FOLDER, JobPromise, Output
from streamquake.harness.reconcile.anomaly import anomalies
from streamquake.harness.reconcile.json import quick_record
from streamquake.harness.reconcile.reading.database_address import table_address
from streamquake.harness.reconcile.reading.database_table import store_rows
from streamquake.harness.reconcile.reading.files import read_files
from streamquake.harness.reconcile.reading.stored_output import StoredOutput
from streamquake.harness.reconcile.result import VIOLATIONS
from streamquake.harness.verdict.checks.exactly_once import ExactlyOnce
from streamquake.harness.workloads.numbered import Numbered
from streamquake.harness.workloads.numbered.records import Record
from streamquake.harness.workloads.numbered.workload_changes import ScheduledChange
from streamquake.reports.record.event import Action
from streamquake.reports.record.history import History
from streamquake.reports.record.metrics import Metrics
from streamquake.reports.record.outcome import CheckResult, Outcome
from tests.fakes import TOPOLOGY
from tests.harness.histories import Story

WORKLOAD = Numbered(records=400, rate_per_s=100, keys=8, payload_bytes=10)
RECORDS = list(WORKLOAD.load_definition(seed=0).between(0, WORKLOAD.records))
COPY = Output(kafka="copy", compare=("amount", "checksum"), order="seq")
FILES = Output(hdfs="/output/copy", compare=("amount", "checksum"), order="seq")
TABLE = Output(table="postgresql://app@${db.sql}/shop/totals", compare=("amount", "checksum"))
TOTALS = "SELECT key, seq, SUM(amount) OVER (PARTITION BY key ORDER BY seq) AS total FROM sent"


def values(records: list[Record]) -> list[str]:
    return [record.value().decode() for record in records]


def story(acknowledged: int = WORKLOAD.records, unknown: int = 0, drained: bool = True) -> History:
    recorded = Story().sent(1, acknowledged)
    if unknown:
        recorded.at(
            2,
            Action.SENT,
            first=acknowledged,
            last=acknowledged + unknown - 1,
            status="unknown",
            count=unknown,
        )
    recorded.at(3, Action.WORKLOAD_DONE, acknowledged=acknowledged, failed=0, unknown=unknown)
    if drained:
        recorded.at(4, Action.DRAINED)
    return recorded.history()


class Testbed:
    """The data of a run, written by the test."""

    def __init__(self, spark: SparkSession, data: Path) -> None:
        self.spark = spark
        self.data = data

    def topic(
        self,
        name: str,
        found: Sequence[str | None],
        uncommitted: int = 0,
        uncommitted_value: str = "{}",
        keys: Sequence[str] = (),
        stable_end: int | None = None,
    ) -> Testbed:
        into = StoredOutput(path=self.data / name)
        rows = [
            (
                "topic",
                0,
                offset,
                0,
                keys[offset] if keys else None,
                value,
                offset >= uncommitted and (stable_end is None or offset < stable_end),
            )
            for offset, value in enumerate([*([uncommitted_value] * uncommitted), *found])
        ]
        columns = "topic string, partition int, offset bigint, timestamp_ms bigint, key string"
        frame = self.spark.createDataFrame(rows, f"{columns}, value string, committed boolean")
        frame.coalesce(1).write.parquet(str(into.part("committed")))
        ends = {"0": len(rows)}
        stable = ends if stable_end is None else {"0": stable_end}
        into.finish(
            {"kind": "kafka", "uncommitted": uncommitted, "ends": ends, "stable_ends": stable}
        )
        return self

    def case(self, promise: JobPromise | None = None, history: History | None = None) -> JudgedRun:
        promise = promise or JobPromise(outputs={"copy": COPY}, expected="SELECT * FROM sent")
        experiment = Experiment(
            name="by-hand",
            topology=TOPOLOGY,
            job=Job(sql="SELECT 1", promise=promise),
            workload=WORKLOAD,
        )
        return JudgedRun(
            experiment=experiment,
            history=story() if history is None else history,
            data=self.data,
            metrics=self.data / "none",
            spark=lambda: self.spark,
        )

    def judged(
        self, promise: JobPromise | None = None, history: History | None = None, **params: Any
    ) -> CheckResult:
        return ExactlyOnce(**params).check(self.case(promise, history))


@pytest.fixture
def testbed(spark: SparkSession, tmp_path: Path) -> Testbed:
    return Testbed(spark, tmp_path)


def test_a_clean_copy_is_held(testbed: Testbed) -> None:
    result = testbed.topic("copy", list(values(RECORDS)), uncommitted=3).judged()

    assert result.outcome == Outcome.HELD
    assert result.counts["expected"] == result.counts["actual"] == 400
    assert result.counts["uncommitted"] == 3
    assert result.summary == "400 records once each, unchanged, in copy (kafka)"


@pytest.mark.nightly
@pytest.mark.parametrize("planted", ["changed", "malformed", "reordered"])
def test_on_another_master_records_are_read_the_same(
    testbed: Testbed, planted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    testbed.topic("copy", list(PLANTS[planted](RECORDS)))
    here = testbed.judged()
    monkeypatch.setattr(quick_record, "runs_here", lambda session: False)

    assert testbed.judged() == here
    assert here.outcome == Outcome.VIOLATED


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["before", "position"])
def test_a_column_may_have_the_name_of_a_figure(testbed: Testbed, name: str) -> None:
    output = COPY.model_copy(update={"identity": ("key", name), "order": name})
    promise = JobPromise(
        outputs={"copy": output},
        expected=f"SELECT key, seq AS {name}, amount, checksum, status FROM sent",
    )
    swapped = _swapped(RECORDS, "k-00001", "k-00002")
    found = [value.replace('"seq"', f'"{name}"') for value in values(swapped)]

    result = testbed.topic("copy", found).judged(promise)

    assert (result.outcome, result.counts["reordered"]) == (Outcome.VIOLATED, 2), result.summary


def test_every_class_that_is_a_violation_can_be_expected() -> None:
    assert {*VIOLATIONS, *anomalies} <= set(ExactlyOnce.classes)


def changed(record: Record) -> Record:
    return record._replace(amount=record.amount + 1)


PLANTS: dict[str, Callable[[list[Record]], list[str]]] = {
    "lost": lambda records: values(records[:10] + records[12:]),
    "duplicated": lambda records: values(records + records[30:32]),
    "phantom": lambda records: values([*records, *(r._replace(seq=9999) for r in records[:2])]),
    "changed": lambda records: values([changed(r) for r in records[:2]] + records[2:]),
    "reordered": lambda records: values(_swapped(records, "k-00001", "k-00002")),
    "malformed": lambda records: [*values(records), "no json", '{"key":"k","seq":"1"}'],
}


def _swapped(records: list[Record], *keys: str) -> list[Record]:
    """Two neighbouring records of each key are swapped."""
    records = list(records)
    for key in keys:
        first, second = [at for at, record in enumerate(records) if record.key == key][3:5]
        records[first], records[second] = records[second], records[first]
    return records


@pytest.mark.parametrize("planted", PLANTS)
def test_each_class_is_found_by_its_name_and_count(testbed: Testbed, planted: str) -> None:
    result = testbed.topic("copy", list(PLANTS[planted](RECORDS))).judged()

    name = "phantom" if planted == "malformed" else planted
    assert result.outcome == Outcome.VIOLATED
    assert result.summary == f"2 {name} in copy (kafka)"
    assert result.counts[planted] == 2
    assert all(finding.where.startswith("copy") for finding in result.findings)
    if planted == "malformed":
        seen = [each["value"] for f in result.findings for each in f.detail.get("seen", ())]
        assert "no json" in seen


OWN = Output(
    kafka="copy",
    compare=("amount", "checksum"),
    order="seq",
    map={"key": "_key", "seq": "at.turn", "amount": "CAST(cents AS BIGINT) div 100"},
)


def own_value(record: Record, cents: int | str) -> str:
    """A record in another shape; its key is the key of the message."""
    return json.dumps({"at": {"turn": record.seq}, "cents": cents, "checksum": record.checksum})


@pytest.mark.nightly
def test_records_of_another_shape_are_judged_by_the_map_of_the_output(
    testbed: Testbed,
) -> None:
    arrived: list[tuple[str, str | None]] = [
        (record.key, own_value(record, f"{record.amount}00")) for record in RECORDS
    ]
    arrived[7] = (RECORDS[7].key, own_value(RECORDS[7], RECORDS[7].amount * 100 + 100))
    arrived[9] = (RECORDS[9].key, own_value(RECORDS[9], "1").replace('"turn": ', '"turn": 0.5'))
    testbed.topic("copy", [value for _, value in arrived], keys=[key for key, _ in arrived])

    result = testbed.judged(JobPromise(outputs={"copy": OWN}, expected="SELECT * FROM sent"))

    assert result.summary == "1 lost, 1 phantom, 1 changed in copy (kafka)"
    assert result.counts["malformed"] == 1


@pytest.mark.nightly_after(1)
@pytest.mark.parametrize(
    ("how", "text"),
    [
        ({"amount": "cents * 2 +"}, "map.amount: `cents * 2 +` is no expression"),
        ({"amount": "concat(cents, '0')"}, "map.amount: expected bigint, as `amount` is in the"),
        ({"key": "at", "seq": "at.turn"}, "map.seq: `at.turn` stands for values of two kinds"),
        ({"seq": "_key"}, "map.seq: expected bigint, as `seq` is in the expectation, got string"),
    ],
)
def test_an_unusable_map_is_reported(testbed: Testbed, how: dict[str, str], text: str) -> None:
    output = Output(kafka="copy", compare=("amount",), map=how)
    testbed.topic("copy", ["{}"])

    result = testbed.judged(JobPromise(outputs={"copy": output}, expected="SELECT * FROM sent"))

    assert result.outcome == Outcome.UNDECIDED
    assert text in result.summary


def test_a_map_is_for_columns_that_are_read() -> None:
    with pytest.raises(ValueError, match=r'the column `totl`, .* did you mean "total"'):
        Output(kafka="t", compare=("total",), map={"totl": "sum"})


@pytest.mark.nightly
def test_classes_that_an_output_requests_are_judged_too(testbed: Testbed) -> None:
    again = [*values(RECORDS), *values(RECORDS[:1]), *values([RECORDS[1]._replace(seq=102)])]
    output = COPY.model_copy(update={"also": ("gap", "regression", "wrong_partition")})
    testbed.topic("copy", list(again))

    result = testbed.judged(JobPromise(outputs={"copy": output}, expected="SELECT * FROM sent"))

    gap = 102 - max(each.seq for each in RECORDS if each.key == RECORDS[1].key) - 1
    message = f"1 duplicated, 1 phantom, {gap} gap, 1 regression in copy (kafka)"
    assert result.summary == message
    assert result.counts["wrong_partition"] == 0
    with pytest.raises(ValueError, match=r'"gpa"; did you mean "gap"'):
        Output(kafka="t", also=("gpa",))


def changes(*records: Record, back: bool = False) -> list[str]:
    """Records of a changelog: added, or with `back` retracted."""
    return [f'{{"back": {str(back).lower()}, "it": {value}}}' for value in values([*records])]


CHANGELOG = Output(
    kafka="copy",
    compare=("amount",),
    retracts="back = 'true'",
    map={"key": "it.key", "seq": "it.seq", "amount": "it.amount"},
)


def test_the_final_records_of_a_changelog_are_judged(testbed: Testbed) -> None:
    """One record replaced another one; a second record was added, retracted, and added again."""
    other = RECORDS[7]._replace(amount=-1)
    testbed.topic(
        "copy",
        [
            *changes(other),
            *changes(*RECORDS[8:], RECORDS[3]),
            *changes(other, RECORDS[3], back=True),
            *changes(*RECORDS[:8]),
        ],
    )

    result = testbed.judged(JobPromise(outputs={"copy": CHANGELOG}, expected="SELECT * FROM sent"))

    assert (result.outcome, result.counts["actual"]) == (Outcome.HELD, WORKLOAD.records)


@pytest.mark.nightly
def test_a_retraction_without_its_record_is_a_violation(testbed: Testbed) -> None:
    """One record is retracted more often than it was added; of another both states remain."""
    old = RECORDS[7]._replace(amount=-1)
    testbed.topic("copy", [*changes(*RECORDS, old), *changes(RECORDS[3], RECORDS[3], back=True)])

    result = testbed.judged(JobPromise(outputs={"copy": CHANGELOG}, expected="SELECT * FROM sent"))

    assert result.outcome == Outcome.VIOLATED
    assert result.summary == (
        "1 lost, 1 duplicated, 1 changed, 1 unmatched_retraction in copy (kafka)"
    )
    (unmatched,) = (each for each in result.findings if each.what == "unmatched_retraction")
    key, seq = RECORDS[3].key, RECORDS[3].seq
    assert unmatched.detail == {"key": key, "seq": seq, "amount": RECORDS[3].amount}


def test_a_class_that_cannot_be_judged_leaves_the_output_undecided(testbed: Testbed) -> None:
    output = COPY.model_copy(update={"order": None, "also": ("regression",)})
    testbed.topic("copy", list(values(RECORDS)))

    result = testbed.judged(JobPromise(outputs={"copy": output}, expected="SELECT * FROM sent"))

    assert (result.outcome, result.counts["regression"]) == (Outcome.UNDECIDED, None)
    assert "regression was requested and could not be judged" in result.summary


@pytest.mark.nightly
@pytest.mark.parametrize(("samples", "counted"), [([0, 0], 0), ([0, 2, 3, 1, 1], 4), ([], None)])
def test_records_too_late_for_their_window_are_not_counted_as_lost(
    testbed: Testbed, samples: list[float], counted: int | None
) -> None:
    """A counter that falls belongs to a new attempt."""
    promise = JobPromise(outputs={"copy": COPY}, expected="SELECT * FROM sent", lateness_ms=2000)
    metrics = Metrics(testbed.data / "none")
    for at_s, value in enumerate(samples):
        metrics.add(at_s * 10**9, "late_records_dropped", "window", value)
    metrics.flush()

    result = testbed.topic("copy", list(values(RECORDS))).judged(promise)

    assert (result.outcome, result.counts["lost"]) == (Outcome.HELD, 0)
    assert result.counts["late_dropped"] == counted
    assert ("4 records were too late for their window" in result.summary) == (counted == 4)


def test_lost_records_behind_an_open_transaction_are_counted_as_invisible(testbed: Testbed) -> None:
    """Ten records are behind it, one of them twice, and one that is also before it; two are
    missing. An aborted copy of one of these is before the last stable offset: not held back."""
    behind = [*values(RECORDS[390:]), *values(RECORDS[390:391]), *values(RECORDS[5:6])]
    before = values(RECORDS[:388])
    (aborted,) = values(RECORDS[388:389])
    testbed.topic(
        "copy", [*before, *behind], uncommitted=1, uncommitted_value=aborted, stable_end=389
    )

    result = testbed.judged()

    assert result.summary == "12 lost in copy (kafka)"
    assert (result.counts["invisible"], result.counts["held_back"]) == (10, 12)
    (recorded,) = [finding for finding in result.findings if finding.what == "invisible"]
    assert recorded.where == "copy: partition 0, behind the last stable offset 389"
    assert recorded.detail == {"behind": 10, "end": 401}


@pytest.mark.nightly
def test_without_loss_nothing_is_invisible(testbed: Testbed) -> None:
    result = testbed.topic("copy", [*values(RECORDS), "{}"], stable_end=len(RECORDS)).judged()

    assert (result.outcome, result.counts["invisible"]) == (Outcome.HELD, 0)
    late = testbed.data / "late"
    ending = Testbed(testbed.spark, late).topic("copy", list(values(RECORDS[:9])), stable_end=9)
    assert ending.judged(history=story(drained=False)).counts["invisible"] is None


SCHEDULED_CHANGES = (
    ScheduledChange(100, "skew", {"hot_share": 0.7}),
    ScheduledChange(150, "late_events", {"late_ms": 900, "share": 0.3, "out_of_order_ms": 80}),
    ScheduledChange(200, "poison", {"records": 3}),
    ScheduledChange(220, "large_records", {"payload_bytes": 1000, "share": 0.2}),
    ScheduledChange(300, "skew", None),
    ScheduledChange(300, "late_events", None),
)


def steered(scheduled_changes: Sequence[ScheduledChange]) -> History:
    recorded = Story().sent(1, WORKLOAD.records)
    for change in scheduled_changes:
        recorded.at(1, Action.WORKLOAD_STEERED, **change._asdict())
    recorded.at(3, Action.WORKLOAD_DONE, acknowledged=WORKLOAD.records, failed=0, unknown=0)
    return recorded.at(4, Action.DRAINED).history()


@pytest.mark.nightly
def test_a_changed_load_is_expected_as_sent_and_poison_is_not_expected(
    testbed: Testbed,
) -> None:
    sent = WORKLOAD.load_definition(0, SCHEDULED_CHANGES).between(0, WORKLOAD.records)
    testbed.topic("copy", list(values([record for record in sent if not record.poison])))

    result = testbed.judged(history=steered(SCHEDULED_CHANGES))

    assert result.outcome == Outcome.HELD
    assert result.counts["expected"] == 397


@pytest.mark.nightly
def test_a_change_of_the_load_missing_in_the_history_is_detected(testbed: Testbed) -> None:
    sent = WORKLOAD.load_definition(0, SCHEDULED_CHANGES[:1]).between(0, WORKLOAD.records)
    testbed.topic("copy", list(values(list(sent))))

    result = testbed.judged(history=steered([]))

    assert result.outcome == Outcome.VIOLATED
    assert "lost" in result.summary
    assert "phantom" in result.summary


def test_totals_are_recomputed_and_a_wrong_total_counts_as_changed(testbed: Testbed) -> None:
    promise = JobPromise(
        outputs={"totals": Output(kafka="t", compare=("total",), order="seq")}, expected=TOTALS
    )
    sums: dict[str, int] = {}
    found: list[dict[str, Any]] = []
    for record in RECORDS:
        sums[record.key] = sums.get(record.key, 0) + record.amount
        found.append({"key": record.key, "seq": record.seq, "total": sums[record.key]})
    testbed.topic("totals", [json.dumps(each) for each in found])
    assert testbed.judged(promise).outcome == Outcome.HELD

    found[17]["total"] += 1
    again = Testbed(testbed.spark, testbed.data / "again").topic(
        "totals", [json.dumps(e) for e in found]
    )
    assert again.judged(promise).summary == "1 changed in totals (kafka)"


@pytest.mark.nightly
def test_records_of_unknown_sends_may_be_present_or_absent(testbed: Testbed) -> None:
    result = testbed.topic("copy", list(values(RECORDS[:395]))).judged(history=story(390, 10))

    assert result.outcome == Outcome.HELD
    assert (result.counts["unknown_arrived"], result.counts["unknown_absent"]) == (5, 5)


def test_totals_over_unknown_sends_are_undecided_until_the_input_topic_settles_them(
    testbed: Testbed,
) -> None:
    promise = JobPromise(
        outputs={"totals": Output(kafka="t", compare=("total",))},
        expected="SELECT key, MAX(seq) AS seq, SUM(amount) AS total FROM sent GROUP BY key",
    )
    arrived = RECORDS[:395]
    sums: dict[str, int] = {}
    for record in arrived:
        sums[record.key] = sums.get(record.key, 0) + record.amount
    last = {record.key: record.seq for record in arrived}
    testbed.topic(
        "totals", [json.dumps({"key": k, "seq": last[k], "total": v}) for k, v in sums.items()]
    )

    uncertain = testbed.judged(promise, story(390, 10))
    assert uncertain.outcome == Outcome.UNDECIDED
    assert "unknown result" in uncertain.summary

    testbed.topic(INPUT_FOLDER, list(values(arrived)))
    assert testbed.judged(promise, story(390, 10)).outcome == Outcome.HELD


def test_records_missing_before_the_drain_are_not_lost_yet(
    testbed: Testbed,
) -> None:
    testbed.topic("copy", list(values(RECORDS[:300])))

    result = testbed.judged(history=story(drained=False))

    assert result.outcome == Outcome.UNDECIDED
    assert result.counts["lost"] is None
    assert "may still arrive" in result.summary


@pytest.mark.nightly
def test_a_duplicate_is_a_violation_also_before_the_drain(testbed: Testbed) -> None:
    testbed.topic("copy", list(values(RECORDS[:300] + RECORDS[:1])))

    result = testbed.judged(history=story(drained=False))

    assert result.outcome == Outcome.VIOLATED
    assert result.summary == "1 duplicated in copy (kafka)"


UPSERTED = Output(
    kafka="copy",
    identity=("key",),
    compare=("total",),
    upsert=True,
    map={"key": "get_json_object(_key, '$.key')"},
)
LAST = "SELECT key, SUM(amount) AS total FROM sent GROUP BY key"
EVERY = {
    key: sum(r.amount for r in RECORDS if r.key == key) for key in sorted({r.key for r in RECORDS})
}
GONE = min(EVERY)
"""A key whose total an expectation may leave out."""


def upserted(
    testbed: Testbed, *text: tuple[str, int | None], left_out: bool = False, drained: bool = True
) -> CheckResult:
    """A topic of keys and their totals; none is a tombstone."""
    keys = [json.dumps({"key": key}) for key, _ in text]
    found = [None if total is None else json.dumps({"total": total}) for _, total in text]
    testbed.topic("copy", found, keys=keys)
    expected = f"{LAST} HAVING key != '{GONE}'" if left_out else LAST
    promise = JobPromise(outputs={"copy": UPSERTED}, expected=expected)
    return testbed.judged(promise, history=story(drained=drained))


def test_of_an_upserted_topic_the_last_record_of_a_key_counts(testbed: Testbed) -> None:
    result = upserted(testbed, *((key, 1) for key in EVERY), (GONE, None), *EVERY.items())

    assert (result.outcome, result.counts["actual"]) == (Outcome.HELD, len(EVERY))


def test_a_tombstone_deletes_the_record_of_its_key(testbed: Testbed) -> None:
    assert upserted(testbed, *EVERY.items(), (GONE, None), left_out=True).outcome == Outcome.HELD


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("text", "left_out", "summary"),
    [
        ([*EVERY.items(), (GONE, None)], False, "1 lost in copy (kafka)"),
        ([*EVERY.items()], True, "1 phantom in copy (kafka)"),
        ([*EVERY.items(), (GONE, -1)], False, "1 changed in copy (kafka)"),
        ([*EVERY.items(), ("unknown", 1)], False, "1 phantom in copy (kafka)"),
    ],
)
def test_the_last_record_of_a_key_is_judged(
    testbed: Testbed, text: list[tuple[str, int | None]], left_out: bool, summary: str
) -> None:
    result = upserted(testbed, *text, left_out=left_out)

    assert (result.outcome, result.summary) == (Outcome.VIOLATED, summary)


@pytest.mark.nightly
def test_an_upserted_total_may_be_intermediate_until_the_drain(testbed: Testbed) -> None:
    result = upserted(testbed, *EVERY.items(), (GONE, -1), drained=False)

    assert (result.outcome, result.counts["changed"]) == (Outcome.UNDECIDED, None)


@pytest.mark.nightly
def test_a_tombstone_without_a_key_is_malformed(testbed: Testbed) -> None:
    keys = [json.dumps({"key": key}) for key in EVERY]
    found = [json.dumps({"total": total}) for total in EVERY.values()]
    testbed.topic("copy", [*found, None], keys=[*keys, "{}"])

    result = testbed.judged(JobPromise(outputs={"copy": UPSERTED}, expected=LAST))

    assert (result.outcome, result.counts["malformed"]) == (Outcome.VIOLATED, 1)


@pytest.mark.parametrize(
    ("also", "text"),
    [
        ({"kafka": None, "hdfs": "/copy"}, "`upsert` is for topics"),
        ({"retracts": "op = 'd'"}, "so `retracts` has no meaning"),
        ({"order": "key"}, "so `order` has no meaning"),
        ({"map": {}}, "`map` needs `key` over the record's key"),
        ({"map": {"key": "it.key"}}, "`map` needs `key` over the record's key"),
    ],
)
def test_upserts_that_cannot_be_judged_are_rejected(also: dict[str, Any], text: str) -> None:
    given = {**UPSERTED.model_dump(by_alias=True), **also}
    with pytest.raises(ValueError, match=re.escape(text)):
        Output.model_validate(given)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("drained", "outcome", "changed"),
    [(True, Outcome.VIOLATED, 1), (False, Outcome.UNDECIDED, None)],
)
def test_a_total_of_a_changelog_may_be_intermediate_until_the_drain(
    testbed: Testbed, drained: bool, outcome: Outcome, changed: int | None
) -> None:
    on_its_way = RECORDS[7]._replace(amount=-1)
    testbed.topic("copy", changes(*RECORDS[:7], on_its_way, *RECORDS[8:]))
    promise = JobPromise(outputs={"copy": CHANGELOG}, expected="SELECT * FROM sent")

    result = testbed.judged(promise, history=story(drained=drained))

    assert (result.outcome, result.counts["changed"]) == (outcome, changed)
    assert bool(result.findings) == drained


@pytest.mark.nightly
def test_an_anomaly_that_no_later_record_corrects_violates_a_changelog_at_any_time(
    testbed: Testbed,
) -> None:
    testbed.topic(
        "copy", [*changes(*RECORDS), *changes(RECORDS[3], RECORDS[3], back=True), "no json"]
    )
    promise = JobPromise(outputs={"copy": CHANGELOG}, expected="SELECT * FROM sent")

    result = testbed.judged(promise, history=story(drained=False))

    assert result.outcome == Outcome.VIOLATED
    assert result.summary == "1 phantom, 1 unmatched_retraction in copy (kafka)"


def test_files_are_judged_too_and_pending_ones_are_not_read(
    testbed: Testbed, tmp_path: Path
) -> None:
    folder = tmp_path / "copied"
    (folder / "bucket").mkdir(parents=True)
    (folder / "bucket" / "part-1").write_text("\n".join(values(RECORDS[:250])) + "\n")
    (folder / "part-0").write_text("\n".join(values(RECORDS[250:])) + "\n")
    (folder / ".part-2.inprogress.77").write_text(values(RECORDS)[0] + "\n")
    read_files(
        testbed.spark, folder, into=StoredOutput(path=testbed.data / "files"), source="/output/copy"
    )
    testbed.topic("copy", list(values(RECORDS[:-1])))
    promise = JobPromise(outputs={"copy": COPY, "files": FILES}, expected="SELECT * FROM sent")

    result = testbed.judged(promise)

    assert result.outcome == Outcome.VIOLATED
    assert result.summary == "1 lost in copy (kafka)"
    assert result.counts["files.lost"] == 0
    assert result.counts["lost"] == result.counts["copy.lost"] == 1
    assert result.counts["files.pending_files"] == 1


def of_table(testbed: Testbed, rows: Sequence[str], prepared: int = 0) -> StoredOutput:
    """Store rows as the reading of a table does."""
    into = StoredOutput(path=testbed.data / "copy")
    address = table_address(str(TABLE.table), services=True)
    frame = testbed.spark.createDataFrame([(row,) for row in rows], "value string")
    store_rows(frame, address, into=into, source=str(TABLE.table), prepared=prepared)
    return into


def test_a_table_is_judged_by_its_rows(testbed: Testbed) -> None:
    promise = JobPromise(outputs={"copy": TABLE}, expected="SELECT * FROM sent")
    of_table(testbed, values(RECORDS))
    assert testbed.judged(promise).summary == "400 records once each, unchanged, in copy (table)"

    shutil.rmtree(testbed.data / "copy")
    of_table(testbed, [*values(RECORDS[2:]), *values(RECORDS[3:4]), "{}"])
    result = testbed.judged(promise)

    assert result.outcome == Outcome.VIOLATED
    found = {name: result.counts[name] for name in ("lost", "duplicated", "phantom")}
    assert found == {"lost": 2, "duplicated": 1, "phantom": 1}
    where = {finding.where for finding in result.findings if finding.what == "duplicated"}
    assert any(
        re.search(r"^copy: table totals, row \d+; table totals, row", each) for each in where
    )


@pytest.mark.nightly
def test_objects_are_judged_as_files_and_no_object_has_lost_every_record(
    testbed: Testbed, tmp_path: Path
) -> None:
    output = Output(s3="s3://results/copy", compare=("amount", "checksum"))
    promise = JobPromise(outputs={"copy": output}, expected="SELECT * FROM sent")
    into = StoredOutput(path=testbed.data / "copy")

    def judged(lines: Sequence[str]) -> CheckResult:
        shutil.rmtree(into.path, ignore_errors=True)
        copied = tmp_path / "copied"
        copied.mkdir(exist_ok=True)
        if lines:
            (copied / "part-0").write_text("\n".join(lines) + "\n")
        read_files(testbed.spark, copied, into=into, source=output.place)
        return testbed.judged(promise)

    nothing = judged([])
    assert (nothing.outcome, nothing.counts["lost"]) == (Outcome.VIOLATED, 400)
    assert judged(values(RECORDS)).summary == "400 records once each, unchanged, in copy (s3)"
    wrong = judged([*values(RECORDS[2:]), *values(RECORDS[3:4])])
    assert wrong.outcome == Outcome.VIOLATED
    assert (wrong.counts["lost"], wrong.counts["duplicated"]) == (2, 1)


@pytest.mark.nightly
def test_prepared_transactions_leave_a_table_undecided_and_a_loss_violated(
    testbed: Testbed,
) -> None:
    promise = JobPromise(outputs={"copy": TABLE}, expected="SELECT * FROM sent")
    stored = of_table(testbed, values(RECORDS), prepared=2)
    open_ones = "2 prepared transactions that changed tables of its database are neither committed"

    result = testbed.judged(promise)
    assert (result.outcome, result.counts["prepared"]) == (Outcome.UNDECIDED, 2)
    assert open_ones in result.summary

    for noted, reason in ((None, "noted no prepared"), (False, "not that of a table")):
        stored.finish({**stored.facts(), "prepared": noted})
        result = testbed.judged(promise)
        assert result.outcome == Outcome.UNDECIDED
        assert reason in result.summary

    shutil.rmtree(testbed.data / "copy")
    of_table(testbed, values(RECORDS[1:]), prepared=2)
    result = testbed.judged(promise)
    assert result.outcome == Outcome.VIOLATED
    assert "1 lost in copy (table)" in result.summary
    assert open_ones in result.summary


@pytest.mark.nightly
def test_a_row_of_a_table_may_still_be_corrected_until_the_drain(testbed: Testbed) -> None:
    promise = JobPromise(outputs={"copy": TABLE}, expected="SELECT * FROM sent")
    first = changed(RECORDS[0]).value().decode()
    of_table(testbed, [first, *values(RECORDS[1:])])

    assert testbed.judged(promise).outcome == Outcome.VIOLATED
    result = testbed.judged(promise, history=story(drained=False))
    assert (result.outcome, result.counts["changed"]) == (Outcome.UNDECIDED, None)

    shutil.rmtree(testbed.data / "copy")
    of_table(testbed, [*values(RECORDS[1:]), "no json"])
    result = testbed.judged(promise, history=story(drained=False))
    assert (result.outcome, result.counts["phantom"]) == (Outcome.UNDECIDED, None)


def test_the_reading_of_another_table_or_of_files_is_undecided(testbed: Testbed) -> None:
    promise = JobPromise(outputs={"copy": TABLE}, expected="SELECT * FROM sent")
    stored = of_table(testbed, values(RECORDS))
    facts = stored.facts()
    stored.finish({**facts, "kind": "files"})
    assert testbed.judged(promise).outcome == Outcome.UNDECIDED
    stored.finish({**facts, "source": "postgresql://host/shop/other"})
    assert (
        "postgresql://host/shop/other was read, and the output is"
        in testbed.judged(promise).summary
    )

    (testbed.data / "part-0").write_text("\n".join(values(RECORDS)) + "\n")
    shutil.rmtree(testbed.data / "copy")
    read_files(testbed.spark, testbed.data, into=stored, source=str(TABLE.table))
    assert testbed.judged(promise).outcome == Outcome.UNDECIDED


def test_two_outputs_are_two_tables() -> None:
    with pytest.raises(ValueError, match="two outputs are the same table"):
        JobPromise(outputs={"one": TABLE, "two": TABLE})


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"order": "seq"}, "rows without an order; remove `order`"),
        ({"retracts": "op = 'd'"}, "remove `retracts`"),
        ({"format": "avro"}, "remove `format`"),
        ({"upsert": True}, "a table has the last row of a key by itself"),
        (
            {"kafka": "copy"},
            "an output is one of `kafka: TOPIC`, `hdfs: FOLDER`, `s3: URI` or `table: ADDRESS`",
        ),
        ({"table": "totals"}, "expected postgresql://"),
        (
            {"also": ("wrong_partition",)},
            "rows of a table have no place that wrong_partition needs",
        ),
    ],
)
def test_what_a_table_cannot_have_is_rejected(given: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(text)):
        Output.model_validate({"table": TABLE.table, **given})


@pytest.mark.nightly
def test_an_expectation_that_cannot_be_read_hides_nothing_of_the_other_outputs(
    testbed: Testbed,
) -> None:
    testbed.topic("copy", list(values(RECORDS[:-1]))).topic("other", list(values(RECORDS)))
    other = COPY.model_copy(update={"kafka": "other", "expected": "SELECT nothing FROM sent"})
    promise = JobPromise(outputs={"other": other, "copy": COPY}, expected="SELECT * FROM sent")

    result = testbed.judged(promise)

    assert result.outcome == Outcome.VIOLATED
    assert result.summary == "1 lost in copy (kafka)"
    assert result.counts["other.lost"] is None


def test_an_output_that_was_not_read_is_undecided(testbed: Testbed) -> None:
    result = testbed.judged()

    assert result.outcome == Outcome.UNDECIDED
    assert result.summary == "copy: it was not read"
    assert result.counts["lost"] is None


@pytest.mark.nightly_after(2)
@pytest.mark.parametrize(
    ("promise", "history", "params", "why"),
    [
        (JobPromise(), None, {}, "declares no outputs"),
        (JobPromise(outputs={"copy": COPY}), None, {}, "it has no expected records"),
        (None, Story().history(), {}, "0 records were acknowledged"),
        (None, story(400), {"min_records": 401}, "at least 401 are needed"),
    ],
)
def test_without_evidence_there_is_no_verdict(
    testbed: Testbed,
    promise: JobPromise | None,
    history: History | None,
    params: dict[str, int],
    why: str,
) -> None:
    result = testbed.topic("copy", []).judged(promise, history, **params)

    assert result.outcome == Outcome.UNDECIDED
    assert why in result.summary


@pytest.mark.nightly_after(2)
@pytest.mark.parametrize(
    ("counted", "hidden", "text"),
    [
        (401, 3, "401 records and 3 uncommitted ones"),
        (399, 3, "399 records and 3 uncommitted ones"),
        # The same total, but other records than were read.
        (399, 4, "399 records and 4 uncommitted ones"),
        (403, 0, "403 records"),
    ],
)
def test_a_reading_with_missing_records_is_undecided(
    testbed: Testbed, counted: int, hidden: int, text: str
) -> None:
    testbed.topic("copy", list(values(RECORDS)), uncommitted=3)
    stored = StoredOutput(path=testbed.data / "copy")
    stored.finish({**stored.facts(), "records": counted, "uncommitted": hidden})

    result = testbed.judged()

    assert result.outcome == Outcome.UNDECIDED
    present = "the record holds 400 records and 3 uncommitted ones"
    assert f"{text} were read, and {present}" in result.summary


@pytest.mark.nightly
def test_a_copied_part_of_the_record_is_no_duplicate(testbed: Testbed) -> None:
    testbed.topic("copy", list(values(RECORDS)))
    (written,) = StoredOutput(path=testbed.data / "copy").part("committed").glob("*.parquet")
    shutil.copy(written, written.with_name("part-copied.parquet"))

    result = testbed.judged()

    assert result.outcome == Outcome.UNDECIDED
    assert "400 records have the position of another record and were not read" in result.summary
    assert (result.counts["duplicated"], result.findings) == (None, ())
    assert testbed.topic("twice", list(values([*RECORDS, RECORDS[3]]))).data.exists()
    duplicated = testbed.judged(JobPromise(outputs={"twice": COPY}, expected="SELECT * FROM sent"))
    assert (duplicated.outcome, duplicated.counts["duplicated"]) == (Outcome.VIOLATED, 1)


@pytest.mark.nightly
def test_a_copied_part_of_a_reading_of_files_is_no_duplicate(
    testbed: Testbed, tmp_path: Path
) -> None:
    folder = tmp_path / "written"
    folder.mkdir()
    (folder / "part-0").write_text("\n".join(values(RECORDS)), encoding="utf-8")
    stored = StoredOutput(path=testbed.data / "files")
    read_files(testbed.spark, folder, into=stored, source="/output/copy")
    written = next(path for path in stored.part("json").glob("*.parquet"))
    promise = JobPromise(outputs={"files": FILES}, expected="SELECT * FROM sent")
    assert testbed.judged(promise).outcome == Outcome.HELD
    shutil.copy(written, written.with_name("part-copied.parquet"))

    result = testbed.judged(promise)
    assert result.outcome == Outcome.UNDECIDED
    assert "records have the position of another record" in result.summary


@pytest.mark.nightly
def test_a_record_removed_from_a_reading_counts_as_lost(testbed: Testbed) -> None:
    testbed.topic("copy", list(values(RECORDS[1:])))
    stored = StoredOutput(path=testbed.data / "copy")
    stored.finish({**stored.facts(), "records": 400})

    result = testbed.judged()

    assert result.outcome == Outcome.VIOLATED
    assert result.counts["lost"] == 1
    assert "400 records were read, and the record holds 399" in result.summary


@pytest.mark.nightly
def test_a_missing_file_of_a_reading_is_not_lost_by_the_job(testbed: Testbed) -> None:
    testbed.topic("copy", list(values(RECORDS)))
    stored = StoredOutput(path=testbed.data / "copy")
    (written,) = stored.part("committed").glob("*.parquet")
    file = written.rename(written.with_name("part-1.parquet"))
    pq.write_table(pq.read_table(file).slice(0, 0), file.with_name("part-2.parquet"))
    stored.finish(stored.facts())
    shutil.copy(file, testbed.data / "kept.parquet")
    file.unlink()

    damaged = testbed.judged()
    assert damaged.outcome == Outcome.UNDECIDED
    assert "copy: 1 of 2 files are missing, such as committed/part-1.parquet" in damaged.summary

    rest = pq.read_table(testbed.data / "kept.parquet").slice(1)
    pq.write_table(rest, file.with_name("rewritten.parquet"))
    rewritten = testbed.judged()
    assert (rewritten.outcome, rewritten.counts["lost"]) == (Outcome.VIOLATED, 1)


@pytest.mark.nightly
def test_a_reading_of_the_input_with_missing_records_settles_nothing(
    testbed: Testbed,
) -> None:
    sent = [f'{{"index": {record}}}' for record in range(WORKLOAD.records)]
    testbed.topic(INPUT_FOLDER, sent[:390]).topic("copy", list(values(RECORDS)))
    stored = StoredOutput(path=testbed.data / INPUT_FOLDER)
    stored.finish({**stored.facts(), "records": 400})

    case = testbed.case(history=story(acknowledged=380, unknown=20))
    result = check_safely(ExactlyOnce(), case)

    assert result.outcome == Outcome.UNDECIDED
    assert "400 records were read, and the record holds 390" in result.summary


@pytest.mark.nightly
def test_an_output_that_cannot_be_judged_hides_nothing_of_another(testbed: Testbed) -> None:
    testbed.topic("copy", list(values(RECORDS[1:]))).topic("other", list(values(RECORDS)))
    (truncated,) = (testbed.data / "other" / "records").rglob("*.parquet")
    truncated.write_bytes(b"")
    outputs = {"other": COPY, "copy": COPY}

    result = testbed.judged(JobPromise(outputs=outputs, expected="SELECT * FROM sent"))

    assert result.outcome == Outcome.VIOLATED
    assert result.summary == "1 lost in copy (kafka)"
    assert result.counts["copy.lost"] == 1
    assert result.counts["lost"] is None


@pytest.mark.nightly
def test_a_violation_of_unknown_cause_is_a_violation(
    testbed: Testbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*given: object) -> object:
        raise KeyError("step")

    monkeypatch.setattr(
        "streamquake.harness.verdict.checks.exactly_once.attribute_anomalies", broken
    )

    result = testbed.topic("copy", list(values(RECORDS[1:]))).judged()

    assert result.outcome == Outcome.VIOLATED
    assert result.findings[0].detail["cause"] == "it is not known: KeyError: 'step'"

"""Every anomaly of a run's output is attributed to its cause when it was written or sent."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streamquake.harness.experiment.outputs import INPUT_FOLDER, JobPromise, Output
from streamquake.harness.reconcile.reading.files import read_files
from streamquake.harness.reconcile.reading.stored_output import StoredOutput
from streamquake.harness.verdict import anomaly_attribution
from streamquake.harness.verdict.checks.exactly_once import ExactlyOnce
from streamquake.harness.verdict.evidence.record_causes import cause_intervals, first_sent_indexes
from streamquake.harness.verdict.evidence.sent_times import SentRange
from streamquake.reports.record.event import Action
from streamquake.reports.record.outcome import CheckResult, Outcome
from tests.harness.histories import Story
from tests.harness.verdict.checks.stamped import (
    OutputRecord,
    changed,
    injected,
    judged_case,
    loads,
    task,
    written_records,
)
from tests.harness.verdict.checks.test_exactly_once import COPY, FILES, RECORDS, Testbed, values


def killed() -> Story:
    """A kill from 9.9 s to 12.5 s; checkpoints at 8.2 s and 14 s; the writer runs again at 12 s."""
    run = loads(Story())
    for subtask in range(4):
        task(run, 0.5, "b", subtask, 0, "RUNNING")
    run.checkpoint(1, 8.0, 8.2)
    run.at(9.8, Action.FAULT_CALLED, step=0, fault="kill", target="flink/taskmanager-1")
    injected(run)
    task(run, 12.0, "b", 1, 1, "RUNNING")
    run.at(12.5, Action.FAULT_HEALED, step=0)
    return run.checkpoint(2, 13.8, 14.0).at(25.0, Action.DRAINED)


def judged(
    spark: SparkSession, data: Path, written: list[OutputRecord], run: Story | None = None
) -> CheckResult:
    return ExactlyOnce().check(judged_case(spark, data, written, run or killed()))


def groups(result: CheckResult) -> dict[tuple[str, str], object]:
    """(class, cause) -> how many records."""
    return {
        (finding.what, finding.where): finding.detail["records"]
        for finding in result.findings
        if "records" in finding.detail
    }


def test_duplicated_lost_and_invented_records_have_their_cause(
    spark: SparkSession, tmp_path: Path
) -> None:
    def change(out: OutputRecord) -> Iterable[OutputRecord]:
        index = out.record.index
        if index in (100, 1050, 1051):  # sent at 1.0 s, and at 10.5 s, during the fault
            return []
        if index in (900, 901, 902):  # again, by the second attempt, after checkpoint 1
            return [out, out._replace(at_s=12.2)]
        if index == 1900:
            return [out, out._replace(record=out.record._replace(seq=10_000))]
        return [out]

    result = judged(spark, tmp_path, changed(change))

    before = "before any fault; before the first checkpoint; writer's attempt 0"
    during = "during kill on flink/taskmanager-1; after checkpoint 1, before 2; writer's attempt"
    after = "after kill on flink/taskmanager-1; after checkpoint 2; writer's attempt 1"
    assert groups(result) == {
        ("lost", f"totals: sent {before}"): 1,
        ("lost", f"totals: sent {during} 0"): 2,
        ("duplicated", f"totals: written {during} 1"): 3,
        ("phantom", f"totals: written {after}"): 1,
    }
    examples = [each for each in result.findings if "records" not in each.detail]
    assert {(each.what, str(each.detail["cause"]).split(";")[0]) for each in examples} == {
        ("lost", "sent before any fault"),
        ("lost", "sent during kill on flink/taskmanager-1"),
        ("duplicated", "written during kill on flink/taskmanager-1"),
        ("phantom", "written after kill on flink/taskmanager-1"),
    }


@pytest.mark.nightly
def test_a_copy_in_another_partition_is_the_later_one_by_its_stamp(
    spark: SparkSession, tmp_path: Path
) -> None:
    def change(out: OutputRecord) -> Iterable[OutputRecord]:
        # The copy is the first record of its partition, so its offset is lower than the original's.
        return [out, out._replace(at_s=12.2, partition=9)] if out.record.index == 900 else [out]

    result = judged(spark, tmp_path, changed(change))

    ((what, cause),) = groups(result)
    assert what == "duplicated"
    assert "during kill on flink/taskmanager-1" in cause


@pytest.mark.nightly
def test_a_changed_record_is_attributed_to_the_copy_that_is_wrong(
    spark: SparkSession, tmp_path: Path
) -> None:
    def change(out: OutputRecord) -> Iterable[OutputRecord]:
        if out.record.index != 900:
            return [out]
        return [out._replace(record=out.record._replace(amount=-1)), out._replace(at_s=13.0)]

    result = judged(spark, tmp_path, changed(change))

    at = {what: cause.partition(";")[0] for what, cause in groups(result)}
    assert at == {
        "changed": "totals: written before any fault",
        "duplicated": "totals: written after kill on flink/taskmanager-1",
    }
    (example,) = (f for f in result.findings if f.what == "changed" and "cause" in f.detail)
    assert str(example.detail["cause"]).startswith("written before any fault")


@pytest.mark.nightly
def test_a_record_is_of_the_interval_that_begins_with_its_stamp(
    spark: SparkSession, tmp_path: Path
) -> None:
    result = judged(
        spark,
        tmp_path,
        changed(lambda out: [out, out._replace(at_s=12.0)] if out.record.index == 900 else [out]),
    )

    ((_, cause),) = groups(result)
    assert cause.endswith("writer's attempt 1")


@pytest.mark.nightly
def test_groups_that_are_not_shown_are_counted(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(anomaly_attribution, "MAX_GROUPS", 1)
    moments = {900: (12.2, 12.2), 901: (12.2, 13.0), 902: (14.5,), 903: (14.5,)}

    def change(out: OutputRecord) -> Iterable[OutputRecord]:
        index = out.record.index
        if index == 100:
            return []
        return [out, *(out._replace(at_s=at_s) for at_s in moments.get(index, ()))]

    largest, duplicated, lost, *_ = judged(spark, tmp_path, changed(change)).findings

    assert (largest.what, largest.detail["records"]) == ("duplicated", 3)
    assert (duplicated.where, duplicated.detail) == (
        "totals: in 2 more groups by cause",
        {"records": 3},
    )
    assert (lost.what, lost.where) == ("lost", "totals: in 1 more group by cause")


@pytest.mark.nightly
def test_examples_identified_by_fractions_and_truth_values_have_their_cause(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The texts of both differ between Python and Spark. A lost record without a send that can be
    found has no interval and no place, so it is in no group."""
    columns = "CAST(index AS DOUBLE) * 1e9 AS big, index % 2 = 0 AS even"
    rows = [f'{{"big":{index}e9,"even":{json.dumps(index % 2 == 0)}}}' for index in range(1, 400)]
    dataset = Testbed(spark, tmp_path).topic("copy", [*rows, rows[4]])
    output = Output(kafka="copy", identity=("big", "even"))

    result = dataset.judged(
        JobPromise(outputs={"copy": output}, expected=f"SELECT {columns}, status FROM sent")
    )

    assert [(f.what, "records" in f.detail) for f in result.findings] == [
        ("duplicated", True),
        ("lost", False),
        ("duplicated", False),
    ]
    assert {f.detail["cause"] for f in result.findings[1:]} == {"at an unknown moment"}


@pytest.mark.nightly
def test_nested_and_long_identities_have_their_cause_and_are_shown_for_people(
    spark: SparkSession, tmp_path: Path
) -> None:
    columns = "named_struct('index', index) AS at, concat(repeat('x', 600), index) AS text"
    query = f"SELECT {columns}, index AS turn, 'all' AS stream, status FROM sent"

    def row(index: int) -> str:
        text = f"{'x' * 600}{index}"
        return json.dumps({"at": {"index": index}, "text": text, "turn": index, "stream": "all"})

    rows = [row(index) for index in (2, 1, *range(3, len(RECORDS)))]  # 0 is lost
    dataset = Testbed(spark, tmp_path).topic("copy", [*rows, rows[7]])
    output = Output(kafka="copy", identity=("at", "text"), order="turn", order_by=("stream",))

    result = dataset.judged(JobPromise(outputs={"copy": output}, expected=query))

    shown = {f.what: f.detail for f in result.findings if "records" not in f.detail}
    assert {what: (detail["at"], detail["cause"]) for what, detail in shown.items()} == {
        "lost": ('{"index": 0}', "at an unknown moment"),
        "duplicated": ('{"index": 8}', "at an unknown moment"),
        "reordered": ('{"index": 1}', "at an unknown moment"),
    }
    assert {str(detail["text"])[500:] for detail in shown.values()} == {"… (601 characters)"}


@pytest.mark.nightly
def test_thousands_of_checkpoints_are_not_too_many(spark: SparkSession, tmp_path: Path) -> None:
    run = loads(Story())
    for number in range(1, 4001):
        run.checkpoint(number, number * 0.005, number * 0.005 + 0.002)
    injected(run)
    run.at(25.0, Action.DRAINED)

    again = changed(
        lambda out: [out, out._replace(at_s=12.2011)] if out.record.index == 900 else [out]
    )
    result = judged(spark, tmp_path, again, run)

    assert result.outcome == Outcome.VIOLATED, result.summary
    assert [where.split("; ")[1] for _, where in groups(result)] == [
        "after checkpoint 2439, before 2440"
    ]


@pytest.mark.nightly
def test_records_out_of_order_are_attributed_by_their_write_time(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Two records of one key are swapped; a copy and an invented record far back are not out of
    order."""

    def change(out: OutputRecord) -> Iterable[OutputRecord]:
        index = out.record.index
        if index == 1050:  # after the next record of its key, written at 10.63 s
            return [out._replace(at_s=12.3)]
        invented = out.record._replace(key="k-00000 ", seq=10_000 - index)
        return [out, out._replace(record=invented)] if index in (1900, 1901) else [out]

    result = judged(spark, tmp_path, changed(change))

    during = "during kill on flink/taskmanager-1; after checkpoint 1, before 2; writer's attempt 1"
    assert groups(result)["reordered", f"totals: written {during}"] == 1
    (example,) = [f for f in result.findings if f.what == "reordered" and "cause" in f.detail]
    assert example.detail["cause"] == f"written {during}"
    assert result.counts["reordered"] == 1


@pytest.mark.nightly
def test_stamps_of_the_producer_do_not_show_the_write_time(
    spark: SparkSession, tmp_path: Path
) -> None:
    arrived = changed(lambda out: [out, out] if out.record.index == 900 else [out])
    case = judged_case(spark, tmp_path, arrived, killed(), stamped="create")

    (group, example) = ExactlyOnce().check(case).findings

    assert (group.what, group.where) == ("duplicated", "totals: at an unknown moment")
    assert group.detail["partitions"] == [str(written_records()[900].partition)]
    assert example.detail["cause"] == "at an unknown moment"


def test_a_clean_output_has_no_cause(spark: SparkSession, tmp_path: Path) -> None:
    assert judged(spark, tmp_path, changed(lambda out: [out])).findings == ()


def test_intervals_end_where_something_can_explain_an_anomaly() -> None:
    parts = cause_intervals(killed().history())

    assert [round(part.from_ns / 1e9, 3) for part in parts] == [0, 0.5, 8.2, 9.9, 12, 12.5, 14]
    assert parts[0].cause == "before any fault; before the first checkpoint; before the writer ran"
    assert parts[-1].cause.startswith("after kill on flink/taskmanager-1; after checkpoint 2;")
    assert [part.cause for part in cause_intervals(Story().history())] == ["before any fault"]


def test_an_interval_of_time_is_an_interval_of_indexes() -> None:
    parts = cause_intervals(killed().history())
    notes = [
        SentRange(0, 9, int(7e9), int(8e9)),
        SentRange(10, 19, int(8e9), int(9e9)),
        SentRange(20, 29, int(9e9), int(13e9)),
    ]

    assert first_sent_indexes(notes, parts) == (0, 0, 10, 20, 20, 20, 30)
    assert first_sent_indexes([], parts) == (0,) * 7


@pytest.mark.nightly
def test_an_example_has_the_input_position_of_its_record(
    spark: SparkSession, tmp_path: Path
) -> None:
    sent = ((f'{{"index": {index}}}', index % 3, index + 7) for index in (899, 900, 901))
    into = StoredOutput(path=tmp_path / INPUT_FOLDER)
    rows = [("input", part, offset, 0, None, value, True) for value, part, offset in sent]
    columns = "topic string, partition int, offset bigint, timestamp_ms bigint, key string"
    frame = spark.createDataFrame(rows, f"{columns}, value string, committed boolean")
    frame.coalesce(1).write.parquet(str(into.part("committed")))
    into.finish({"kind": "kafka", "uncommitted": 0, "ends": {}, "stable_ends": {}})

    result = judged(spark, tmp_path, changed(lambda o: [o, o] if o.record.index == 900 else [o]))

    (example,) = [each for each in result.findings if "records" not in each.detail]
    assert example.detail["source"] == "partition 0, offset 907"


@pytest.mark.nightly
def test_anomalies_in_files_are_attributed_by_file(spark: SparkSession, tmp_path: Path) -> None:
    dataset = Testbed(spark, tmp_path / "data")
    folder = tmp_path / "copied"
    folder.mkdir()
    (folder / "part-0-0").write_text("\n".join(values(RECORDS)) + "\n")
    (folder / "part-1-4").write_text("\n".join(values(RECORDS[:2])) + "\n")
    read_files(spark, folder, into=StoredOutput(path=dataset.data / "files"), source="/output/copy")

    result = dataset.judged(JobPromise(outputs={"files": FILES}, expected="SELECT * FROM sent"))

    (group,) = [each for each in result.findings if "records" in each.detail]
    assert (group.what, group.detail["records"]) == ("duplicated", 2)
    assert group.detail["files"] == ["part-1-4"]


@pytest.mark.nightly
def test_an_output_may_have_an_index_of_its_own(spark: SparkSession, tmp_path: Path) -> None:
    dataset = Testbed(spark, tmp_path).topic("copy", [*values(RECORDS[1:]), *values(RECORDS[5:6])])
    output = COPY.model_copy(update={"compare": ("index", "amount")})

    result = dataset.judged(JobPromise(outputs={"copy": output}, expected="SELECT * FROM sent"))

    assert (result.counts["lost"], result.counts["duplicated"]) == (1, 1), result.summary

"""Which outputs have append times, by the facts of their reading."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from streamquake.harness.experiment.check import JudgedRun
from streamquake.harness.experiment.model import Job
from streamquake.harness.experiment.outputs import JobPromise, Output
from streamquake.harness.verdict.evidence import append_times as evidence
from streamquake.harness.verdict.evidence.append_times import (
    AppendedRecords,
    AppendTimesUnknown,
    append_times_of,
)
from streamquake.reports.record.event import Action
from tests.harness.histories import Story, case

BEGAN_MS = 1_767_225_600_000
FACTS = {"stamped": "append", "began_ms": str(BEGAN_MS), "ends": {"0": 3, "1": 4, "2": 0}}
OUTPUTS = {
    "files": Output(hdfs="/output", compare=("amount",)),
    "totals": Output(kafka="totals-topic", compare=("amount",), map={"key": "account"}),
    "others": Output(kafka="others-topic", compare=("amount",)),
}


@dataclass
class Reading:
    """The reading of each output, in place of `StoredOutput`."""

    facts_reported: dict[str, Any]
    complete: bool = True
    other: str = ""
    lost: str = ""
    miscounted: str = ""
    away: str = ""
    copies: int = 0
    path: Path = Path()

    def facts(self) -> dict[str, Any]:
        return self.facts_reported

    def of_another(self, place: str) -> str:
        assert place == f"{self.path.name}-topic"
        return self.other

    def lost_files(self) -> str:
        return self.lost

    def miscount(self) -> str:
        return self.miscounted

    def misplaced(self) -> str:
        return self.away

    def unplaced(self) -> int:
        return 1

    def repeats_places(self) -> bool:
        return self.copies > 0

    def repeated_records(self) -> int:
        return self.copies

    def frame(self, spark: Any) -> Reading:
        assert spark == "session"
        return self

    def where(self, condition: str) -> tuple[str, str]:
        return self.path.name, condition


@pytest.fixture
def reading(monkeypatch: pytest.MonkeyPatch) -> Reading:
    created = Reading(dict(FACTS))

    def of_folder(path: Path) -> Reading:
        created.path = path
        return created

    monkeypatch.setattr(evidence, "StoredOutput", of_folder)
    monkeypatch.setattr(evidence, "_reject_steps_back", lambda found: None)
    monkeypatch.setattr(evidence, "clock_contradiction", lambda found, facts, history: None)
    return created


def a_case(folder: Path, *names: str) -> JudgedRun:
    created = case(Story(), folder)
    outputs = {name: OUTPUTS[name] for name in names}
    job = Job(sql="SELECT 1", promise=JobPromise(outputs=outputs))
    experiment = created.experiment.model_copy(update={"job": job})
    spark: Any = lambda: "session"  # noqa: E731 - in place of one
    return replace(created, experiment=experiment, spark=spark)


@pytest.mark.parametrize(("output", "name"), [(None, "totals"), ("others", "others")])
def test_the_first_topic_or_the_named_one_is_read(
    reading: Reading, tmp_path: Path, output: str | None, name: str
) -> None:
    found = append_times_of(a_case(tmp_path, "files", "totals", "others"), output)
    records: Any = (name, "committed")
    assert reading.path == tmp_path / "data" / name
    assert found == AppendedRecords(
        name=name,
        topic=f"{name}-topic",
        partitions=3,
        records=records,
        map=OUTPUTS[name].map,
        began_ms=BEGAN_MS,
    )
    assert found.ms(1_999_999) == BEGAN_MS + 1


@pytest.mark.parametrize(
    ("facts", "has_markers"),
    [
        ({}, False),  # a record of an older version
        ({"records": 30}, False),
        ({"records": 29}, True),
        ({"records": 27, "uncommitted": 3}, False),
        ({"records": 27, "uncommitted": 2}, True),
        ({"records": 25, "starts": {"0": 5}}, False),
        ({"records": 24, "starts": {"0": 5}}, True),
    ],
)
def test_offsets_without_a_record_are_markers_of_transactions(
    reading: Reading, tmp_path: Path, facts: dict[str, Any], has_markers: bool
) -> None:
    reading.facts_reported |= {"ends": {"0": 10, "1": 20, "2": 0}, **facts}
    assert append_times_of(a_case(tmp_path, "totals")).has_markers == has_markers


STAMPS = "not the moments at which the broker appended them"


@pytest.mark.parametrize(
    ("outputs", "output", "why"),
    [
        (("files",), None, "the job is no output that is a topic"),
        (("files", "totals"), "files", "files is no output that is a topic"),
        (("totals",), "other", "other is no output that is a topic"),
    ],
)
def test_only_a_topic_has_stamps(
    reading: Reading, tmp_path: Path, outputs: tuple[str, ...], output: str | None, why: str
) -> None:
    with pytest.raises(AppendTimesUnknown) as rejection:
        append_times_of(a_case(tmp_path, *outputs), output)
    assert str(rejection.value) == why


@pytest.mark.parametrize(
    ("about", "facts", "why"),
    [
        ({"complete": False}, {}, "totals: it was not read"),
        ({"lost": "1 of 8 files are missing"}, {}, "totals: 1 of 8 files are missing"),
        ({"other": "others was read"}, {}, "totals: others was read"),
        ({"miscounted": "9 records were read"}, {}, "totals: 9 records were read"),
        ({"away": "a record is stored at offset 9"}, {}, "totals: a record is stored at offset 9"),
        (
            {"copies": 2},
            {},
            "totals: 2 records have the position of another record and were not read",
        ),
        (
            {},
            {"stamped": "create"},
            f"totals: the stamps of its records are set by the producer, {STAMPS}",
        ),
        ({}, {"stamped": "mixed"}, f"totals: the stamps of its records are of two kinds, {STAMPS}"),
        ({}, {"stamped": None}, f"totals: the stamps of its records are unknown, {STAMPS}"),
        (
            {},
            {"began_ms": None},
            "totals: nothing relates the stamps of its records to the run's clock",
        ),
    ],
)
def test_an_incomplete_reading_has_no_append_times(
    reading: Reading, tmp_path: Path, about: dict[str, Any], facts: dict[str, Any], why: str
) -> None:
    for name, value in about.items():
        setattr(reading, name, value)
    reading.facts_reported |= facts
    with pytest.raises(AppendTimesUnknown) as rejection:
        append_times_of(a_case(tmp_path, "totals"))
    assert str(rejection.value) == why


@pytest.mark.parametrize(
    ("fault", "nodes", "known"),
    [
        ("clock_skew", ["flink/taskmanager-1", "kafka/broker-1"], False),
        ("clock_skew", None, False),  # an older record
        ("clock_skew", ["flink/taskmanager-1"], True),
        ("pause", ["kafka/broker-1"], True),
    ],
)
def test_a_fault_that_moved_the_clock_of_a_broker_leaves_no_append_times(
    reading: Reading, tmp_path: Path, fault: str, nodes: list[str] | None, known: bool
) -> None:
    """Forward, and not back before the load ended: the stamps themselves do not show it."""
    story = Story().at(1, Action.FAULT_CALLED, step=0, fault=fault, nodes=nodes)
    skewed = replace(a_case(tmp_path, "totals"), history=story.history())
    if known:
        assert append_times_of(skewed).name == "totals"
        return
    with pytest.raises(AppendTimesUnknown) as rejection:
        append_times_of(skewed)
    why = "totals: a fault moved a broker's clock, so its stamps mean nothing"
    assert str(rejection.value) == why


@pytest.mark.parametrize(("back_ms", "known"), [(0, True), (100, True), (101, False)])
def test_stamps_that_go_back_far_show_a_moved_clock(
    spark: SparkSession, back_ms: int, known: bool
) -> None:
    """Those of another partition are compared with nothing."""
    stamps = [(0, 0, 5000), (0, 1, 5000 - back_ms), (1, 0, 1000)]
    records = spark.createDataFrame(stamps, "partition int, offset bigint, timestamp_ms bigint")
    found = AppendedRecords(
        name="totals", topic="t", partitions=2, records=records, map={}, began_ms=0
    )
    if known:
        evidence._reject_steps_back(found)
    else:
        with pytest.raises(AppendTimesUnknown, match="go back by 101 ms"):
            evidence._reject_steps_back(found)


def test_stamps_that_contradict_the_history_are_no_append_times(
    reading: Reading, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    why = "the first record is stamped 20.0 s before anything was sent"
    monkeypatch.setattr(evidence, "clock_contradiction", lambda found, facts, history: why)
    with pytest.raises(AppendTimesUnknown, match=f"totals: {why}, so the clock of a broker"):
        append_times_of(a_case(tmp_path, "totals"))


def test_no_record_has_no_step_back(spark: SparkSession) -> None:
    columns = "partition int, offset bigint, timestamp_ms bigint"
    empty = spark.createDataFrame([], columns)
    evidence._reject_steps_back(
        AppendedRecords(name="totals", topic="t", partitions=2, records=empty, map={}, began_ms=0)
    )


def test_an_output_is_examined_once_for_all_checks_of_a_run(
    reading: Reading, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    examined: list[str] = []
    monkeypatch.setattr(evidence, "_reject_steps_back", lambda found: examined.append(found.name))
    judged = a_case(tmp_path, "totals", "others")

    first = append_times_of(judged)
    assert append_times_of(judged, "totals") is first
    assert append_times_of(judged, "others").name == "others"
    assert examined == ["totals", "others"]

    append_times_of(replace(judged, history=Story().history()))
    assert examined == ["totals", "others", "totals"]

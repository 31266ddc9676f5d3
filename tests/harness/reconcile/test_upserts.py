"""Compacted topics: the last record of a key counts, and a record without a value deletes it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from streamquake.harness.experiment.outputs import JobPromise, Output
from streamquake.harness.reconcile.comparison import DataComparison
from streamquake.harness.reconcile.result import VIOLATIONS
from streamquake.reports.record.outcome import CheckResult, Finding, Outcome, class_of
from streamquake.topologies.problems import BadInput
from tests.harness.reconcile.data_sets import Rows, comparison_of, nonzero_counts, write_rows
from tests.harness.reconcile.test_kafka_source import stub_brokers
from tests.harness.verdict.checks.test_exactly_once import Testbed

ID = "get_json_object(_key, '$.id')"
EXPECTED = [{"id": "a", "v": 3}, {"id": "b", "v": 5}]
EARLIER_VALUES = [("a", 1), ("b", 7), ("c", 9), ("b", None), ("a", 2)]
"""Records that are replaced or deleted later."""
FINAL_VALUES = [("c", None), ("b", 5), ("a", 3)]
KeyedValues = Sequence[tuple[str | None, Any]]


def key_of(name: str | None) -> str:
    return "{}" if name is None else json.dumps({"id": name})


def value_of(text: Any) -> str | None:
    return json.dumps({"v": text}) if isinstance(text, int) else text


class Topic:
    """A topic of keys and values, judged by the command and by a run."""

    def __init__(self, spark: SparkSession, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.spark, self.folder, self.patch = spark, folder, patch

    def comparison_of(
        self, *partitions: KeyedValues, expected: Rows = EXPECTED, **options: Any
    ) -> DataComparison:
        rows = [
            (number, at, at, key_of(name), value_of(value))
            for number, records in enumerate(partitions)
            for at, (name, value) in enumerate(records)
        ]
        ends = {number: len(records) for number, records in enumerate(partitions)}
        stub_brokers(self.patch, {"t": rows}, stable=ends, ends=ends)
        sent = write_rows(self.folder / "e.json", expected)
        requested = {"actual_key": ID, "compare": "v", "upsert": True, **options}
        return comparison_of(self.spark, sent, "kafka://b/t", **requested)

    def judged_by_run(self, records: KeyedValues, expected: Rows = EXPECTED) -> CheckResult:
        dataset = Testbed(self.spark, self.folder)
        dataset.topic(
            "copy",
            [value_of(value) for _, value in records],
            keys=[key_of(name) for name, _ in records],
        )
        output = Output(kafka="copy", identity=("id",), compare=("v",), upsert=True, map={"id": ID})
        rows = ", ".join(f"('{row['id']}', {row['v']}L)" for row in expected)
        promised = f"SELECT * FROM VALUES {rows} AS t(id, v)"
        return dataset.judged(JobPromise(outputs={"copy": output}, expected=promised))


@pytest.fixture
def topic(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Topic:
    return Topic(spark, tmp_path, monkeypatch)


CASES: dict[str, tuple[KeyedValues, set[str]]] = {
    "held": ([*EARLIER_VALUES, *FINAL_VALUES], set()),
    "an older value is last": ([*EARLIER_VALUES, *FINAL_VALUES, ("a", 2)], {"changed"}),
    "deleted": ([*EARLIER_VALUES, *FINAL_VALUES, ("b", None)], {"lost"}),
    "never deleted": ([*EARLIER_VALUES, *FINAL_VALUES[1:]], {"phantom"}),
    "deletes a key that was never written": ([*FINAL_VALUES, ("d", None)], set()),
    "null is a value": ([*FINAL_VALUES, ("b", '{"v":null}')], {"changed"}),
    "an object is a value": ([*FINAL_VALUES, ("b", "{}")], {"changed"}),
    "deleted and written again": ([*FINAL_VALUES, ("d", None), ("d", 4)], {"phantom"}),
    "an unreadable record deletes nothing": ([*FINAL_VALUES, ("b", ""), ("b", "null")], set()),
    "deletes an unknown key": ([*FINAL_VALUES, (None, None)], set()),
}
"""Case -> its records, and the classes of its anomalies."""
UNREADABLE = 3
"""The number of unreadable records in all cases; their keys are unknown."""


def records_of_all_cases() -> tuple[KeyedValues, list[dict[str, Any]]]:
    """The records of all cases, with different keys for each case, and the expected rows."""
    keyed_values = [
        (name and f"{case}: {name}", value)
        for case, (records, _) in CASES.items()
        for name, value in records
    ]
    return keyed_values, [
        {**row, "id": f"{case}: {row['id']}"} for case in CASES for row in EXPECTED
    ]


def by_case(findings: Iterable[Finding]) -> dict[str, set[str]]:
    classes: dict[str, set[str]] = {case: set() for case in CASES}
    for finding in findings:
        if (name := finding.detail.get("id")) is not None:
            classes[name.partition(":")[0]].add(finding.what)
    return classes


@pytest.mark.nightly
def test_both_ways_judge_the_last_record_of_a_key(topic: Topic) -> None:
    keyed_values, expected = records_of_all_cases()
    violations = {case: classes for case, (_, classes) in CASES.items()}

    result = topic.comparison_of(keyed_values, expected=expected)
    run = topic.judged_by_run(keyed_values, expected)

    assert by_case(result.findings) == violations
    assert (
        by_case(finding for finding in run.findings if class_of(finding) in VIOLATIONS)
        == violations
    )
    assert result.counts["malformed"] == run.counts["malformed"] == UNREADABLE
    assert result.counts["phantom"] == run.counts["phantom"]
    assert result.outcome == run.outcome == Outcome.VIOLATED


@pytest.mark.nightly
def test_both_ways_accept_an_expected_last_record(topic: Topic) -> None:
    keyed_values = [*EARLIER_VALUES, *FINAL_VALUES]

    assert (
        topic.comparison_of(keyed_values).outcome
        == topic.judged_by_run(keyed_values).outcome
        == Outcome.HELD
    )


@pytest.mark.nightly
def test_a_key_in_two_partitions_has_a_last_record_in_each(topic: Topic) -> None:
    result = topic.comparison_of(FINAL_VALUES, [("a", 1), ("a", 3), ("b", 5), ("b", None)])

    assert {name: count for name, count in nonzero_counts(result).items() if count} == {
        "duplicated": 1
    }
    assert result.counts["actual"] == 3


@pytest.mark.nightly
def test_without_the_option_every_record_counts(topic: Topic) -> None:
    result = topic.comparison_of([("a", 3), ("b", 5), ("b", 5), ("c", None)], upsert=False)

    assert {name: count for name, count in nonzero_counts(result).items() if count} == {
        "duplicated": 1,
        "phantom": 1,
    }


def test_a_topic_of_deleted_keys_is_undecided(topic: Topic) -> None:
    result = topic.comparison_of([("c", 1), ("c", None)], ack="'fail'")

    assert (result.outcome, result.counts["actual"]) == (Outcome.UNDECIDED, 0)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"retracts": "v = 1"}, "--upsert: it leaves one record of a key, so --retracts has"),
        ({"order": "v"}, "--upsert: it leaves one record of a key, so --order has no meaning"),
        (
            {"sequence": "v"},
            "--upsert: it leaves one record of a key, so --sequence has no meaning",
        ),
        ({"actual_key": "id"}, "--key: a record without a value must name the key that it deletes"),
    ],
)
def test_options_that_contradict_upsert_are_rejected(
    topic: Topic, options: dict[str, Any], text: str
) -> None:
    with pytest.raises(BadInput, match=re.escape(text)):
        topic.comparison_of(FINAL_VALUES, **options)


def test_files_have_no_last_record(spark: SparkSession, tmp_path: Path) -> None:
    same = write_rows(tmp_path / "e.json", EXPECTED)

    with pytest.raises(BadInput, match="--upsert: it is for topics: files have no key, and no"):
        comparison_of(spark, same, same, actual_key="_key", upsert=True)

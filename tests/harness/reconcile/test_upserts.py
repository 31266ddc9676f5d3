"""Compacted topics: of records with one key the last counts, and one without a value deletes."""

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
from tests.harness.reconcile.data_sets import Rows, compared, found, write
from tests.harness.reconcile.test_kafka_source import brokers_hold
from tests.harness.verdict.checks.test_exactly_once import Testbed

ID = "get_json_object(_key, '$.id')"
EXPECTED = [{"id": "a", "v": 3}, {"id": "b", "v": 5}]
ON_ITS_WAY = [("a", 1), ("b", 7), ("c", 9), ("b", None), ("a", 2)]
"""What is replaced and deleted later."""
AT_THE_END = [("c", None), ("b", 5), ("a", 3)]
GivenText = Sequence[tuple[str | None, Any]]


def key_of(name: str | None) -> str:
    return "{}" if name is None else json.dumps({"id": name})


def value_of(text: Any) -> str | None:
    return json.dumps({"v": text}) if isinstance(text, int) else text


class Topic:
    """A topic of keys and what was said of them, judged by both ways."""

    def __init__(self, spark: SparkSession, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.spark, self.folder, self.patch = spark, folder, patch

    def compared(
        self, *partitions: GivenText, expected: Rows = EXPECTED, **options: Any
    ) -> DataComparison:
        rows = [
            (number, at, at, key_of(name), value_of(message))
            for number, records in enumerate(partitions)
            for at, (name, message) in enumerate(records)
        ]
        ends = {number: len(records) for number, records in enumerate(partitions)}
        brokers_hold(self.patch, {"t": rows}, stable=ends, ends=ends)
        sent = write(self.folder / "e.json", expected)
        requested = {"actual_key": ID, "compare": "v", "upsert": True, **options}
        return compared(self.spark, sent, "kafka://b/t", **requested)

    def of_a_run(self, records: GivenText, expected: Rows = EXPECTED) -> CheckResult:
        dataset = Testbed(self.spark, self.folder)
        dataset.topic(
            "copy",
            [value_of(message) for _, message in records],
            keys=[key_of(name) for name, _ in records],
        )
        output = Output(kafka="copy", identity=("id",), compare=("v",), upsert=True, map={"id": ID})
        rows = ", ".join(f"('{row['id']}', {row['v']}L)" for row in expected)
        promised = f"SELECT * FROM VALUES {rows} AS t(id, v)"
        return dataset.judged(JobPromise(outputs={"copy": output}, expected=promised))


@pytest.fixture
def topic(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Topic:
    return Topic(spark, tmp_path, monkeypatch)


CASES: dict[str, tuple[GivenText, set[str]]] = {
    "held": ([*ON_ITS_WAY, *AT_THE_END], set()),
    "an older value stands": ([*ON_ITS_WAY, *AT_THE_END, ("a", 2)], {"changed"}),
    "deleted": ([*ON_ITS_WAY, *AT_THE_END, ("b", None)], {"lost"}),
    "never deleted": ([*ON_ITS_WAY, *AT_THE_END[1:]], {"phantom"}),
    "deletes what never was": ([*AT_THE_END, ("d", None)], set()),
    "null is a value": ([*AT_THE_END, ("b", '{"v":null}')], {"changed"}),
    "an object is a value": ([*AT_THE_END, ("b", "{}")], {"changed"}),
    "deleted and there": ([*AT_THE_END, ("d", None), ("d", 4)], {"phantom"}),
    "what cannot be read deletes nothing": ([*AT_THE_END, ("b", ""), ("b", "null")], set()),
    "deletes an unknown key": ([*AT_THE_END, (None, None)], set()),
}
"""What is said, and the classes of what then is wrong with the keys of the case."""
UNREAD = 3
"""Records of all cases that cannot be read; their keys are unknown."""


def of_all_cases() -> tuple[GivenText, list[dict[str, Any]]]:
    """The records of all cases, each with keys of its own, and what is expected of them."""
    message = [
        (name and f"{case}: {name}", value)
        for case, (records, _) in CASES.items()
        for name, value in records
    ]
    return message, [{**row, "id": f"{case}: {row['id']}"} for case in CASES for row in EXPECTED]


def by_case(findings: Iterable[Finding]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {case: set() for case in CASES}
    for each in findings:
        if (name := each.detail.get("id")) is not None:
            found[name.partition(":")[0]].add(each.what)
    return found


def test_both_ways_judge_the_last_record_of_a_key(topic: Topic) -> None:
    message, expected = of_all_cases()
    wrong = {case: classes for case, (_, classes) in CASES.items()}

    result = topic.compared(message, expected=expected)
    run = topic.of_a_run(message, expected)

    assert by_case(result.findings) == wrong
    assert by_case(each for each in run.findings if class_of(each) in VIOLATIONS) == wrong
    assert result.counts["malformed"] == run.counts["malformed"] == UNREAD
    assert result.counts["phantom"] == run.counts["phantom"]
    assert result.outcome == run.outcome == Outcome.VIOLATED


def test_both_ways_hold_an_expected_last_record(topic: Topic) -> None:
    message = [*ON_ITS_WAY, *AT_THE_END]

    assert topic.compared(message).outcome == topic.of_a_run(message).outcome == Outcome.HELD


def test_of_one_key_in_two_partitions_each_has_its_own_last(topic: Topic) -> None:
    result = topic.compared(AT_THE_END, [("a", 1), ("a", 3), ("b", 5), ("b", None)])

    assert {name: count for name, count in found(result).items() if count} == {"duplicated": 1}
    assert result.counts["actual"] == 3


def test_without_the_option_every_record_counts(topic: Topic) -> None:
    result = topic.compared([("a", 3), ("b", 5), ("b", 5), ("c", None)], upsert=False)

    assert {name: count for name, count in found(result).items() if count} == {
        "duplicated": 1,
        "phantom": 1,
    }


def test_the_last_of_nothing_proves_nothing(topic: Topic) -> None:
    result = topic.compared([("c", 1), ("c", None)], ack="'fail'")

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
        topic.compared(AT_THE_END, **options)


def test_files_have_no_last_record(spark: SparkSession, tmp_path: Path) -> None:
    same = write(tmp_path / "e.json", EXPECTED)

    with pytest.raises(BadInput, match="--upsert: it is for topics: files have no key, and no"):
        compared(spark, same, same, actual_key="_key", upsert=True)

"""A job may call its columns as it likes, also as those that the judge adds: the verdict, the
examples and their causes are the same, and those of `reconcile` too."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from streamquake.harness.experiment.outputs import JobPromise, Output
from streamquake.harness.reconcile.identity_join import quote_name
from streamquake.harness.reconcile.result import VIOLATIONS
from streamquake.harness.reconcile.shape import shown_name
from streamquake.harness.workloads.numbered.records import Record
from streamquake.reports.record.outcome import CheckResult, Finding, Outcome
from tests.harness.reconcile.data_sets import comparison_of
from tests.harness.verdict.checks.test_exactly_once import RECORDS, Testbed, changed

PLAIN = ("id", "turn", "cents", *(f"v{at}" for at in range(17)))
"""The columns of the plain twin: the identity, and compared ones."""
ODD = (
    *("lost", "ok", "what", "hash", "class", "duplicated", "__before", "count", "a.b", "*"),
    *("sent", "cause", "bucket", "_rank", "_value_0", "c0", "status", "lane", "_index", "turn"),
)
CLASSES = ("lost", "duplicated", "phantom", "changed", "reordered", "malformed", "regression")


def written() -> Iterator[tuple[Record, bool]]:
    """Records with every class of anomaly; some cannot be read."""
    records = list(RECORDS)
    first, second = [at for at, record in enumerate(records) if record.key == "k-00001"][3:5]
    records[first], records[second] = records[second], records[first]
    records[20] = changed(records[20])
    for record in (*records[:10], *records[12:], records[30], records[30]):
        yield record, True
    yield records[5]._replace(seq=9999), True
    yield records[6], False


def line(record: Record, readable: bool, names: tuple[str, ...], at: int) -> str:
    key, turn, *values = names
    fields: dict[str, Any] = {key: record.key, turn: record.seq if readable else "none"}
    return json.dumps({**fields, **dict.fromkeys(values, record.amount), "position of it": at})


def expectation(names: tuple[str, ...]) -> str:
    columns = ("key", "seq", *["amount"] * (len(names) - 2))
    return ", ".join(f"{c} AS {quote_name(n)}" for c, n in zip(columns, names, strict=True))


def judged_run(spark: SparkSession, data: Path, names: tuple[str, ...]) -> CheckResult:
    testbed = Testbed(spark, data)
    testbed.topic("copy", [line(*one, names, at) for at, one in enumerate(written())])
    output = Output(
        kafka="copy",
        identity=names[:2],
        compare=names[2:],
        order=names[1],
        order_by=names[:1],
        also=("regression",),
    )
    query = f"SELECT {expectation(names)} FROM sent"
    return testbed.judged(JobPromise(outputs={"copy": output}, expected=query))


def renamed(detail: Any, names: Mapping[str, str]) -> Any:
    if isinstance(detail, Mapping):
        return {names.get(name, name): renamed(value, names) for name, value in detail.items()}
    if isinstance(detail, (list, tuple)):
        return [renamed(value, names) for value in detail]
    return detail


def without_raw_text(finding: Finding) -> Finding:
    """A finding without the text of a record that could not be read, which has the names."""
    seen = [
        {**each, "value": ""} if "value" in each else each
        for each in finding.detail.get("seen", ())
    ]
    return Finding(what=finding.what, where=finding.where, detail={**finding.detail, "seen": seen})


@pytest.mark.nightly
@pytest.mark.parametrize("first", [0, 6, 12])
def test_every_class_is_found_whatever_the_columns_are_called(
    spark: SparkSession, tmp_path: Path, first: int
) -> None:
    odd = (*ODD[first:], *ODD[:first])

    plain_result = judged_run(spark, tmp_path / "plain", PLAIN)
    odd_result = judged_run(spark, tmp_path / "odd", odd)

    names = dict(zip(PLAIN, map(shown_name, odd), strict=True))
    assert all(plain_result.counts[name] for name in CLASSES)
    assert {finding.what for finding in plain_result.findings} == {*CLASSES} - {"malformed"}
    assert odd_result.outcome == plain_result.outcome == Outcome.VIOLATED
    assert (odd_result.summary, odd_result.counts) == (plain_result.summary, plain_result.counts)
    for own, other in zip(odd_result.findings, plain_result.findings, strict=True):
        expected = without_raw_text(other)
        assert without_raw_text(own) == Finding(
            what=expected.what, where=expected.where, detail=renamed(expected.detail, names)
        )


@pytest.mark.nightly
def test_a_column_may_be_called_as_the_mark_of_a_malformed_record(
    spark: SparkSession, tmp_path: Path
) -> None:
    testbed = Testbed(spark, tmp_path)
    for name, value in (("right", "false"), ("wrong", "true")):
        lines = [f'{{"key": "{r.key}", "seq": {r.seq}, "_malformed": {value}}}' for r in RECORDS]
        testbed.topic(name, lines)
    query = "SELECT key, seq, false AS _malformed FROM sent"
    outputs = {name: Output(kafka=name, compare=("_malformed",)) for name in ("right", "wrong")}

    result = testbed.judged(JobPromise(outputs=outputs, expected=query))

    assert result.counts["right.changed"] == 0
    assert result.counts["wrong.changed"] == len(RECORDS)


@pytest.mark.parametrize("name", ["_value", "_offset", "_corrupt"])
def test_a_column_with_the_name_of_an_internal_one_is_not_judged(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    """It is beside the job's fields while they are read. A computed one is no field."""
    testbed = Testbed(spark, tmp_path)
    lines = [f'{{"key": "{r.key}", "seq": {r.seq}, "{name}": 1}}' for r in RECORDS]
    testbed.topic("copy", lines)
    query = f"SELECT key, seq, CAST(1 AS BIGINT) AS {name} FROM sent"
    output = Output(kafka="copy", compare=(name,))
    computed = output.model_copy(update={"map": {name: "CAST(seq - seq + 1 AS BIGINT)"}})

    rejected = testbed.judged(JobPromise(outputs={"copy": output}, expected=query))
    result = testbed.judged(JobPromise(outputs={"copy": computed}, expected=query))
    assert rejected.outcome == Outcome.UNDECIDED
    assert f"the job's fields `{name}` have names of internal columns" in rejected.summary
    assert result.outcome == Outcome.HELD, result.summary


@pytest.mark.nightly
def test_the_command_finds_the_same_in_such_columns(spark: SparkSession, tmp_path: Path) -> None:
    result = judged_run(spark, tmp_path / "run", ODD)
    spark.sql(f"SELECT {expectation(ODD)} FROM sent").write.parquet(str(tmp_path / "expected"))
    actual = tmp_path / "actual.json"
    lines = [line(*one, ODD, at) for at, one in enumerate(written())]
    actual.write_text("".join(f"{each}\n" for each in lines))

    key, turn, *values = map(quote_name, ODD)
    command = comparison_of(
        spark,
        tmp_path / "expected",
        actual,
        key,
        sequence=turn,
        compare=", ".join(values),
        order="`position of it`",
    )

    assert {name: command.counts[name] for name in VIOLATIONS} == {
        name: result.counts[name] for name in VIOLATIONS
    }
    assert Counter(each.what for each in command.findings) == Counter(
        each.what
        for each in result.findings
        if each.what in VIOLATIONS and "records" not in each.detail  # not the sums by cause
    )

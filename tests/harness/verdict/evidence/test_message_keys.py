"""Whether the message keys of an output are the keys of its records."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streamquake.harness.verdict.evidence.append_times import append_times_of
from streamquake.harness.verdict.evidence.message_keys import (
    NOT_SENT,
    OTHER_COLUMN,
    SPREAD,
    message_key_doubt,
)
from streamquake.harness.verdict.expected_output import register_sent
from tests.harness.verdict.checks.stamped import (
    INJECTED_S,
    OutputRecord,
    bucket_key,
    changed,
    judged_case,
    number,
)

WITHOUT_KEY = "SELECT seq, amount, checksum FROM sent"


def as_it_is(out: OutputRecord) -> OutputRecord:
    return out


def with_bucket(out: OutputRecord) -> OutputRecord:
    return out._replace(message_key=bucket_key(out))


def with_one_common_value(out: OutputRecord) -> OutputRecord:
    key = "k-00007" if number(out.record) == 1 else f"z-{number(out.record)}"
    return out._replace(message_key=key)


def moved_by_the_fault(out: OutputRecord) -> OutputRecord:
    """As after a rescale."""
    return out._replace(partition=0) if out.at_s > INJECTED_S else out


def doubt_of(
    spark: SparkSession,
    folder: Path,
    change: Callable[[OutputRecord], OutputRecord],
    expected: str | None = None,
) -> str | None:
    def each(out: OutputRecord) -> Iterable[OutputRecord]:
        return [change(out)]

    case = judged_case(spark, folder, changed(each))
    job = case.experiment.job
    if expected is not None and job is not None:
        promise = job.promise.model_copy(update={"expected": expected})
        job = job.model_copy(update={"promise": promise})
        case = replace(case, experiment=case.experiment.model_copy(update={"job": job}))
    register_sent(case)
    return message_key_doubt(case, append_times_of(case))


@pytest.mark.nightly_after(2)
@pytest.mark.parametrize(
    ("change", "doubt"),
    [
        (as_it_is, None),
        (moved_by_the_fault, None),
        (with_bucket, OTHER_COLUMN),
        (with_one_common_value, OTHER_COLUMN),
    ],
)
def test_the_column_key_shows_the_key_of_each_record(
    spark: SparkSession,
    tmp_path: Path,
    change: Callable[[OutputRecord], OutputRecord],
    doubt: str | None,
) -> None:
    assert doubt_of(spark, tmp_path, change) == doubt


@pytest.mark.nightly_after(2)
@pytest.mark.parametrize(
    ("change", "doubt"),
    [
        (as_it_is, None),
        (moved_by_the_fault, None),
        (with_bucket, SPREAD),
        (with_one_common_value, NOT_SENT),
    ],
)
def test_without_that_column_keys_were_sent_and_are_in_one_partition(
    spark: SparkSession,
    tmp_path: Path,
    change: Callable[[OutputRecord], OutputRecord],
    doubt: str | None,
) -> None:
    assert doubt_of(spark, tmp_path, change, WITHOUT_KEY) == doubt

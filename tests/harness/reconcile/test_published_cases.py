"""Histories whose verdict others have published: the test cases of Jepsen's checkers, as two sides.

The last read of a history is the actual side; its sends are the expected side: `ok`, `fail`, or
`unknown` where the result is unknown (`info`, or an invocation without a completion).
https://github.com/jepsen-io/jepsen: jepsen/test/jepsen/checker_test.clj (total-queue-test,
set-full-test) and jepsen/test/jepsen/tests/kafka_test.clj (g1a-test), read in November 2026.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from pyspark.sql import SparkSession

from streamquake.reports.record.outcome import Outcome
from tests.harness.reconcile.data_sets import comparison_of, nonzero_counts


class PublishedCase(NamedTuple):
    name: str
    sends: Sequence[tuple[str, str]]
    received: Sequence[str]
    violations: dict[str, int]
    """The counts of the published verdict, by the names of this project: an unexpected value, or
    one of a failed send, is a phantom; a recovered one is unknown_arrived."""


CASES = (
    PublishedCase(
        "total-queue, sane", [("1", "unknown"), ("2", "ok")], ["1", "2"], {"unknown_arrived": 1}
    ),
    PublishedCase(
        "total-queue, pathological",
        [("hung", "unknown"), ("enqueued", "ok"), ("dup", "ok")],
        ["wtf", "dup", "dup"],
        {"lost": 1, "duplicated": 1, "phantom": 1, "unknown_absent": 1},
    ),
    PublishedCase(
        "set-full, never confirmed, never read", [("0", "unknown")], [], {"unknown_absent": 1}
    ),
    PublishedCase("set-full, subsequent read", [("0", "ok")], ["0"], {}),
    PublishedCase("set-full, absent read after", [("0", "ok")], [], {"lost": 1}),
    PublishedCase("set-full, write, present, missing", [("0", "ok"), ("1", "ok")], [], {"lost": 2}),
    PublishedCase(
        "set-full, write, flutter, stable/lost", [("0", "ok"), ("1", "ok")], ["1"], {"lost": 1}
    ),
    PublishedCase(
        "kafka, g1a: a failed send is read",
        [("2", "fail"), ("3", "fail")],
        ["2"],
        {"phantom": 1},
    ),
)
NEVER_VIOLATIONS = {"unknown_arrived", "unknown_absent"}


@pytest.mark.nightly
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_the_verdict_equals_the_published_one(
    spark: SparkSession, tmp_path: Path, case: PublishedCase
) -> None:
    sent, received = tmp_path / "sent.json", tmp_path / "received.json"
    lines = (f'{{"id": "{value}", "ack": "{ack}"}}\n' for value, ack in case.sends)
    sent.write_text("".join(lines))
    received.write_text("".join(f'{{"id": "{value}"}}\n' for value in case.received))

    result = comparison_of(spark, sent, received, ack="ack")

    assert {
        name: count for name, count in nonzero_counts(result).items() if count
    } == case.violations
    assert (result.outcome == Outcome.VIOLATED) == bool(case.violations.keys() - NEVER_VIOLATIONS)


def test_an_empty_history_is_undecided(spark: SparkSession, tmp_path: Path) -> None:
    """Jepsen calls an empty queue valid (total-queue, empty). Here it is undecided, since nothing
    was tested."""
    empty = tmp_path / "none.json"
    empty.write_text("")

    assert comparison_of(spark, empty, empty).outcome == Outcome.UNDECIDED

"""Histories whose verdict others have published: the test cases of Jepsen's checkers, as two sides.

What a history's last reading returned is the actual side; its sends are the expected one: `ok`,
`fail`, or `unknown` where no answer came (`info`, or an invocation alone).
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
from tests.harness.reconcile.data_sets import compared, found


class Published(NamedTuple):
    name: str
    sends: Sequence[tuple[str, str]]
    seen: Sequence[str]
    wrong: dict[str, int]
    """What the published verdict counts, by our names: what is unexpected, or of a failed send, is
    phantom; what is recovered, unknown_arrived."""


CASES = (
    Published(
        "total-queue, sane", [("1", "unknown"), ("2", "ok")], ["1", "2"], {"unknown_arrived": 1}
    ),
    Published(
        "total-queue, pathological",
        [("hung", "unknown"), ("enqueued", "ok"), ("dup", "ok")],
        ["wtf", "dup", "dup"],
        {"lost": 1, "duplicated": 1, "phantom": 1, "unknown_absent": 1},
    ),
    Published(
        "set-full, never confirmed, never read", [("0", "unknown")], [], {"unknown_absent": 1}
    ),
    Published("set-full, subsequent read", [("0", "ok")], ["0"], {}),
    Published("set-full, absent read after", [("0", "ok")], [], {"lost": 1}),
    Published("set-full, write, present, missing", [("0", "ok"), ("1", "ok")], [], {"lost": 2}),
    Published(
        "set-full, write, flutter, stable/lost", [("0", "ok"), ("1", "ok")], ["1"], {"lost": 1}
    ),
    Published(
        "kafka, g1a: a failed send is seen", [("2", "fail"), ("3", "fail")], ["2"], {"phantom": 1}
    ),
)
NEVER_WRONG = {"unknown_arrived", "unknown_absent"}


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_the_published_verdict_is_ours(
    spark: SparkSession, tmp_path: Path, case: Published
) -> None:
    sent, seen = tmp_path / "sent.json", tmp_path / "seen.json"
    lines = (f'{{"id": "{value}", "ack": "{ack}"}}\n' for value, ack in case.sends)
    sent.write_text("".join(lines))
    seen.write_text("".join(f'{{"id": "{value}"}}\n' for value in case.seen))

    result = compared(spark, sent, seen, ack="ack")

    assert {name: count for name, count in found(result).items() if count} == case.wrong
    assert (result.outcome == Outcome.VIOLATED) == bool(case.wrong.keys() - NEVER_WRONG)


def test_nothing_at_all_proves_nothing_here(spark: SparkSession, tmp_path: Path) -> None:
    """An empty queue is valid to Jepsen (total-queue, empty): here it would not have been
    tested."""
    empty = tmp_path / "none.json"
    empty.write_text("")

    assert compared(spark, empty, empty).outcome == Outcome.UNDECIDED

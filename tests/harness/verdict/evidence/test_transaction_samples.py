"""What coordinators reported of a run's transactional ids, with values that are missing."""

from __future__ import annotations

from typing import Any

import pytest

from streamquake.harness.verdict.evidence.transaction_samples import (
    TransactionalId,
    TransactionSample,
    timed_out,
    unreported_ids,
)

ASKED_MS = 100_000.0


def transaction(name: str, state: str, **report: Any) -> TransactionalId:
    values = {"id": name, "state": state, "timeout_ms": 10_000, "started_ms": 85_000, **report}
    return TransactionalId(report=values, asked_ms=ASKED_MS)


def sample(*ids: TransactionalId, asked_ms: float | None = ASKED_MS) -> TransactionSample:
    return TransactionSample(after="drain", asked_ms=asked_ms, ids=ids, unanswered="")


@pytest.mark.parametrize("last_first", [False, True])
def test_of_several_forgotten_ids_an_open_one_is_named(last_first: bool) -> None:
    before = [transaction("a", "CompleteCommit"), transaction("b", "Ongoing")]
    before = before[::-1] if last_first else before
    message = unreported_ids(sample(transaction("c", "Empty")), [sample(*before)])
    assert message == "after the drain nothing was reported of b, whose transaction was not over"


def test_a_forgotten_id_may_be_over_or_dead() -> None:
    over = sample(transaction("a", "Empty"), transaction("d", "Dead"))
    message = unreported_ids(sample(transaction("c", "Empty")), [over])
    assert message == "after the drain nothing was reported of a, whose transaction was over"
    dead = sample(transaction("d", "Dead"), transaction("c", "Empty"))
    assert unreported_ids(sample(transaction("c", "Empty")), [dead]) == ""


@pytest.mark.parametrize(
    ("report", "count"),
    [
        ({}, 1),
        ({"timeout_ms": 15_000}, 1),
        ({"timeout_ms": 15_001}, 0),
        ({"timeout_ms": None}, 0),
        ({"timeout_ms": 2**31}, 0),
        ({"timeout_ms": 0}, 1),
        ({"timeout_ms": -1}, 0),
        ({"started_ms": None}, 0),
        ({"started_ms": 0}, 1),
        ({"started_ms": "85000"}, 0),
    ],
)
def test_an_aborted_transaction_timed_out_if_its_time_out_had_passed(
    report: dict[str, Any], count: int
) -> None:
    first = sample(transaction("a", "Ongoing", **report))
    last = sample(transaction("a", "CompleteAbort"))
    assert timed_out([first, last]) == count


def test_without_the_moment_of_the_last_query_none_is_known_to_have_timed_out() -> None:
    first = sample(transaction("a", "Ongoing"))
    assert timed_out([first, sample(transaction("a", "CompleteAbort"), asked_ms=None)]) == 0
    assert timed_out([first]) is None

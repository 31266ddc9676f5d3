"""Which failure is not attributed to a fault, whatever "back" means to the part that asks."""

from __future__ import annotations

import pytest

from streamquake.harness.verdict.evidence.unattributed_failure import first_unattributed

S = 10**9


@pytest.mark.parametrize(
    ("failures_s", "expected_s"),
    [
        ((), None),
        ((29,), None),
        ((30,), 30),
        ((20, 49), None),
        ((20, 50), 50),
        ((20, 49, 79), 79),
        ((40, 80), 40),
    ],
)
def test_nothing_may_have_failed_for_30_s_before(
    failures_s: tuple[int, ...], expected_s: int | None
) -> None:
    """A failure soon after another, or soon after the begin of the run, may belong to it."""
    found_ns = first_unattributed([each * S for each in failures_s], lambda at_ns, failure_ns: True)
    assert found_ns == (None if expected_s is None else expected_s * S)


def test_the_system_must_have_been_back_30_s_before_the_failure() -> None:
    asked: list[tuple[int, int]] = []

    def was_back(at_ns: int, failure_ns: int) -> bool:
        asked.append((at_ns // S, failure_ns // S))
        return failure_ns == 90 * S

    assert first_unattributed([50 * S, 90 * S, 130 * S], was_back) == 90 * S
    assert asked == [(20, 50), (60, 90)]

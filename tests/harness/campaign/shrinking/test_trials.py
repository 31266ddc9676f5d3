"""When the tries of a candidate decide."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamquake.harness.campaign.shrinking.trials import Rule, Try, TryOutcome, in_words

LETTERS = {"f": TryOutcome.FAILS, "p": TryOutcome.PASSES, "u": TryOutcome.UNDECIDED}


def tries(letters: str) -> list[Try]:
    return [Try(run=None, outcome=LETTERS[letter], why="") for letter in letters]


@pytest.mark.parametrize(
    ("letters", "verdict"),
    [
        ("", None),
        ("f", None),
        ("ff", True),
        ("fpf", True),
        ("pp", False),
        ("fpp", False),
        ("fp", None),
        ("fuuuf", True),
        ("fuuu", None),
        ("fuuuu", False),
        ("uuup", None),
    ],
)
def test_two_of_three_decide_as_early_as_possible(letters: str, verdict: bool | None) -> None:
    assert Rule.of(2, 3).verdict(tries(letters)) is verdict


@given(st.integers(1, 5), st.integers(0, 5), st.text("fpu", max_size=40))
def test_the_tries_end_and_decide_by_the_failures(k: int, more: int, letters: str) -> None:
    rule = Rule.of(k, k + more)
    ends = next((n for n in range(41) if rule.verdict(tries(letters[:n])) is not None), None)
    assert ends is None or ends <= 2 * rule.tries + 1
    if ends is not None:
        counts = rule.verdict(tries(letters[:ends]))
        assert counts is (letters[:ends].count("f") >= k)


def test_the_tries_as_words() -> None:
    assert in_words(tries("ffpu")) == "fails 2 of 3, 1 undecided"
    assert in_words(tries("")) == "fails 0 of 0"


def test_the_fewest_tries_until_a_candidate_does_not_count() -> None:
    assert [Rule.of(*rule).fewest for rule in ((1, 1), (1, 3), (2, 3), (3, 3))] == [1, 3, 2, 1]

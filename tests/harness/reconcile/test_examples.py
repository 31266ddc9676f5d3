"""What is shown of a record that breaks a promise."""

from __future__ import annotations

from streamquake.harness.reconcile.examples import MAX_TEXT, clipped


def test_of_a_long_text_the_beginning_and_the_length_are_shown() -> None:
    shown = clipped("x" * 900_000)

    assert shown == "x" * MAX_TEXT + "… (900,000 characters)"


def test_what_is_short_is_shown_whole() -> None:
    assert [clipped(value) for value in ("abc", 17, None)] == ["abc", 17, None]

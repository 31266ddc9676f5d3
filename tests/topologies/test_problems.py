"""The end of a message about an unknown word: the nearest one, and what else is known."""

from __future__ import annotations

from streamquake.topologies.problems import MANY, MANY_SHOWN, did_you_mean


def test_the_nearest_word_and_all_words_are_named() -> None:
    known = ["kill", "pause", "isolate"]
    assert did_you_mean("kil", known) == '; did you mean "kill"? known: isolate, kill, pause'
    assert did_you_mean("zzzzz", known) == "; known: isolate, kill, pause"
    assert did_you_mean("kill", []) == "; known: none"


def test_of_many_words_the_nearest_are_named() -> None:
    known = [f"checkpoint-{n}" for n in range(MANY)]
    assert did_you_mean("x", known).count("checkpoint-") == MANY
    message = did_you_mean("restore", [*known, "restart", "restored"])
    assert message.startswith('; did you mean "restored"? ')
    assert f"{MANY + 2} are known, such as restored, restart, " in message
    assert message.partition("such as ")[2].count(",") == MANY_SHOWN - 1

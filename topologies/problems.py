"""The problems of an input, worded so that the reader can fix them.

Every loader collects all problems of a document before it fails, so that one run of `validate`
shows everything that must be fixed.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from streamquake.topologies.errors import ErrorKind, StreamquakeError

LONGEST_WORD = 100
"""The number of compared characters of a word: the time grows with its square."""
MANY = 60
"""The most known words that a message lists. There are as many faults, and more experiments."""
MANY_SHOWN = 10
"""How many of more words it lists."""


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One problem of an input: its place, the expected value, and the received one."""

    file: str
    message: str
    line: int | None = None
    path: str = ""

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return ": ".join(part for part in (place, self.path, self.message) if part)


class BadInput(StreamquakeError):
    """An input that cannot be used; carries every problem found in it."""

    kind = ErrorKind.BAD_INPUT

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


def bad_input(place: str, message: str, line: int | None = None) -> BadInput:
    """An error with one problem; `place` is a file, an option or another name of the input."""
    return BadInput([Problem(file=place, line=line, message=message)])


def with_further(found: Iterable[Problem], further: Iterable[Problem]) -> list[Problem]:
    """The problems found, and further ones of other places: at the same place they only follow."""
    first = list(found)
    places = {problem.path for problem in first}
    return [*first, *(problem for problem in further if problem.path not in places)]


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The nearest known word as a question, then all known words, or the nearest `MANY_SHOWN` of
    more than `MANY`; for the end of a message."""
    return _did_you_mean(word, tuple(sorted(known)))


@lru_cache(maxsize=256)  # a document may have the same mistake in many places
def _did_you_mean(word: str, words: tuple[str, ...]) -> str:
    plain = {known_word.casefold(): known_word for known_word in words}
    looked_for = word[:LONGEST_WORD].casefold()
    near = difflib.get_close_matches(looked_for, plain, n=1)
    question = f'; did you mean "{plain[near[0]]}"?' if near else ";"
    if len(words) <= MANY:
        return f"{question} known: {', '.join(words) or 'none'}"
    nearest = difflib.get_close_matches(looked_for, plain, n=MANY_SHOWN, cutoff=0.0)
    return (
        f"{question} {len(words)} are known, such as {', '.join(plain[each] for each in nearest)}"
    )

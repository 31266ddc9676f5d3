"""Names and sentences use the terms of the field: no file has a word of the table `BETTER`. The
idea is from TigerBeetle's `tidy`."""

from __future__ import annotations

import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
MIN_FILES = 1_000
"""With fewer files than this, the list is not the whole project."""
BETTER = {
    "nought": "zero",
    "mend|mends|mended|mending": "fix, repair",
    "goodbye": "clean-up",
    "strike|strikes|struck|striking": "inject, take effect",
    "bite|bites|bitten": "take effect",
    "seen to bite": "in effect, verified",
    "bed|beds": "cluster lease",
    "manner|manners": "generation parameters",
    "tooth|teeth": "interval, sawtooth",
    "trouble|troubles": "problem",
    "unfit": "unsuitable",
    "nobody|whoever|somebody": "the actor: another process, no node, a reader",
    "whose doing": "attribution",
    "drill|drills": "row diff",
    "victim|victims": "affected subtask",
    "last words": "log tail",
    "seen gone": "healed, verified",
    "none but": "only",
    "give or take": "plus or minus",
    "lest": "so that ... not",
    "tally|tallies": "counts",
    "hand over|hands over": "pass, queue, record",
    "at every turn": "each time",
    "sabotage": "a broken judge, a removed step",
    "hopeless": "impossible",
    "toothless": "without an effect",
    "lift|lifts|lifted|lifting": "remove, heal",
    "covered by itself": "covered automatically",
    "aim at|aims at|aimed at": "target",
    "afresh": "again, from the start",
    "stood still|stand still|stands still": "did not move",
    "witness|witnesses": "evidence",
    "heard|unheard": "received, not received",
    "stranger|strangers": "external, invented",
    "ran whole|run whole|whole again": "every task ran, complete",
    "last look|last try": "last verification, last attempt",
    "came nowhere|came twice|nothing came|never came back": "missing, duplicated, did not resume",
    "in sight|out of sight": "visible, invisible",
    "tell nothing|tells nothing|say nothing|says nothing|said nothing": "proves nothing",
    "bad luck": "chance",
}
"""Words or phrases, separated by `|` -> the usual term of the field."""
EXCEPTIONS = {
    "tests/test_wording.py": "the table itself",
    "CHANGELOG.md": "describes released versions in their own words",
}
WORDS = re.compile("|".join(rf"(?P<w{i}>\b({word})\b)" for i, word in enumerate(BETTER)), re.I)
PHRASES = [phrase for entry in BETTER for phrase in entry.split("|")]
NAME_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
WORD = re.compile(r"[a-z]+", re.I)
STRINGS = {tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
"""Since Python 3.12 the text of an f-string is a token of its own."""
COMMENT = {
    **dict.fromkeys((".yaml", ".yml", ".sh", ".toml", ".btm"), "#"),
    **dict.fromkeys(("Makefile", "Dockerfile", "run"), "#"),
    ".sql": "--",
}
"""Suffix of a file, or its name without one -> the start of a comment."""


class Hit(NamedTuple):
    """A word in a line of a file, and its replacement."""

    file: str
    line: int
    word: str
    better: str

    def __str__(self) -> str:
        return f'{self.file}:{self.line}: "{self.word}": write {self.better}'


def hits_in(file: str, text: str) -> Iterator[Hit]:
    """The words of a file that are in the table: in Python its names, strings and comments, in
    Markdown and templates all text, in other files the comments."""
    kind = _kind(file)
    if not _may_have_a_word(text):
        return
    if kind == ".py":
        parts = _parts_of_python(text)
    elif kind in COMMENT:
        parts = (
            (number, line.partition(COMMENT[kind])[2])
            for number, line in enumerate(text.splitlines(), 1)
        )
    else:
        parts = iter(enumerate(text.splitlines(), 1))
    for number, part in parts:
        for found in WORDS.finditer(part):
            better = list(BETTER.values())[int(str(found.lastgroup)[1:])]
            yield Hit(file, number, found.group(), better)


def _may_have_a_word(text: str) -> bool:
    """Whether a text has a phrase of the table, in words or in parts of names. Most files have
    none, and need not be split into tokens."""
    lower = text.lower()
    phrases = [phrase for phrase in PHRASES if all(word in lower for word in phrase.split())]
    if not phrases:
        return False
    words = (
        " ".join(["", *found, ""]).lower()
        for found in (NAME_PART.findall(text), WORD.findall(text))
    )
    return any(f" {phrase} " in each for each in words for phrase in phrases)


def _kind(file: str) -> str:
    return Path(file).suffix or Path(file).name


def _parts_of_python(text: str) -> Iterator[tuple[int, str]]:
    """(line, words); names are split at underscores and capitals."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME:
            yield token.start[0], " ".join(NAME_PART.findall(token.string))
        elif token.type in STRINGS or token.type == tokenize.COMMENT:
            for offset, line in enumerate(token.string.splitlines()):
                yield token.start[0] + offset, line


def files_of_the_project() -> list[str]:
    """Every text file in git, without the links and the snapshots of tests."""
    listed = subprocess.run(
        ("git", "ls-files"), cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\n")
    kinds = {".py", ".md", ".j2", *COMMENT}
    return [
        file
        for file in listed
        if _kind(file) in kinds and file not in EXCEPTIONS and not file.startswith("streamquake/")
    ]


def test_no_file_has_a_word_of_the_table() -> None:
    files = files_of_the_project()
    assert len(files) > MIN_FILES

    hits = [hit for file in files for hit in hits_in(file, (ROOT / file).read_text("utf-8"))]

    assert hits == [], "\n" + "\n".join(map(str, hits))


@pytest.mark.parametrize(
    ("file", "text", "line"),
    [
        ("a.py", "x = 1\ndef strike_node() -> None: ...\n", 2),
        ("a.py", "class WorstTrouble: ...\n", 1),
        ("a.py", "class JVMTrouble: ...\n", 1),
        ("a.py", 'x = "it was mended"\n', 1),
        ("a.py", 'x = f"{1} was mended"\n', 1),
        ("a.py", '"""One.\n\nNobody knows.\n"""\n', 3),
        ("a.py", "x = 1  # starts at nought\n", 1),
        ("a.md", "# Faults\n\nThe fault struck.\n", 3),
        ("a.yaml", "name: x\n# whoever reads this\n", 2),
        ("a.sh", "true # a goodbye\n", 1),
        ("a.sql", "SELECT 1; -- the victim\n", 1),
        ("a.btm", "# the fault bites\nRULE x\n", 1),
        ("Makefile", "test: ## lest it fails\n", 1),
        (".ci/run", "# nobody waits\n", 1),
    ],
)
def test_a_planted_word_is_found_at_its_line(file: str, text: str, line: int) -> None:
    (hit,) = hits_in(file, text)

    assert (hit.file, hit.line) == (file, line)
    assert f"{file}:{line}: " in str(hit)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("a.py", "bitwise = embedded = 'a striking_distance'.upper()[0]\n"),
        ("a.yaml", "victim: 1\n"),
    ],
)
def test_parts_of_words_and_keys_are_ignored(file: str, text: str) -> None:
    assert list(hits_in(file, text)) == []

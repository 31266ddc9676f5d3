"""The tables through which a job in Flink SQL writes a topic, by the statements that create them.

Comments are no part of a statement, and hints in them do not reach the engine. Options are those of
WITH, of the table that a new one is LIKE, and of ALTER TABLE SET. Whatever else may change a table
makes its options unknown; so do two tables with the same last part of the name, since the current
catalog and database are not followed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, takewhile
from typing import NamedTuple

from streamquake.cluster.engines.flink.sql import split_statements

_NAME = r"(?P<name>(?:`(?:[^`]|``)+`|[\w$]+)(?:\s*\.\s*(?:`(?:[^`]|``)+`|[\w$]+))*)"
_TABLE = re.compile(
    r"(?P<verb>CREATE|ALTER|REPLACE|DROP)\s+(?:OR\s+REPLACE\s+)?(?:TEMPORARY\s+)?TABLE\s+"
    rf"(?:IF\s+(?:NOT\s+)?EXISTS\s+)?{_NAME}",
    re.IGNORECASE,
)
_TOKEN = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`(?:[^`]|``)*`|[\w$]+|\S")
_IDENTIFIER = re.compile(r"`|[\w$]")
_EXCLUDING = re.compile(
    r"EXCLUDING\s+OPTIONS|EXCLUDING\s+ALL(?!.*INCLUDING\s+OPTIONS)", re.I | re.S
)
"""Of LIKE: the new table does not have the options of the other one."""
_KAFKA = ("kafka", "upsert-kafka")
_OF_COLUMNS = ("ADD", "MODIFY", "DROP")
"""The forms of ALTER TABLE that leave its options as they are."""

Options = Mapping[str, str]
"""The options of a table, as its WITH has them."""


class SinkTable(NamedTuple):
    """A table by the last part of its name."""

    name: str
    options: Options
    known: bool = True
    """False where it may have other options than these."""


class _Group(NamedTuple):
    """What is within parentheses, with the parentheses inside of it."""

    tokens: Sequence[str]


def tables_of(sql: str) -> list[SinkTable]:
    """The tables that a script creates, each with its options and those of the table that it is
    like."""
    tables: list[SinkTable] = []
    for statement in split_statements(sql):
        if (found := _TABLE.match(statement)) is None:
            continue
        name, parts = _last_part(found["name"]), list(_parts(statement[found.end() :]))
        if found["verb"].upper() in ("CREATE", "REPLACE"):
            created = _created(name, parts, tables)
            if any(table.name == name for table in tables):
                tables = [_unknown(table, name) for table in [*tables, created]]
            else:
                tables.append(created)
        else:
            tables = [_altered(table, name, parts) for table in tables]
    return tables


def sinks_of(sql: str, output: str, topic: str) -> list[SinkTable]:
    """The tables of a script that write an output, by its name and its topic. Where none names this
    topic, those of Kafka that name none."""
    tables = tables_of(sql)
    names = {f"${{output.{output}}}", topic}
    writing = [table for table in tables if names & _topics_of(table.options)]
    return writing or [
        table
        for table in tables
        if table.options.get("connector") in _KAFKA
        and not {"topic", "topic-pattern"} & {*table.options}
    ]


def _topics_of(options: Options) -> set[str]:
    return {name.strip() for name in options.get("topic", "").split(";")}


def _created(name: str, parts: list[str | _Group], tables: list[SinkTable]) -> SinkTable:
    """The new table of a CREATE, by what follows its name."""
    words = list(takewhile(lambda part: not _is_word(part, "AS"), parts))
    own = next(_groups_after(words, "WITH"), _Group(()))
    base = _base_of(words, tables)
    options = _options_of(own)
    known = base is not None and base.known and options is not None
    inherited = base.options if base is not None else {}
    return SinkTable(name, {**inherited, **(options or {})}, known)


def _base_of(words: list[str | _Group], tables: list[SinkTable]) -> SinkTable | None:
    """The table whose options a new one has too, an empty one without LIKE; None where it is not
    known."""
    like = next((at for at, word in enumerate(words) if _is_word(word, "LIKE")), None)
    if like is None:
        return SinkTable("", {})
    path = list(takewhile(_is_of_name, words[like + 1 :]))
    if not path:
        return None
    groups = (part for part in words[like + 1 + len(path) :] if isinstance(part, _Group))
    if _EXCLUDING.search(" ".join(next(groups, _Group(())).tokens)):
        return SinkTable("", {})
    name = _last_part("".join(str(part) for part in path))
    return next((table for table in tables if table.name == name), None)


def _altered(table: SinkTable, name: str, parts: list[str | _Group]) -> SinkTable:
    """A table after an ALTER or DROP of this name."""
    if table.name != name or any(_is_word(part, *_OF_COLUMNS) for part in parts[:1]):
        return table
    options = _options_of(next(_groups_after(parts[:2], "SET"), _Group(())))
    return (
        table._replace(options={**table.options, **options}) if options else _unknown(table, name)
    )


def _unknown(table: SinkTable, name: str) -> SinkTable:
    return table._replace(known=False) if table.name == name else table


def _options_of(group: _Group) -> dict[str, str] | None:
    """The options in these parentheses; None where they are no list of texts."""
    names, equals, values, commas = (group.tokens[at::4] for at in range(4))
    is_list = {*equals} <= {"="} and {*commas} <= {","} and len(names) == len(values)
    if not is_list or not all(text.startswith("'") for text in (*names, *values)):
        return None
    return {_text(name): _text(value) for name, value in zip(names, values, strict=True)}


def _groups_after(parts: Sequence[str | _Group], word: str) -> Iterator[_Group]:
    for part, following in pairwise(parts):
        if _is_word(part, word) and isinstance(following, _Group):
            yield following


def _is_word(part: str | _Group, *words: str) -> bool:
    return isinstance(part, str) and part.upper() in words


def _is_of_name(part: str | _Group) -> bool:
    return isinstance(part, str) and (part == "." or bool(_IDENTIFIER.match(part)))


def _parts(text: str) -> Iterator[str | _Group]:
    """The tokens of a statement, those within parentheses as a group."""
    group: list[str] = []
    depth = 0
    for token in _TOKEN.findall(text):
        depth -= token == ")"
        if depth:
            group.append(token)
        elif token == ")":
            yield _Group(tuple(group))
            group = []
        elif token != "(":
            yield token
        depth += token == "("


def _text(quoted: str) -> str:
    return quoted[1:-1].replace("''", "'")


def _last_part(name: str) -> str:
    """The last part of a name, without quotes."""
    last: str = _TOKEN.findall(name)[-1]
    return last[1:-1].replace("``", "`") if last.startswith("`") else last

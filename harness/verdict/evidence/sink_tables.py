"""The tables through which a job in Flink SQL writes a topic, by the statements that create them.

Comments are no part of a statement, and hints in them do not reach the engine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from streamquake.cluster.engines.flink.sql import split_statements

_NAME = r"(?P<name>(?:`[^`]+`|[\w$]+)(?:\s*\.\s*(?:`[^`]+`|[\w$]+))*)"
_TABLE = re.compile(
    r"(?P<verb>CREATE|ALTER)\s+(?:OR\s+REPLACE\s+)?(?:TEMPORARY\s+)?TABLE\s+"
    rf"(?:IF\s+(?:NOT\s+)?EXISTS\s+)?{_NAME}",
    re.IGNORECASE,
)
_LIKE = re.compile(rf"\bLIKE\s+{_NAME}(?:\s*\((?P<parts>[^)]*)\))?", re.IGNORECASE)
_EXCLUDING = re.compile(
    r"EXCLUDING\s+OPTIONS|EXCLUDING\s+ALL(?!.*INCLUDING\s+OPTIONS)", re.I | re.S
)
"""Of LIKE: the new table does not have the options of the other one."""
_OPTION = re.compile(r"'(?P<name>[^']+)'\s*=\s*'(?P<value>(?:[^']|'')*)'")
_KAFKA = ("kafka", "upsert-kafka")

Options = Mapping[str, str]
"""The options of a table, as its WITH has them."""


def tables_of(sql: str) -> dict[str, Options]:
    """The tables of a script by their names, each with its options and those of the table that it
    is like."""
    tables: dict[str, Options] = {}
    for statement in split_statements(sql):
        if (table := _TABLE.match(statement)) is None:
            continue
        name = _plain(table["name"])
        base = name if table["verb"].upper() == "ALTER" else _base_of(statement)
        tables[name] = {**tables.get(base, {}), **dict(_options_of(statement))}
    return tables


def sinks_of(sql: str, output: str, topic: str) -> list[Options]:
    """The options of the tables of a script that write an output, by its name and its topic. Where
    none names this topic, those of Kafka that name none."""
    tables = list(tables_of(sql).values())
    names = {f"${{output.{output}}}", topic}
    writing = [options for options in tables if names & {*options.get("topic", "").split(";")}]
    return writing or [
        options
        for options in tables
        if options.get("connector") in _KAFKA and not {"topic", "topic-pattern"} & {*options}
    ]


def _base_of(statement: str) -> str:
    """The table whose options a new one has too; empty without one."""
    like = _LIKE.search(statement)
    return "" if like is None or _EXCLUDING.search(like["parts"] or "") else _plain(like["name"])


def _options_of(statement: str) -> Iterator[tuple[str, str]]:
    for option in _OPTION.finditer(statement):
        yield option["name"], option["value"].replace("''", "'")


def _plain(name: str) -> str:
    return re.sub(r"[`\s]", "", name)

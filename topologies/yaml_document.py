"""A YAML document that records its lines, so that every problem is reported with its line.

YAML is read with the core schema of version 1.2 for plain scalars: only `true` and `false` are
booleans (not `on` or `no`), and nothing becomes a date. Sequences become tuples: a document is
immutable. It may be untrusted, so its size, its depth and the expansion of its aliases are bounded.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml
from yaml.composer import Composer
from yaml.resolver import Resolver

from streamquake.topologies.errors import ErrorKind, StreamquakeError
from streamquake.topologies.problems import BadInput, Problem, bad_input

KEPT_CHARACTERS = 20_000
"""The longest text whose nodes are kept in memory; they take some two hundred times its size."""
LARGEST_BYTES = 1024 * 1024
DEEPEST = 100
MOST_NODES = 100_000
"""Limit on the values of a document; a value that aliases and merge keys repeat counts each
time."""
MOST_DIGITS = 400
"""Limit on the digits of a number: a floating-point number has at most 309 before its point."""
LONGEST_KEY = 256
TAG = "tag:yaml.org,2002:"
MERGE = f"{TAG}merge"
Place = tuple[str | int, ...]
"""The place of a value: keys and list positions from the top."""


class WrittenFloat(float):
    """A decimal number that keeps its original text: a version `1.20` is not `1.2`."""

    written: str

    def __str__(self) -> str:
        return self.written


@dataclass(frozen=True, kw_only=True)
class Document:
    """A mapping read from a file. `lines` has the first line of each value."""

    file: str
    data: Mapping[str, Any]
    lines: Mapping[Place, int] = field(default_factory=dict)
    origins: Mapping[Place, str] = field(default_factory=dict)
    """Values that are not from the file, and the name of their source."""

    def line(self, place: Place) -> int | None:
        """The line of a value, or of the nearest value around it."""
        while place and place not in self.lines:
            place = place[:-1]
        return self.lines.get(place)

    def problem(self, place: Place, message: str) -> Problem:
        """A problem at a place of this document."""
        for length in range(len(place), 0, -1):
            if (source := self.origins.get(place[:length])) is not None:
                return Problem(file=source, path=path_text(place), message=message)
        return Problem(
            file=self.file, line=self.line(place), path=path_text(place), message=message
        )


def path_text(place: Place) -> str:
    """A place as text: `faults[0].kill`."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)
    return "".join(parts).lstrip(".")


def read_document(path: Path) -> Document:
    """Read a file. Raises BadInput with every problem of its form."""
    file = _short(path)
    try:
        with path.open("rb") as opened:
            content = opened.read(LARGEST_BYTES + 1)
    except OSError as error:
        raise bad_input(file, f"cannot be read: {error.strerror}") from error
    if len(content) > LARGEST_BYTES:
        raise bad_input(file, f"expected a document of at most {LARGEST_BYTES:,} bytes, got more")
    try:
        return parse_document(content.decode("utf-8-sig"), file)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise bad_input(file, "expected text in UTF-8, got other bytes", line) from error


def _short(path: Path) -> str:
    """A path as messages show it: relative to the current folder where it is below it."""
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def parse_document(text: str, file: str, first_line: int = 1) -> Document:
    """Read YAML text; `first_line` is where the text begins in its file.

    Raises BadInput with every problem of its form.
    """
    reader = _Reader(file, first_line)
    try:
        node = _compose(text)
        data = None if node is None else reader.value(node, ())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = None if mark is None else mark.line + first_line
        raise bad_input(file, _syntax_message(error, text), line) from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + first_line
        message = f"the character U+{int(error.character):04X} is not allowed in YAML"
        raise bad_input(file, message, line) from error
    if not reader.problems and not isinstance(data, dict):
        received = "an empty file" if data is None else f"a {_kind(data)}"
        reader.problems.append(
            Problem(
                file=file, line=first_line, message=f"expected keys with values, got {received}"
            )
        )
    if reader.problems:
        raise BadInput(reader.problems)
    assert isinstance(data, dict)
    return Document(file=file, data=data, lines=reader.lines)


def parse_value(text: str) -> Any:
    """One value as YAML, as after `--set path=`. Raises ValueError."""
    try:
        data = parse_document(f"value: {text}", "").data
    except BadInput as error:
        raise ValueError(error.problems[0].message) from error
    if data.keys() != {"value"}:
        raise ValueError("expected one value")
    return data["value"]


def frozen(data: Any) -> Any:
    """Plain data, such as JSON's, as values: lists become tuples."""
    if isinstance(data, Mapping):
        return {key: frozen(value) for key, value in data.items()}
    return tuple(frozen(value) for value in data) if isinstance(data, list | tuple) else data


class _OutOfBounds(StreamquakeError, yaml.MarkedYAMLError):
    """The document is larger than allowed."""

    kind = ErrorKind.BAD_INPUT


class _Composer(Composer, Resolver):
    """PyYAML's composer with bounds on its recursion, and with the plain scalars of YAML 1.2."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 - PyYAML's own name for it

    _depth = 0
    _nodes = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Compose a node as PyYAML does, but with bounds on its recursion."""
        self._depth += 1
        self._nodes += 1
        mark = self.peek_event().start_mark  # type: ignore[attr-defined]
        if self._depth > DEEPEST:
            raise _OutOfBounds(problem=f"more than {DEEPEST} levels", problem_mark=mark)
        if self._nodes > MOST_NODES:
            raise _OutOfBounds(problem=f"more than {MOST_NODES:,} values", problem_mark=mark)
        try:
            return super().compose_node(parent, index)
        finally:
            self._depth -= 1


_PLAIN = {
    "null": (r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    "bool": (r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    "int": (r"[-+]?(?:0x[0-9a-fA-F]+|[0-9][0-9_]*)", list("-+0123456789")),
    "float": (
        r"[-+]?(?:[0-9]+\.[0-9]*|\.?[0-9]+)(?:[eE][-+]?[0-9]+)?|[-+]?\.inf|\.nan",
        list("-+.0123456789"),
    ),
    "merge": ("<<", ["<"]),
}
"""Kind of a plain scalar -> its pattern, and its possible first characters."""
for _kind_of_scalar, (_pattern, _first) in _PLAIN.items():
    _Composer.add_implicit_resolver(
        f"{TAG}{_kind_of_scalar}", re.compile(rf"^(?:{_pattern})$"), _first
    )


class _QuickLoader(_Composer, yaml.CSafeLoader):
    """With the parser of libyaml, which takes a fifth of the time."""

    def __init__(self, text: str) -> None:
        yaml.CSafeLoader.__init__(self, text)
        Composer.__init__(self)


class _Loader(_Composer, yaml.SafeLoader):
    """With the parser of PyYAML, whose messages say more."""


def _compose(text: str) -> yaml.Node | None:
    """The only document of a text; None for an empty text. Raises yaml.YAMLError.

    Nodes are not changed, and the rows of a suite, and the trials of a search, read the same
    topologies and experiments again and again: those of usual sizes are kept.
    """
    return _kept(text) if len(text) <= KEPT_CHARACTERS else _composed(text)


def _composed(text: str) -> yaml.Node | None:
    try:
        return _node(_QuickLoader(text))
    except _OutOfBounds:
        raise
    except yaml.YAMLError:
        return _node(_Loader(text))


_kept = lru_cache(maxsize=64)(_composed)


def _node(loader: Any) -> yaml.Node | None:
    try:
        node: yaml.Node | None = loader.get_single_node()
        return node
    finally:
        loader.dispose()


class _Reader:
    """Turns nodes into values, and collects lines and problems."""

    def __init__(self, file: str, first_line: int) -> None:
        self._file = file
        self._first_line = first_line
        self._open: list[yaml.Node] = []
        self._count = 0
        self.lines: dict[Place, int] = {}
        self.problems: list[Problem] = []

    def value(self, node: yaml.Node, place: Place) -> Any:
        self.lines.setdefault(place, self._line(node))
        if any(node is outer for outer in self._open):
            return self._add_problem(node, place, "a value cannot contain itself")
        if len(self._open) >= DEEPEST:
            return self._add_problem(node, place, f"more than {DEEPEST} levels")
        self._count_value(node)
        self._open.append(node)
        try:
            return self._read(node, place)
        finally:
            self._open.pop()

    def _read(self, node: yaml.Node, place: Place) -> Any:
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, place)
        if node.tag not in (f"{TAG}map", f"{TAG}seq"):
            return self._add_problem(node, place, f"the tag {node.tag} is not known here")
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, place)
        return tuple(self.value(n, (*place, i)) for i, n in enumerate(node.value))

    def _count_value(self, node: yaml.Node) -> None:
        """Count a value. Raises BadInput at once above the limit: the rest is not read."""
        self._count += 1
        if self._count > MOST_NODES:
            message = f"more than {MOST_NODES:,} values, as aliases repeat them"
            raise bad_input(self._file, message, self._line(node))

    def _mapping(self, node: yaml.MappingNode, place: Place) -> dict[str, Any]:
        for duplicate, line in self._duplicates(node):
            self._add_problem(
                duplicate, (*place, duplicate.value), f"given twice; first in line {line}"
            )
        found: dict[str, Any] = {}
        for key, value in self._pairs(node, place):
            if not isinstance(key, yaml.ScalarNode):
                self._add_problem(key, place, "expected a word as key")
                continue
            if len(key.value) > LONGEST_KEY:
                message = f"expected a key of at most {LONGEST_KEY} characters, got more"
                self._add_problem(key, place, message)
                continue
            self.lines[(*place, key.value)] = self._line(key)
            found[key.value] = self.value(value, (*place, key.value))
        return found

    def _pairs(
        self, node: yaml.MappingNode, place: Place, within: tuple[yaml.Node, ...] = ()
    ) -> list[tuple[yaml.Node, yaml.Node]]:
        """The keys and values of a mapping, preceded by those of the mappings that it merges
        (`<<`). Of two equal keys the last counts; of two merged mappings the first takes
        precedence."""
        merged: list[tuple[yaml.Node, yaml.Node]] = []
        own: list[tuple[yaml.Node, yaml.Node]] = []
        for key, value in node.value:
            self._count_value(key)
            if key.tag != MERGE:
                own.append((key, value))
                continue
            sources = value.value if isinstance(value, yaml.SequenceNode) else [value]
            for source in reversed(sources):
                if not isinstance(source, yaml.MappingNode) or source in (*within, node):
                    self._add_problem(value, place, "`<<` merges other mappings, and only these")
                else:
                    merged += self._pairs(source, place, (*within, node))
        return merged + own

    def _duplicates(self, node: yaml.MappingNode) -> Iterator[tuple[yaml.ScalarNode, int]]:
        first: dict[str, int] = {}
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != MERGE:
                if key.value in first:
                    yield key, first[key.value]
                first.setdefault(key.value, self._line(key))

    def _scalar(self, node: yaml.ScalarNode, place: Place) -> Any:
        kind = node.tag.removeprefix(TAG)
        text = str(node.value)
        if kind == "str":
            return self._text(node, text, place)
        if kind not in _PLAIN or kind == "merge":
            return self._add_problem(node, place, f"the tag {node.tag} is not known here")
        if not re.fullmatch(_PLAIN[kind][0], text):
            return self._add_problem(node, place, f"{node.tag} does not fit this value")
        if kind == "null":
            return None
        if kind == "bool":
            return text.lower() == "true"
        if len(text) > MOST_DIGITS:
            message = f"expected a number of at most {MOST_DIGITS} digits, got {len(text):,}"
            return self._add_problem(node, place, message)
        if kind == "int":
            digits = text.replace("_", "")
            return int(digits, 16 if "0x" in digits else 10)
        number = _float(text)
        if math.isinf(number) and "inf" not in text:
            return self._add_problem(node, place, f"the number {text} is too large")
        return number

    def _text(self, node: yaml.ScalarNode, text: str, place: Place) -> Any:
        """A text. Half of a surrogate pair, which only an escape sequence can contain, is
        rejected."""
        if any("\ud800" <= character <= "\udfff" for character in text):
            return self._add_problem(node, place, "half of a surrogate pair is no character")
        return text

    def _add_problem(self, node: yaml.Node, place: Place, message: str) -> None:
        self.problems.append(
            Problem(file=self._file, line=self._line(node), path=path_text(place), message=message)
        )

    def _line(self, node: yaml.Node) -> int:
        return int(node.start_mark.line) + self._first_line


def _float(text: str) -> float:
    number = WrittenFloat(text.replace(".inf", "inf").replace(".nan", "nan"))
    number.written = text
    return number


def _syntax_message(error: yaml.MarkedYAMLError, text: str) -> str:
    mark = error.problem_mark
    if mark is not None and text.splitlines()[mark.line : mark.line + 1]:
        line = text.splitlines()[mark.line]
        if "\t" in line[: mark.column + 1]:
            return "a tab cannot indent YAML; use spaces"
    parts = (part for part in (error.context, error.problem) if part)
    return f"is not YAML: {', '.join(parts)}"


def _kind(data: Any) -> str:
    return "list" if isinstance(data, tuple) else "single value"

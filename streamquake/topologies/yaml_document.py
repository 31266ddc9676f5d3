"""A YAML document that remembers its lines, so that every problem can be shown where it stands.

YAML is read with the core rules of version 1.2 for plain words: only `true` and `false` are truth
values (not `on` or `no`), and nothing becomes a date. Sequences become tuples: what is read is a
value and does not change.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from streamquake.topologies.problems import BadInput, Problem, bad_input

Place = tuple[str | int, ...]
"""Where a value stands: keys and list positions from the top."""


class WrittenFloat(float):
    """A decimal number whose text is as it was written: a version `1.20` is not `1.2`."""

    written: str

    def __str__(self) -> str:
        return self.written


@dataclass(frozen=True, kw_only=True)
class Document:
    """A mapping read from a file. `lines` knows where each value begins."""

    file: str
    data: Mapping[str, Any]
    lines: Mapping[Place, int] = field(default_factory=dict)
    origins: Mapping[Place, str] = field(default_factory=dict)
    """Values that did not come from the file, and what to call their source instead."""

    def line(self, place: Place) -> int | None:
        """The line of a value, or of the nearest thing around it."""
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
        content = path.read_bytes()
    except OSError as error:
        raise bad_input(file, f"cannot be read: {error.strerror}") from error
    try:
        return parse_document(content.decode("utf-8-sig"), file)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise bad_input(file, "expected text in UTF-8, got other bytes", line) from error


def _short(path: Path) -> str:
    """A path as messages show it: from the current folder, where it lies below it."""
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def parse_document(text: str, file: str, first_line: int = 1) -> Document:
    """Read YAML text; `first_line` is where the text begins in its file.

    Raises BadInput with every problem of its form.
    """
    reader = _Reader(file, first_line)
    try:
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            data = None if node is None else reader.value(loader, node, ())
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = None if mark is None else mark.line + first_line
        raise bad_input(file, _syntax_words(error, text), line) from error
    except yaml.YAMLError as error:
        raise bad_input(file, f"is not YAML: {error}") from error
    if not reader.problems and not isinstance(data, dict):
        got = "an empty file" if data is None else f"a {_kind(data)}"
        reader.problems.append(
            Problem(file=file, line=first_line, message=f"expected keys with values, got {got}")
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


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader with the plain words of YAML 1.2."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 - PyYAML's own name for it


for _tag, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?(?:0x[0-9a-fA-F]+|[0-9][0-9_]*)", list("-+0123456789")),
    (
        "float",
        r"[-+]?(?:[0-9]+\.[0-9]*|\.?[0-9]+)(?:[eE][-+]?[0-9]+)?|[-+]?\.inf|\.nan",
        list("-+.0123456789"),
    ),
    ("merge", "<<", ["<"]),
):
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}", re.compile(rf"^(?:{_pattern})$"), _first
    )


class _Reader:
    """Turns nodes into values, and notes lines and problems on the way."""

    def __init__(self, file: str, first_line: int) -> None:
        self._file = file
        self._first_line = first_line
        self._open: list[yaml.Node] = []
        self.lines: dict[Place, int] = {}
        self.problems: list[Problem] = []

    def value(self, loader: _Loader, node: yaml.Node, place: Place) -> Any:
        self.lines.setdefault(place, self._line(node))
        if any(node is outer for outer in self._open):
            return self._complain(node, place, "a value cannot contain itself")
        self._open.append(node)
        try:
            return self._read(loader, node, place)
        finally:
            self._open.pop()

    def _read(self, loader: _Loader, node: yaml.Node, place: Place) -> Any:
        if isinstance(node, yaml.MappingNode):
            return self._mapping(loader, node, place)
        if isinstance(node, yaml.SequenceNode):
            return tuple(self.value(loader, n, (*place, i)) for i, n in enumerate(node.value))
        return self._scalar(loader, node, place)

    def _mapping(self, loader: _Loader, node: yaml.MappingNode, place: Place) -> dict[str, Any]:
        for key, line in self._duplicates(node):
            self._complain(key, (*place, key.value), f"given twice; first in line {line}")
        loader.flatten_mapping(node)
        found: dict[str, Any] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self._complain(key, place, "expected a word as key")
                continue
            self.lines[(*place, key.value)] = self._line(key)
            found[key.value] = self.value(loader, value, (*place, key.value))
        return found

    def _duplicates(self, node: yaml.MappingNode) -> Iterator[tuple[yaml.ScalarNode, int]]:
        first: dict[str, int] = {}
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                if key.value in first:
                    yield key, first[key.value]
                first.setdefault(key.value, self._line(key))

    def _scalar(self, loader: _Loader, node: yaml.Node, place: Place) -> Any:
        kind = node.tag.removeprefix("tag:yaml.org,2002:")
        text = str(node.value)
        match kind:
            case "str":
                return text
            case "null":
                return None
            case "bool":
                return text.lower() == "true"
            case "int":
                digits = text.replace("_", "")
                return int(digits, 16 if "0x" in digits else 10)
            case "float":
                return _float(text)
        return self._complain(node, place, f"the tag {node.tag} is not known here")

    def _complain(self, node: yaml.Node, place: Place, message: str) -> None:
        self.problems.append(
            Problem(file=self._file, line=self._line(node), path=path_text(place), message=message)
        )

    def _line(self, node: yaml.Node) -> int:
        return int(node.start_mark.line) + self._first_line


def _float(text: str) -> float:
    number = WrittenFloat(text.replace(".inf", "inf").replace(".nan", "nan"))
    number.written = text
    return number


def _syntax_words(error: yaml.MarkedYAMLError, text: str) -> str:
    mark = error.problem_mark
    if mark is not None and text.splitlines()[mark.line : mark.line + 1]:
        line = text.splitlines()[mark.line]
        if "\t" in line[: mark.column + 1]:
            return "a tab cannot indent YAML; use spaces"
    said = (part for part in (error.context, error.problem) if part)
    return f"is not YAML: {', '.join(said)}"


def _kind(data: Any) -> str:
    return "list" if isinstance(data, tuple) else "single value"

"""`--set path=value`: changes one value of an experiment, or of its topology.

A path names keys from the top, `workload.numbered.records` or `faults[0].for_s`; paths that begin
with `topology.` refer to the topology. The value is YAML.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel

from streamquake.reports.record.secret_settings import without_secret
from streamquake.topologies.model import Scalar
from streamquake.topologies.parsing import fields_at, kind_at, value_at, value_text
from streamquake.topologies.problems import Problem, did_you_mean
from streamquake.topologies.yaml_document import Document, Place, parse_value, path_text

INDEX = re.compile(r"\[(\d+)\]|(\d+)(?=[.\[]|$)")


@dataclass(frozen=True, kw_only=True)
class Override:
    """One `--set`: its path, its value, and its text on the command line."""

    path: str
    value: Any
    written: str

    @property
    def source(self) -> str:
        return f"--set {without_secret(self.written)}"


def read_settings(sets: Iterable[str]) -> tuple[list[Override], list[Problem]]:
    """Read `path=value` texts."""
    settings, problems = [], []
    for written in sets:
        path, equals, text = written.partition("=")
        try:
            if not equals or not path:
                raise ValueError("expected PATH=VALUE, such as workload.numbered.records=1000")
            settings.append(Override(path=path, value=parse_value(text), written=written))
        except ValueError as error:
            problems.append(Problem(file=f"--set {without_secret(written)}", message=str(error)))
    return settings, problems


def apply(
    document: Document, settings: Sequence[Override], model: type[BaseModel]
) -> tuple[Document, list[Problem]]:
    """The document with the settings applied, and the problems of paths that do not exist."""
    problems = []
    for setting in settings:
        try:
            place = find_place(document.data, model, setting.path)
            data = _with_value(document.data, place, setting.value)
        except ValueError as error:
            problems.append(Problem(file=setting.source, message=str(error)))
            continue
        document = replace(document, data=data, origins={**document.origins, place: setting.source})
    return document, problems


def find_place(data: Any, model: type[BaseModel], path: str) -> Place:
    """The place of a path. A key may contain dots, so the longest known key is taken.

    Raises ValueError for a path that does not exist; the message names similar keys.
    """
    place: Place = ()
    rest = path
    while rest:
        here = value_at(data, place)
        part, rest = _next(here, model, place, rest)
        place = (*place, part)
    return place


def _next(here: Any, model: type[BaseModel], place: Place, rest: str) -> tuple[str | int, str]:
    """The next part of a path, and the rest of the path."""
    if isinstance(here, tuple):
        return _next_index(here, place, rest)
    if here is not None and not isinstance(here, Mapping):
        raise ValueError(
            f"{path_text(place)} is {value_text(here)} and has no keys below it; set it whole"
        )
    fields = fields_at(model, place)
    known = {*fields, *(here or {})}
    near = [key for key in known if rest == key or rest.startswith((f"{key}.", f"{key}["))]
    if near:
        key = max(near, key=len)
    elif kind_at(model, place) == Mapping[str, Scalar]:
        key = rest
    else:
        key = re.split(r"[.\[]", rest)[0]
        if fields or (key != rest and kind_at(model, (*place, key)) is not Any):
            where = f"{path_text(place)} has no key" if place else "there is no key"
            raise ValueError(f'{where} "{key}"{did_you_mean(key, known)}')
    return key, rest[len(key) :].removeprefix(".")


def _next_index(here: tuple[Any, ...], place: Place, rest: str) -> tuple[int, str]:
    found = INDEX.match(rest)
    last = f"entries 0 to {len(here) - 1}" if here else "no entries"
    if found is None or int(found[1] or found[2]) >= len(here):
        wanted = re.split(r"[.\]]", rest)[0].lstrip("[")
        raise ValueError(f"{path_text(place)} has {last}, got {wanted}")
    return int(found[1] or found[2]), rest[found.end() :].removeprefix(".")


def _with_value(data: Any, place: Place, value: Any) -> Any:
    if not place:
        return value
    head, rest = place[0], place[1:]
    if isinstance(data, tuple) and isinstance(head, int):
        return (*data[:head], _with_value(data[head], rest, value), *data[head + 1 :])
    below = (data or {}).get(head)
    return {**(data or {}), head: _with_value(below, rest, value)}

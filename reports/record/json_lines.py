"""Files of JSON lines that a command continues: an object on each line, replaced as a whole."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from streamquake.reports.record import atomic_files
from streamquake.reports.record.record_json import loads
from streamquake.topologies.parsing import value_text
from streamquake.topologies.problems import bad_input


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a file of JSON lines, none where there is no file. Raises BadInput with the
    number of a line that is no object."""
    try:
        text = path.read_text(encoding="utf-8") if path.exists() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise bad_input(str(path), f"it cannot be read: {error}; remove the file") from error
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            value = loads(line)
        except ValueError as error:
            raise bad_input(str(path), f"not JSON ({error}); remove the line", number) from error
        if not isinstance(value, dict):
            message = f"expected an object, got {value_text(value)}; remove the line"
            raise bad_input(str(path), message, number)
        yield value


def write_lines(path: Path, lines: Sequence[Mapping[str, Any]]) -> None:
    """Replace a file by these objects, one on each line."""
    text = "".join(json.dumps(line, default=str) + "\n" for line in lines)
    atomic_files.write_text(path, text)

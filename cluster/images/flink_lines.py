"""The configuration file of Flink before 1.19: one `key: value` per line, without quotes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

EXPORTS = {"env.java.default-opts.all": "--add-exports=java.base/sun.net.util=ALL-UNNAMED"}
"""A package that releases made for Java 11 use; Java 17 keeps it closed."""


def lines_of(options: Mapping[str, str]) -> str:
    """The text of the file, with what such a release needs on Java 17."""
    lines = sorted({**EXPORTS, **options}.items())
    return "".join(f"{key}: {value}\n" for key, value in lines)


def write_lines(nested: Path, flat: Path) -> None:
    """Replace a configuration file of today by one that such a release reads."""
    options = dict(_flat(yaml.safe_load(nested.read_text(encoding="utf-8"))))
    flat.write_text(lines_of(options), encoding="utf-8")
    nested.unlink()


def _flat(options: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    for key, value in options.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", str(value)

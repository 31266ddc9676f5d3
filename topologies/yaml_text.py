"""YAML that people read: texts of several lines are blocks."""

from __future__ import annotations

from typing import Any

import yaml


class _BlockDumper(yaml.SafeDumper):
    """Writes texts of several lines, such as the job's SQL, as blocks, not as one long line."""

    def represent_text(self, text: str) -> yaml.ScalarNode:
        return self.represent_scalar("tag:yaml.org,2002:str", text, "|" if "\n" in text else None)


_BlockDumper.add_representer(str, _BlockDumper.represent_text)


def yaml_text(document: Any, width: float = 100) -> str:
    """Plain data as YAML, in its order, with lines of about this width."""
    return yaml.dump(
        document, Dumper=_BlockDumper, sort_keys=False, allow_unicode=True, width=width
    )

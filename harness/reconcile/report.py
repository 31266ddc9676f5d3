"""A comparison on the terminal: the outcome first, the next step last."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from streamquake.harness.reconcile.anomaly import anomalies
from streamquake.harness.reconcile.comparison import COUNTS, DataComparison
from streamquake.harness.reconcile.readable import ABSENT
from streamquake.reports.record.outcome import Finding, Outcome
from streamquake.reports.run.text import STYLES, make_console

MAX_SHOWN = 3
"""Examples of each class on the terminal; the file of --json holds up to eight."""
MEANINGS = {
    "expected": "acknowledged records of the expected side",
    "actual": "records of the actual side",
    "lost": "acknowledged and absent",
    "duplicated": "copies beyond the first of a sent record",
    "phantom": "present but never sent, or its send failed",
    "changed": "sent, with a copy that differs in a compared value",
    "reordered": "after a later record of the same key",
    "unknown_arrived": "sends of unknown result that are present",
    "unknown_absent": "sends of unknown result that are absent",
    "malformed": "could not be read",
}
NOT_JUDGED = {
    "changed": "not judged: give --compare",
    "reordered": "not judged: give --sequence, and --order where the source has none",
    "phantom": "not judged: an expected record that could not be read may be one of them",
}


def print_comparison(comparison: DataComparison, json_file: Path | None, command: str) -> None:
    """Print the outcome, the counts, some examples, and what to do next."""
    parts: list[RenderableType] = [_headline(comparison), Text(""), _counts(comparison), Text("")]
    parts += [Text(line) for line in _examples(comparison.findings)]
    parts += [Text(f"note: {note}", style="yellow") for note in comparison.notes]
    parts.append(Text(_next_step(comparison, json_file, command)))
    make_console().print(Group(*parts), soft_wrap=True)


def _headline(comparison: DataComparison) -> Text:
    style = f"bold {STYLES[comparison.outcome]}"
    return Text.assemble(
        (str(comparison.outcome).upper(), style), f"  {'; '.join(comparison.reasons)}"
    )


def _counts(comparison: DataComparison) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    further_classes = [name for name in anomalies if name in comparison.counts]
    for name in (*COUNTS, *further_classes):
        count = comparison.counts[name]
        shown = "–" if count is None else f"{count:,}"
        meaning = _not_judged(name) if count is None else _meaning(name)
        table.add_row(name, Text(shown, justify="right"), meaning)
    return table


def _meaning(name: str) -> str:
    return anomalies[name].meaning if name in anomalies else MEANINGS[name]


def _not_judged(name: str) -> str:
    if name in anomalies:
        return f"not judged: it needs {anomalies[name].requirement}"
    return NOT_JUDGED.get(name, MEANINGS[name])


def _examples(findings: Iterable[Finding]) -> list[str]:
    by_class: dict[str, list[Finding]] = {}
    for finding in findings:
        by_class.setdefault(finding.what, []).append(finding)
    lines = [_example_line(item) for of_class in by_class.values() for item in of_class[:MAX_SHOWN]]
    return [*lines, ""] if lines else []


def _example_line(finding: Finding) -> str:
    """A finding in one line. Text is in quotes, so that null and an empty text differ."""
    where = f" at {finding.where}" if finding.where else ""
    return f"{finding.what}{where} ({_value(finding.detail)})"


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_value(item)}" for name, item in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "; ".join(map(_value, value))
    if isinstance(value, str):
        return value if value == ABSENT else json.dumps(value, ensure_ascii=False)
    return "null" if value is None else str(value)


def _next_step(comparison: DataComparison, json_file: Path | None, command: str) -> str:
    if json_file is not None:
        return f"all examples: {json_file}"
    if comparison.outcome == Outcome.HELD:
        return f"again: {command}"
    return f"next: {command} --json FILE stores all examples; inspect the first places named above"

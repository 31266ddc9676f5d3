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


def print_comparison(found: DataComparison, json_file: Path | None, again: str) -> None:
    """Print the outcome, the counts, some examples, and what to do next."""
    parts: list[RenderableType] = [_headline(found), Text(""), _counts(found), Text("")]
    parts += [Text(line) for line in _examples(found.findings)]
    parts += [Text(f"note: {note}", style="yellow") for note in found.notes]
    parts.append(Text(_next_step(found, json_file, again)))
    make_console().print(Group(*parts), soft_wrap=True)


def _headline(found: DataComparison) -> Text:
    style = f"bold {STYLES[found.outcome]}"
    return Text.assemble((str(found.outcome).upper(), style), f"  {'; '.join(found.reasons)}")


def _counts(found: DataComparison) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    also = [name for name in anomalies if name in found.counts]
    for name in (*COUNTS, *also):
        count = found.counts[name]
        shown = "–" if count is None else f"{count:,}"
        meaning = _not_judged(name) if count is None else _meaning(name)
        table.add_row(name, Text(shown, justify="right"), meaning)
    return table


def _meaning(name: str) -> str:
    return anomalies[name].means if name in anomalies else MEANINGS[name]


def _not_judged(name: str) -> str:
    if name in anomalies:
        return f"not judged: it needs {anomalies[name].needs}"
    return NOT_JUDGED.get(name, MEANINGS[name])


def _examples(findings: Iterable[Finding]) -> list[str]:
    by_class: dict[str, list[Finding]] = {}
    for finding in findings:
        by_class.setdefault(finding.what, []).append(finding)
    lines = [_example_line(each) for of_class in by_class.values() for each in of_class[:MAX_SHOWN]]
    return [*lines, ""] if lines else []


def _example_line(finding: Finding) -> str:
    """A finding in one line. Text is in quotes, so that null and an empty text differ."""
    where = f" at {finding.where}" if finding.where else ""
    return f"{finding.what}{where} ({_value(finding.detail)})"


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_value(each)}" for name, each in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "; ".join(map(_value, value))
    if isinstance(value, str):
        return value if value == ABSENT else json.dumps(value, ensure_ascii=False)
    return "null" if value is None else str(value)


def _next_step(found: DataComparison, json_file: Path | None, again: str) -> str:
    if json_file is not None:
        return f"all examples: {json_file}"
    if found.outcome == Outcome.HELD:
        return f"again: {again}"
    return f"next: {again} --json FILE stores all examples; inspect the first places named above"

"""The summary at the end of a run: the outcome first, the replay command last."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Mapping
from typing import IO

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from streamquake.reports.record.outcome import CheckResult, Finding, Outcome
from streamquake.reports.record.results import FaultRecord, Results
from streamquake.reports.record.run_folder import RunFolder
from streamquake.reports.render import run_sentences
from streamquake.reports.render.terminal import TerminalConsole

STYLES = {Outcome.HELD: "green", Outcome.UNDECIDED: "yellow", Outcome.VIOLATED: "red"}
MAX_FINDINGS = 3
MAX_EVIDENCE = 6
"""How many parts of evidence are shown per fault. A partition has one part for each attempt of each
node; the page shows them all."""
PLAIN_WIDTH = 120


def summary(results: Results, folder: RunFolder) -> RenderableType:
    """The whole summary; print it with `print_summary`."""
    parts: list[RenderableType] = [_outcome(results)]
    if more := run_sentences.more_reason(results):
        parts.append(Text(more))
    parts.append(Text(""))
    if results.checks:
        parts += [_checks(results), Text("")]
    if results.faults:
        parts += [_faults(results), Text("")]
    if recoveries := results.titled_recoveries:
        parts += [*(_recovery(title, phases) for title, phases in recoveries), Text("")]
    parts += _findings(results)
    parts += [Text(f"warning: {warning}", style="yellow") for warning in results.warnings]
    if machine := _machine(folder):
        parts.append(Text(f"machine     {machine}"))
    parts.append(Text(f"run folder  {folder.path}"))
    if folder.report.exists():
        parts.append(Text(f"report      {folder.report}"))
    if results.replay:
        parts.append(Text(f"replay      {results.replay}"))
    return Group(*parts)


def _machine(folder: RunFolder) -> str:
    """Where the run was made, since times depend on it; empty where that is not recorded."""
    try:
        return run_sentences.machine(folder.read_manifest().get("machine", {}))
    except (ValueError, OSError, TypeError, AttributeError):
        return ""  # the manifest is damaged, which is reported where its plan is read


def make_console(file: IO[str] | None = None) -> Console:
    """A console with colours on a terminal, and plain lines of fixed width in CI and where output
    is redirected."""
    stream = file or sys.stdout
    if stream.isatty() and not os.environ.get("CI"):
        return TerminalConsole(file=stream)
    return TerminalConsole(file=stream, no_color=True, force_terminal=False, width=PLAIN_WIDTH)


def print_summary(results: Results, folder: RunFolder, console: Console | None = None) -> None:
    """Print the summary. Lines are not wrapped, so that the replay command can be copied."""
    (console or make_console()).print(summary(results, folder), soft_wrap=True)


def plain_summary(results: Results, folder: RunFolder) -> str:
    """The summary as plain text, for JUnit and for pytest's failure sections."""
    written = io.StringIO()
    print_summary(results, folder, make_console(written))
    return "\n".join(line.rstrip() for line in written.getvalue().splitlines()) + "\n"


def _outcome(results: Results) -> Text:
    style = f"bold {STYLES[results.outcome]}"
    named = f"  {results.experiment}, seed {results.seed}"
    return Text.assemble(
        (run_sentences.headline(results).upper(), style), named, "\n", run_sentences.why(results)
    )


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _checks(results: Results) -> Table:
    table = _table("check", "outcome", "summary", "counts")
    for check in results.checks:
        outcome = Text(str(check.outcome), style=STYLES[check.outcome])
        table.add_row(Text(check.check), outcome, Text(check.summary), Text(_counts(check)))
    return table


def _counts(check: CheckResult) -> str:
    """The check's figures. Figures of single outputs (`totals.lost`) are only on the page."""
    return ", ".join(
        " ".join(run_sentences.measured(*count))
        for count in check.counts.items()
        if "." not in count[0]
    )


def _faults(results: Results) -> Table:
    table = _table("fault", "on", "at", "result", "evidence")
    for fault in results.faults:
        at = "–" if fault.injected_s is None else f"{fault.injected_s:.3f} s"
        proven = fault.in_effect and fault.healed and not fault.missed_window
        proven = proven and fault.ended_early_s is None
        took = "green" if proven else "yellow"
        table.add_row(
            Text(fault.fault),
            Text(_fault_target(fault)),
            at,
            Text(run_sentences.fault_result(fault), style=took),
            Text(run_sentences.finding_text(fault.evidence, MAX_EVIDENCE)),
        )
    return table


def _fault_target(fault: FaultRecord) -> str:
    nodes = ", ".join(fault.nodes)
    return fault.target if not nodes or nodes == fault.target else f"{nodes} ({fault.target})"


def _recovery(title: str, recovery: Mapping[str, float | None]) -> Text:
    phases = [
        f"{name} " + ("not reached" if after_s is None else f"{after_s:.2f} s")
        for name, after_s in run_sentences.milestones(recovery)
    ]
    from_fault = f"from {title}: " if title else ""
    return Text(f"recovery  {from_fault}" + " → ".join(phases))


def _findings(results: Results) -> list[RenderableType]:
    lines: list[RenderableType] = []
    for check in results.checks:
        lines += [Text(f"{check.check}: {_finding_line(f)}") for f in check.findings[:MAX_FINDINGS]]
        more = len(check.findings) - MAX_FINDINGS
        if more > 0:
            lines.append(Text(f"{check.check}: {more} more in results.json"))
    return [*lines, Text("")] if lines else []


def _finding_line(finding: Finding) -> str:
    where = f" at {finding.where}" if finding.where else ""
    detail = f" ({run_sentences.detail_text(finding.detail)})" if finding.detail else ""
    return f"{finding.what}{where}{detail}"

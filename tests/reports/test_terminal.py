"""Texts of a record cannot control the terminal."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.table import Table
from rich.text import Text

from streamquake.harness.cli.output import echo
from streamquake.reports.record.outcome import Outcome
from streamquake.reports.record.run_folder import RunFolder
from streamquake.reports.render.terminal import TerminalConsole, escaped
from streamquake.reports.run.text import print_summary
from tests.reports.sample_run import sample_results

HOSTILE = "\x1b[2J\x1b]0;title\x07\x9b31m\u202egnp\u2066\r\x00\x7f\u2028[red]x[/red] :smile:"
SHOWN = (
    "\\x1b[2J\\x1b]0;title\\x07\\x9b31m\\u202egnp\\u2066\\x0d\\x00\\x7f\\u2028[red]x[/red] :smile:"
)


def test_control_characters_are_escaped_and_text_is_unchanged() -> None:
    assert escaped(HOSTILE) == SHOWN
    assert escaped("ä\tb\nc 日本 ✓") == "ä\tb\nc 日本 ✓"
    assert escaped("\ud800").encode() == b"\\ud800"
    assert escaped(escaped(HOSTILE)) == SHOWN


def test_lines_and_tables_show_text_without_interpreting_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    stream = io.StringIO()
    console = TerminalConsole(file=stream, width=200, no_color=True)
    table = Table(title="t")
    table.add_column("c")
    table.add_row("\x1b[2J[red]x[/red]")

    console.print(Text("a\x1b[2Jb"), soft_wrap=True)
    console.print("[red]\x9b31m\u202e")
    console.print(table)
    echo("\x1b[2J\u202e[red]")
    echo("\x1b]0;t\x07", err=True)

    printed = stream.getvalue()
    assert "\x1b" not in printed
    assert "a\\x1b[2Jb" in printed
    assert "[red]\\x9b31m\\u202e" in printed
    assert "\\x1b[2J[red]" in printed
    assert capsys.readouterr() == ("\\x1b[2J\\u202e[red]\n", "\\x1b]0;t\\x07\n")


def test_the_programs_own_colours_are_kept() -> None:
    stream = io.StringIO()

    TerminalConsole(file=stream, force_terminal=True, color_system="standard").print(
        Text("held\x1b[2J", style="green")
    )

    assert stream.getvalue().startswith("\x1b[32mheld\\x1b[2J\x1b[0m")


def test_the_summary_of_a_hostile_record_is_plain_text(tmp_path: Path) -> None:
    results = sample_results("run-1", Outcome.VIOLATED)
    check = replace(results.checks[0], summary=f"s{HOSTILE}", check=f"c{HOSTILE}")
    fault = replace(results.faults[0], fault=f"f{HOSTILE}", target=f"t{HOSTILE}", reason=HOSTILE)
    hostile = replace(
        results,
        experiment=HOSTILE,
        reason=HOSTILE,
        replay=HOSTILE,
        checks=(check,),
        faults=(fault,),
        warnings=(HOSTILE,),
    )
    stream = io.StringIO()

    print_summary(hostile, RunFolder(tmp_path), TerminalConsole(file=stream, width=400))

    assert not [each for each in stream.getvalue() if escaped(each) != each]

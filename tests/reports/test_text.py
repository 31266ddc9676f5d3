"""The summary: the outcome is first, the replay command is last."""

from __future__ import annotations

import dataclasses
import io
from pathlib import Path

import pytest

from streamquake.reports.record.expected_outcome import ExpectedOutcome
from streamquake.reports.record.outcome import CheckResult, Finding, Outcome
from streamquake.reports.record.results import FaultRecord, FaultRecovery, Results
from streamquake.reports.record.run_folder import RunFolder
from streamquake.reports.render import run_sentences
from streamquake.reports.run.text import make_console, plain_summary, print_summary
from tests.reports.sample_run import sample_results, write_failed_run


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path, "run-1")


def test_the_outcome_is_the_first_line_and_the_replay_the_last(folder: RunFolder) -> None:
    lines = plain_summary(sample_results("run-1", Outcome.VIOLATED), folder).splitlines()
    assert lines[0] == "VIOLATED  kill-taskmanager-mid-checkpoint, seed 7"
    assert lines[1] == "exactly_once: 9,214 records are twice in totals"
    assert lines[-1] == "replay      streamquake replay runs/run-1"
    assert lines[-2] == f"run folder  {folder.path}"


def test_the_machine_is_shown_with_its_load(folder: RunFolder) -> None:
    results = sample_results("run-1", Outcome.HELD)
    assert "machine  " not in plain_summary(results, folder)
    known = {"cpus": 2, "memory_bytes": 24 << 30, "system": "Linux", "load_1m": 28.49}
    folder.write_manifest({"machine": known})
    shown = "machine     2 processors, 24 GiB, Linux, load average 28.5 at the start"
    assert shown in plain_summary(results, folder).splitlines()
    folder.write_manifest({"machine": {"cpus": 2, "load_1m": None}})
    assert "machine     2 processors" in plain_summary(results, folder).splitlines()


@pytest.mark.parametrize("damaged", ["{", '{"schema": 1, "machine": 3}', '{"schema": 99}'])
def test_a_damaged_manifest_has_no_machine(folder: RunFolder, damaged: str) -> None:
    folder.manifest.write_text(damaged)
    assert "machine  " not in plain_summary(sample_results("run-1", Outcome.HELD), folder)


def test_the_order_is_checks_faults_recovery_findings(folder: RunFolder) -> None:
    text = plain_summary(sample_results("run-1", Outcome.VIOLATED), folder)
    places = [
        text.index(words)
        for words in (
            "lost 0",
            "31.482 s",
            "detected 0.41 s",
            "partition 0, offset 50112",
            "replay ",
        )
    ]
    assert places == sorted(places)
    assert "exit_code 137" in text
    assert "5 more in results.json" in text


def test_a_null_in_a_record_of_a_finding_is_null(folder: RunFolder) -> None:
    """What is not known of the finding itself is said to be so."""
    finding = Finding(what="changed", detail={"sent": {"os": None, "n": [None]}, "seen": None})
    check = CheckResult(
        check="exactly_once", outcome=Outcome.VIOLATED, summary="1 changed", findings=(finding,)
    )
    results = dataclasses.replace(sample_results("run-1", Outcome.VIOLATED), checks=(check,))
    assert "changed (sent os null, n null, seen not known)" in plain_summary(results, folder)


def test_with_several_faults_the_recovery_from_each_is_printed(folder: RunFolder) -> None:
    first = FaultRecovery(fault="slow_sink", step=0, phases={"first_output_s": None})
    second = FaultRecovery(fault="kill", step=1, phases={"first_output_s": 8.9})
    results = dataclasses.replace(
        sample_results("run-1", Outcome.HELD), recovery=first.phases, recoveries=(first, second)
    )
    again = Results.from_json(results.to_json())
    assert again.recoveries == results.recoveries
    text = plain_summary(again, folder)
    assert "recovery  from slow_sink (faults[0]): first output not reached" in text
    assert "recovery  from kill (faults[1]): first output 8.90 s" in text


def test_only_the_beginning_of_long_evidence_is_printed(folder: RunFolder) -> None:
    results = sample_results("run-1", Outcome.HELD)
    attempts = {f"node-{at}": "timed out" for at in range(9)}
    fault = dataclasses.replace(results.faults[0], evidence={"answers": attempts})
    text = plain_summary(dataclasses.replace(results, faults=(fault,)), folder)
    recorded = " ".join(text.split())
    assert "node-5 timed" in recorded
    assert "node-6" not in recorded
    assert "and 3 more" in recorded


def test_the_first_line_compares_the_outcome_with_the_expected_one(folder: RunFolder) -> None:
    violated = sample_results("run-1", Outcome.VIOLATED)
    canary = dataclasses.replace(violated, expected=ExpectedOutcome(outcome=Outcome.VIOLATED))
    assert plain_summary(canary, folder).startswith("VIOLATED, AS EXPECTED")
    blind = dataclasses.replace(
        sample_results("run-1", Outcome.HELD), expected=ExpectedOutcome(outcome=Outcome.VIOLATED)
    )
    assert plain_summary(blind, folder).startswith("HELD, BUT VIOLATED WAS EXPECTED")
    either = ExpectedOutcome.of({"exactly_once": ("held", "undecided")})
    lucky = dataclasses.replace(sample_results("run-1", Outcome.HELD), expected=either)
    assert plain_summary(lucky, folder).startswith("HELD, AS EXPECTED")
    damaged = dataclasses.replace(canary, reason="the metrics are missing")
    assert plain_summary(damaged, folder).startswith("VIOLATED, BUT THE METRICS ARE MISSING")


def test_a_fault_without_effect_is_shown_with_its_reason(folder: RunFolder) -> None:
    fault = FaultRecord(
        fault="pause",
        target="all of flink/taskmanager",
        nodes=(),
        injected_s=None,
        in_effect=False,
        reason="last seen: running",
    )
    results = dataclasses.replace(sample_results("run-1", Outcome.HELD), faults=(fault,))
    assert "effect not verified: last seen: running" in plain_summary(results, folder)


def test_a_fault_that_ended_early_is_shown_with_the_time(folder: RunFolder) -> None:
    fault = FaultRecord(
        fault="isolate",
        target="kafka/broker-1",
        nodes=("kafka/broker-1",),
        injected_s=2.0,
        in_effect=True,
        healed=True,
        ended_early_s=11.25,
    )
    results = dataclasses.replace(sample_results("run-1", Outcome.UNDECIDED), faults=(fault,))
    assert "in effect, ended early (11.250 s), healed" in plain_summary(results, folder)
    older = results.to_json()
    del older["faults"][0]["ended_early_s"]
    assert Results.from_json(older).faults[0].ended_early_s is None


def test_the_summary_of_a_failed_run_has_the_reason(tmp_path: Path) -> None:
    folder = write_failed_run(tmp_path)
    lines = plain_summary(folder.read_results(), folder).splitlines()
    assert lines[1] == (
        "failed to run: flink/jobmanager-1 ended with exit code 1, killed for lack of memory"
    )
    assert lines[2:4] == ["Starting JobManager", "OutOfMemoryError: heap"]


def test_names_that_resemble_markup_are_printed_unchanged(folder: RunFolder) -> None:
    hostile = CheckResult(
        check="[red]x[/red]",
        outcome=Outcome.VIOLATED,
        summary="[link=http://x]y[/]",
        findings=(Finding(what="[bold]"),),
    )
    results = dataclasses.replace(sample_results("run-1", Outcome.HELD), checks=(hostile,))
    text = plain_summary(results, folder)
    assert "[red]x[/red]" in text
    assert "[link=http://x]y[/]" in text


def test_a_long_replay_command_is_not_wrapped(folder: RunFolder) -> None:
    replay = "streamquake replay " + "/a-long-folder" * 30
    results = dataclasses.replace(sample_results("run-1", Outcome.HELD), replay=replay)
    assert plain_summary(results, folder).splitlines()[-1] == f"replay      {replay}"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("ci", "coloured"), [("", True), ("true", False)])
def test_colours_are_used_only_on_a_terminal_and_never_in_ci(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch, ci: str, coloured: bool
) -> None:
    monkeypatch.setenv("CI", ci)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    terminal = Terminal()
    print_summary(sample_results("run-1", Outcome.HELD), folder, make_console(terminal))
    assert ("\x1b[" in terminal.getvalue()) is coloured


def test_the_time_of_the_fault_is_not_a_phase_of_its_recovery() -> None:
    recovery = {"effect_at_s": 31.5, "lag_normal_s": 0.0, "detected_s": 2.0, "restored_s": None}
    assert run_sentences.milestones(recovery) == (
        ("lag normal", 0.0),
        ("detected", 2.0),
        ("restored", None),
    )


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        ({"ended": "interrupted", "reason": "Ctrl-C"}, "interrupted: Ctrl-C"),
        ({"checks": (), "outcome": Outcome.UNDECIDED}, "nothing was judged, so nothing is proven"),
        ({"faults": ()}, "3 checks held; no fault was injected"),
        ({}, "3 checks held; 1 of 1 fault verified in effect, 1 healed"),
    ],
)
def test_why_is_one_sentence(results: dict[str, object], expected: str) -> None:
    base = sample_results("run-1", Outcome.HELD)
    assert run_sentences.why(dataclasses.replace(base, **results)) == expected  # type: ignore[arg-type]


def test_undecided_counts_are_not_shown_as_zero() -> None:
    assert [run_sentences.counted(figure) for figure in (None, 0, 1234567, 0.25)] == [
        "–",
        "0",
        "1,234,567",
        "0.25",
    ]


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("outage_s", 12.4, ("outage", "12.4 s")),
        ("duration_ms", 1821, ("duration", "1,821 ms")),
        ("persisted_bytes", 0, ("persisted", "0 bytes")),
        ("sent_per_s", 5000, ("sent per s", "5,000")),
        ("late_dropped", None, ("late dropped", "–")),
        ("outage_s", None, ("outage", "–")),
    ],
)
def test_a_figure_has_a_name_and_a_value_with_its_unit(
    name: str, value: float | None, expected: tuple[str, str]
) -> None:
    assert run_sentences.measured(name, value) == expected


def test_the_headline_of_a_run_without_checks_is_undecided() -> None:
    empty = Results(
        run_id="r", experiment="e", seed=1, ended="completed", outcome=Outcome.UNDECIDED
    )
    assert run_sentences.headline(empty) == "undecided"

"""Completion in the shell, as click computes it for any shell."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from click.shell_completion import CompletionItem, ShellComplete

from streamquake.faults.fault import faults
from streamquake.harness.campaign.suite.loader import SUITES
from streamquake.harness.cli import COMMANDS, program
from streamquake.harness.cli.guard import guarded
from streamquake.harness.experiment.check import checks
from streamquake.harness.experiment.loader import EXPERIMENTS
from streamquake.reports.store.results_store import ResultsStore
from streamquake.topologies.named_files import SHIPPED, shipped_names
from tests.reports.stored_runs import judged_run, run_id_of

TOPOLOGIES = {*shipped_names(SHIPPED, ".yaml")}
EXPERIMENT_NAMES = {*shipped_names(EXPERIMENTS, ".yaml")}
SUITE_NAMES = {*shipped_names(SUITES, ".yaml")}


@pytest.fixture
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the runs, in an empty current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path / "runs"


def items(*written: str) -> list[CompletionItem[str]]:
    """What the shell offers for the last word."""
    shell = ShellComplete(program, {}, "streamquake", "_STREAMQUAKE_COMPLETE")
    return shell.get_completions(list(written[:-1]), written[-1])


def offered(*written: str) -> list[str]:
    return [item.value for item in items(*written) if item.type == "plain"]


def test_commands_are_offered_with_their_lines_and_without_importing_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "streamquake.harness.cli.schema", raising=False)

    found = {item.value: item.help for item in items("")}

    assert found == {name: line for name, (_, line) in COMMANDS.items()}
    assert "streamquake.harness.cli.schema" not in sys.modules
    assert offered("re") == ["reconcile", "report", "replay", "results"]


@pytest.mark.parametrize(
    ("written", "known"),
    [
        (("run",), EXPERIMENT_NAMES),
        (("compare",), EXPERIMENT_NAMES),
        (("compare", "quickstart", "--topology"), TOPOLOGIES),
        (("up",), TOPOLOGIES),
        (("compose",), TOPOLOGIES),
        (("suite",), SUITE_NAMES),
        (("suite", "claims", "--only"), EXPERIMENT_NAMES),
        (("validate", "kafka-only"), TOPOLOGIES | EXPERIMENT_NAMES | SUITE_NAMES),
    ],
)
def test_shipped_documents_are_offered_after_the_request_for_paths(
    written: tuple[str, ...], known: set[str]
) -> None:
    first, *names = items(*written, "")

    assert (first.type, first.value) == ("file", "")
    assert {name.value for name in names} == known


def test_only_names_that_begin_with_the_word_are_offered_with_their_descriptions() -> None:
    (found,) = [item for item in items("run", "quickst") if item.type == "plain"]

    assert found.value == "quickstart"
    assert found.help
    assert offered("up", "no-such") == []


@pytest.mark.parametrize("command", ["replay", "check", "report"])
def test_runs_are_offered_newest_first(command: str, out: Path) -> None:
    assert offered(command, "") == []
    for number in range(2):
        judged_run(out, number)

    assert items(command, "")[0].type == "dir"
    assert offered(command, "") == ["latest", run_id_of(1), run_id_of(0)]
    assert offered(command, run_id_of(1)) == [run_id_of(1)]


def test_runs_are_offered_from_the_given_folder(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judged_run(out.parent / "other")

    assert offered("check", "--out", "other", "la") == ["latest"]
    monkeypatch.setenv("STREAMQUAKE_CHECK_OUT", "other")
    assert offered("check", "la") == ["latest"]


def test_faults_are_offered_and_then_their_parameters() -> None:
    assert offered("inject", "") == offered("heal", "") == [*faults]
    assert offered("inject", "slow_link", "link sink", "") == [
        "stream=",
        "latency_ms=",
        "jitter_ms=",
        "bandwidth_kb_per_s=",
    ]
    assert offered("inject", "no_such", "link sink", "") == []


def test_figures_of_the_recorded_runs_are_offered_and_then_the_checks(out: Path) -> None:
    assert offered("results", "--figure", "") == [f"{name}." for name in checks]

    judged_run(out)
    ResultsStore(out).rebuild()
    assert offered("results", "--figure", "recovery.")[-1] == "recovery."
    assert "recovery.restarted_s" in offered("results", "--figure", "recovery.")

    ResultsStore(out).path.write_text("no database")
    assert offered("results", "--figure", "recovery.") == ["recovery."]


def test_kinds_and_options_are_offered() -> None:
    assert offered("list", "su") == ["suites"]
    assert offered("schema", "") == ["topology", "experiment", "suite"]
    assert offered("run", "--dr") == ["--dry-run"]


def test_an_unknown_command_offers_commands_and_shows_no_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert offered("vallidate", "x") == []
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_program_prints_the_script_of_a_shell(
    shell: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_STREAMQUAKE_COMPLETE", f"{shell}_source")

    with pytest.raises(SystemExit) as ended:
        guarded(program, [])

    assert ended.value.code == 0
    assert f"_STREAMQUAKE_COMPLETE={shell}_complete" in capsys.readouterr().out

"""`--plugin FILE`: what a plugin registers is known to every command, and its record names it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.shell_completion import ShellComplete

from streamquake.harness.cli import program
from streamquake.harness.experiment.loader import experiment_document, load_experiment
from streamquake.harness.run.versions import judge_digest, version_manifest
from streamquake.reports.record.event import Action, EventDraft, Kind
from streamquake.reports.record.history import HistoryWriter
from streamquake.reports.record.run_folder import RunFolder
from streamquake.reports.store.stored_run import key_of
from streamquake.topologies.plugins import Plugins
from tests.harness.conftest import RunCommand
from tests.plugin_files import write, write_check

EXPERIMENT = """
    name: own
    topology: kafka-only
    workload: {numbered: {records: 1000, rate_per_s: 1000}}
    faults: [{kill: {}, target: kafka/broker-1, at_s: 0.2, for_s: 0.1}]
    checks: [{few_events: {most: 3}}]
    seed: 1
"""


@pytest.fixture
def plugin(tmp_path: Path, without_plugins: Plugins) -> Path:
    write(tmp_path / "own.yaml", EXPERIMENT)
    return write_check(tmp_path / "own.py")


def recorded(out: Path, events: int, **changes: Any) -> RunFolder:
    """The record of a run of the experiment, with so many events."""
    experiment = load_experiment("own.yaml")
    folder = RunFolder.create(out, "20260101-000000-abcd")
    plan = {"experiment": experiment_document(experiment), "seed": 1}
    folder.write_manifest(
        {**plan, "run_id": folder.run_id, **version_manifest(experiment), **changes}
    )
    writer = HistoryWriter(folder.history)
    for number in range(events):
        writer.append(
            EventDraft(
                at_ns=number,
                process="test",
                kind=Kind.INFO,
                action=Action.PHASE,
                value={"phase": "steady"},
            )
        )
    writer.close()
    return folder


def forget(plugins: Plugins, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a new process, in which no plugin was loaded."""
    from streamquake.harness.experiment.check import checks

    monkeypatch.delitem(checks._members, "few_events")
    monkeypatch.setattr(plugins, "_loaded", [])


def test_the_members_are_listed_with_their_plugin(plugin: Path, run_command: RunCommand) -> None:
    status, out, _ = run_command("--plugin", "own.py", "list", "checks", "plugins", "--json")
    found = json.loads(out)

    assert status == 0
    (row,) = found["plugins"]
    assert (row["name"], row["version"], row["members"]) == ("own.py", "", ["check few_events"])
    (check,) = (each for each in found["checks"] if each["name"] == "few_events")
    assert check["plugin"] == f"own.py (digest {row['digest']})"
    assert [each["name"] for each in check["parameters"]] == ["most"]
    assert all("plugin" not in each for each in found["checks"] if each != check)


def test_the_list_for_people_names_the_plugin(plugin: Path, run_command: RunCommand) -> None:
    _, out, _ = run_command("--plugin", "own.py", "list", "checks", "plugins")

    text = " ".join(out.split())
    assert "few_events The history has few events. (plugin own.py (digest" in text
    assert "check few_events" in text


def test_the_plugin_of_the_page_can_be_loaded(
    run_command: RunCommand, without_plugins: Plugins, tmp_path: Path
) -> None:
    page = (Path(__file__).parents[3] / "docs" / "plugins.md").read_text("utf-8")
    write(tmp_path / "own_checks.py", page.partition("```python\n")[2].partition("```")[0])

    listed = run_command("--plugin", "own_checks.py", "list", "plugins", "--json")[1]

    assert json.loads(listed)["plugins"][0]["members"] == ["check few_events"]


def test_without_a_plugin_none_is_listed(without_plugins: Plugins, run_command: RunCommand) -> None:
    assert run_command("list", "plugins")[1].split() == ["plugins", "none"]


def test_schema_and_validation_know_the_members(plugin: Path, run_command: RunCommand) -> None:
    assert run_command("validate", "own.yaml")[0] == 2

    assert run_command("--plugin", "own.py", "validate", "own.yaml")[:2] == (0, "own.yaml: valid\n")
    assert '"few_events"' in run_command("--plugin", "own.py", "schema", "experiment")[1]
    write(Path("own.yaml"), EXPERIMENT.replace("few_events", "few_event"))
    _, _, err = run_command("--plugin", "own.py", "validate", "own.yaml")
    assert 'no check is called "few_event"; did you mean "few_events"?' in err


def test_plugins_may_be_named_by_a_variable(
    plugin: Path, run_command: RunCommand, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    write_check(tmp_path / "two.py", "two")
    monkeypatch.setenv("STREAMQUAKE_PLUGIN", "own.py:two.py")

    found = json.loads(run_command("list", "plugins", "--json")[1])["plugins"]
    assert [row["name"] for row in found] == ["own.py", "two.py"]

    monkeypatch.setenv("STREAMQUAKE_PLUGIN", "none.py")
    status, _, err = run_command("list", "plugins")
    assert (status, err.splitlines()[-1]) == (2, "the value is from STREAMQUAKE_PLUGIN")


def test_a_missing_or_broken_plugin_is_bad_input(
    without_plugins: Plugins, run_command: RunCommand, tmp_path: Path
) -> None:
    write(tmp_path / "own.py", "import no_such_module\n")

    status, _, err = run_command("--plugin", "own.py", "list", "checks")
    assert status == 2
    assert err.startswith("plugin own.py: cannot be imported (")
    assert err.endswith("ModuleNotFoundError: No module named 'no_such_module'\n")
    status, _, err = run_command("--plugin", "none.py", "list", "checks")
    assert (status, "File 'none.py' does not exist." in err) == (2, True)


def test_the_names_of_members_are_completed(plugin: Path) -> None:
    shell = ShellComplete(program, {}, "streamquake", "_STREAMQUAKE_COMPLETE")

    def offered(file: Path) -> list[str]:
        words = ["--plugin", str(file), "results", "--figure"]
        return [item.value for item in shell.get_completions([*words], "few")]

    assert offered(plugin.with_name("none.py")) == []
    assert offered(plugin) == ["few_events."]


def test_a_record_names_the_plugins_that_took_part(
    plugin: Path, run_command: RunCommand, without_plugins: Plugins, tmp_path: Path
) -> None:
    own_judge = judge_digest()
    without_plugins.load_file(plugin)
    without_plugins.load_file(write_check(tmp_path / "unused.py", "unused"))
    experiment = load_experiment(str(tmp_path / "own.yaml"))

    manifest = version_manifest(experiment)

    (entry,) = manifest["plugins"]
    digest = entry.pop("digest")
    assert entry == {"name": "own.py", "version": "", "members": {"check": ["few_events"]}}
    assert manifest["versions"]["plugin own.py"] == digest
    assert version_manifest(load_experiment("quickstart"))["plugins"] == []
    assert judge_digest() != own_judge


def test_runs_with_another_text_of_a_plugin_have_another_key(
    plugin: Path, without_plugins: Plugins, tmp_path: Path
) -> None:
    def key() -> str:
        without_plugins.load_file(plugin)
        experiment = load_experiment(str(tmp_path / "own.yaml"))
        plan = experiment_document(experiment)
        return key_of({"experiment": plan, **version_manifest(experiment)})

    before = key()
    plugin.write_text(plugin.read_text("utf-8") + "\n# changed\n", "utf-8")

    assert key() != before


@pytest.mark.parametrize(("events", "outcome"), [(3, "held"), (4, "violated")])
def test_a_record_is_judged_again_with_the_plugin(
    events: int, outcome: str, plugin: Path, run_command: RunCommand, without_plugins: Plugins
) -> None:
    without_plugins.load_file(plugin)
    recorded(Path("runs"), events)

    _, out, _ = run_command("--plugin", "own.py", "check", "latest", "--json")

    results = json.loads(out)
    found = {each["check"]: each["outcome"] for each in results["checks"]}
    assert found["few_events"] == outcome
    assert results["replay"].startswith(f"streamquake --plugin {plugin} replay ")


def test_a_plugin_that_changed_since_the_run_is_named(
    plugin: Path, run_command: RunCommand, without_plugins: Plugins
) -> None:
    without_plugins.load_file(plugin)
    recorded(Path("runs"), 3)
    message = "the plugin own.py is "
    assert message not in run_command("check", "latest")[1]

    plugin.write_text(plugin.read_text("utf-8") + "\n# changed\n", "utf-8")
    _, out, _ = run_command("--plugin", "own.py", "check", "latest")

    assert out.count(message) == 1
    assert " now, and was " in out


@pytest.mark.parametrize("command", ["check", "replay"])
@pytest.mark.parametrize(
    ("version", "message"),
    [
        ("", "own.py (digest 1234), which is not loaded; name the file: streamquake --plugin FILE"),
        ("1.2", "own.py 1.2, which is not loaded; install it"),
    ],
)
def test_a_record_whose_plugin_is_missing_says_so_and_loads_nothing(
    command: str,
    version: str,
    message: str,
    plugin: Path,
    run_command: RunCommand,
    without_plugins: Plugins,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    without_plugins.load_file(plugin)
    member = {"members": {"check": ["few_events"]}}
    entry = {"name": "own.py", "version": version, "digest": "1234", **member}
    folder = recorded(Path("runs"), 3, plugins=[entry])
    (folder.path / "own.py").write_text(plugin.read_text("utf-8"))
    forget(without_plugins, monkeypatch)

    status, _, err = run_command(command, "latest")

    assert status == 2
    (line,) = err.splitlines()
    assert f"plugins[0]: the run used check few_events of the plugin {message}" in line
    assert without_plugins.loaded() == ()


@pytest.mark.parametrize("plugins", [7, [7], [{"name": "x"}], [{"name": "x", "members": []}]])
def test_a_damaged_list_of_plugins_is_reported(
    plugins: Any, plugin: Path, run_command: RunCommand, without_plugins: Plugins
) -> None:
    without_plugins.load_file(plugin)
    folder = recorded(Path("runs"), 3, plugins=plugins)

    status, _, err = run_command("check", "latest")

    assert status == 2
    assert all(
        line.startswith(f"{folder.manifest.resolve()}: plugins") for line in err.splitlines()
    )

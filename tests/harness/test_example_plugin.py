"""The package of `examples/plugin/`: installed into a folder, its members are found, validated and
judge a recorded run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamquake.harness.experiment.loader import experiment_document, load_experiment
from streamquake.harness.run.versions import version_manifest
from streamquake.reports.record.event import Action, EventDraft, Kind
from streamquake.reports.record.history import HistoryWriter
from streamquake.reports.record.run_folder import RunFolder
from streamquake.topologies.plugins import Plugins
from tests.harness.conftest import RunCommand

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "plugin"
EXPERIMENT = str(EXAMPLE / "interrupted-broker.yaml")
PACKAGE = "streamquake_example"
LIMIT_S = 120


def run_python(*arguments: str, path: Path, cwd: Path) -> str:
    """The output of Python with the installed example and this Streamquake."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": f"{path}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which pip installed the example. A build leaves files, so it uses a copy."""
    folder = tmp_path_factory.mktemp("example")
    source, target = folder / "source", folder / "site"
    shutil.copytree(EXAMPLE, source, ignore=shutil.ignore_patterns("__pycache__"))
    offline = ("--no-deps", "--no-build-isolation", "--no-index", "--no-compile", "-q")
    pip = ("-m", "pip", "install", *offline, "--target", str(target), str(source))
    run_python(*pip, path=target, cwd=folder)
    return target


@pytest.fixture
def installed(
    site: Path, monkeypatch: pytest.MonkeyPatch, without_plugins: Plugins
) -> Iterator[Plugins]:
    """The installed example in this process, forgotten after the test."""
    monkeypatch.syspath_prepend(site)
    yield without_plugins
    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
        del sys.modules[name]


def recorded(out: Path, status: str) -> RunFolder:
    """The record of a run of the example's experiment in which ten sends had this status."""
    experiment = load_experiment(EXPERIMENT, seed=1)
    folder = RunFolder.create(out, "20260101-000000-abcd")
    folder.write_manifest(
        {
            "run_id": folder.run_id,
            "experiment": experiment_document(experiment),
            "seed": 1,
            **version_manifest(experiment),
        }
    )
    writer = HistoryWriter(folder.history)
    sent = {"first": 0, "last": 9, "count": 10, "status": status}
    writer.append(
        EventDraft(at_ns=1, process="test", kind=Kind.INFO, action=Action.SENT, value=sent)
    )
    writer.close()
    return folder


def test_a_new_process_lists_its_members(site: Path, tmp_path: Path) -> None:
    listed = ("-m", "streamquake", "list", "checks", "faults", "plugins", "--json")
    found = json.loads(run_python(*listed, path=site, cwd=tmp_path))

    (plugin,) = found["plugins"]
    assert plugin["members"] == ["fault interrupt", "check rejected_sends"]
    assert Path(plugin["file"]).is_relative_to(site)
    for kind, name in (("faults", "interrupt"), ("checks", "rejected_sends")):
        (row,) = (each for each in found[kind] if each["name"] == name)
        assert row["plugin"] == "streamquake-example 0.1.0"


def test_its_tests_pass(site: Path, tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE / "tests", tmp_path / "tests")
    shutil.copy(EXPERIMENT, tmp_path)

    quiet = ("-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path))
    out = run_python("-m", "pytest", *quiet, "tests", path=site, cwd=tmp_path)

    assert "6 passed" in out


def test_its_experiment_is_valid_only_with_it(installed: Plugins, run_command: RunCommand) -> None:
    assert run_command("validate", EXPERIMENT)[:2] == (0, f"{EXPERIMENT}: valid\n")


def test_without_it_its_experiment_is_invalid(
    without_plugins: Plugins,
    run_command: RunCommand,
) -> None:
    status, _, err = run_command("validate", EXPERIMENT)

    assert status == 2
    assert 'no fault is called "interrupt"' in err
    assert 'no check is called "rejected_sends"' in err


@pytest.mark.parametrize(("status", "outcome"), [("acknowledged", "held"), ("failed", "violated")])
def test_its_check_judges_a_recorded_run(
    status: str,
    outcome: str,
    installed: Plugins,
    run_command: RunCommand,
) -> None:
    folder = recorded(Path("runs"), status)
    (entry,) = folder.read_manifest()["plugins"]
    assert (entry["name"], entry["version"]) == ("streamquake-example", "0.1.0")
    assert entry["members"] == {"fault": ["interrupt"], "check": ["rejected_sends"]}

    _, out, _ = run_command("check", "latest", "--json")

    found = {each["check"]: each["outcome"] for each in json.loads(out)["checks"]}
    assert found["rejected_sends"] == outcome

"""What of a run's own record keeps its cluster from being handed on."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from streamquake.faults.fault import faults
from streamquake.faults.injection.intents import IntentLog
from streamquake.harness.campaign.suite.cluster_pool import _folders, _run_problem
from streamquake.harness.experiment.loader import load_experiment
from streamquake.reports.record.history import History
from streamquake.reports.record.run_folder import RunFolder


def lease(tmp_path: Path, fault: str = "slow_link") -> Any:
    """As much of a stay as is looked at."""
    step = SimpleNamespace(fault=fault)
    return SimpleNamespace(
        loop=SimpleNamespace(history=History),
        folder=RunFolder(tmp_path),
        experiment=SimpleNamespace(faults=(step,)),
    )


def test_a_run_of_which_nothing_is_left_marks_nothing(tmp_path: Path) -> None:
    assert _run_problem(lease(tmp_path)) is None


def test_an_agent_in_a_process_stays_there(tmp_path: Path) -> None:
    assert _run_problem(lease(tmp_path, "throw_in_task")) == (
        "throw_in_task left an agent in a node's process"
    )


def test_an_open_fault_marks_the_cluster_until_it_is_healed(tmp_path: Path) -> None:
    log = IntentLog(tmp_path / "intents.jsonl")
    intent = log.write_intent(step=0, fault=faults["pause"](), target="x", names=["x"])
    assert _run_problem(lease(tmp_path)) == "a fault is open"
    log.record_heal(intent)
    assert _run_problem(lease(tmp_path)) is None


def test_the_folders_of_a_run_are_those_of_its_promise() -> None:
    assert _folders(load_experiment("kill-taskmanager-mid-checkpoint")) == ("/output/totals",)
    assert _folders(load_experiment("kafka-kill-broker")) == ()

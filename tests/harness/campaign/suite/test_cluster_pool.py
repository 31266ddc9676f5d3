"""The events of a run after which its cluster is not reused."""

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
    """The parts of a cluster lease that the check reads."""
    step = SimpleNamespace(fault=fault)
    return SimpleNamespace(
        loop=SimpleNamespace(history=History),
        folder=RunFolder(tmp_path),
        experiment=SimpleNamespace(faults=(step,)),
    )


def test_a_cluster_without_residue_can_be_reused(tmp_path: Path) -> None:
    assert _run_problem(lease(tmp_path)) is None


def test_a_cluster_with_an_agent_in_a_process_cannot_be_reused(tmp_path: Path) -> None:
    assert _run_problem(lease(tmp_path, "throw_in_task")) == (
        "throw_in_task left an agent in a node's process"
    )


def test_a_cluster_with_an_open_fault_cannot_be_reused_until_it_is_healed(tmp_path: Path) -> None:
    log = IntentLog(tmp_path / "intents.jsonl")
    intent = log.write_intent(step=0, fault=faults["pause"](), target="x", names=["x"])
    assert _run_problem(lease(tmp_path)) == "a fault is open"
    log.record_heal(intent)
    assert _run_problem(lease(tmp_path)) is None


def test_the_output_folders_of_a_run_are_those_of_its_promise() -> None:
    assert _folders(load_experiment("kill-taskmanager-mid-checkpoint")) == ("/output/totals",)
    assert _folders(load_experiment("kafka-kill-broker")) == ()

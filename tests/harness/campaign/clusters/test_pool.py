"""The events of a run after which its cluster is not reused."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from streamquake.faults.fault import faults
from streamquake.faults.injection.intents import IntentLog
from streamquake.harness.campaign.clusters.pool import _run_problem
from streamquake.reports.record.history import History
from streamquake.reports.record.run_folder import RunFolder


def lease(tmp_path: Path) -> Any:
    """The parts of a cluster lease that the check reads."""
    return SimpleNamespace(
        loop=SimpleNamespace(history=History),
        folder=RunFolder(tmp_path),
    )


def test_a_cluster_without_residue_can_be_reused(tmp_path: Path) -> None:
    assert _run_problem(lease(tmp_path)) is None


def test_a_cluster_with_an_open_fault_cannot_be_reused_until_it_is_healed(tmp_path: Path) -> None:
    log = IntentLog(tmp_path / "intents.jsonl")
    intent = log.write_intent(step=0, fault=faults["pause"](), target="x", names=["x"])
    assert _run_problem(lease(tmp_path)) == "a fault is open"
    log.record_heal(intent)
    assert _run_problem(lease(tmp_path)) is None

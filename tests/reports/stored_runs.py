"""Judged runs by hand, as a store reads them: a manifest and its results, without a history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from streamquake.reports.record.expected_outcome import ExpectedOutcome
from streamquake.reports.record.outcome import CheckResult, Outcome
from streamquake.reports.record.results import Ended, Results
from streamquake.reports.record.run_folder import RunFolder
from streamquake.reports.store.stored_run import StoredRun

VERSIONS = {"streamquake": "1.0", "program": "p1", "flink": "2.2.1"}


def run_id_of(number: int) -> str:
    return f"20260101-00{number:04d}-abcd"


def judged_run(
    out: Path,
    number: int = 0,
    *,
    experiment: str = "a",
    outcome: Outcome = Outcome.HELD,
    expected: Outcome = Outcome.HELD,
    ended: Ended = "completed",
    took_s: float | None = 2.5,
    settings: Mapping[str, Any] | None = None,
    **manifest: Any,
) -> tuple[RunFolder, Results]:
    """A run that began `number` minutes after midnight; `settings` are of its experiment."""
    document = {"name": experiment, "topology": {"name": "small"}, "seed": number}
    folder = RunFolder.create(out, run_id_of(number))
    folder.write_manifest(
        {
            "run_id": folder.run_id,
            "experiment": {**document, **(settings or {})},
            "seed": number,
            "versions": VERSIONS,
            "images": {"flink/taskmanager": "flink:2.2.1"},
            "image_ids": {"flink:2.2.1": "sha256:1"},
            "machine": {"cpus": 2, "load_1m": 0.5},
            "started_at": f"2026-01-01T00:{number:02d}:00+00:00",
            **manifest,
        }
    )
    results = Results(
        run_id=folder.run_id,
        experiment=experiment,
        seed=number,
        ended=ended,
        outcome=outcome,
        expected=ExpectedOutcome.of(str(expected)),
        checks=(
            CheckResult(
                check="recovery",
                outcome=outcome,
                summary="it took a while",
                counts={"longest_s": took_s, "faults": 1},
            ),
        ),
        recovery={"longest_s": 9.0, "restarted_s": 1.5, "restored_s": None},
        judge="j1",
    )
    folder.write_results(results)
    return folder, results


SAMPLE = StoredRun(
    run_id="",
    started_at="",
    experiment="",
    topology="flink-kafka-hdfs",
    seed=0,
    ended="completed",
    outcome="held",
    as_expected=1,
    expected="held",
    cause="",
    why="",
    key="",
    streamquake="0.2.0",
    program="p1",
    judge="j1",
    load_1m=0.4,
)


def stored(experiment: str, **fields: Any) -> StoredRun:
    """A run as the store returns it."""
    return replace(SAMPLE, experiment=experiment, **fields)

"""A suite that goes on: what is recorded already is not run again, what is not the same is."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamquake.harness.campaign.suite.recorded_runs import RecordedRuns
from streamquake.harness.interrupts import Interrupted
from tests.harness.campaign.suite.acting import Theatre, claim, experiment, plain, plan_of, theatre

__all__ = ["theatre"]


def test_what_is_recorded_stands_for_the_same_run(theatre: Theatre) -> None:
    first, _ = theatre.play(plain(experiment("a"), experiment("b")))
    ran = len(theatre.clusters)

    again, folder = theatre.play(plain(experiment("a"), experiment("b")), resume=True)

    assert len(theatre.clusters) == ran
    assert [row.run for row in again.rows] == [row.run for row in first.rows]
    assert [row.outcome for row in again.rows] == [row.outcome for row in first.rows]
    assert f"a is recorded as {first.rows[0].run}" in theatre.messages
    assert folder.page.is_file()
    assert theatre.left() == 0


def test_without_being_asked_everything_is_run(theatre: Theatre) -> None:
    theatre.play(plain(experiment("a")))
    theatre.play(plain(experiment("a")))

    assert len(theatre.clusters) == 2


def test_another_setting_is_another_experiment_and_another_seed_is_not(theatre: Theatre) -> None:
    theatre.play(plain(experiment("a")))
    other = experiment("a", limits={"recover_s": 7})

    changed, _ = theatre.play(plain(other), resume=True)
    reseeded, _ = theatre.play(plain(other.model_copy(update={"seed": 99})), resume=True)

    assert len(theatre.clusters) == 2
    assert reseeded.rows[0].run == changed.rows[0].run


@pytest.mark.parametrize(("added", "ran"), [({}, 1), (None, 1), (5, 2)])
def test_a_setting_that_a_later_version_added_counts_only_where_it_is_given(
    theatre: Theatre, added: object, ran: int
) -> None:
    first, _ = theatre.play(plain(experiment("a")))
    manifest = theatre.out / str(first.rows[0].run) / "run.json"
    recorded = json.loads(manifest.read_text("utf-8"))
    recorded["experiment"]["limits"]["of_another_version"] = added
    manifest.write_text(json.dumps(recorded), "utf-8")

    theatre.play(plain(experiment("a")), resume=True)

    assert len(theatre.clusters) == ran


def changed(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    document = json.loads(path.read_text("utf-8"))
    change(document)
    path.write_text(json.dumps(document), "utf-8")


@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("run.json", lambda manifest: manifest["versions"].update(streamquake="0.1.0")),
        ("run.json", lambda manifest: manifest["versions"].update(program="another")),
        ("run.json", lambda manifest: manifest["versions"].update(toolbox="0.0.1")),
        ("run.json", lambda manifest: manifest["images"].update({"echo/server": "echo:2"})),
        ("run.json", lambda manifest: manifest.pop("images")),
        ("results.json", lambda results: results["checks"].pop(0)),
        ("results.json", lambda results: results["checks"][1].update(outcome="violated")),
        ("results.json", lambda results: results.update(checks=[])),
    ],
)
def test_a_run_that_was_made_or_judged_otherwise_stands_for_nothing(
    theatre: Theatre, file: str, change: Callable[[dict[str, Any]], object]
) -> None:
    first, _ = theatre.play(plain(experiment("a")))
    changed(theatre.out / str(first.rows[0].run) / file, change)

    again, _ = theatre.play(plain(experiment("a")), resume=True)

    assert len(theatre.clusters) == 2
    assert again.rows[0].run != first.rows[0].run


@pytest.mark.parametrize("file", ["history.jsonl", "metrics.parquet", "data/input/read.json"])
def test_a_record_that_changed_since_it_was_judged_stands_for_nothing(
    theatre: Theatre, file: str
) -> None:
    first, _ = theatre.play(plain(experiment("a")))
    run = theatre.out / str(first.rows[0].run)
    (run / file).parent.mkdir(parents=True, exist_ok=True)
    (run / file).touch()
    later_ns = (run / "results.json").stat().st_mtime_ns + 1_000_000
    os.utime(run / file, ns=(later_ns, later_ns))

    theatre.play(plain(experiment("a")), resume=True)

    assert len(theatre.clusters) == 2
    assert any(f"{run.name} changed since it was judged" in message for message in theatre.messages)


def test_a_record_without_its_history_stands_for_nothing(theatre: Theatre) -> None:
    first, _ = theatre.play(plain(experiment("a")))
    (theatre.out / str(first.rows[0].run) / "history.jsonl").unlink()

    assert len(RecordedRuns(theatre.out)) == 0


def test_a_changed_record_that_was_judged_again_counts(theatre: Theatre) -> None:
    first, _ = theatre.play(plain(experiment("a")))
    run = theatre.out / str(first.rows[0].run)
    (run / "history.jsonl").touch()
    judged_ns = (run / "history.jsonl").stat().st_mtime_ns + 1_000_000
    os.utime(run / "results.json", ns=(judged_ns, judged_ns))

    theatre.play(plain(experiment("a")), resume=True)

    assert len(theatre.clusters) == 1


def test_repeats_take_each_recorded_run_once_and_run_the_rest(theatre: Theatre) -> None:
    theatre.counts["a"] = [100.0, 200.0, 400.0]
    rows = (claim("a", figures=("measure.took_ms",)), [experiment("a")])
    theatre.play(plan_of(rows, repeats=2))

    again, _ = theatre.play(plan_of(rows, repeats=3), resume=True)

    assert len(theatre.clusters) == 3
    assert len({run.run for run in again.rows[0].runs}) == 3
    assert sorted(run.seed for run in again.rows[0].runs) == [0, 1, 2]


def test_a_run_that_was_interrupted_is_made_anew(theatre: Theatre) -> None:
    def stop(loop: object) -> None:
        raise Interrupted("SIGINT")

    theatre.during["a"] = stop
    cut, _ = theatre.play(plain(experiment("a"), experiment("b")))
    theatre.during.clear()

    whole, _ = theatre.play(plain(experiment("a"), experiment("b")), resume=True)

    assert cut.ended == "interrupted"
    assert whole.ended == "completed"
    assert whole.rows[0].run != cut.rows[0].run


def test_a_record_that_cannot_be_read_stands_for_nothing(theatre: Theatre) -> None:
    first, _ = theatre.play(plain(experiment("a")))
    (theatre.out / str(first.rows[0].run) / "results.json").write_text("{", "utf-8")

    assert len(RecordedRuns(theatre.out)) == 0

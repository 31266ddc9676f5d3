"""The store of the runs of a folder."""

from __future__ import annotations

import contextlib
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from streamquake.reports.record.outcome import Outcome
from streamquake.reports.store.results_store import (
    COLUMNS,
    FILE,
    ResultsStore,
    StoreUnreadable,
)
from streamquake.reports.store.stored_run import StoredRun
from streamquake.topologies.problems import BadInput
from tests.reports.stored_runs import VERSIONS, judged_run, run_id_of


def ids(runs: list[StoredRun]) -> list[str]:
    return [run.run_id for run in runs]


def test_a_stored_run_has_all_that_its_record_has(tmp_path: Path) -> None:
    store = ResultsStore(tmp_path)
    store.add(*judged_run(tmp_path, 3))
    (run,) = store.runs()
    assert run == StoredRun(
        run_id=run_id_of(3),
        started_at="2026-01-01T00:03:00+00:00",
        experiment="a",
        topology="small",
        seed=3,
        ended="completed",
        outcome="held",
        as_expected=1,
        expected="held",
        cause="",
        why=run.why,
        key=run.key,
        streamquake="1.0",
        program="p1",
        judge="j1",
        load_1m=0.5,
        machine={"cpus": 2},
        versions={"flink": "2.2.1"},
        images={"flink/taskmanager": "flink:2.2.1 sha256:1"},
        # The figure of the check counts before that of the recovery of the same name.
        figures={"recovery.longest_s": 2.5, "recovery.faults": 1, "recovery.restarted_s": 1.5},
    )


@pytest.mark.parametrize(
    ("outcome", "expected", "met"),
    [
        (Outcome.HELD, Outcome.HELD, 1),
        (Outcome.VIOLATED, Outcome.HELD, 0),
        (Outcome.UNDECIDED, Outcome.HELD, None),
        (Outcome.VIOLATED, Outcome.VIOLATED, 1),
        (Outcome.HELD, Outcome.VIOLATED, 0),
    ],
)
def test_whether_the_outcome_is_the_expected_one_is_yes_no_or_not_known(
    tmp_path: Path, outcome: Outcome, expected: Outcome, met: int | None
) -> None:
    store = ResultsStore(tmp_path)
    store.add(*judged_run(tmp_path, outcome=outcome, expected=expected))
    assert [run.as_expected for run in store.runs()] == [met]


def test_a_run_that_did_not_complete_has_no_figures(tmp_path: Path) -> None:
    store = ResultsStore(tmp_path)
    store.add(*judged_run(tmp_path, ended="interrupted"))
    assert [(run.ended, run.figures) for run in store.runs()] == [("interrupted", {})]


@pytest.mark.parametrize(
    ("other", "same"),
    [
        ({}, True),
        ({"machine": {"cpus": 64}}, True),
        ({"argv": ["x"]}, True),
        ({"settings": {"description": "d", "job": None}}, True),
        ({"settings": {"limits": {"recover_s": 1}}}, False),
        ({"versions": {**VERSIONS, "program": "p2"}}, False),
        ({"versions": {**VERSIONS, "flink": "2.3"}}, False),
        ({"images": {"flink/taskmanager": "flink:2.3"}}, False),
        ({"image_ids": {"flink:2.2.1": "sha256:2"}}, False),
        ({"image_ids": {}}, False),
    ],
)
def test_runs_have_one_key_if_only_seed_and_machine_differ(
    tmp_path: Path, other: dict[str, Any], same: bool
) -> None:
    store = ResultsStore(tmp_path)
    store.add(*judged_run(tmp_path, 0))
    store.add(*judged_run(tmp_path, 1, **other))
    first, second = store.runs()
    assert (first.key == second.key) == same


def test_a_run_that_is_added_again_is_replaced(tmp_path: Path) -> None:
    store = ResultsStore(tmp_path)
    folder, results = judged_run(tmp_path)
    store.add(folder, results)
    store.add(folder, results)
    assert ids(store.runs()) == [folder.run_id]


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("", [0, 1, 2]),
        (" ", [0, 1, 2]),
        ("experiment = 'b'", [1]),
        ("outcome = 'held' OR seed = 2", [0, 1, 2]),
        ("get(figures, 'recovery.longest_s') > 3", [2]),
        ("get(versions, 'flink') LIKE '2.2%' AND as_expected IS NULL -- those", [2]),
    ],
)
def test_a_condition_selects_runs(tmp_path: Path, where: str, found: list[int]) -> None:
    store = ResultsStore(tmp_path)
    store.add(*judged_run(tmp_path, 0))
    store.add(*judged_run(tmp_path, 1, experiment="b"))
    store.add(*judged_run(tmp_path, 2, outcome=Outcome.UNDECIDED, took_s=4.0))
    assert ids(store.runs(where=where)) == [run_id_of(number) for number in found]


def test_runs_may_be_limited_to_those_since_a_moment(tmp_path: Path) -> None:
    store = ResultsStore(tmp_path)
    for number in range(3):
        store.add(*judged_run(tmp_path, number))
    since = "2026-01-01T00:01:00+00:00"
    assert ids(store.runs(since=since)) == [run_id_of(1), run_id_of(2)]
    assert ids(store.runs(since=since, where="seed < 2 OR 1")) == [run_id_of(1), run_id_of(2)]


@pytest.mark.parametrize(
    "where",
    [
        "nothing = 1",
        "seed = ",
        "1); DELETE FROM runs; --",
        "seed IN (SELECT load_extension('x'))",
        "(SELECT writefile('x', 'y'))",
        "experiment = '\udcff'",
    ],
)
def test_another_condition_is_bad_input_and_changes_nothing(tmp_path: Path, where: str) -> None:
    store = ResultsStore(tmp_path)
    store.add(*judged_run(tmp_path))
    with pytest.raises(BadInput) as rejection:
        store.runs(where=where)
    message = str(rejection.value)
    assert message.startswith("--where: ")
    assert f"expected a condition of SQLite over {', '.join(COLUMNS)}" in message
    assert len(store.runs()) == 1


@pytest.mark.parametrize(
    "where", ["1) UNION SELECT * FROM runs WHERE (1", "seed IN (SELECT 0 FROM pragma_table_list)"]
)
def test_a_condition_that_is_more_than_one_cannot_write(tmp_path: Path, where: str) -> None:
    store = ResultsStore(tmp_path)
    store.add(*judged_run(tmp_path))
    with contextlib.suppress(BadInput):
        store.runs(where=where)
    assert len(store.runs()) == 1


def test_the_store_is_rebuilt_from_the_runs(tmp_path: Path) -> None:
    judged_run(tmp_path, 0)
    folder, _ = judged_run(tmp_path, 1)
    folder.results.write_text("{", "utf-8")
    folder, _ = judged_run(tmp_path, 2)
    folder.results.unlink()
    folder, _ = judged_run(tmp_path, 3, versions="none")
    store = ResultsStore(tmp_path)
    assert store.runs() == []

    problems = store.rebuild()

    assert ids(store.runs()) == [run_id_of(0)]
    assert [problem.partition(":")[0] for problem in problems] == [
        run_id_of(3),
        run_id_of(2),
        run_id_of(1),
    ]
    assert problems[1] == f"{run_id_of(2)}: it was not judged"


def test_many_processes_may_add_at_the_same_time(tmp_path: Path) -> None:
    runs = [judged_run(tmp_path, number) for number in range(20)]
    with ThreadPoolExecutor(max_workers=8) as pool:
        list(pool.map(lambda run: ResultsStore(tmp_path).add(*run), runs))
    assert len(ResultsStore(tmp_path).runs()) == 20


def test_a_damaged_database_is_named_with_the_next_step(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"not a database at all" * 100)
    with pytest.raises(StoreUnreadable, match="remove it and make it again: streamquake results"):
        ResultsStore(tmp_path).runs()


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("run_id", 5),
        ("experiment", None),
        ("why", b"\xff"),
        ("as_expected", "x"),
        ("key", 5),
        ("ended", None),
        ("figures", '{"exactly_once.actual": ["many"]}'),
        ("versions", '["2.2.1"]'),
        ("machine", "{"),
        ("images", "[" * 100_000),
    ],
)
def test_a_damaged_row_is_named_with_the_next_step(
    column: str, value: object, tmp_path: Path
) -> None:
    store = ResultsStore(tmp_path)
    store.add(*judged_run(tmp_path))
    with contextlib.closing(sqlite3.connect(store.path)) as connection, connection:
        connection.execute(f"UPDATE runs SET {column} = ?", (value,))

    with pytest.raises(StoreUnreadable, match=f"a row is damaged .*{column}.*results --rebuild"):
        store.runs()


def test_a_run_with_a_seed_that_is_too_large_is_left_out_by_name(tmp_path: Path) -> None:
    folder, results = judged_run(tmp_path)
    folder.write_results(replace(results, seed=10**30))
    (problem,) = ResultsStore(tmp_path).rebuild()
    assert problem == f"{folder.run_id}: seed: Input should be less than or equal to {2**62}"


def test_a_table_without_a_column_is_named_with_the_next_step(tmp_path: Path) -> None:
    store = ResultsStore(tmp_path)
    store.add(*judged_run(tmp_path))
    with contextlib.closing(sqlite3.connect(store.path)) as connection, connection:
        connection.execute("ALTER TABLE runs DROP COLUMN why")

    with pytest.raises(StoreUnreadable, match="why: Field required"):
        store.runs()


def test_a_database_of_a_later_version_is_left_alone(tmp_path: Path) -> None:
    store = ResultsStore(tmp_path)
    store.add(*judged_run(tmp_path))
    connection = sqlite3.connect(store.path)
    connection.execute("PRAGMA user_version = 2")
    connection.close()
    with pytest.raises(StoreUnreadable, match="schema 2, expected 1"):
        store.add(*judged_run(tmp_path, 1))

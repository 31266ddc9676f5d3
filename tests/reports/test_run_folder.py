"""The run folder: found by name, prefix or path, and never partly written."""

from __future__ import annotations

import json
import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from streamquake.reports.record import atomic_files
from streamquake.reports.record.outcome import Outcome
from streamquake.reports.record.run_folder import RunFolder, list_runs, new_run_id
from streamquake.topologies.problems import BadInput
from tests.reports.sample_run import sample_results

RUNS = ("20261120-101500-0001", "20261121-031500-4f3a", "20261121-031501-77b0")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    for run_id in RUNS:
        RunFolder.create(tmp_path, run_id).write_manifest({"run_id": run_id, "seed": 7})
    return tmp_path


def test_a_new_folder_has_its_subfolders_and_is_the_latest(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "runs", "a-run")
    assert folder.logs.is_dir()
    assert folder.data.is_dir()
    assert (tmp_path / "runs" / "latest").resolve() == folder.path.resolve()
    assert folder.run_id == "a-run"


def test_a_second_run_of_the_same_name_is_rejected(out: Path) -> None:
    with pytest.raises(FileExistsError):
        RunFolder.create(out, RUNS[0])


def test_latest_is_valid_while_many_runs_begin_at_once(tmp_path: Path) -> None:
    names = [f"run-{number}" for number in range(40)]
    with ThreadPoolExecutor(max_workers=8) as pool:
        list(pool.map(lambda name: RunFolder.create(tmp_path, name), names))
    assert (tmp_path / "latest").resolve().name in names
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([*names, "latest"])


@pytest.mark.parametrize(
    ("name", "found"),
    [("latest", RUNS[2]), (RUNS[1], RUNS[1]), ("20261120", RUNS[0]), ("20261121-031501", RUNS[2])],
)
def test_a_run_is_found_by_name(out: Path, name: str, found: str) -> None:
    assert RunFolder.open(out, name).run_id == found


def test_a_run_is_found_by_path_from_anywhere(out: Path, tmp_path: Path) -> None:
    folder = RunFolder.open(tmp_path / "elsewhere", str(out / RUNS[0]))
    assert folder.read_manifest()["run_id"] == RUNS[0]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("20261121", '2 runs begin with "20261121": 20261121-031501-77b0, 20261121-031500-4f3a'),
        (
            "20261121-031500-4f3b",
            'no run is called "20261121-031500-4f3b"; similar or newest: 2026',
        ),
        ("", 'no run is called ""'),
    ],
)
def test_a_name_that_is_not_one_run_is_an_error_with_similar_names(
    out: Path, name: str, message: str
) -> None:
    with pytest.raises(BadInput, match=re.escape(message)):
        RunFolder.open(out, name)


def test_an_empty_folder_has_its_own_message(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="there are no runs here"):
        RunFolder.open(tmp_path / "none", "latest")


def test_runs_are_listed_newest_first_without_other_folders(out: Path) -> None:
    (out / "20991231-notes").mkdir()
    (out / "a-file").touch()
    assert [folder.run_id for folder in list_runs(out)] == list(reversed(RUNS))
    assert list_runs(out / "none") == ()


def test_manifest_and_results_are_read_back(out: Path) -> None:
    folder = RunFolder.open(out, "latest")
    results = sample_results(folder.run_id, Outcome.VIOLATED)
    folder.write_results(results)
    assert folder.read_results() == results
    assert folder.read_manifest() == {"schema": 1, "run_id": RUNS[2], "seed": 7}


@pytest.mark.parametrize("text", ['{"schema": 9}', "{}", "[]", "{"])
def test_files_of_another_schema_are_rejected_with_their_path(out: Path, text: str) -> None:
    folder = RunFolder.open(out, "latest")
    folder.manifest.write_text(text, encoding="utf-8")
    folder.results.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"run\.json"):
        folder.read_manifest()
    with pytest.raises(ValueError, match=r"results\.json"):
        folder.read_results()


def test_results_of_another_run_are_rejected_with_their_path(out: Path) -> None:
    folder = RunFolder.open(out, "latest")
    folder.write_results(sample_results(RUNS[0], Outcome.HELD))
    with pytest.raises(ValueError, match=rf"results\.json: results of another run, {RUNS[0]}"):
        folder.read_results()
    folder.manifest.unlink()
    with pytest.raises(ValueError, match="results of another run"):
        folder.read_results()


def test_results_of_a_renamed_folder_are_accepted(out: Path) -> None:
    """Its manifest has the old name. After it is judged again, its results have the new one."""
    RunFolder.open(out, "latest").path.rename(out / "incident-42")
    renamed = RunFolder.open(out, "incident-42")
    for name in (RUNS[2], "incident-42"):
        renamed.write_results(sample_results(name, Outcome.HELD))
        assert renamed.read_results().run_id == name


def test_results_with_missing_parts_are_rejected_with_their_path(out: Path) -> None:
    folder = RunFolder.open(out, "latest")
    folder.results.write_text(json.dumps({"schema": 1, "outcome": "held"}), encoding="utf-8")
    with pytest.raises(ValueError, match=r"results\.json: not results"):
        folder.read_results()


def test_a_failed_write_keeps_the_old_file_and_removes_the_draft(tmp_path: Path) -> None:
    path = tmp_path / "file"
    atomic_files.write_text(path, "old")
    with pytest.raises(UnicodeEncodeError):
        atomic_files.write_text(path, "part of the n\ud800")
    assert path.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_run_ids_are_unique_sorted_by_time_and_valid_in_host_names() -> None:
    names = {new_run_id() for _ in range(20)}
    assert len(names) > 1
    assert all(re.fullmatch(r"\d{8}-\d{6}-[0-9a-f]{4}", name) for name in names)


@pytest.mark.parametrize("inside", ["logs/kafka-broker-1", "data/totals", "history.jsonl"])
def test_a_folder_with_a_link_that_leads_out_of_it_is_bad_input(
    tmp_path: Path, inside: str
) -> None:
    folder = RunFolder.create(tmp_path / "runs", "20260101-000000-abcd")
    folder.write_manifest({})
    (tmp_path / "elsewhere").mkdir()
    (folder.path / inside).symlink_to(tmp_path / "elsewhere")

    with pytest.raises(BadInput, match=f"{inside}: a symbolic link leads out"):
        RunFolder.open(tmp_path / "runs", "latest")


@pytest.mark.parametrize("inside", ["logs/log.txt", "data/part-0.parquet", "history.jsonl"])
def test_a_folder_with_a_pipe_is_bad_input_since_reading_it_might_never_end(
    tmp_path: Path, inside: str
) -> None:
    folder = RunFolder.create(tmp_path, "20260101-000000-abcd")
    folder.write_manifest({})
    os.mkfifo(folder.path / inside)

    with pytest.raises(BadInput, match=f"{inside}: expected a file or a folder, found a pipe"):
        RunFolder.open(tmp_path, "latest")


def test_results_that_are_a_pipe_are_damaged(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "20260101-000000-abcd")
    os.mkfifo(folder.results)
    with pytest.raises(ValueError, match=r"results\.json: expected a file"):
        folder.read_results()


def test_a_link_within_a_folder_is_followed(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "20260101-000000-abcd")
    folder.write_manifest({})
    (folder.logs / "all").symlink_to("../run.json")

    assert RunFolder.open(tmp_path, "latest").path == folder.path

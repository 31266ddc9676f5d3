"""Which files of a folder Spark's file sink has committed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from streamquake.harness.reconcile.reading.spark_sink_log import committed_paths, uncommitted_files

NAMES = ("part-0.json", "part-1.json", "part-2.json")


def written(folder: Path, **batches: tuple[str, ...]) -> list[str]:
    """The names of some files and of a log with these batches."""
    log = folder / "_spark_metadata"
    log.mkdir()
    for number, names in batches.items():
        entries = [{"path": f"hdfs://x:8020/out/{name}", "action": "add"} for name in names]
        (log / number.removeprefix("n")).write_text("\n".join(["v1", *map(json.dumps, entries)]))
    return [*NAMES, *(f"_spark_metadata/{n.removeprefix('n')}" for n in batches)]


def test_a_file_that_no_batch_names_is_not_committed(tmp_path: Path) -> None:
    names = written(tmp_path, n0=NAMES[:1], n1=NAMES[2:])
    assert "part-1.json" in uncommitted_files(tmp_path, names)
    assert not uncommitted_files(tmp_path, names) & {"part-0.json", "part-2.json"}


def test_without_a_log_nothing_is_left_out(tmp_path: Path) -> None:
    assert uncommitted_files(tmp_path, NAMES) == frozenset()


def added(*paths: str) -> list[tuple[str, str]]:
    return [("add", path) for path in paths]


@pytest.mark.parametrize(
    ("log", "paths"),
    [
        ({"1": added("b"), "0": added("a", "c")}, ["a", "c", "b"]),
        ({"9": added("old"), "9.compact": added("a"), "10": added("b")}, ["a", "b"]),
        # What was not removed yet of the batches and compactions before the newest one.
        (
            {
                "8": added("gone"),
                "9.compact": added("lost"),
                "19.compact": added("a"),
                "19": added("late"),
                "20": added("b"),
            },
            ["a", "b"],
        ),
        # A file that a batch takes back, known by then or not; later batches may add it again.
        ({"9": added("a", "b"), "10": [("delete", "a"), ("delete", "x")]}, ["b"]),
        ({"0": added("a"), "1": [("delete", "a")], "2": added("a")}, ["a"]),
        ({"0": []}, []),
        ({"left.tmp": added("a"), ".0.crc": added("a")}, None),
    ],
)
def test_a_log_names_what_its_batches_have_committed_from_the_newest_compaction_on(
    log: dict[str, list[tuple[str, str]]], paths: list[str] | None
) -> None:
    def text(name: str) -> str:
        lines = [json.dumps({"action": each, "path": path}) for each, path in log[name[16:]]]
        return "\n".join(["v1", *lines])

    names = [*(f"_spark_metadata/{name}" for name in log), "part-0.json", "other/0"]
    assert committed_paths(names, text) == paths


def test_a_compaction_replaces_the_earlier_batches(tmp_path: Path) -> None:
    names = written(tmp_path, **{"8": (), "9.compact": NAMES[:1], "10": NAMES[1:2]})
    assert uncommitted_files(tmp_path, names) >= {"part-2.json"}
    assert not uncommitted_files(tmp_path, names) & set(NAMES[:2])

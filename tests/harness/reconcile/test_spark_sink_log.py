"""Which files of a folder Spark's file sink has committed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from streamquake.harness.reconcile.reading.spark_sink_log import committed_paths, uncommitted_files

NAMES = ("part-0.json", "part-1.json", "part-2.json")


def write_log(folder: Path, **batches: tuple[str, ...]) -> list[str]:
    """Write a log of these batches; returns the names of the data files and of the log files."""
    log = folder / "_spark_metadata"
    log.mkdir()
    for number, names in batches.items():
        entries = [{"path": f"hdfs://x:8020/out/{name}", "action": "add"} for name in names]
        (log / number.removeprefix("n")).write_text("\n".join(["v1", *map(json.dumps, entries)]))
    return [*NAMES, *(f"_spark_metadata/{n.removeprefix('n')}" for n in batches)]


def test_a_file_that_no_batch_names_is_not_committed(tmp_path: Path) -> None:
    names = write_log(tmp_path, n0=NAMES[:1], n1=NAMES[2:])
    assert "part-1.json" in uncommitted_files(tmp_path, names)
    assert not uncommitted_files(tmp_path, names) & {"part-0.json", "part-2.json"}


def test_without_a_log_no_file_is_ignored(tmp_path: Path) -> None:
    assert uncommitted_files(tmp_path, NAMES) == frozenset()


def additions(*paths: str) -> list[tuple[str, str]]:
    return [("add", path) for path in paths]


@pytest.mark.parametrize(
    ("log", "paths"),
    [
        ({"1": additions("b"), "0": additions("a", "c")}, ["a", "c", "b"]),
        ({"9": additions("old"), "9.compact": additions("a"), "10": additions("b")}, ["a", "b"]),
        # Earlier batches and compactions that Spark has not removed yet are superseded.
        (
            {
                "8": additions("gone"),
                "9.compact": additions("lost"),
                "19.compact": additions("a"),
                "19": additions("late"),
                "20": additions("b"),
            },
            ["a", "b"],
        ),
        # A batch may delete a file, known or not; later batches may add it again.
        ({"9": additions("a", "b"), "10": [("delete", "a"), ("delete", "x")]}, ["b"]),
        ({"0": additions("a"), "1": [("delete", "a")], "2": additions("a")}, ["a"]),
        ({"0": []}, []),
        ({"left.tmp": additions("a"), ".0.crc": additions("a")}, None),
    ],
)
def test_committed_paths_are_those_since_the_newest_compaction(
    log: dict[str, list[tuple[str, str]]], paths: list[str] | None
) -> None:
    def text(name: str) -> str:
        lines = [json.dumps({"action": action, "path": path}) for action, path in log[name[16:]]]
        return "\n".join(["v1", *lines])

    names = [*(f"_spark_metadata/{name}" for name in log), "part-0.json", "other/0"]
    assert committed_paths(names, text) == paths


def test_a_compaction_replaces_the_earlier_batches(tmp_path: Path) -> None:
    names = write_log(tmp_path, **{"8": (), "9.compact": NAMES[:1], "10": NAMES[1:2]})
    assert uncommitted_files(tmp_path, names) >= {"part-2.json"}
    assert not uncommitted_files(tmp_path, names) & set(NAMES[:2])

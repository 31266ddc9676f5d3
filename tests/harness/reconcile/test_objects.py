"""Objects are copied to this machine completely or not at all, and read as files. The store is a
folder of this machine here, and a real one in `test_object_store.py`."""

from __future__ import annotations

import gzip
import time
from pathlib import Path

import pytest
from pyarrow import fs
from pyspark.sql import SparkSession

from streamquake.harness.reconcile.reading.object_folder import object_folder
from streamquake.harness.reconcile.reading.objects import (
    ObjectsUnreadable,
    copy_objects,
    list_objects,
)
from streamquake.harness.reconcile.sources.s3 import S3
from streamquake.reports.record.outcome import Outcome
from streamquake.topologies.problems import BadInput
from tests.harness.reconcile.data_sets import comparison_of, write_rows
from tests.harness.reconcile.stub_store import answering, store

pytestmark = pytest.mark.slow

__all__ = ["store"]

ROWS = [{"id": n, "amount": n * 3} for n in range(20)]


def test_all_objects_below_a_folder_are_listed_and_copied(store: Path, tmp_path: Path) -> None:
    texts = {"a": "1", "k=1/b": "22", ".part": "333", "_tmp/c": "", "d.json.gz": "4"}
    for name, text in texts.items():
        path = store / "results" / "out" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    (store / "results" / "out-2").mkdir()
    (store / "results" / "out-2" / "other").touch()
    folder = object_folder("s3://results/out/")

    listed = list_objects(folder)
    copied = copy_objects(folder, tmp_path / "copied")

    assert (listed.base, set(listed.sizes)) == ("results/out", set(texts))
    assert copied == tmp_path / "copied"
    for name in texts:
        assert (copied / name).read_bytes() == (store / "results" / "out" / name).read_bytes()


def test_an_object_is_copied_by_its_own_name(store: Path, tmp_path: Path) -> None:
    (store / "results" / "one.json").write_text("{}")
    folder = object_folder("s3://results/one.json")

    assert dict(list_objects(folder).sizes) == {"one.json": 2}
    assert copy_objects(folder, tmp_path / "copied") == tmp_path / "copied" / "one.json"


def test_a_folder_that_is_not_there_has_no_objects(store: Path, tmp_path: Path) -> None:
    assert list_objects(object_folder("s3://results/nothing")).sizes == {}
    assert list_objects(object_folder("s3://results")).sizes == {}


@pytest.mark.parametrize("name", ["../../escaped", "a//b", "./a", "a/.."])
def test_a_key_that_is_no_path_below_the_copy_is_an_error(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (store / "results" / "out").mkdir()
    (store / "escaped").write_text("x")
    answering(monkeypatch, [name], fs.FileType.Directory)
    with pytest.raises(ObjectsUnreadable, match="is no name of a file"):
        copy_objects(object_folder("s3://results/out"), tmp_path / "a" / "b")
    assert not (tmp_path / "escaped").exists()


def test_what_was_not_copied_as_it_was_listed_is_an_error(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (store / "results" / "out").mkdir()
    (store / "results" / "out" / "a").write_text("more")
    answering(monkeypatch, ["a"], fs.FileType.Directory)
    with pytest.raises(ObjectsUnreadable, match=r"a: 4 of 1 bytes; it was changed meanwhile"):
        copy_objects(object_folder("s3://results/out"), tmp_path / "1")

    (store / "results" / "out" / "a").unlink()
    with pytest.raises(ObjectsUnreadable, match=r"s3://results/out cannot be read: .*No such file"):
        copy_objects(object_folder("s3://results/out"), tmp_path / "2")


def test_an_object_whose_name_is_a_folder_of_others_is_an_error(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answering(monkeypatch, ["a"], fs.FileType.File)
    with pytest.raises(ObjectsUnreadable, match="it is an object, and there are objects below it"):
        list_objects(object_folder("s3://results/out"))


@pytest.mark.nightly_after(1)
@pytest.mark.parametrize("suffix", ["json", "csv", "parquet"])
def test_objects_are_compared_as_files_are(
    store: Path, tmp_path: Path, spark: SparkSession, suffix: str
) -> None:
    out = store / "results" / "out"
    expected = write_rows(tmp_path / f"expected.{suffix}", ROWS)
    write_rows(out / f"part-0.{suffix}", ROWS[:10])
    write_rows(out / f"part-1.{suffix}", ROWS[10:])
    write_rows(out / f"_part-2_tmp.{suffix}", ROWS)

    found = comparison_of(spark, expected, "s3://results/out", compare="amount")
    assert (found.outcome, found.counts["actual"]) == (Outcome.HELD, 20)
    assert any("1 files with hidden names" in note for note in found.notes)
    parts = tuple(f"s3://results/out/part-{n}.{suffix}" for n in range(2))
    assert comparison_of(spark, expected, parts, compare="amount").outcome == Outcome.HELD

    write_rows(out / f"part-1.{suffix}", [*ROWS[11:], ROWS[12], {"id": 10, "amount": 1}])
    found = comparison_of(spark, expected, "s3://results/out", compare="amount")
    assert found.outcome == Outcome.VIOLATED
    assert (found.counts["duplicated"], found.counts["changed"]) == (1, 1)
    (changed,) = [each for each in found.findings if each.what == "changed"]
    assert f"s3://results/out/part-1.{suffix}" in changed.where
    assert str(tmp_path) not in str(found.findings)

    (out / f"part-1.{suffix}").unlink()
    found = comparison_of(spark, expected, "s3://results/out", compare="amount")
    assert (found.outcome, found.counts["lost"]) == (Outcome.VIOLATED, 10)


def test_what_cannot_be_read_is_named_by_its_uri(
    store: Path, tmp_path: Path, spark: SparkSession
) -> None:
    expected = write_rows(tmp_path / "expected.json", ROWS)
    with pytest.raises(BadInput, match="s3://results/out: no such object, and none below it"):
        S3(["s3://results/out"]).inspect()
    write_rows(store / "results" / "out" / ".part.json", ROWS)
    with pytest.raises(BadInput, match=r"^s3://results/out: expected files with records, found"):
        comparison_of(spark, expected, "s3://results/out")


def test_a_store_that_does_not_answer_is_an_error_within_seconds() -> None:
    begun = time.monotonic()
    with pytest.raises(ObjectsUnreadable, match="NETWORK_CONNECTION"):
        list_objects(object_folder("s3://results/out", "http://127.0.0.1:1"))
    assert time.monotonic() - begun < 20

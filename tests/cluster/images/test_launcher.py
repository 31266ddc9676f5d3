"""Jars that are packed here are reproducible."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

from streamquake.cluster.images.launcher import zip_folder


def test_equal_folders_give_equal_jars(tmp_path: Path) -> None:
    folder = tmp_path / "classes"
    (folder / "webapps" / "hdfs").mkdir(parents=True)
    (folder / "A.class").write_bytes(b"x")
    zip_folder(folder, tmp_path / "one.jar")
    os.utime(folder / "A.class", (1, 1))
    zip_folder(folder, tmp_path / "two.jar")
    assert (tmp_path / "one.jar").read_bytes() == (tmp_path / "two.jar").read_bytes()


def test_folders_have_entries_in_the_jar(tmp_path: Path) -> None:
    (tmp_path / "in" / "webapps" / "hdfs").mkdir(parents=True)
    zip_folder(tmp_path / "in", tmp_path / "out.jar")
    with zipfile.ZipFile(tmp_path / "out.jar") as jar:
        assert "webapps/hdfs/" in jar.namelist()

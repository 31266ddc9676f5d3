"""Files of a service: found beside the document, stored as text, and rejected with the place."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamquake.topologies.loader import load_topology
from streamquake.topologies.problems import BadInput

DOCUMENT = """
name: mine
services:
  db:
    engine: container
    image: postgres:17
    files: {/etc/tables.sql: FILE}
    nodes: {server: 1}
"""


def document_with(folder: Path, file: str) -> str:
    path = folder / "t.yaml"
    path.write_text(DOCUMENT.replace("FILE", file))
    return str(path)


@pytest.mark.parametrize("text", ["CREATE TABLE t (k int);\n", "CREATE TABLE t (k int);"])
def test_a_topology_contains_the_text_of_a_file_beside_it(text: str, tmp_path: Path) -> None:
    (tmp_path / "tables.sql").write_text(text)

    loaded = load_topology(document_with(tmp_path, "tables.sql"))

    assert loaded.services["db"].files == {"/etc/tables.sql": "CREATE TABLE t (k int);\n"}


def test_a_text_of_several_lines_is_no_name(tmp_path: Path) -> None:
    loaded = load_topology(document_with(tmp_path, '"a\\nb\\n"'))

    assert loaded.services["db"].files == {"/etc/tables.sql": "a\nb\n"}


def test_a_file_that_is_missing_or_no_text_is_a_problem_at_its_place(tmp_path: Path) -> None:
    (tmp_path / "data.bin").write_bytes(b"\xff\xfe")
    for file, reason in (("nowhere.sql", "there is no such file in"), ("data.bin", "no text in")):
        with pytest.raises(BadInput) as error:
            load_topology(document_with(tmp_path, file))
        (problem,) = error.value.problems
        assert problem.path == "services.db.files./etc/tables.sql"
        assert reason in problem.message

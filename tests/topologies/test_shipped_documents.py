"""The names and descriptions of shipped documents."""

from __future__ import annotations

from pathlib import Path

from streamquake.topologies.shipped_documents import shipped_descriptions


def test_a_description_is_one_line_and_empty_where_there_is_none(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "b.yaml").write_text("name: b\ndescription: |\n  Two\n  lines.\n")
    (tmp_path / "a.yaml").write_text("name: a\n")

    assert shipped_descriptions(tmp_path) == {"a": "", "b": "Two lines."}
    assert shipped_descriptions(tmp_path, "b") == {"b": "Two lines."}

"""YAML that people read is the same document."""

from __future__ import annotations

from pathlib import Path

from streamquake.topologies.yaml_document import frozen, read_document
from streamquake.topologies.yaml_text import yaml_text


def test_texts_of_several_lines_are_blocks_and_nothing_changes(tmp_path: Path) -> None:
    document = {
        "name": "mine",
        "sql": "SELECT 1;\nSELECT 'a: b';\n",
        "faults": ({"kill": {}, "at_s": 0.1}, {"pause": {}, "at_s": 5}),
        "texts": {"on": "yes", "number": "1.20", "umlaut": "größer", "empty": ""},
    }
    text = yaml_text(document)
    assert "sql: |\n  SELECT 1;\n  SELECT 'a: b';\n" in text
    file = tmp_path / "mine.yaml"
    file.write_text(text, "utf-8")
    assert frozen(read_document(file).data) == frozen(document)

"""Documents: values with their lines, and every problem with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamquake.topologies.problems import BadInput
from streamquake.topologies.yaml_document import (
    Document,
    frozen,
    parse_document,
    parse_value,
    path_text,
    read_document,
)


def problems(text: str) -> list[tuple[int | None, str, str]]:
    with pytest.raises(BadInput) as caught:
        parse_document(text, "file.yaml")
    return [(p.line, p.path, p.message) for p in caught.value.problems]


def test_every_value_has_a_line() -> None:
    document = parse_document("a: 1\nb:\n  - c: 2\n  - {d: 3}\n", "file.yaml")

    assert document.data == {"a": 1, "b": ({"c": 2}, {"d": 3})}
    assert [document.line(p) for p in [("a",), ("b",), ("b", 0, "c"), ("b", 1)]] == [1, 2, 3, 4]


def test_two_readings_of_one_text_share_no_value() -> None:
    first, second = (parse_document("a: &b {c: 1}\nd: *b\n", file) for file in ("one", "two"))
    first.data["a"]["c"] = 2

    assert second.data == {"a": {"c": 1}, "d": {"c": 1}}
    assert (first.file, second.file) == ("one", "two")


def test_a_missing_place_has_the_line_of_its_parent() -> None:
    document = parse_document("a:\n  b: 1\n", "file.yaml")

    assert document.line(("a", "missing", "deeper")) == 1
    assert document.line(("nowhere",)) == 1


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("on", "on"),
        ("no", "no"),
        ("true", True),
        ("2026-01-01", "2026-01-01"),
        ("12:30", "12:30"),
        ("200_000", 200_000),
        ("0x1f", 31),
        ("-3", -3),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        ("~", None),
        ("", None),
        ("[1, b]", (1, "b")),
    ],
)
def test_plain_scalars_are_read_as_in_yaml_1_2(written: str, value: object) -> None:
    assert parse_value(written) == value


def test_a_decimal_number_keeps_its_text() -> None:
    assert str(parse_value("1.20")) == "1.20"


def test_every_duplicate_key_is_reported_with_the_line_of_the_first() -> None:
    assert problems("a: 1\nb: {c: 1, c: 2}\na: 2\n") == [
        (3, "a", "given twice; first in line 1"),
        (2, "b.c", "given twice; first in line 2"),
    ]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a:\n\tb: 1", 2, "a tab cannot indent YAML; use spaces"),
        ("a: 1\nb: [1\n", 3, "is not YAML: while parsing a flow sequence"),
        ("- 1\n", 1, "expected keys with values, got a list"),
        ("word", 1, "expected keys with values, got a single value"),
        ("", 1, "expected keys with values, got an empty file"),
        ("# only a comment", 1, "expected keys with values, got an empty file"),
        ("a: &x [*x]", 1, "a value cannot contain itself"),
        ("a: 1\n? [b]\n: 2", 2, "expected a word as key"),
        ("a: !!python/object/apply:os.system [ls]\nb: !mine 3", 2, "the tag !mine is not known"),
        ("a: 1\n---\nb: 2", 2, "is not YAML: expected a single document"),
    ],
)
def test_a_problem_of_form_has_a_line_and_a_message(text: str, line: int, message: str) -> None:
    found = problems(text)

    assert found[-1][0] == line
    assert found[-1][2].startswith(message)


def test_merge_keys_are_resolved() -> None:
    document = parse_document("base: &b {x: 1, y: 2}\nuse: {<<: *b, y: 3}\n", "file.yaml")

    assert document.data["use"] == {"x": 1, "y": 3}


def test_a_file_in_another_encoding_is_reported_with_a_line(tmp_path: Path) -> None:
    path = tmp_path / "latin.yaml"
    path.write_bytes("name: a\ndescription: für\n".encode("latin-1"))

    with pytest.raises(BadInput) as caught:
        read_document(path)

    (problem,) = caught.value.problems
    assert (problem.line, problem.message) == (2, "expected text in UTF-8, got other bytes")


def test_a_folder_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read: Is a directory"):
        read_document(tmp_path)


def test_paths_are_shown_from_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.yaml").write_text("a: 1")

    assert read_document(tmp_path / "x.yaml").file == "x.yaml"


def test_a_problem_of_a_set_value_names_its_source() -> None:
    document = Document(file="x.yaml", data={}, lines={(): 1}, origins={("a",): "--set a=1"})

    assert str(document.problem(("a", "b"), "wrong")) == "--set a=1: a.b: wrong"
    assert str(document.problem(("c",), "wrong")) == "x.yaml:1: c: wrong"


def test_place_as_text() -> None:
    assert path_text(("faults", 0, "kill")) == "faults[0].kill"
    assert path_text(()) == ""


def test_frozen_converts_lists_of_json_to_tuples() -> None:
    assert frozen({"a": [1, {"b": [2]}]}) == {"a": (1, {"b": (2,)})}


@pytest.mark.parametrize("text", ["a: 1\nb: 2", "[", "1\nvalue: 2"])
def test_text_without_exactly_one_value_is_rejected(text: str) -> None:
    with pytest.raises(ValueError):
        parse_value(text)

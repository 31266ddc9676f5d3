"""Untrusted documents are read within bounds, or rejected with a place."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamquake.harness.cli.validate import problems_of
from streamquake.topologies.problems import BadInput
from streamquake.topologies.yaml_document import (
    LARGEST_BYTES,
    MOST_DIGITS,
    parse_document,
    parse_value,
    read_document,
)

EXPANDING_ALIASES = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{this}: &{this} [{', '.join([f'*{last}'] * 9)}]\n"
    for last, this in zip("abcdefgh", "bcdefghi", strict=True)
)
EXPANDING_MERGES = "a: &a {x: 1, y: 2}\n" + "".join(
    f"{this}: &{this}\n  <<: [{', '.join([f'*{last}'] * 9)}]\n"
    for last, this in zip("abcdefgh", "bcdefghi", strict=True)
)


def message(text: str) -> str:
    with pytest.raises(BadInput) as rejected:
        parse_document(text, "file.yaml")
    return str(rejected.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (EXPANDING_ALIASES, "file.yaml:1: more than 100,000 values, as aliases repeat them"),
        (EXPANDING_MERGES, "more than 100,000 values, as aliases repeat them"),
        ("a: " + "[" * 1500, "more than 100 levels"),
        ("a: " + "{b: " * 1500, "more than 100 levels"),
        ("a:\n" + "\n".join("  " * n + "- b:" for n in range(1, 500)), "more than 100 levels"),
        ("? " * 1500, "more than 100 levels"),
        ("a: [" + "1, " * 100_001 + "]", "more than 100,000 values"),
        ("a: &a [*a]", "file.yaml:1: a[0]: a value cannot contain itself"),
        ("a: &a {b: *a}", "file.yaml:1: a.b: a value cannot contain itself"),
        ("a: &a {<<: *a}", "`<<` merges other mappings"),
        ("a: {<<: 1}", "file.yaml:1: a: `<<` merges other mappings"),
        ("a: {<<: [{b: 1}, 2]}", "`<<` merges other mappings"),
        ("b: 1\na: !!int abc", "file.yaml:2: a: tag:yaml.org,2002:int does not fit this value"),
        ("a: !!float x", "float does not fit this value"),
        ("a: !!bool yes", "bool does not fit this value"),
        ("a: !!null x", "null does not fit this value"),
        ("a: !!binary aGk=", "the tag tag:yaml.org,2002:binary is not known here"),
        ("a: !!timestamp 2026-01-01", "timestamp is not known here"),
        ("a: !!set {b, c}", "set is not known here"),
        ("a: !!omap [b: 1]", "omap is not known here"),
        ("a: !!python/object/apply:os.system [id]", "python/object/apply:os.system is not known"),
        ("a: !!python/name:os.system", "not known here"),
        ("a: !mine 1", "the tag !mine is not known here"),
        (f"a: {'9' * 5000}", f"at most {MOST_DIGITS} digits, got 5,000"),
        (f"a: 0x{'f' * 5000}", f"at most {MOST_DIGITS} digits"),
        (f"a: {'9' * 5000}.5", f"at most {MOST_DIGITS} digits"),
        ("a: 1e999", "the number 1e999 is too large"),
        (f"{'k' * 900}: 1", "a key of at most 256 characters"),
        ("a: 1\nb: 2\na: 3", "file.yaml:3: a: given twice; first in line 1"),
        ("a: 1\nb: \x00", "file.yaml:2: the character U+0000 is not allowed in YAML"),
        ("a: \x1b[31m", "the character U+001B is not allowed in YAML"),
        ('a: "\\ud800"', "half of a surrogate pair"),
        ("a:\n\t- b", "a tab cannot indent YAML"),
        ("a: *b", "undefined alias"),
        ("--- 1\n--- 2", "is not YAML"),
        ("%YAML 9.9\n---\na: 1", "is not YAML"),
        ("[1, 2]", "expected keys with values, got a list"),
    ],
)
def test_a_value_out_of_bounds_is_rejected_with_its_place(text: str, expected: str) -> None:
    assert expected in message(text)


def test_own_keys_override_merged_keys_and_the_first_merged_mapping_counts() -> None:
    text = "a: &a {x: 1, y: 1}\nb: &b {y: 2, z: 2}\nc: {<<: [*a, *b], x: 3}\nd: {<<: *a}\n"

    document = parse_document(text, "file.yaml")

    assert document.data["c"] == {"x": 3, "y": 1, "z": 2}
    assert document.data["d"] == {"x": 1, "y": 1}


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("!!str 5", "5"),
        ("!!int 5", 5),
        ("!!float 5.5", 5.5),
        ("012", 12),
        ("1:30", "1:30"),
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
        ("9" * MOST_DIGITS, int("9" * MOST_DIGITS)),
        ("-.inf", float("-inf")),
        ("=", "="),
    ],
)
def test_core_tags_and_plain_scalars_are_read(written: str, value: object) -> None:
    assert parse_value(written) == value


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"a: " + b"x" * LARGEST_BYTES, f"at most {LARGEST_BYTES:,} bytes"),
        (b"a: 1\nb: \xff\xfe", ":2: expected text in UTF-8"),
        ("a: 1\n".encode("utf-16"), ":1: expected text in UTF-8"),
        (b"a: 1\rb: \x00", "the character U+0000"),
    ],
)
def test_a_file_that_is_too_large_or_no_text_is_rejected(
    tmp_path: Path, content: bytes, expected: str
) -> None:
    file = tmp_path / "x.yaml"
    file.write_bytes(content)

    with pytest.raises(BadInput) as rejected:
        read_document(file)
    assert expected in str(rejected.value)


def test_a_byte_order_mark_and_other_line_ends_are_accepted(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_bytes(b"\xef\xbb\xbfa: 1\r\nb: 2\r\n")

    assert read_document(file).data == {"a": 1, "b": 2}


@pytest.mark.parametrize("name", ["x" * 3000, "x" * 100_000, "a\x00b", "/" * 5000])
def test_an_invalid_file_name_is_not_found(name: str) -> None:
    (problem, *_) = problems_of(name)

    assert "no experiment is called" in problem.message
    assert len(problem.message) < 10_000


def test_a_document_with_very_long_names_has_only_problems(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    for key in ("topology", "base", "job"):
        value = f"{{sql: {'x' * 3000}}}" if key == "job" else "x" * 3000
        file.write_text(f"name: {'n' * 3000}\n{key}: {value}\nworkload: {{{'w' * 200}: {{}}}}\n")
        assert problems_of(str(file))


@pytest.mark.parametrize("rest", ["services: {}", "topology: kafka-only"])
def test_cyclic_and_too_many_bases_are_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rest: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for number in range(2000):
        (tmp_path / f"long{number}.yaml").write_text(f"base: long{number + 1}.yaml\n{rest}\n")
    for this, base in (("a", "b"), ("b", "c"), ("c", "a"), ("self", "self")):
        (tmp_path / f"{this}.yaml").write_text(f"base: {base}.yaml\nname: {this}\n{rest}\n")

    for name in ("a.yaml", "self.yaml"):
        (problem,) = problems_of(name)
        assert problem.path == "base"
        assert "the bases form a cycle: " in problem.message
    (problem,) = problems_of("long0.yaml")
    assert problem.path == "base"
    assert "more than 50 documents build on each other" in problem.message

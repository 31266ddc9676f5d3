"""Plain lines are read exactly, and every other line is left to the exact reader."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamquake.harness.reconcile.json.plain_lines import IS_PLAIN, REWRITTEN, plain_reader

FORMS = (("user", "seq", "ok"), ("seq", "user", "ok", "note é."))
KINDS = {"ok": "boolean", "seq": "bigint", "user": "string", "note é.": "variant"}


def read(*lines: bytes | None) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = plain_reader(FORMS, KINDS, rewrite=True)(
        pa.array(lines, pa.binary())
    ).to_pylist()
    return rows


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        ('{"user":"a","seq":1,"ok":true}', (True, 1, "a", None)),
        (' { "user" : "" , "seq" : -0 , "ok" : false } \t', (False, 0, "", None)),
        ('{"user":"b\\u00e9\\"\\\\","seq":-7,"ok":true}', (True, -7, 'bé"\\', None)),
        ('{"user":"","seq":-9223372036854775808,"ok":true}', (True, -(2**63), "", None)),
        ('{"seq":7,"user":"é😀","ok":true,"note é.":"\\n"}', (True, 7, "é😀", '"\\n"')),
        ('{"seq":7,"user":"x","ok":true,"note é.":null}', (True, 7, "x", "null")),
        ('{"seq":7,"user":"x","ok":true,"note é.":-1.50}', (True, 7, "x", "-1.50")),
    ],
)  # fmt: skip
def test_a_plain_line_has_its_values(line: str, fields: tuple[object, ...]) -> None:
    (row,) = read(line.encode())
    assert row == {IS_PLAIN: True, **dict(zip("0123", fields, strict=True)), REWRITTEN: None}


@pytest.mark.parametrize(
    "line",
    [
        b'{"user":"a","seq":1}',
        b'{"user":"a","seq":1,"ok":true}{}',
        b'{"user":"a","seq":1,"ok":true}\n{"user":"a","seq":1,"ok":true}',
        b'{"user":"a","seq":1.0,"ok":true}',
        b'{"user":"a","seq":01,"ok":true}',
        b'{"user":"a","seq":9223372036854775808,"ok":true}',
        b'{"user":"a","seq":"1","ok":true}',
        b'{"user":null,"seq":1,"ok":true}',
        b'{"user":"a","seq":1,"ok":true,"more":1}',
        b'{"ok":true,"user":"a","seq":1}',
        b'{"user":"\\ud83d","seq":1,"ok":true}',
        b'{"user":"\\ud83d\\ude00","seq":1,"ok":true}',
        b'{"user":"\xff","seq":1,"ok":true}',
        b'{"user":"\xed\xa0\x80","seq":1,"ok":true}',
        b'{"user":"\xc0\x80","seq":1,"ok":true}',
        b'{"user":"\t","seq":1,"ok":true}',
        b'{"us\\u0065r":"a","seq":1,"ok":true}',
        b'{"seq":7,"user":"x","ok":true,"note \xc3\xa9.":1e5}',
        b'{"seq":7,"user":"x","ok":true,"note \xc3\xa9.":[]}',
        b"[]",
        b"",
    ],
)
def test_any_other_line_is_not_plain_and_does_not_spoil_its_neighbours(line: bytes) -> None:
    plain = b'{"user":"a","seq":1,"ok":true}'
    before, row, after = read(plain, line, plain)
    assert (before[IS_PLAIN], row[IS_PLAIN], after[IS_PLAIN]) == (True, False, True)
    assert (before["1"], after["2"], after[REWRITTEN]) == (1, "a", None)


def test_a_line_that_is_not_plain_is_rewritten_where_it_is_a_record() -> None:
    rows = read(b'{"user": null, "x": 1, "seq": 1.5}', b'{"user": "two"}{}', None)
    assert [row[REWRITTEN] for row in rows] == ['{"user":null,"seq":1.5}', None, None]
    assert not any(row[IS_PLAIN] for row in rows)


def test_without_a_known_form_no_line_is_plain() -> None:
    for forms in ((), (("other",),)):
        reader = plain_reader(forms, KINDS, rewrite=False)
        assert reader(pa.array([b'{"user":"a"}'])).field(IS_PLAIN).to_pylist() == [False]


ROWS = st.lists(st.tuples(st.text(), st.integers(-(2**63), 2**63 - 1), st.booleans()))


@given(ROWS, st.booleans())
def test_what_json_writes_is_read_again(
    rows: list[tuple[str, int, bool]], ascii_only: bool
) -> None:
    records = [dict(zip(FORMS[0], row, strict=True)) for row in rows]
    lines = [
        json.dumps(record, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
        for record in records
    ]
    for record, row in zip(records, read(*lines), strict=True):
        if row[IS_PLAIN]:
            assert (row["2"], row["1"], row["0"]) == tuple(record.values())
        else:  # a pair of escaped halves is left to the exact reader
            assert ascii_only
            assert max(map(ord, str(record["user"]))) > 0xFFFF

"""Random data sets in random formats against the definitions said once more in plain Python.

Many small cases go into one comparison, told apart by their number in the key, because a
comparison costs seconds and a case nothing.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from tests.harness.reconcile.data_sets import FORMATS, compared


class Sent(NamedTuple):
    key: str | None
    seq: int | None
    value: int | None
    ack: str


class BatchWindow(NamedTuple):
    key: str | None
    seq: int | None
    value: int | None
    at: int


JudgedRun = tuple[list[Sent], list[BatchWindow]]
keys = st.sampled_from(["a", "A", "a ", "", "7", "07", "é", "e\u0301", None])
seqs = st.sampled_from([1, 2, 3, 2**53, 2**53 + 1, None])
values = st.sampled_from([0, 1, 2**62, 2**62 + 1, None])
acks = st.sampled_from(["ok", "ok", "ok", "unknown", "fail"])


@st.composite
def cases(draw: st.DrawFn) -> JudgedRun:
    """Mostly what was sent comes, a little disturbed; some of it is anything at all."""
    names = draw(st.lists(st.tuples(keys, seqs), min_size=1, max_size=5))
    sent = [Sent(key, seq, draw(values), draw(acks)) for key, seq in names]
    seen = [BatchWindow(s.key, s.seq, s.value, at) for at, s in enumerate(sent)]
    changes = st.integers(0, len(seen) - 1)
    for change in draw(st.lists(changes, max_size=2)):
        seen.append(seen[change]._replace(at=draw(st.integers(0, 9))))
    for change in draw(st.lists(changes, max_size=2)):
        seen[change] = seen[change]._replace(value=draw(values), at=draw(st.integers(0, 9)))
    if draw(st.booleans()):
        del seen[draw(changes)]
    if draw(st.booleans()):
        seen.append(BatchWindow(draw(keys), draw(seqs), draw(values), draw(st.integers(0, 9))))
    return sent, seen


def model(sent: Sequence[Sent], seen: Sequence[BatchWindow]) -> Counter[str]:
    """The counts of one case, by the definitions."""
    counts: Counter[str] = Counter()
    real = set()
    for name in {(s.key, s.seq) for s in sent} | {(s.key, s.seq) for s in seen}:
        certain = [s.value for s in sent if (s.key, s.seq) == name and s.ack == "ok"]
        unknown = [s.value for s in sent if (s.key, s.seq) == name and s.ack == "unknown"]
        here = [s.value for s in seen if (s.key, s.seq) == name]
        possible = certain + unknown
        arrived = min(len(unknown), max(0, len(here) - len(certain)))
        counts["expected"] += len(certain)
        counts["actual"] += len(here)
        counts["lost"] += max(0, len(certain) - len(here))
        counts["unknown_arrived"] += arrived
        counts["unknown_absent"] += len(unknown) - arrived
        if not possible:
            counts["phantom"] += len(here)
            continue
        real.add(name)
        agree = (Counter(possible) & Counter(here)).total()
        kept = (Counter(certain) & Counter(here)).total()
        counts["duplicated"] += max(0, len(here) - len(possible))
        counts["changed"] += bool(
            set(here) - set(possible)
            or agree < min(len(here), len(possible))
            or kept < min(len(here), len(certain))
        )
    counts["reordered"] = reordered(real, seen)
    return counts


def reordered(real: set[Any], seen: Sequence[BatchWindow]) -> int:
    found, met = 0, set()
    before: dict[str | None, int] = {}
    placed = [s for s in seen if s.seq is not None and (s.key, s.seq) in real]
    for record in sorted(placed, key=lambda s: (s.at, s.seq or 0)):
        assert record.seq is not None
        if (record.key, record.seq) not in met:
            met.add((record.key, record.seq))
            found += record.seq < before.get(record.key, record.seq)
            before[record.key] = record.seq
    return found


def write(path: Path, rows: Sequence[dict[str, Any]], last: str) -> Path:
    """Rows of one format; nulls and empty texts stay two things in each."""
    if path.suffix == ".parquet":
        kinds = {"key": pyarrow.string(), "ack": pyarrow.string()}
        schema = pyarrow.schema(
            [
                (name, kinds.get(name, pyarrow.int64()))
                for name in ("n", "key", "seq", "value", last)
            ]
        )
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(rows), schema), path)
    elif path.suffix == ".json":
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    else:
        lines = [",".join(map(field, row.values())) for row in rows]
        path.write_text("\n".join([f"n,key,seq,value,{last}", *lines]) + "\n")
    return path


def field(value: str | int | None) -> str:
    if value is None:
        return ""
    return f'"{value}"' if isinstance(value, str) else str(value)


DRAWN = given(
    drawn=st.lists(cases(), min_size=30, max_size=90),
    kinds=st.tuples(st.sampled_from(FORMATS), st.sampled_from(FORMATS)),
    broken=st.integers(0, 2),
)
PATIENT = settings(suppress_health_check=list(HealthCheck))


@settings(PATIENT, max_examples=2)
@DRAWN
def test_it_agrees_with_the_definitions(
    spark: SparkSession,
    tmp_path_factory: Any,
    drawn: list[JudgedRun],
    kinds: tuple[str, str],
    broken: int,
) -> None:
    agrees(spark, tmp_path_factory, drawn, kinds, broken)


@pytest.mark.nightly
@settings(PATIENT, max_examples=40)
@DRAWN
def test_it_agrees_with_the_definitions_in_all_formats(
    spark: SparkSession,
    tmp_path_factory: Any,
    drawn: list[JudgedRun],
    kinds: tuple[str, str],
    broken: int,
) -> None:
    agrees(spark, tmp_path_factory, drawn, kinds, broken)


def agrees(
    spark: SparkSession,
    tmp_path_factory: Any,
    drawn: list[JudgedRun],
    kinds: tuple[str, str],
    broken: int,
) -> None:
    """Compare the cases, written in two formats, and hold the counts against the model's."""
    folder = tmp_path_factory.mktemp("drawn")
    sent = [{"n": n, **s._asdict()} for n, (sends, _) in enumerate(drawn) for s in sends]
    seen = [{"n": n, **s._asdict()} for n, (_, seens) in enumerate(drawn) for s in seens]
    expected = write(folder / f"e.{kinds[0]}", sent, "ack")
    actual = write(folder / f"a.{kinds[1]}", seen, "at")
    if kinds[1] == "parquet":
        broken = 0
    with actual.open("a") as file:
        file.writelines("{broken\n" for _ in range(broken))

    result = compared(
        spark,
        expected,
        actual,
        "n, key",
        sequence="seq",
        compare="value",
        order="at",
        ack="ack",
    )

    counts = sum((model(*case) for case in drawn), Counter[str]())
    counts.update(phantom=broken, actual=broken, malformed=broken)
    assert {n: c for n, c in result.counts.items() if c} == {n: c for n, c in counts.items() if c}

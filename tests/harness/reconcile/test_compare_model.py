"""Random data sets in random formats are compared with a model of the definitions in plain Python.
Many small cases share one comparison, each with its number in the key, because a comparison takes
seconds and a case takes almost no time.
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

from tests.harness.reconcile.data_sets import FORMATS, comparison_of


class SentRecord(NamedTuple):
    key: str | None
    seq: int | None
    value: int | None
    ack: str


class OutputRecord(NamedTuple):
    key: str | None
    seq: int | None
    value: int | None
    at: int


DrawnCase = tuple[list[SentRecord], list[OutputRecord]]
keys = st.sampled_from(["a", "A", "a ", "", "7", "07", "é", "e\u0301", None])
seqs = st.sampled_from([1, 2, 3, 2**53, 2**53 + 1, None])
values = st.sampled_from([0, 1, 2**62, 2**62 + 1, None])
acks = st.sampled_from(["ok", "ok", "ok", "unknown", "fail"])


@st.composite
def cases(draw: st.DrawFn) -> DrawnCase:
    """Sent records, and the received ones: mostly the same, with a few copies, changes, losses and
    random records."""
    identities = draw(st.lists(st.tuples(keys, seqs), min_size=1, max_size=5))
    sent = [SentRecord(key, seq, draw(values), draw(acks)) for key, seq in identities]
    received = [OutputRecord(s.key, s.seq, s.value, at) for at, s in enumerate(sent)]
    changes = st.integers(0, len(received) - 1)
    for change in draw(st.lists(changes, max_size=2)):
        received.append(received[change]._replace(at=draw(st.integers(0, 9))))
    for change in draw(st.lists(changes, max_size=2)):
        received[change] = received[change]._replace(value=draw(values), at=draw(st.integers(0, 9)))
    if draw(st.booleans()):
        del received[draw(changes)]
    if draw(st.booleans()):
        received.append(OutputRecord(draw(keys), draw(seqs), draw(values), draw(st.integers(0, 9))))
    return sent, received


def model(sent: Sequence[SentRecord], received: Sequence[OutputRecord]) -> Counter[str]:
    """The counts of one case by the definitions."""
    counts: Counter[str] = Counter()
    possible_identities = set()
    for identity in {(s.key, s.seq) for s in sent} | {(s.key, s.seq) for s in received}:
        certain = [s.value for s in sent if (s.key, s.seq) == identity and s.ack == "ok"]
        unknown = [s.value for s in sent if (s.key, s.seq) == identity and s.ack == "unknown"]
        actual_values = [s.value for s in received if (s.key, s.seq) == identity]
        possible = certain + unknown
        unknown_arrived = min(len(unknown), max(0, len(actual_values) - len(certain)))
        counts["expected"] += len(certain)
        counts["actual"] += len(actual_values)
        counts["lost"] += max(0, len(certain) - len(actual_values))
        counts["unknown_arrived"] += unknown_arrived
        counts["unknown_absent"] += len(unknown) - unknown_arrived
        if not possible:
            counts["phantom"] += len(actual_values)
            continue
        possible_identities.add(identity)
        matches = (Counter(possible) & Counter(actual_values)).total()
        acknowledged_matches = (Counter(certain) & Counter(actual_values)).total()
        counts["duplicated"] += max(0, len(actual_values) - len(possible))
        counts["changed"] += bool(
            set(actual_values) - set(possible)
            or matches < min(len(actual_values), len(possible))
            or acknowledged_matches < min(len(actual_values), len(certain))
        )
    counts["reordered"] = reordered_count(possible_identities, received)
    return counts


def reordered_count(possible_identities: set[Any], received: Sequence[OutputRecord]) -> int:
    count, visited = 0, set()
    last_sequence: dict[str | None, int] = {}
    placed = [s for s in received if s.seq is not None and (s.key, s.seq) in possible_identities]
    for record in sorted(placed, key=lambda s: (s.at, s.seq or 0)):
        assert record.seq is not None
        if (record.key, record.seq) not in visited:
            visited.add((record.key, record.seq))
            count += record.seq < last_sequence.get(record.key, record.seq)
            last_sequence[record.key] = record.seq
    return count


def write(path: Path, rows: Sequence[dict[str, Any]], last: str) -> Path:
    """Write rows in a format; nulls and empty texts stay different in each."""
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


DRAWN_CASES = given(
    drawn=st.lists(cases(), min_size=30, max_size=90),
    kinds=st.tuples(st.sampled_from(FORMATS), st.sampled_from(FORMATS)),
    broken=st.integers(0, 2),
)
WITHOUT_HEALTH_CHECKS = settings(suppress_health_check=list(HealthCheck))


@pytest.mark.nightly
@settings(WITHOUT_HEALTH_CHECKS, max_examples=2)
@DRAWN_CASES
def test_a_comparison_agrees_with_the_model(
    spark: SparkSession,
    tmp_path_factory: Any,
    drawn: list[DrawnCase],
    kinds: tuple[str, str],
    broken: int,
) -> None:
    assert_agreement(spark, tmp_path_factory, drawn, kinds, broken)


@pytest.mark.nightly
@settings(WITHOUT_HEALTH_CHECKS, max_examples=40)
@DRAWN_CASES
def test_many_comparisons_agree_with_the_model(
    spark: SparkSession,
    tmp_path_factory: Any,
    drawn: list[DrawnCase],
    kinds: tuple[str, str],
    broken: int,
) -> None:
    assert_agreement(spark, tmp_path_factory, drawn, kinds, broken)


def assert_agreement(
    spark: SparkSession,
    tmp_path_factory: Any,
    drawn: list[DrawnCase],
    kinds: tuple[str, str],
    broken: int,
) -> None:
    """Write the cases in two formats, compare them, and check the counts by the model."""
    folder = tmp_path_factory.mktemp("drawn")
    sent = [{"n": n, **s._asdict()} for n, (sends, _) in enumerate(drawn) for s in sends]
    received = [{"n": n, **s._asdict()} for n, (_, outputs) in enumerate(drawn) for s in outputs]
    expected = write(folder / f"e.{kinds[0]}", sent, "ack")
    actual = write(folder / f"a.{kinds[1]}", received, "at")
    if kinds[1] == "parquet":
        broken = 0
    with actual.open("a") as file:
        file.writelines("{broken\n" for _ in range(broken))

    result = comparison_of(
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

"""The records of the workload: the formula against counting, and Python against Spark."""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from pyspark.sql import SparkSession

from streamquake.faults.mechanisms.key_shares import Skew
from streamquake.harness.experiment.named_part import part_of
from streamquake.harness.experiment.workload import workloads
from streamquake.harness.workloads.numbered import Numbered
from streamquake.harness.workloads.numbered.frame import COLUMNS
from streamquake.harness.workloads.numbered.records import EPOCH_MS, Record
from streamquake.harness.workloads.numbered.skew import SkewChange
from streamquake.harness.workloads.numbered.workload_changes import ScheduledChange
from streamquake.reports.record.event import Action, Event, Kind
from streamquake.reports.record.history import History
from tests.harness.histories import NO_DATA

pytestmark = pytest.mark.slow

skews = st.one_of(
    st.just({}),
    st.builds(lambda share: {"hot_share": share}, st.floats(0.05, 0.95)),
    st.builds(lambda exponent: {"zipf": exponent}, st.floats(0.1, 2.5)),
)


@st.composite
def drawn_workloads(draw: st.DrawFn) -> Numbered:
    records = draw(st.integers(1, 3000))
    starts = draw(st.sets(st.integers(1, 2999), max_size=3))
    changes = tuple(
        SkewChange(at_record=at, **draw(skews)) for at in sorted(starts) if at < records
    )
    return Numbered(
        records=records,
        rate_per_s=draw(st.integers(1, 100_000)),
        keys=draw(st.integers(1, 200)),
        payload_bytes=draw(st.integers(0, 90)),
        skew=Skew(**draw(skews)),
        skew_changes=changes,
        event_step_us=draw(st.one_of(st.none(), st.integers(0, 10_000_000))),
    )


def fields(record: Record) -> tuple[object, ...]:
    """A record as the row that Spark generates, without its status."""
    return tuple(getattr(record, name) for name in COLUMNS if name != "status")


def history(
    *ranges: tuple[int, int, str],
    done: bool = True,
    scheduled_changes: Sequence[ScheduledChange] = (),
) -> History:
    values: list[tuple[Action, dict[str, Any]]] = [
        (Action.WORKLOAD_STEERED, change._asdict()) for change in scheduled_changes
    ]
    values += [
        (
            Action.SENT,
            {"first": first, "last": last, "status": status, "count": last - first + 1},
        )
        for first, last, status in ranges
    ]
    if done:
        values.append((Action.WORKLOAD_DONE, {}))
    return History(
        Event(index=i, at_ns=i, process="workload", kind=Kind.INFO, action=action, value=value)
        for i, (action, value) in enumerate(values)
    )


disturbances = st.one_of(
    st.tuples(st.just("skew"), skews.filter(bool)),
    st.tuples(st.just("surge"), st.just({"factor": 2.0})),
    st.tuples(
        st.just("large_records"),
        st.fixed_dictionaries(
            {"payload_bytes": st.integers(1000, 1100), "share": st.floats(0.01, 1.0)}
        ),
    ),
    st.tuples(
        st.just("late_events"),
        st.fixed_dictionaries(
            {
                "late_ms": st.integers(1, 86_400_000),
                "share": st.floats(0.01, 1.0),
                "out_of_order_ms": st.integers(0, 60_000),
            }
        ),
    ),
    st.tuples(st.just("poison"), st.builds(lambda n: {"records": n}, st.integers(1, 300))),
    st.tuples(
        st.just("fan_out"),
        st.fixed_dictionaries({"copies": st.integers(2, 50), "share": st.floats(0.01, 1.0)}),
    ),
)


@st.composite
def drawn_changes(draw: st.DrawFn) -> tuple[ScheduledChange, ...]:
    """Workload changes in order; some end a disturbance that never began."""
    starts = sorted(draw(st.lists(st.integers(0, 3200), max_size=5)))
    drawn = [(start, *draw(disturbances), draw(st.booleans())) for start in starts]
    return tuple(
        ScheduledChange(at, name, None if end else parameters)
        for at, name, parameters, end in drawn
    )


@settings(max_examples=60)
@given(workload=drawn_workloads(), seed=st.integers(-(2**63), 2**63 - 1))
def test_the_sequence_of_a_key_counts_its_records(workload: Numbered, seed: int) -> None:
    counts: Counter[str] = Counter()
    for index, record in enumerate(workload.load_definition(seed).between(0, workload.records)):
        assert record.index == index
        assert record.seq == counts[record.key]
        assert record.partition == int(record.key[2:]) % workload.partitions
        counts[record.key] += 1
    assert sum(counts.values()) == workload.records


@settings(max_examples=8, suppress_health_check=list(HealthCheck))
@given(workload=drawn_workloads(), seed=st.integers(-(2**63), 2**63 - 1))
def test_spark_generates_the_same_records(
    spark: SparkSession, workload: Numbered, seed: int
) -> None:
    whole = history((0, workload.records - 1, "acknowledged"))
    frame = workload.sent_frame(spark, whole, seed, NO_DATA)

    assert tuple(frame.columns) == COLUMNS
    rows = sorted((tuple(row)[:-1] for row in frame.collect()), key=lambda row: int(row[2]))
    assert rows == [fields(r) for r in workload.load_definition(seed).between(0, workload.records)]


@pytest.mark.nightly
@settings(max_examples=12, suppress_health_check=list(HealthCheck))
@given(workload=drawn_workloads(), scheduled_changes=drawn_changes(), seed=st.integers(0, 9))
def test_spark_generates_the_same_records_of_a_load_that_was_steered(
    spark: SparkSession,
    workload: Numbered,
    scheduled_changes: tuple[ScheduledChange, ...],
    seed: int,
) -> None:
    whole = history((0, workload.records - 1, "acknowledged"), scheduled_changes=scheduled_changes)
    frame = workload.sent_frame(spark, whole, seed, NO_DATA)

    rows = sorted((tuple(row)[:-1] for row in frame.collect()), key=lambda row: int(row[2]))
    generated = workload.load_definition(seed, scheduled_changes).between(0, workload.records)
    assert rows == [fields(record) for record in generated if not record.poison]


@settings(max_examples=20)
@given(workload=drawn_workloads(), scheduled_changes=drawn_changes(), seed=st.integers(0, 9))
def test_a_change_affects_no_earlier_record(
    workload: Numbered, scheduled_changes: tuple[ScheduledChange, ...], seed: int
) -> None:
    whole = list(workload.load_definition(seed, scheduled_changes).between(0, workload.records))

    for applied, change in enumerate(scheduled_changes):
        unaffected = workload.load_definition(seed, scheduled_changes[:applied]).between(
            0, min(change.at_record, workload.records)
        )
        assert list(unaffected) == whole[: change.at_record]


def test_any_interval_is_generated_without_the_ones_before() -> None:
    workload = Numbered(
        records=1000, rate_per_s=10, skew_changes=(SkewChange(at_record=300, zipf=1.0),)
    )
    definition = workload.load_definition(seed=5)

    assert list(definition.between(250, 420)) == list(definition.between(0, 1000))[250:420]


def test_the_value_is_json_and_its_checksum_covers_every_field() -> None:
    (record,) = (
        Numbered(records=1, rate_per_s=1, payload_bytes=20).load_definition(seed=3).between(0, 1)
    )
    value = json.loads(record.value())

    assert list(value) == [name for name in COLUMNS if name not in ("copies", "status")]
    assert value["event_time_ms"] == EPOCH_MS
    assert len(value["payload"]) == 20
    canonical = "|".join(str(value[name]) for name in list(value)[:-1])
    assert value["checksum"] == zlib.crc32(canonical.encode())


@pytest.mark.parametrize(
    ("skew", "share"), [({"hot_share": 0.9}, 0.9), ({}, 1 / 50), ({"zipf": 1.1}, 0.2585)]
)
def test_the_first_key_has_the_share_of_the_skew(skew: dict[str, float], share: float) -> None:
    workload = Numbered(records=20_000, rate_per_s=1, keys=50, skew=Skew(**skew))
    hot = sum(
        record.key == "k-00000" for record in workload.load_definition(seed=1).between(0, 20_000)
    )

    assert hot / 20_000 == pytest.approx(share, rel=0.05)


def test_another_seed_gives_other_records() -> None:
    workload = Numbered(records=100, rate_per_s=1)

    assert list(workload.load_definition(1).between(0, 100)) != list(
        workload.load_definition(2).between(0, 100)
    )


def test_statuses_are_those_of_the_ranges_and_unsent_records_have_no_row(
    spark: SparkSession,
) -> None:
    workload = Numbered(records=100, rate_per_s=1)
    ranges = [(0, 9, "acknowledged"), (10, 14, "failed"), (15, 19, "unknown")]

    frame = workload.sent_frame(spark, history(*ranges), 1, NO_DATA)

    counts = {row.status: row["count"] for row in frame.groupBy("status").count().collect()}
    assert counts == {"acknowledged": 10, "failed": 5, "unknown": 5}


def test_records_that_a_crashed_harness_had_not_recorded_are_unknown(spark: SparkSession) -> None:
    workload = Numbered(records=100, rate_per_s=1)

    stopped = history((0, 9, "acknowledged"), done=False)
    frame = workload.sent_frame(spark, stopped, 1, NO_DATA)

    assert frame.where("status = 'unknown'").count() == 90


def test_changes_before_a_crash_of_the_harness_are_applied(spark: SparkSession) -> None:
    workload = Numbered(records=100, rate_per_s=1)
    recorded = history(
        (0, 9, "acknowledged"),
        done=False,
        scheduled_changes=[ScheduledChange(5, "poison", {"records": 3})],
    )

    frame = workload.sent_frame(spark, recorded, 1, NO_DATA)

    counts = {row.status: row["count"] for row in frame.groupBy("status").count().collect()}
    assert counts == {"acknowledged": 7, "unknown": 90}


@pytest.mark.parametrize(
    "wrong",
    [
        {"skew": {"hot_share": 0.5, "zipf": 1.0}},
        {"skew": {"hot_share": 1.5}},
        {"skew_changes": [{"at_record": 500}, {"at_record": 400}]},
        {"skew_changes": [{"at_record": 1000}]},
        {"keys": 0},
        {"colour": "red"},
    ],
)
def test_invalid_parameters_are_rejected(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Numbered(records=1000, rate_per_s=1, **wrong)


def test_a_workload_is_one_key_with_its_name() -> None:
    numbered = {"numbered": {"records": 1, "rate_per_s": 1}}
    assert part_of(workloads, numbered) == Numbered(records=1, rate_per_s=1)
    with pytest.raises(ValueError, match="expected one workload by name"):
        part_of(workloads, {})

"""A new fault of the data is one class: generator, Spark and validation need no other change."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any, ClassVar

import pytest
from pyspark.sql import SparkSession

from streamquake.faults.fault import faults
from streamquake.faults.mechanisms.data import DataFault
from streamquake.faults.mechanisms.key_shares import Skew
from streamquake.faults.mechanisms.workload_change import (
    Copies,
    LargePayload,
    Lateness,
    LoadUse,
    WorkloadChange,
)
from streamquake.harness.experiment.data_validation import data_problem
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.workloads.numbered import Numbered
from streamquake.harness.workloads.numbered.frame import COLUMNS
from streamquake.harness.workloads.numbered.workload_changes import ScheduledChange
from streamquake.reports.record.event import Action
from tests.fakes import TOPOLOGY, fake_cluster
from tests.fakes.worlds.workload import FakeLoad
from tests.harness.histories import NO_DATA, Story

RECORDS, BEGIN, END = 2000, 500, 1500
LOAD = Numbered(records=RECORDS, rate_per_s=1000, keys=16)


class FlashSale(DataFault):
    """All customers buy one thing: a hot key, a higher rate, large and late records, some
    malformed."""

    name: ClassVar[str] = "flash_sale"
    touches: ClassVar[str] = "sales"
    example: ClassVar[Mapping[str, Any]] = {"hot_share": 0.7}
    shows: ClassVar[tuple[str, ...]] = ("hottest_share", "records_per_s", "moved_back")

    hot_share: float

    @property
    def change(self) -> WorkloadChange:
        return WorkloadChange(
            skew=Skew(hot_share=self.hot_share),
            rate_factor=3,
            large=LargePayload(payload_bytes=1000, share=0.1),
            late=Lateness(late_ms=5000, share=0.2, out_of_order_ms=50),
            copies=Copies(copies=4, share=0.3),
            malformed_records=7,
        )

    def unknown_result(self, use: LoadUse) -> str | None:
        return None if use.has_job else "a flash sale needs a job"

    def took_effect(self, seen: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
        return bool(seen["hottest_share"] > self.hot_share / 2 and seen["moved_back"])


SCHEDULED_CHANGES = (
    ScheduledChange(BEGIN, FlashSale.name, {"hot_share": 0.7}),
    ScheduledChange(END, FlashSale.name, None),
)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    assert FlashSale.name not in faults
    monkeypatch.setitem(faults._members, FlashSale.name, FlashSale)


def test_the_generator_applies_every_part_of_an_active_change() -> None:
    generated = list(
        LOAD.load_definition(seed=1, scheduled_changes=SCHEDULED_CHANGES).between(0, RECORDS)
    )
    undisturbed = list(LOAD.load_definition(seed=1).between(0, RECORDS))

    assert generated[:BEGIN] == undisturbed[:BEGIN]
    disturbed = generated[BEGIN:END]
    keys = Counter(record.key for record in disturbed)
    assert keys["k-00000"] / len(disturbed) == pytest.approx(0.7, abs=0.05)
    assert sum(record.poison for record in generated) == 7
    assert {len(record.payload) for record in disturbed} == {80, 1000}
    assert {record.copies for record in disturbed} == {1, 4}
    back = [
        p.event_time_ms - m.event_time_ms
        for m, p in zip(disturbed, undisturbed[BEGIN:], strict=False)
    ]
    assert max(back) >= 5000
    assert all(record.copies == 1 and len(record.payload) == 80 for record in generated[END:])


def test_spark_generates_the_same_records(spark: SparkSession) -> None:
    story = Story()
    for change in SCHEDULED_CHANGES:
        story.at(1, Action.WORKLOAD_STEERED, **change._asdict())
    story.sent(1, RECORDS)
    frame = LOAD.sent_frame(spark, story.history(), 1, NO_DATA)

    generated = LOAD.load_definition(seed=1, scheduled_changes=SCHEDULED_CHANGES).between(
        0, RECORDS
    )
    fields = [name for name in COLUMNS if name != "status"]
    rows = frame.select(*fields).orderBy("index").collect()
    assert [tuple(row) for row in rows] == [
        tuple(getattr(record, name) for name in fields) for record in generated if not record.poison
    ]


def test_its_effect_is_verified_and_its_name_and_parameters_are_recorded() -> None:
    cluster = fake_cluster()
    load = FakeLoad(cluster.clock, Numbered(records=100_000, rate_per_s=500, keys=16))
    fault, cluster.run.steering = FlashSale(hot_share=0.7), load

    load.steer(fault.name, fault.model_dump())
    cluster.clock.sleep(2)

    figures = load.sent_under(fault.name)
    assert fault.took_effect(figures, {})
    assert figures["records_per_s"] == pytest.approx(1500, rel=0.05)
    read_back = ScheduledChange(**json.loads(json.dumps(SCHEDULED_CHANGES[0]._asdict())))
    assert read_back.change == fault.change


def test_its_own_validation_is_used() -> None:
    experiment = Experiment(
        name="flash-sale", topology=TOPOLOGY, workload=Numbered(records=1, rate_per_s=1)
    )

    assert list(data_problem(FlashSale(hot_share=0.5), experiment)) == ["a flash sale needs a job"]


def test_rates_of_active_changes_multiply_and_the_latest_skew_applies() -> None:
    both = (
        SCHEDULED_CHANGES[0],
        ScheduledChange(600, "skew", {"hot_share": 0.2}),
        ScheduledChange(700, "surge", {"factor": 2}),
    )
    generated = list(LOAD.load_definition(seed=1, scheduled_changes=both).between(700, RECORDS))

    hot = sum(record.key == "k-00000" for record in generated)
    assert hot / len(generated) == pytest.approx(0.2, abs=0.03)
    assert {record.copies for record in generated} == {1, 4}
    load = FakeLoad(fake_cluster().clock, LOAD)
    for change in both:
        load.steer(change.disturbance, change.parameters or {})
    assert load._change_log.factor() == 6

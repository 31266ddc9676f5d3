"""A new fault of the data is one class: nothing else knows it, and everything runs it."""

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
from tests.harness.histories import Story

RECORDS, BEGIN, END = 2000, 500, 1500
LOAD = Numbered(records=RECORDS, rate_per_s=1000, keys=16)


class FlashSale(DataFault):
    """Everybody buys one thing, faster, in large late orders, and some of them are broken."""

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
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    assert FlashSale.name not in faults
    monkeypatch.setitem(faults._members, FlashSale.name, FlashSale)


def test_the_generator_applies_every_primitive_while_it_is_in_force() -> None:
    made = list(LOAD.recipe(seed=1, scheduled_changes=SCHEDULED_CHANGES).between(0, RECORDS))
    plain = list(LOAD.recipe(seed=1).between(0, RECORDS))

    assert made[:BEGIN] == plain[:BEGIN]
    under = made[BEGIN:END]
    keys = Counter(record.key for record in under)
    assert keys["k-00000"] / len(under) == pytest.approx(0.7, abs=0.05)
    assert sum(record.poison for record in made) == 7
    assert {len(record.payload) for record in under} == {80, 1000}
    assert {record.copies for record in under} == {1, 4}
    back = [p.event_time_ms - m.event_time_ms for m, p in zip(under, plain[BEGIN:], strict=False)]
    assert max(back) >= 5000
    assert all(record.copies == 1 and len(record.payload) == 80 for record in made[END:])


def test_spark_makes_the_same_records(spark: SparkSession) -> None:
    story = Story()
    for change in SCHEDULED_CHANGES:
        story.at(1, Action.WORKLOAD_STEERED, **change._asdict())
    story.sent(1, RECORDS)
    frame = LOAD.sent_frame(spark, story.history(), seed=1)

    made = LOAD.recipe(seed=1, scheduled_changes=SCHEDULED_CHANGES).between(0, RECORDS)
    fields = [name for name in COLUMNS if name != "status"]
    rows = frame.select(*fields).orderBy("index").collect()
    assert [tuple(row) for row in rows] == [
        tuple(getattr(record, name) for name in fields) for record in made if not record.poison
    ]


def test_it_is_in_effect_and_stands_in_the_record_by_name_and_parameters() -> None:
    cluster = fake_cluster()
    load = FakeLoad(cluster.clock, Numbered(records=100_000, rate_per_s=500, keys=16))
    fault, cluster.run.steering = FlashSale(hot_share=0.7), load

    load.steer(fault.name, fault.model_dump())
    cluster.clock.sleep(2)

    seen = load.sent_under(fault.name)
    assert fault.took_effect(seen, {})
    assert seen["records_per_s"] == pytest.approx(1500, rel=0.05)
    again = ScheduledChange(**json.loads(json.dumps(SCHEDULED_CHANGES[0]._asdict())))
    assert again.change == fault.change


def test_its_own_validation_is_asked() -> None:
    experiment = Experiment(
        name="by-hand", topology=TOPOLOGY, workload=Numbered(records=1, rate_per_s=1)
    )

    assert list(data_problem(FlashSale(hot_share=0.5), experiment)) == ["a flash sale needs a job"]


def test_where_two_are_in_force_rates_multiply_and_the_later_of_a_kind_counts() -> None:
    both = (
        SCHEDULED_CHANGES[0],
        ScheduledChange(600, "skew", {"hot_share": 0.2}),
        ScheduledChange(700, "surge", {"factor": 2}),
    )
    made = list(LOAD.recipe(seed=1, scheduled_changes=both).between(700, RECORDS))

    hot = sum(record.key == "k-00000" for record in made)
    assert hot / len(made) == pytest.approx(0.2, abs=0.03)
    assert {record.copies for record in made} == {1, 4}
    load = FakeLoad(fake_cluster().clock, LOAD)
    for change in both:
        load.steer(change.disturbance, change.parameters or {})
    assert load._change_log.factor() == 6

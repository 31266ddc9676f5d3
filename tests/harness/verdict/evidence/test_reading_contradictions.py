"""What of a run contradicts the reading of a topic that the harness created."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from streamquake.harness.experiment.check import JudgedRun
from streamquake.harness.verdict.evidence.reading_contradictions import (
    contradicted_reading,
    incomplete_reading,
)
from streamquake.reports.record.event import Action
from streamquake.topologies.model import Topology
from tests.harness.histories import Story, case

BEGAN_MS = 1_767_225_600_000
FACTS = {
    "kind": "kafka",
    "stamped": "append",
    "began_ms": BEGAN_MS,
    "ends": {"0": 9, "1": 5},
    "stable_ends": {"0": 7, "1": 5},
}
EXTERNAL = {"kafka": {"engine": "kafka", "endpoint": "kafka.example:9092"}}
SKEW = {"fault": "clock_skew", "target": "one of kafka/broker", "step": 0}


def stored(*stamps_s: float, **facts: Any) -> Any:
    """A reading with records that brokers appended at these moments of the run."""
    stamps = [BEGAN_MS + round(at_s * 1000) for at_s in stamps_s or (1.0, 9.5)]
    return SimpleNamespace(
        facts=lambda: {**FACTS, **facts},
        columns=lambda name: pa.table({name: stamps}),
        ends_without_records=lambda: "",
    )


def seen(*ends: int, read: bool = True, later: int | None = None) -> Story:
    """A topic that grows once a second until it is read at 10 s."""
    story = Story()
    for at_s, end in enumerate(ends, start=1):
        story.at(at_s, Action.OUTPUT_SEEN, output="copy", end=end, grown=1)
        story.at(at_s, Action.OUTPUT_SEEN, output="other", end=99, grown=1)
    if read:
        story.at(10, Action.PHASE, phase="read")
    if later is not None:
        story.at(10.5, Action.OUTPUT_SEEN, output="copy", end=later, grown=1)
    return story.at(11, Action.PHASE, phase="tear down").at(30, Action.PHASE, phase="commands")


def external(judged: JudgedRun) -> JudgedRun:
    """The same with a Kafka that the harness did not deploy."""
    services = {**judged.experiment.topology.model_dump()["services"], **EXTERNAL}
    topology = Topology.model_validate({"name": "external", "services": services})
    experiment = judged.experiment.model_copy(update={"topology": topology})
    return JudgedRun(
        experiment=experiment,
        history=judged.history,
        data=judged.data,
        metrics=judged.metrics,
        spark=judged.spark,
    )


def test_a_topic_is_read_to_at_least_the_end_that_was_seen_before(tmp_path: Path) -> None:
    message = "it had been seen to grow to 13 before it was read, and was read only up to 12"
    for story, wrong in (
        (seen(3, 12), False),
        (seen(3, 13), True),
        (seen(3, 11), False),
        (seen(12, later=15), False),  # another job may write while it is read
        (seen(13, read=False), False),
        (seen(), False),
    ):
        found = contradicted_reading(case(story, tmp_path), "copy", stored())
        assert found == (message if wrong else "")
    assert contradicted_reading(external(case(seen(13), tmp_path)), "copy", stored()) == ""
    assert contradicted_reading(case(seen(13), tmp_path), "copy", stored(stable_ends=None)) == ""


@pytest.mark.parametrize(
    ("nodes", "judged"),
    [(["kafka/broker-1"], False), (["flink/taskmanager-1"], True), (None, False)],
)
def test_a_fault_on_a_broker_may_lose_what_was_seen(
    tmp_path: Path, nodes: list[str] | None, judged: bool
) -> None:
    story = seen(13).at(31, Action.FAULT_CALLED, fault="kill", step=0, nodes=nodes)
    found = [*incomplete_reading(case(story, tmp_path), "copy", stored())]
    assert bool(found) == judged


@pytest.mark.parametrize(
    ("stamp_s", "message"),
    [
        (-4.0, ""),
        (-3600.0, "a record is stamped 3600.0 s before the run began"),
        (15.0, ""),  # until the output had been read at 11 s, clocks apart
        (31.0, "a record is stamped 20.0 s after the output had been read"),
    ],
)
def test_brokers_append_during_the_run(tmp_path: Path, stamp_s: float, message: str) -> None:
    def found(judged: JudgedRun, **facts: Any) -> str:
        return contradicted_reading(judged, "copy", stored(1.0, stamp_s, 2.0, **facts))

    assert found(case(seen(12), tmp_path)) == message
    assert found(case(seen(12), tmp_path), stamped="create") == ""
    assert found(case(seen(12), tmp_path), began_ms=None) == ""
    assert found(external(case(seen(12), tmp_path))) == ""
    moved = seen(12).at(31, Action.FAULT_CALLED, **SKEW, nodes=["kafka/broker-1"])
    assert found(case(moved, tmp_path)) == ""
    elsewhere = seen(12).at(31, Action.FAULT_CALLED, **SKEW, nodes=["flink/taskmanager-1"])
    assert found(case(elsewhere, tmp_path)) == message
    assert found(case(seen(12).at(31, Action.HOST_CLOCK_SET, by_s=9.0), tmp_path)) == ""


@pytest.mark.parametrize(("sink", "judged"), [("exactly-once", False), ("at-least-once", True)])
def test_the_end_of_a_transaction_takes_an_offset(tmp_path: Path, sink: str, judged: bool) -> None:
    run = case(seen(12), tmp_path)
    assert run.experiment.job is not None
    job = run.experiment.job.model_copy(update={"sink": sink})
    own = JudgedRun(
        experiment=run.experiment.model_copy(update={"job": job}),
        history=run.history,
        data=run.data,
        metrics=run.metrics,
        spark=run.spark,
    )
    reading = stored()
    reading.ends_without_records = lambda: "no record is stored at the end"
    assert bool([*incomplete_reading(own, "copy", reading)]) == judged

"""What can be taken away from an experiment, one kind at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streamquake.harness.campaign.shrinking.candidate import Candidate
from streamquake.harness.campaign.shrinking.reductions import (
    PASSES,
    fewer_job_settings,
    fewer_parameters,
    fewer_steps,
    fewer_topology_settings,
    narrower,
    reductions_left,
    smaller_numbers,
    smallest,
)
from streamquake.harness.experiment.loader import experiment_document, load_experiment
from streamquake.topologies.problems import BadInput
from tests.harness.campaign.shrinking.planted import moments, pauses, plan


def candidate(**fields: Any) -> Candidate:
    return plan(**fields).start


def always(candidate: Candidate) -> bool:
    """Everything counts that can be loaded."""
    return bool(candidate.experiment("planted"))


def never(candidate: Candidate) -> bool:
    return False


@pytest.mark.parametrize("reduce", [*PASSES, smallest])
def test_where_nothing_else_counts_nothing_is_taken_away(reduce: Any) -> None:
    start = candidate(faults=pauses(1, 2, 3))
    assert reduce(start, never) == start


def test_a_step_that_awaits_a_removed_one_is_removed_too() -> None:
    """Its number follows the steps that are left."""
    steps = [
        *pauses(1, 2),
        {"kill": {}, "target": "kafka/broker-2", "when": {"effect_of": 2}, "for_s": 1.0},
        *pauses(4),
    ]
    start = candidate(faults=steps)
    without_first = start.with_steps([1, 2, 3])
    assert without_first.steps == (2, 3, 4)
    assert without_first.faults[1]["when"] == {"effect_of": 1}
    assert start.with_steps([0, 2, 3]).steps == (1, 4)
    assert without_first.experiment("planted").faults[1].when.effect_of == 1


def test_a_fault_that_is_awaited_by_its_name_is_found_by_its_number() -> None:
    steps = [
        *pauses(1),
        {"kill": {}, "target": "kafka/broker-2", "when": {"effect_of": "pause"}, "for_s": 1.0},
        *pauses(3),
    ]
    assert candidate(faults=steps).faults[1]["when"] == {"effect_of": 1}


def test_steps_are_left_out_by_delta_debugging() -> None:
    start = candidate(faults=pauses(*range(1, 9)))
    found = fewer_steps(start, lambda each: {3.0, 8.0} <= moments(each.experiment("planted")))
    assert found.steps == (3, 8)


def test_records_keys_and_durations_are_halved() -> None:
    found = smaller_numbers(candidate(), always)
    assert found.document["workload"]["numbered"]["records"] == 1
    assert found.document["workload"]["numbered"]["keys"] == 1
    assert found.faults[0]["for_s"] == 0.1
    assert smaller_numbers(found, always) == found


def test_the_smallest_keys_and_durations_are_tried_first() -> None:
    asked: list[tuple[int, float]] = []

    def counts(each: Candidate) -> bool:
        load = each.document["workload"]["numbered"]
        asked.append((load["keys"], each.faults[0]["for_s"]))
        return bool(load["records"] == 64000 and each.faults[0]["for_s"] >= 1)

    found = smaller_numbers(candidate(), counts)
    assert asked == [(32, 4.0), (1, 4.0), (1, 0.1), (1, 2.0), (1, 1.0), (1, 0.5)]
    assert found.faults[0]["for_s"] == 1.0


def test_fewer_records_than_a_trigger_awaits_are_no_experiment() -> None:
    step = {"pause": {}, "target": "kafka/broker-1", "when": {"at_record": 20_000}}
    start = candidate(faults=[step])

    assert always(start)
    with pytest.raises(BadInput, match=r"expected a record from 0 to 15999, .* got 20000"):
        start.with_value(("workload", "numbered", "records"), 16_000).experiment("planted")


def test_parameters_return_to_their_defaults() -> None:
    step = {
        "kill": {"signal": "TERM"},
        "target": "kafka/broker-1",
        "when": {"event": "records sent", "nth": 3, "delay_s": 1.0},
    }
    found = fewer_parameters(candidate(faults=[step]), always)
    assert found.faults[0]["kill"] == {}
    assert found.faults[0]["when"] == {"event": "records sent"}
    assert found.document["workload"]["numbered"].keys() == {"records", "rate_per_s", "keys"}


def test_a_load_keeps_the_format_that_its_job_reads(tmp_path: Path) -> None:
    (tmp_path / "x.avsc").write_text(
        '{"type": "record", "name": "x", "fields": [{"name": "id", "type": "long"}]}'
    )
    (tmp_path / "x.yaml").write_text(
        "{name: x, topology: kafka-only, workload: {template: {records: 9, rate_per_s: 1, "
        "fields: {id: {sequence: {}}}, topic: other, format: avro, schema: {7: x.avsc}, "
        "header: confluent}}}"
    )
    found = fewer_parameters(Candidate.of(load_experiment(str(tmp_path / "x.yaml"))), always)
    left = found.document["workload"]["template"]
    described = {"format", "schema", "header"}
    assert left.keys() == {"records", "rate_per_s", "fields"} | described


def test_only_settings_beyond_the_shipped_topology_are_left_out() -> None:
    """The canary has no settings of its own; the interval of its checkpoints is the topology's."""
    sets = ["job.config.pipeline.object-reuse=true"]
    sets += ["topology.services.flink.config.heartbeat.timeout=20s"]
    start = Candidate.of(load_experiment("canary", seed=1, sets=sets))
    found = fewer_topology_settings(fewer_job_settings(start, always), always)
    flink = found.document["topology"]["services"]["flink"]
    assert flink["config"] == {"execution.checkpointing.interval": "2s"}
    assert found.document["job"]["config"] == {}
    assert "sink" not in found.document["job"]
    kept = fewer_job_settings(start, lambda each: each.document["job"].get("sink") is not None)
    assert kept.document["job"]["sink"] == "at-least-once"


def test_a_target_of_several_nodes_becomes_one() -> None:
    step = {"pause": {}, "target": "all of kafka/broker", "at_s": 1.0, "for_s": 1.0}
    start = candidate(faults=[step])
    assert narrower(start, always).faults[0]["target"] == "kafka/broker-1"
    second = narrower(start, lambda each: each.faults[0]["target"] == "kafka/broker-2")
    assert second.faults[0]["target"] == "kafka/broker-2"


def test_each_reduction_is_counted_once_for_the_estimate() -> None:
    """A step, records, keys, its duration, the payload, two settings."""
    assert reductions_left(candidate()) == 7


def test_candidates_have_a_name_of_their_own_and_load_as_documents() -> None:
    experiment = load_experiment("canary", seed=1)
    start = Candidate.of(experiment)
    loaded = start.experiment("planted")
    assert loaded.name == "canary-shrunk"
    assert experiment_document(loaded) == experiment_document(
        experiment.model_copy(update={"name": "canary-shrunk"})
    )


def test_sizes_are_ordered_by_steps_first() -> None:
    two, one = candidate(faults=pauses(1, 2)), candidate(faults=pauses(1))
    assert one.size < two.size
    assert fewer_parameters(two, always).size < two.size
    assert smaller_numbers(two, always).size < two.size

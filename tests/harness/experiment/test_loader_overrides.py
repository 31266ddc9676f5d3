"""`--set path=value`: the settings that paths address, and the messages for paths that do not
exist."""

from __future__ import annotations

import pytest

from streamquake.harness.experiment.loader import load_experiment
from streamquake.harness.verdict.checks.recovery import Recovery
from streamquake.topologies.problems import BadInput
from tests.harness.experiment.test_loader import GOOD, load, problems_in


def test_values_are_set_in_every_part() -> None:
    experiment = load(
        GOOD,
        sets=[
            "job.parallelism=2",
            "workload.numbered.records=2_000",
            "faults[1].for_s=3",
            "faults.0.for_s=4",
            "limits.ready_s=10",
            "checks[1].recovery.within_s=5",
            "job.config.execution.checkpointing.interval=9s",
        ],
    )

    assert experiment.job is not None
    assert experiment.job.parallelism == 2
    assert experiment.job.config == {"execution.checkpointing.interval": "9s"}
    assert experiment.workload.planned == 2000
    assert [step.for_s for step in experiment.faults] == [4, 3]
    assert experiment.limits.ready_s == 10
    assert experiment.checks[1] == Recovery(within_s=5)


def test_values_are_set_in_the_topology() -> None:
    experiment = load(
        GOOD,
        sets=[
            "topology.services.flink.nodes.taskmanager.count=5",
            "topology.services.flink.config.state.backend.type=rocksdb",
            "topology.services.kafka.nodes.broker=3",
        ],
    )
    flink = experiment.topology.services["flink"]

    assert flink.nodes["taskmanager"].count == 5
    assert flink.config["state.backend.type"] == "rocksdb"
    assert experiment.topology.services["kafka"].nodes["broker"].count == 3


def test_the_topology_is_replaced() -> None:
    assert (
        load(GOOD, sets=["topology=flink-1-20-kafka-hdfs"]).topology.services["flink"].version
        == "1.20"
    )


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("job", "expected PATH=VALUE"),
        ("=3", "expected PATH=VALUE"),
        ("limits.ready_s=[", "is not YAML"),
        ("job.paralelism=5", 'job has no key "paralelism"; did you mean "parallelism"'),
        ("jbo.parallelism=5", 'there is no key "jbo"; did you mean "job"'),
        ("workload.numberd.records=1", 'workload has no key "numberd"; did you mean "numbered"'),
        ("workload.numbered.recrds=1", 'unknown key "recrds"; did you mean "records"'),
        ("faults[7].for_s=2", "faults has entries 0 to 1, got 7"),
        ("faults.first.for_s=2", "faults has entries 0 to 1, got first"),
        ("faults[0].fro_s=2", 'unknown key "fro_s"; did you mean "for_s"'),
        ("name.first=x", 'name is "mine" and has no keys below it; set it whole'),
        ("topology.services.flnk.version=2", 'services has no key "flnk"; did you mean "flink"'),
        ("topology.services.flink.config.state.backend.tpe=x", "has no option state.backend.tpe"),
        ("job.parallelism=many", 'expected a whole number, got "many"'),
    ],
)
def test_an_invalid_setting_is_rejected(setting: str, message: str) -> None:
    found = problems_in(GOOD, sets=[setting])

    assert any(line.startswith(f"--set {setting}: ") and message in line for line in found), found


def test_the_message_for_an_invalid_setting_has_no_secret() -> None:
    sets = (
        "job.config.s3.secret-key=[hunter2",
        "job.env={DB_PASSWORD: hunter2}",
        "workload.numbered.api_key=hunter2",
    )

    with pytest.raises(BadInput) as rejected:
        load_experiment("quickstart", sets=sets)

    assert len(rejected.value.problems) == 3
    assert "hunter2" not in str(rejected.value)
    assert "--set job.config.s3.secret-key=***" in str(rejected.value)


def test_all_invalid_settings_are_reported_at_once() -> None:
    found = problems_in(GOOD, sets=["a=1", "limits.b=1", "job.c=1"])

    assert [line.split(":")[0] for line in found] == [
        "--set a=1",
        "--set limits.b=1",
        "--set job.c=1",
    ]

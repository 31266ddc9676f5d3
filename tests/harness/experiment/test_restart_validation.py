"""Validation of `restart_job` together with the job of its experiment."""

from __future__ import annotations

import pytest

from streamquake.faults.catalogue.restart_job import RestartJob
from tests.harness.experiment.test_loader import load, problems_in

RETAINED = "execution.checkpointing.externalized-checkpoint-retention: RETAIN_ON_CANCELLATION"
RESTART = """\
name: mine
topology: flink-kafka-hdfs
job: {sql: two-branches.sql, parallelism: 4, config: {RETAINED}}
workload: {numbered: {records: 1000, rate_per_s: 100}}
faults:
  - {restart_job: {HOW}, target: the job, at_s: 3}
"""


def document(how: str, retained: str = RETAINED) -> str:
    return RESTART.replace("RETAINED", retained).replace("HOW", how)


def test_a_restart_with_every_parameter_is_valid() -> None:
    how = "from: checkpoint, parallelism: 6, sql: running-totals.sql, claim: true, "
    how += "config: {execution.checkpointing.unaligned.enabled: true}"
    fault = load(document(how)).faults[0].build_fault()
    assert isinstance(fault, RestartJob)
    assert (fault.from_, fault.parallelism, fault.claim) == ("checkpoint", 6, True)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("parallelism: 7", "faults[0]: 7 parallel tasks need 7 slots, got 6"),
        ("parallelism: 0", "faults[0].restart_job.parallelism: "),
        ("from: memory", "faults[0].restart_job.from: "),
        ("sql: no-such.sql", 'faults[0].restart_job.sql: no job is called "no-such.sql"'),
        ("sql: explode.sql", "unknown placeholder ${output.rows}"),
        (
            "config: {execution.chekpointing.interval: 2s}",
            "`config`, execution.chekpointing.interval: Flink 2.2 has no option",
        ),
    ],
)
def test_a_restart_that_the_job_or_its_slots_do_not_allow_is_rejected(
    how: str, message: str
) -> None:
    found = problems_in(document(how))
    assert any(message in line for line in found), found


def test_a_restart_from_a_checkpoint_needs_retained_checkpoints() -> None:
    (found,) = problems_in(document("from: checkpoint", retained=""))
    assert f"set `{RETAINED}` in `job: config`, or restart from a savepoint" in found
    assert load(document("from: savepoint", retained="")).faults


def test_checkpoint_retention_may_be_set_for_the_service() -> None:
    text = document("from: checkpoint", retained="").replace(
        "topology: flink-kafka-hdfs",
        f"topology: {{base: flink-kafka-hdfs, services: {{flink: {{config: {{{RETAINED}}}}}}}}}",
    )
    assert load(text).faults

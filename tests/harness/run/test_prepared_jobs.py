"""The jobs of a run as they are submitted: their texts, names and jars."""

from __future__ import annotations

from pathlib import Path

from streamquake.harness.experiment.model import Experiment, Job
from streamquake.harness.run.job_preparation import prepare_other_jobs
from streamquake.harness.workloads.numbered import Numbered
from tests.fakes import TOPOLOGY


def test_each_other_job_has_a_group_and_jars_of_its_own(tmp_path: Path) -> None:
    jar = tmp_path / "functions.jar"
    jar.write_bytes(b"classes")
    experiment = Experiment(
        name="stages",
        topology=TOPOLOGY,
        other_jobs={
            "first": Job(sql="-- ${run} of ${input}", jars=(str(jar),), sink="none"),
            "second": Job(jar="b.jar", args=("--group", "${run}"), parallelism=3),
        },
        job=Job(sql="SELECT 1"),
        workload=Numbered(records=10, rate_per_s=10),
    )
    first, second = prepare_other_jobs(experiment, "r")
    assert (first.name, first.service) == ("first", "flink")
    assert first.spec.name == "stages.first"
    assert first.spec.sql == "-- r.first of input"
    assert first.spec.jar_contents() == {"first-1.jar": b"classes"}
    assert second.spec.args == ("--group", "r.second")
    assert (second.spec.jar, second.spec.parallelism) == ("b.jar", 3)

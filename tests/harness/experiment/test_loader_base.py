"""Experiments and topologies with a base, from which they give only the differences."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamquake.harness.experiment.loader import load_experiment
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.workloads.numbered import Numbered
from streamquake.topologies.loader import load_topology
from streamquake.topologies.problems import BadInput

BASE = """\
name: base
topology: flink-kafka-hdfs
job:
  sql: copy.sql
  parallelism: 2
  config: {execution.checkpointing.interval: 1s, execution.checkpointing.timeout: 9s}
workload: {numbered: {records: 1000, rate_per_s: 100}}
checks: [exactly_once, recovery]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "base.yaml").write_text(BASE)
    return tmp_path


def load(folder: Path, text: str) -> Experiment:
    (folder / "variant.yaml").write_text(text)
    return load_experiment(str(folder / "variant.yaml"), seed=1)


def problems_in(folder: Path, text: str) -> list[str]:
    with pytest.raises(BadInput) as caught:
        load(folder, text)
    return [str(problem).replace(f"{folder}/", "") for problem in caught.value.problems]


def test_a_variant_inherits_every_setting_that_it_does_not_give(folder: Path) -> None:
    job = "job: {config: {execution.checkpointing.timeout: 5s}}"
    variant = load(folder, f"base: base.yaml\nname: other\n{job}\nchecks: [progress]\n")
    assert variant.name == "other"
    assert variant.job is not None
    keys = "execution.checkpointing.interval", "execution.checkpointing.timeout"
    assert variant.job.parallelism == 2
    assert variant.job.config == dict(zip(keys, ("1s", "5s"), strict=True))
    assert variant.workload == Numbered(records=1000, rate_per_s=100)
    assert [check.name for check in variant.checks] == ["progress"]


def test_a_variant_changes_a_setting_of_its_bases_topology(folder: Path) -> None:
    text = "base: base.yaml\nname: other\ntopology: {services: {flink: {version: '1.20'}}}\n"
    flink = load(folder, text).topology.services["flink"]
    assert (flink.version, flink.nodes["taskmanager"].count) == ("1.20", 3)


def test_a_variant_may_have_a_variant_as_its_base(folder: Path) -> None:
    (folder / "middle.yaml").write_text("base: base.yaml\nname: middle\nseed: 7\n")
    found = load(folder, "base: middle.yaml\nname: last\nworkload: {numbered: {records: 5}}\n")
    assert found.workload == Numbered(records=5, rate_per_s=100)
    assert found.name == "last"


def test_a_topology_may_have_a_base(tmp_path: Path) -> None:
    path = tmp_path / "t.yaml"
    path.write_text("base: kafka-only\nname: more\nservices: {kafka: {nodes: {broker: 2}}}\n")
    assert load_topology(str(path)).services["kafka"].nodes["broker"].count == 2


def test_problems_are_reported_in_the_file_that_has_them(folder: Path) -> None:
    (folder / "base.yaml").write_text(BASE.replace("rate_per_s: 100", "rate_per_s: slow"))
    (message,) = problems_in(folder, "base: base.yaml\nname: other\nseed: 1\n")
    assert message.startswith("base.yaml:7: workload.numbered.rate_per_s:")
    (message,) = problems_in(
        folder, "base: base.yaml\nname: other\nworkload: {numbered: {rate_per_s: x}}\n"
    )
    assert message.startswith("variant.yaml:3: workload.numbered.rate_per_s:")


def test_a_missing_or_circular_base_is_rejected(folder: Path) -> None:
    (message,) = problems_in(folder, "name: other\nbase: nothing\n")
    assert message.startswith('variant.yaml:2: base: no experiment is called "nothing"')
    (message,) = problems_in(folder, "name: other\nbase: [base.yaml]\n")
    assert "expected the name of the document to build on" in message
    (message,) = problems_in(folder, "name: other\nbase: variant.yaml\n")
    assert "the bases form a cycle: variant.yaml -> variant.yaml" in message

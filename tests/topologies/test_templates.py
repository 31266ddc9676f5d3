from __future__ import annotations

from pathlib import Path

import pytest
import yaml

import streamquake.topologies
from streamquake.topologies.problems import BadInput
from streamquake.topologies.templates import promise_text, render

FOLDER = Path(streamquake.topologies.__file__).parent / "jobs"
SCRIPTS, PROGRAMS = sorted(FOLDER.glob("*.sql")), sorted(FOLDER.glob("*.py"))
DOCUMENTED = {
    "input",
    "source.bootstrap",
    "sink.bootstrap",
    "sink.guarantee",
    "sink.transaction-timeout-ms",
    "run",
    "hdfs",
    "checkpoint",
}


def test_placeholders_are_filled_in_and_other_dollars_are_unchanged() -> None:
    assert render("a ${x} $y '$1' ${x.y-z}", {"x": "1", "x.y-z": "2"}) == "a 1 $y '$1' 2"


def test_every_unknown_placeholder_is_named_with_its_line() -> None:
    with pytest.raises(BadInput) as caught:
        render("${inptu}\n\n${sink}", {"input": ""}, file="job.sql")
    first, second = map(str, caught.value.problems)
    assert first.startswith("job.sql:1: unknown placeholder ${inptu}")
    assert 'did you mean "input"?' in first
    assert second.startswith("job.sql:3: ")


def test_the_promise_is_the_yaml_block_of_the_head() -> None:
    text = "-- Words.\n--\n-- streamquake:\n--   a: >\n--     b\n\n-- c: d\nSELECT 1"
    assert yaml.safe_load(promise_text(text) or "") == {"streamquake": {"a": "b\n"}}


@pytest.mark.parametrize("text", ["SELECT 1", "SELECT 1\n-- streamquake:\n--   a: b", "-- nothing"])
def test_a_text_without_a_block_at_its_head_has_no_promise(text: str) -> None:
    assert promise_text(text) is None


@pytest.mark.parametrize("job", [*SCRIPTS, *PROGRAMS], ids=lambda path: path.name)
def test_each_shipped_job_promises_its_outputs_and_uses_documented_placeholders(job: Path) -> None:
    text = job.read_text(encoding="utf-8")
    kind = "pyspark" if job in PROGRAMS else "sql"
    promise = yaml.safe_load(promise_text(text, kind) or "")["streamquake"]
    assert promise["expected"].strip().startswith(("SELECT", "WITH"))
    values = dict.fromkeys(DOCUMENTED | {f"output.{name}" for name in promise["outputs"]}, "v")
    assert "${" not in render(text, values, file=job.name)
    assert all(f"${{output.{name}}}" in text for name in promise["outputs"])


@pytest.mark.parametrize("job", SCRIPTS, ids=lambda path: path.stem)
def test_every_kafka_sink_of_a_shipped_job_takes_guarantee_and_time_out_from_the_experiment(
    job: Path,
) -> None:
    text = job.read_text(encoding="utf-8")
    sinks = text.count("'sink.transactional-id-prefix' = ")
    assert sinks
    assert text.count("'sink.delivery-guarantee' = '${sink.guarantee}'") == sinks
    timeout = "'properties.transaction.timeout.ms' = '${sink.transaction-timeout-ms}'"
    assert text.count(timeout) == sinks

"""Numbers in documents must be finite and within bounds, and neither texts nor booleans."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamquake.harness.cli.validate import problems_of
from streamquake.harness.experiment.loader import load_experiment
from streamquake.topologies.limits import LONGEST_S, SEED_LIMIT
from streamquake.topologies.problems import BadInput

EXPERIMENT = """\
name: numbers
topology: {topology}
job: {{sql: keyed-totals.sql, parallelism: 4}}
workload: {{numbered: {{records: 1000, rate_per_s: 100}}}}
{schedule}
checks: [exactly_once]
{more}
"""
STEP = "faults:\n  - {{{fault}, target: {target}, {when}, for_s: {for_s}}}"
SUITE = """\
name: suite
rows:
  - claim: it is quicker
    article: an article
    setting: a setting
    experiment: quickstart
    control: quickstart
    relations: [{{figure: recovery.after_s, {bound}}}]
"""


def problems_in(tmp_path: Path, text: str) -> str:
    file = tmp_path / "x.yaml"
    file.write_text(text)
    return "\n".join(str(problem) for problem in problems_of(str(file)))


def experiment(
    *,
    fault: str = "kill: {}",
    target: str = "one of flink/taskmanager",
    when: str = "at_s: 3",
    for_s: str = "5",
    schedule: str = "",
    more: str = "",
) -> str:
    step = STEP.format(fault=fault, target=target, when=when, for_s=for_s)
    return EXPERIMENT.format(topology="flink-kafka-hdfs", schedule=schedule or step, more=more)


def test_valid_numbers_are_read(tmp_path: Path) -> None:
    for text in ("5", "5.50", "1_000", "0x10", "1e3", str(LONGEST_S)):
        assert problems_in(tmp_path, experiment(for_s=text, when=f"at_s: {text}")) == ""


@pytest.mark.parametrize(
    "value",
    [
        ".inf",
        "-.inf",
        ".nan",
        "-1",
        "1e308",
        "86401",
        "'5'",
        "true",
        "9" * 300,
        "0o17",
        "1:30",
        "2001-01-01",
        "yes",
    ],
)
@pytest.mark.parametrize("where", ["at_s", "for_s", "after_s", "delay_s", "grace_s", "within_s"])
def test_seconds_must_be_finite_numbers_of_at_most_a_day(
    tmp_path: Path, where: str, value: str
) -> None:
    text = {
        "at_s": experiment(when=f"at_s: {value}"),
        "for_s": experiment(for_s=value),
        "after_s": experiment(when=f"when: {{after_s: {value}}}"),
        "delay_s": experiment(when=f"when: {{event: drained, delay_s: {value}}}"),
        "grace_s": experiment(fault=f"stop: {{grace_s: {value}}}"),
        "within_s": experiment(schedule=f"draw: {{profile: swarm, within_s: {value}}}"),
    }[where]

    message = problems_in(tmp_path, text)

    assert message.startswith(f"{tmp_path / 'x.yaml'}:")
    assert f"{where}: expected" in message
    assert "number" in message
    assert "got" in message


@pytest.mark.parametrize(
    ("fault", "target"),
    [
        ("clock_skew: {offset_s: %s}", "hdfs/datanode-2"),
        ("cpu_limit: {cpus: %s}", "flink/taskmanager-1"),
        ("slow_link: {latency_ms: %s}", "link sink"),
        ("slow_operator: {delay_ms: %s}", "flink/taskmanager-1"),
        ("hold_buffers: {hold_ms: %s}", "flink/taskmanager-1"),
        ("late_events: {share: %s, late_ms: 5}", "the workload"),
        ("surge: {factor: %s}", "the workload"),
    ],
)
def test_parameters_of_faults_must_be_finite_numbers(
    tmp_path: Path, fault: str, target: str
) -> None:
    for value in (".inf", "-.inf", ".nan", "'5'", "true"):
        message = problems_in(tmp_path, experiment(fault=fault % value, target=target))
        assert "expected a" in message, value
        assert "number" in message, value


def test_milliseconds_and_clock_offsets_have_an_upper_bound(tmp_path: Path) -> None:
    for fault, target in (
        ("slow_link: {latency_ms: 86400001}", "link sink"),
        ("slow_operator: {delay_ms: 99999999999999999999}", "flink/taskmanager-1"),
        ("clock_skew: {offset_s: 1e12}", "hdfs/datanode-2"),
    ):
        assert "at most" in problems_in(tmp_path, experiment(fault=fault, target=target))


@pytest.mark.parametrize(
    "bound",
    [
        "claim_at_most: .inf",
        "claim_at_least: -.inf",
        "control_over_claim_at_least: .nan",
        "claim_at_most: true",
        "claim_at_most: '3'",
    ],
)
def test_a_bound_of_a_claim_must_be_a_finite_number(tmp_path: Path, bound: str) -> None:
    message = problems_in(tmp_path, SUITE.format(bound=bound))

    assert f"rows[0].relations[0].{bound.partition(':')[0]}: expected a" in message


def test_a_seed_has_bounds(tmp_path: Path) -> None:
    assert problems_in(tmp_path, experiment(more=f"seed: {SEED_LIMIT}")) == ""
    assert "seed: expected a number of at most" in problems_in(
        tmp_path, experiment(more=f"seed: {SEED_LIMIT + 1}")
    )
    with pytest.raises(BadInput, match="expected a seed from 0 to"):
        load_experiment("quickstart", seed=SEED_LIMIT + 1)
    with pytest.raises(BadInput, match="expected a seed from 0 to"):
        load_experiment("quickstart", seed=-1)

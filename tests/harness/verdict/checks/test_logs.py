"""`logs`: each kind of error that is not expected is a finding, and missing logs prove nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from streamquake.harness.experiment.loader import experiment_document, experiment_of_plan
from streamquake.harness.verdict.checks.logs import Logs
from streamquake.reports.record.error_baseline import read_baseline, write_baseline
from streamquake.reports.record.event import Action
from streamquake.reports.record.logged_errors import entries_of, grouped
from streamquake.reports.record.outcome import CheckResult, Outcome
from streamquake.topologies.problems import BadInput
from tests.harness.experiment.test_loader import load
from tests.harness.histories import Story, case, experiment

NODES = experiment().topology.nodes()
STARTED = "2026-11-28T19:01:17.153Z INFO  Runner - started\n"
FENCED = "2026-11-28T19:01:41.000Z ERROR KafkaCommitter - transaction {} is fenced\n"
LOST = "2026-11-28T19:01:42.000Z WARN  Task - failed\njava.io.IOException: lost\n\tat a.B.c(B:1)\n"


def judged(folder: Path, check: Logs, **logs: str) -> CheckResult:
    """The result over logs by node host with _ for -; the other nodes only started."""
    for node in NODES:
        log = folder / "logs" / node.host / "log.txt"
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(logs.get(node.host.replace("-", "_"), STARTED))
    return check.check(replace(case(Story(), folder), logs=folder / "logs"))


def test_logs_without_errors_are_held(tmp_path: Path) -> None:
    result = judged(tmp_path, Logs())
    assert result.outcome == Outcome.HELD
    assert result.summary == "no unexpected error among 0 in the logs"
    assert result.counts == {"errors": 0, "unexpected": 0, "kinds": 0}


def test_an_error_is_violated_with_its_nodes_and_text(tmp_path: Path) -> None:
    first, second = (node.host.replace("-", "_") for node in NODES[:2])
    text = FENCED.format(7) + FENCED.format(8)
    result = judged(tmp_path, Logs(), **{first: STARTED + text, second: text + LOST})
    assert result.outcome == Outcome.VIOLATED
    assert result.counts == {"errors": 5, "unexpected": 5, "kinds": 2}
    assert [finding.what for finding in result.findings] == list(Logs.classes) * 2
    assert result.findings[0].detail == {
        "error": "ERROR KafkaCommitter: transaction # is fenced",
        "times": 4,
        "nodes": f"{NODES[0].name} 2, {NODES[1].name} 2",
        "text": "KafkaCommitter: transaction 7 is fenced",
    }
    assert result.summary.startswith("2 kinds of unexpected errors were logged, first ERROR Kafka")


def test_only_an_error_with_an_allowed_text_is_expected(tmp_path: Path) -> None:
    first = NODES[0].host.replace("-", "_")
    allowed = Logs(allow=("is fenced", "IOException: lost"))
    assert judged(tmp_path, allowed, **{first: FENCED + LOST}).outcome == Outcome.HELD

    result = judged(tmp_path, Logs(allow=("is fenced",)), **{first: FENCED + LOST})
    assert result.counts == {"errors": 2, "unexpected": 1, "kinds": 1}


def test_frames_of_a_stack_trace_are_no_allowed_text(tmp_path: Path) -> None:
    frame = LOST.replace("a.B.c(B:1)", "a.B.everywhere(B:1)")
    first = NODES[0].host.replace("-", "_")
    result = judged(tmp_path, Logs(allow=("everywhere",)), **{first: frame})
    assert result.outcome == Outcome.VIOLATED


def test_an_error_of_the_baseline_is_expected(tmp_path: Path) -> None:
    runs = [grouped(("n", e) for e in entries_of((FENCED * 2).splitlines()))] * 3
    file = tmp_path / "known.yaml"
    write_baseline(file, runs)
    assert [(e.error, e.runs) for e in read_baseline(file).errors] == [
        ("ERROR KafkaCommitter: transaction {} is fenced", 3)
    ]

    check = Logs(baseline="known.yaml").beside(tmp_path)
    first = NODES[0].host.replace("-", "_")
    assert judged(tmp_path, check, **{first: FENCED}).outcome == Outcome.HELD
    assert judged(tmp_path, check, **{first: FENCED + LOST}).outcome == Outcome.VIOLATED
    part = FENCED.replace("is fenced", "is fenced again")
    assert judged(tmp_path, check, **{first: part}).outcome == Outcome.VIOLATED


@pytest.mark.parametrize("damage", ["no folder", "no log", "no entries", "nothing"])
def test_logs_that_could_not_show_an_error_prove_nothing(tmp_path: Path, damage: str) -> None:
    judged(tmp_path, Logs())
    log = tmp_path / "logs" / NODES[-1].host / "log.txt"
    whole = replace(case(Story(), tmp_path), logs=tmp_path / "logs")
    if damage == "no folder":
        whole = replace(whole, logs=None)
    elif damage == "no log":
        log.unlink()
    elif damage == "no entries":
        log.write_text("it runs\n")
    else:
        for node in NODES:
            (tmp_path / "logs" / node.host / "log.txt").write_text("")
    result = Logs().check(whole)
    assert result.outcome == Outcome.UNDECIDED
    assert (
        result.summary
        == {
            "no folder": "there are no logs",
            "no log": f"the log of {NODES[-1].name} cannot be read: No such file or directory",
            "no entries": f"the log of {NODES[-1].name} cannot be read: "
            "no line begins with a time stamp and a level",
            "nothing": "no node logged anything",
        }[damage]
    )


@pytest.mark.parametrize(
    "line",
    [
        "2026-11-30 06:00:01,000 - app - ERROR - boom",
        "[ERROR] boom",
        "2026-11-30 06:00:01,000 | ERROR | boom",
        '{"level":"error","message":"boom"}',
        "2026-11-30T06:00:01Z ERR boom",
        "E1130 06:00:00.000000 123 file.cc:1] boom",
        "2026-11-30 06:00:01,000 error boom",
        "2026-11-30 06:00:00.000 UTC [77] PANIC:  boom",
    ],
)
def test_an_error_of_another_form_than_the_first_line_is_violated(
    tmp_path: Path, line: str
) -> None:
    first = NODES[0].host.replace("-", "_")
    result = judged(tmp_path, Logs(), **{first: f"{STARTED}{line}\n"})
    assert (result.outcome, result.counts["unexpected"]) == (Outcome.VIOLATED, 1)


def test_a_line_that_may_be_an_error_proves_nothing(tmp_path: Path) -> None:
    first, second = (node.host.replace("-", "_") for node in NODES[:2])
    line = f"app: ERROR it broke {'x' * 5_000}"
    result = judged(tmp_path, Logs(), **{first: f"{STARTED}{line}\n"})
    assert result.outcome == Outcome.UNDECIDED
    reason = f"the log of {NODES[0].name} is not read in full: a line may be an error, but its form"
    assert result.summary.startswith(f"{reason} is not known: app: ERROR it broke xx")
    assert len(result.summary) < 1_000

    allowed = Logs(allow=("it broke",))
    assert judged(tmp_path, allowed, **{first: f"{STARTED}{line}\n"}).outcome == Outcome.HELD
    # A proven error says more than a doubt.
    both = {first: f"{STARTED}{line}\n", second: LOST}
    assert judged(tmp_path, Logs(), **both).outcome == Outcome.VIOLATED


def test_a_text_that_allows_almost_anything_is_rejected() -> None:
    with pytest.raises(ValueError, match="at least 8 characters"):
        Logs(allow=("failed",))
    with pytest.raises(BadInput) as rejected:
        load(DOCUMENT.replace("baseline: known.yaml", "allow: [failed]"))
    expected = 'checks[0].logs.allow[0]: expected at least 8 characters, got "failed"'
    assert expected in str(rejected.value)


DOCUMENT = """\
name: by-hand
topology: flink-kafka-hdfs
job: {sql: keyed-totals.sql}
workload: {numbered: {records: 60000, rate_per_s: 2000}}
checks: [{logs: {baseline: known.yaml}}]
"""


def test_the_plan_holds_the_baseline_itself(tmp_path: Path) -> None:
    write_baseline(tmp_path / "known.yaml", [grouped([("n", next(entries_of([FENCED])))])])
    plan = experiment_document(load(DOCUMENT, beside=tmp_path))
    (entry,) = plan["checks"]
    assert entry["logs"]["baseline"] == ["ERROR KafkaCommitter: transaction {} is fenced"]
    assert experiment_of_plan(plan, "run.json", 1).checks[0] == Logs(
        baseline=("ERROR KafkaCommitter: transaction {} is fenced",)
    )

    entry["logs"]["baseline"] = "known.yaml"
    with pytest.raises(BadInput, match="a record must hold the baseline itself"):
        experiment_of_plan(plan, str(tmp_path / "run.json"), 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, 'checks[0].logs.baseline: no file is called "known.yaml": there is no such'),
        ("errors: []\n", "known.yaml:1: expected the key `of_runs`, which is missing"),
        ("just text\n", "expected keys with values"),
        ("of_runs: 1\nerrors: [{error: ''}]\n", "errors"),
    ],
)
def test_a_file_that_is_no_baseline_is_named(
    tmp_path: Path, text: str | None, message: str
) -> None:
    if text is not None:
        (tmp_path / "known.yaml").write_text(text)
    with pytest.raises(BadInput) as rejected:
        load(DOCUMENT, beside=tmp_path)
    assert message in str(rejected.value)


@pytest.mark.parametrize(("reused", "outcome"), [(False, Outcome.UNDECIDED), (True, Outcome.HELD)])
def test_a_node_that_started_in_the_run_has_logged_it(
    reused: bool, outcome: Outcome, tmp_path: Path
) -> None:
    judged(tmp_path, Logs(), **{NODES[1].host.replace("-", "_"): ""})
    story = Story().at(1, Action.CLUSTER_REUSED) if reused else Story()
    result = Logs().check(replace(case(story, tmp_path), logs=tmp_path / "logs"))
    assert result.outcome == outcome
    told = f"{NODES[1].name} logged nothing, not even its start" in result.summary
    assert told == (outcome == Outcome.UNDECIDED)

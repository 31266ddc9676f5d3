"""Records with missing, truncated or changed parts are judged by the rest, without a traceback."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streamquake.cluster.engines.engine import engines
from streamquake.harness.cli import program, records
from streamquake.harness.cli.guard import guarded
from streamquake.harness.experiment.check import Check, JudgedRun
from streamquake.harness.experiment.loader import experiment_document, load_experiment
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.verdict import judge as judging
from streamquake.harness.verdict.checks.recovery import Recovery
from streamquake.harness.verdict.judge import judge
from streamquake.harness.verdict.recorded_run import recorded_experiment
from streamquake.reports.record.outcome import CheckResult, Outcome
from streamquake.reports.record.run_folder import RunFolder
from streamquake.topologies.problems import BadInput
from tests.echo import Echo
from tests.harness.run.test_runner import stage_in
from tests.reports.sample_run import write_sample_run

pytestmark = pytest.mark.slow

FILES = ("history.jsonl", "metrics.parquet", "results.json", "run.json", "intents.jsonl")


PLAN = """
name: damaged
topology: kafka-only
workload: {numbered: {records: 1000, rate_per_s: 1000}}
faults: [{kill: {}, target: kafka/broker-1, at_s: 1, for_s: 1}]
seed: 0
"""


@pytest.fixture(scope="module")
def held_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A held run on the fake runtime; its plan can be parsed again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(engines._members, Echo.name, Echo)
        stage = stage_in(tmp_path_factory.mktemp("held"), patch)
        stage.during_load = lambda loop: loop.measure("sent_per_s", "workload", 500)
        assert stage.run().outcome == Outcome.HELD
    document = stage.out / "plan.yaml"
    document.write_text(PLAN, "utf-8")
    plan = experiment_document(load_experiment(str(document)))
    manifest = stage.folder.read_manifest()
    stage.folder.write_manifest({**manifest, "experiment": plan})
    reported = stage.folder.history.read_text("utf-8").replace("echo/server-1", "kafka/broker-1")
    stage.folder.history.write_text(reported, "utf-8")
    return stage.folder.path


@pytest.fixture
def recorded(held_run: Path, tmp_path: Path) -> tuple[Experiment, RunFolder]:
    """A copy of the held run, which the test may change."""
    folder = RunFolder(shutil.copytree(held_run, tmp_path / held_run.name))
    return recorded_experiment(folder), folder


def outcome_of(experiment: Experiment, folder: RunFolder) -> tuple[Outcome, str]:
    def no_session() -> Any:
        raise RuntimeError("no session")

    results = judge(experiment, folder, run_id=folder.run_id, ended="completed", spark=no_session)
    return results.outcome, results.reason


def test_a_complete_record_is_held(recorded: tuple[Experiment, RunFolder]) -> None:
    assert outcome_of(*recorded) == (Outcome.HELD, "")


def test_a_truncated_metrics_file_hides_no_violation(
    recorded: tuple[Experiment, RunFolder], monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment, folder = recorded

    class Wrong(Check):
        name = "wrong"

        def check(self, case: JudgedRun) -> CheckResult:
            return self.violated("a record was lost")

    monkeypatch.setattr(judging, "checks_of", lambda experiment: (Wrong(),))
    folder.metrics.write_bytes(folder.metrics.read_bytes()[:20])
    outcome, reason = outcome_of(experiment, folder)
    assert outcome == Outcome.VIOLATED
    assert "the metrics cannot be read" in reason


@pytest.mark.parametrize("cut", [0, 20, None])
def test_without_its_metrics_a_record_is_judged_by_its_history(
    recorded: tuple[Experiment, RunFolder], cut: int | None
) -> None:
    experiment, folder = recorded
    assert outcome_of(experiment, folder)[0] == Outcome.HELD
    if cut is None:
        folder.metrics.unlink()
    else:
        folder.metrics.write_bytes(folder.metrics.read_bytes()[:cut])

    outcome, reason = outcome_of(experiment, folder)
    assert outcome == Outcome.UNDECIDED
    assert "the metrics cannot be read" in reason

    late = experiment.model_copy(update={"checks": (Recovery(within_s=1e-6),)})
    assert outcome_of(late, folder)[0] == Outcome.VIOLATED


def test_a_plan_without_a_seed_has_that_of_the_run(recorded: tuple[Experiment, RunFolder]) -> None:
    _, folder = recorded
    manifest = folder.read_manifest()
    plan = {name: value for name, value in manifest["experiment"].items() if name != "seed"}
    folder.write_manifest({**manifest, "experiment": plan, "seed": 7})
    assert recorded_experiment(folder).seed == 7
    assert recorded_experiment(folder, ["workload.numbered.records=5"]).workload.records == 5  # type: ignore[attr-defined]


def test_an_invalid_plan_is_reported_with_its_file(recorded: tuple[Experiment, RunFolder]) -> None:
    _, folder = recorded
    manifest = folder.read_manifest()
    folder.write_manifest({**manifest, "experiment": {**manifest["experiment"], "fualts": []}})
    with pytest.raises(BadInput, match=f"{folder.manifest.name}.*fualts"):
        recorded_experiment(folder)


def test_a_plan_of_another_seed_is_bad_input(recorded: tuple[Experiment, RunFolder]) -> None:
    _, folder = recorded
    manifest = folder.read_manifest()
    folder.write_manifest({**manifest, "seed": manifest["seed"] + 1})
    with pytest.raises(BadInput, match="the run's seed is 1, and its plan's seed is 0"):
        recorded_experiment(folder)


@pytest.mark.parametrize(
    "changed",
    [
        {"reason": 5},
        {"warnings": [1]},
        {"warnings": 5},
        {"outcome": 5},
        {"checks": ["x"]},
        {"expected": 5},
        {"faults": [5]},
        {"ended": 1},
    ],
)
def test_results_of_other_types_are_no_results(
    recorded: tuple[Experiment, RunFolder],
    capsys: pytest.CaptureFixture[str],
    changed: dict[str, object],
) -> None:
    _, folder = recorded
    before = json.loads(folder.results.read_text("utf-8"))
    folder.results.write_text(json.dumps({**before, **changed}), "utf-8")

    status = guarded(program, ["report", str(folder.path), "--out", str(folder.path / "none")])

    assert status == 2
    assert "results.json: not results of a run" in capsys.readouterr().err


@pytest.fixture
def judged_again(
    recorded: tuple[Experiment, RunFolder], monkeypatch: pytest.MonkeyPatch
) -> Callable[[], tuple[int, str]]:
    """The exit status of `check`, and the reason that it writes into the results."""
    experiment, folder = recorded
    first = folder.read_results()
    folder.write_results(replace(first, experiment=experiment.name, seed=experiment.seed))
    no_session = SimpleNamespace(get=lambda: None, stop=lambda: None)
    monkeypatch.setattr(records, "SparkInBackground", lambda master: no_session)

    def again() -> tuple[int, str]:
        status = guarded(program, ["check", str(folder.path), "--out", str(folder.path / "none")])
        return status, folder.read_results().reason

    return again


def test_results_of_another_run_prove_nothing(
    recorded: tuple[Experiment, RunFolder],
    judged_again: Callable[[], tuple[int, str]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """For example of a completed run of the same experiment with the same seed."""
    _, folder = recorded
    assert judged_again() == (0, "")
    other = replace(folder.read_results(), run_id="20260101-000000-abcd")
    folder.write_results(other)

    assert guarded(program, ["report", str(folder.path), "--out", "none"]) == 2
    assert "results of another run, 20260101-000000-abcd" in capsys.readouterr().err
    status, reason = judged_again()
    assert status == 130
    assert "results of another run, 20260101-000000-abcd" in reason


def test_a_renamed_record_is_judged_again_and_again(
    recorded: tuple[Experiment, RunFolder], judged_again: Callable[[], tuple[int, str]]
) -> None:
    """Its name may be no id of a run."""
    _, folder = recorded
    assert judged_again() == (0, "")
    run_id = folder.read_results().run_id
    renamed = RunFolder(folder.path.rename(folder.path.with_name("a b, ü")))
    for _ in range(2):
        assert guarded(program, ["check", str(renamed.path), "--out", "none"]) == 0
        assert renamed.read_results().run_id == run_id


def test_a_repaired_record_is_judged_without_a_problem(
    recorded: tuple[Experiment, RunFolder], judged_again: Callable[[], tuple[int, str]]
) -> None:
    _, folder = recorded
    metrics = folder.metrics.read_bytes()
    folder.metrics.unlink()
    assert [judged_again()[0], judged_again()[0]] == [3, 3]
    assert folder.read_results().reason.count("cannot be read") == 1
    cut = replace(folder.read_results(), ended="interrupted", reason="stopped by SIGINT")
    folder.write_results(cut)
    assert [judged_again()[0], judged_again()[0]] == [130, 130]
    assert folder.read_results().reason.count("cannot be read") == 1
    folder.write_results(replace(cut, ended="completed"))
    folder.metrics.write_bytes(metrics)
    assert judged_again() == (0, "")


def test_a_truncated_history_is_undecided(recorded: tuple[Experiment, RunFolder]) -> None:
    experiment, folder = recorded
    whole = folder.history.read_bytes()
    folder.history.write_bytes(whole[: len(whole) // 2])
    assert outcome_of(experiment, folder)[0] == Outcome.UNDECIDED


def test_a_missing_history_is_undecided_and_named(recorded: tuple[Experiment, RunFolder]) -> None:
    experiment, folder = recorded
    folder.history.unlink()
    outcome, reason = outcome_of(experiment, folder)
    assert outcome == Outcome.UNDECIDED
    assert "history.jsonl" in reason


def test_a_damaged_event_is_named_by_its_line(recorded: tuple[Experiment, RunFolder]) -> None:
    experiment, folder = recorded
    lines = folder.history.read_text("utf-8").splitlines()
    lines[3] = lines[3].replace('"at_ns": ', '"at_ns": "x", "other": ')
    folder.history.write_text("\n".join(lines) + "\n", "utf-8")
    outcome, reason = outcome_of(experiment, folder)
    assert outcome == Outcome.UNDECIDED
    assert "history.jsonl:4: not an event" in reason


def without_values(event: dict[str, object]) -> None:
    event["value"] = {}


def of_other_types(event: dict[str, object]) -> None:
    event["value"] = {key: [value] for key, value in dict(event["value"]).items()}  # type: ignore[call-overload]


@pytest.mark.parametrize("change", [without_values, of_other_types])
@pytest.mark.parametrize("action", ["fault in effect", "records sent", "phase", "fault healed"])
def test_events_that_lack_their_values_are_undecided(
    recorded: tuple[Experiment, RunFolder], action: str, change: Callable[[dict[str, object]], None]
) -> None:
    experiment, folder = recorded
    header, *lines = folder.history.read_text("utf-8").splitlines()
    events = [json.loads(line) for line in lines]
    for event in events:
        if event["action"] == action:
            change(event)
    changed = [header, *(json.dumps(event) for event in events)]
    folder.history.write_text("\n".join(changed) + "\n", "utf-8")
    assert outcome_of(experiment, folder)[0] == Outcome.UNDECIDED


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data())
def test_no_damage_ends_in_a_traceback(
    recorded: tuple[Experiment, RunFolder],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    data: st.DataObject,
) -> None:
    _, folder = recorded
    copy = tmp_path / "copies" / "run"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder.path, copy)
    path = copy / data.draw(st.sampled_from(FILES))
    whole = path.read_bytes() if path.exists() else b""
    at = data.draw(st.integers(0, max(0, len(whole) - 1)))
    damage = data.draw(st.sampled_from(["cut", "flip", "empty", "gone", "deep", "list"]))
    match damage:
        case "cut":
            path.write_bytes(whole[:at])
        case "flip":
            path.write_bytes(whole[:at] + bytes([data.draw(st.integers(0, 255))]) + whole[at + 1 :])
        case "empty":
            path.write_bytes(b"")
        case "gone":
            path.unlink(missing_ok=True)
        case "deep":
            path.write_bytes(b"[" * 100_000)
        case _:
            path.write_bytes(b'[{"schema": 1}]\n')
    for command in ("check", "report"):
        capsys.readouterr()
        status = guarded(program, [command, str(copy), "--out", str(tmp_path / "none")])
        message = capsys.readouterr()
        assert status in (0, 1, 2, 3, 130), (damage, path.name, at)
        assert "traceback" not in (message.out + message.err).lower(), (
            damage,
            path.name,
            at,
            message,
        )


def checked(folder: RunFolder, monkeypatch: pytest.MonkeyPatch, outcome: Outcome) -> int:
    """The exit status of `check` where one check has this outcome."""

    class Certain(Check):
        name = "certain"

        def check(self, case: JudgedRun) -> CheckResult:
            return CheckResult(check=self.name, outcome=outcome, summary="so it is")

    monkeypatch.setattr(judging, "checks_of", lambda experiment: (Certain(),))
    return guarded(program, ["check", str(folder.path), "--out", str(folder.path / "none")])


@pytest.mark.parametrize(
    ("changed", "outcome", "status"),
    [
        ({"experiment": "damaged", "seed": 0}, Outcome.HELD, 0),
        ({"experiment": "damaged", "seed": 1}, Outcome.HELD, 130),
        ({"experiment": "other", "seed": 0}, Outcome.HELD, 130),
        ({"experiment": "other", "seed": 0}, Outcome.VIOLATED, 1),
        ({"experiment": "damaged", "seed": 0, "ended": "interrupted"}, Outcome.VIOLATED, 1),
        ({"experiment": "damaged", "seed": 0, "ended": "interrupted"}, Outcome.HELD, 130),
        ({"experiment": "damaged", "seed": 0, "ended": "failed_to_run"}, Outcome.HELD, 3),
    ],
)
def test_check_trusts_no_foreign_results_and_hides_no_violation(
    recorded: tuple[Experiment, RunFolder],
    monkeypatch: pytest.MonkeyPatch,
    changed: dict[str, object],
    outcome: Outcome,
    status: int,
) -> None:
    _, folder = recorded
    before = json.loads(folder.results.read_text("utf-8"))
    folder.results.write_text(json.dumps({**before, **changed}), "utf-8")

    assert checked(folder, monkeypatch, outcome) == status


def test_a_link_to_itself_is_bad_input(
    recorded: tuple[Experiment, RunFolder], capsys: pytest.CaptureFixture[str]
) -> None:
    _, folder = recorded
    (folder.path / "loop").symlink_to(folder.path / "loop")

    assert guarded(program, ["check", str(folder.path), "--out", str(folder.path)]) == 2
    assert "leads out of the run's folder, or nowhere" in capsys.readouterr().err


@pytest.mark.parametrize(("outcome", "status"), [(Outcome.HELD, 0), (Outcome.VIOLATED, 1)])
def test_a_read_only_record_is_judged_too(
    recorded: tuple[Experiment, RunFolder],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    outcome: Outcome,
    status: int,
) -> None:
    _, folder = recorded
    before = json.loads(folder.results.read_text("utf-8"))
    folder.results.write_text(json.dumps({**before, "experiment": "damaged", "seed": 0}), "utf-8")

    def rejection(*given: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(RunFolder, "write_results", rejection)

    assert checked(folder, monkeypatch, outcome) == status
    message = capsys.readouterr()
    assert str(outcome).upper() in message.out
    assert "cannot be saved in the record: [Errno 13]" in message.err


def test_restarted_nodes_are_reported_once(
    recorded: tuple[Experiment, RunFolder],
) -> None:
    experiment, folder = recorded
    lines = folder.history.read_text("utf-8").splitlines()
    event = {
        **json.loads(lines[1]),
        "action": "node revived",
        "index": len(lines) - 1,
        "value": {"node": "kafka/broker-1", "exit_code": 1, "times": 1},
    }
    folder.history.write_text("\n".join([*lines, json.dumps(event)]) + "\n", "utf-8")

    def warnings(before: tuple[str, ...]) -> tuple[str, ...]:
        return judge(
            experiment,
            folder,
            run_id=folder.run_id,
            ended="completed",
            warnings=before,
            spark=lambda: pytest.fail("no check of this record needs Spark"),
        ).warnings

    (reported,) = warnings(())
    assert "kafka/broker-1 ended by itself" in reported
    assert warnings((reported,)) == (reported,)


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("run.json", ("images",), "x"),
        ("run.json", ("versions",), [None]),
        ("results.json", ("checks", 0, "summary"), [None]),
        ("results.json", ("checks", 0, "summary"), None),
        ("results.json", ("faults", 0, "fault"), -1),
        ("results.json", ("faults", 0, "ended_early_s"), 10**400),
        ("results.json", ("checks", 0, "counts"), {"changed": 10**400}),
        ("results.json", ("recovery",), {"first_checkpoint_s": 10**400}),
    ],
)
def test_a_value_of_another_type_or_size_makes_a_record_unreadable(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, place: Any, value: Any
) -> None:
    folder = write_sample_run(tmp_path, Outcome.VIOLATED)
    document = json.loads((folder.path / name).read_text("utf-8"))
    within = document
    for part in place[:-1]:
        within = within[part]
    within[place[-1]] = value
    (folder.path / name).write_text(json.dumps(document), "utf-8")

    status = guarded(program, ["report", str(folder.path), "--out", str(tmp_path / "none")])

    message = capsys.readouterr()
    assert status == 2
    assert "the record cannot be read" in message.err

"""A whole run on the fake runtime: its phases, how it ends, and that no container is left."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.images.store import ImageStore
from streamquake.cluster.runtime import labels
from streamquake.cluster.runtime.clock import FakeClock
from streamquake.cluster.runtime.fake_runtime import FakeRuntime
from streamquake.cluster.runtime.runtime import ContainerError, ContainerSpec, ExecResult
from streamquake.faults.injection.intents import IntentLog
from streamquake.harness.experiment.model import ExistingJob, Experiment
from streamquake.harness.experiment.workload import Workload
from streamquake.harness.interrupts import STOPPING, Interrupted
from streamquake.harness.run import runner
from streamquake.harness.run.cluster_lease import ClusterLease, DedicatedClusters
from streamquake.harness.run.event_loop import EventLoop
from streamquake.harness.run.fault_scheduler import FaultScheduler
from streamquake.harness.run.job_preparation import RunningJob
from streamquake.harness.run.output_collector import EarlyReads
from streamquake.harness.run.output_tables import TableNotEmpty
from streamquake.harness.run.progress import Figures
from streamquake.harness.run.versions import judge_digest
from streamquake.harness.verdict.judge import judge
from streamquake.reports.record.event import Action, Event
from streamquake.reports.record.history import read_history
from streamquake.reports.record.outcome import Outcome
from streamquake.reports.record.results import Results
from streamquake.reports.record.run_folder import RunFolder
from streamquake.reports.render import run_sentences
from streamquake.reports.store.results_store import ResultsStore
from streamquake.topologies.errors import ErrorKind
from streamquake.topologies.problems import bad_input
from tests.event_drafts import undeclared_fields

TOPOLOGY = {
    "name": "echo",
    "services": {"echo": {"engine": "test-echo", "nodes": {"server": 2, "client": 1}}},
}
KILL = {"fault": "kill", "target": "echo/server-1", "when": {"after_s": 1.0}, "for_s": 1.0}
PHASES = ["prepare", "deploy", "steady", "disturb", "heal", "recover", "drain", "read", "tear down"]


NOTHING: Mapping[str, Any] = {}


class RecordingView:
    """A view that keeps all messages, and the current phase."""

    def __init__(self) -> None:
        self.messages: list[str] = []
        self.current_phase = ""

    def phase(self, name: str, detail: str) -> None:
        self.current_phase = name

    def show_message(self, line: str) -> None:
        self.messages.append(line)

    def update(self, now: Figures) -> None: ...


class NoSpark:
    """A fake Spark session; it keeps each call and the phase of the run."""

    def __init__(self, phase: Callable[[], str]) -> None:
        self.calls: list[tuple[str, str]] = []
        self.works: list[Callable[[Any], None]] = []
        self.is_warm = False
        self._phase = phase

    def session_of(self, master: str) -> NoSpark:
        self.calls.append((master, self._phase()))
        return self

    def start(self) -> None:
        self.calls.append(("start", self._phase()))

    def use(self, work: Callable[[Any], None]) -> None:
        self.calls.append(("use", self._phase()))
        self.works.append(work)

    def get(self) -> Any:
        return self

    def stop(self) -> None:
        self.calls.append(("stop", self._phase()))

    def reset(self) -> None:
        self.calls.append(("reset", self._phase()))
        self.is_warm = True


class Load:
    """A load that has sent all records."""

    seconds = 0.0

    def failure(self) -> str | None:
        return None

    def pending(self) -> str | None:
        return None

    def stop(self) -> None: ...

    def sample_last_lag(self, job: RunningJob | None) -> None: ...


class Stage:
    """One run on the fake runtime; `during_load` is called when the load has started."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.clock = FakeClock()
        self.runtime = FakeRuntime(self.clock)
        self.runtime.on_network_tool.append(listening)
        self.view = RecordingView()
        self.spark = NoSpark(lambda: self.view.current_phase)
        self.during_load: Callable[[EventLoop], None] = lambda loop: None
        self.prepared_for: list[tuple[str, str, str]] = []
        """Experiment, cluster and consumer group of the job, and of the load."""

    def run(
        self, keep: bool = False, options: Mapping[str, Any] = NOTHING, **fields: Any
    ) -> Results:
        document = {"name": "on-fakes", "topology": TOPOLOGY, "faults": (KILL,), **fields}
        load = {"numbered": {"records": 1000, "rate_per_s": 1000}}
        experiment = Experiment.model_validate({**document, "workload": load})
        results = runner.run(
            experiment,
            out=self.out,
            argv=["streamquake"],
            keep=keep,
            view=self.view,
            runtime=self.runtime,
            clock=self.clock,
            **options,
        )
        assert undeclared_fields(read_history(self.folder.history)) == []
        return results

    @property
    def folder(self) -> RunFolder:
        return RunFolder.open(self.out, "latest")

    def phases(self) -> list[str]:
        history = read_history(self.folder.history)
        return [event.value["phase"] for event in history.of(Action.PHASE)]

    def leftovers(self) -> int:
        tags = {labels.RUN: ""}
        return len(self.runtime.find(tags)) + len(self.runtime.find_networks(tags))


def listening(spec: ContainerSpec, argv: object) -> ExecResult:
    return ExecResult(exit_code=0, output="LISTEN 0 9 0.0.0.0:7000")


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, echo_engine: None) -> Stage:
    return stage_in(tmp_path, monkeypatch)


def stage_in(folder: Path, patch: pytest.MonkeyPatch) -> Stage:
    """A stage whose runs are written to a folder. It needs the engine of `tests/echo.py`."""
    new_stage = Stage(folder)

    @contextmanager
    def start_load(
        experiment: Experiment, cluster: Cluster, loop: EventLoop, group: str
    ) -> Iterator[Load]:
        new_stage.prepared_for.append((experiment.name, cluster.run_id, group))
        loop.record(Action.SENT, first=0, last=499, count=500, status="acknowledged")
        loop.record(Action.OUTPUT_SEEN, output="input", end=500, grown=500)
        loop.listen(lambda event: send_rest(loop, event))
        new_stage.during_load(loop)
        yield Load()

    def prepare_job(experiment: Experiment, cluster: Cluster, group: str) -> None:
        new_stage.prepared_for.append((experiment.name, cluster.run_id, group))

    patch.setattr(runner, "start_load", start_load)
    patch.setattr(runner, "prepare_job", prepare_job)
    patch.setattr(runner, "collect_outputs", read_everything)
    patch.setattr(runner, "SparkInBackground", new_stage.spark.session_of)
    return new_stage


def send_rest(loop: EventLoop, event: Event) -> None:
    if event.action == Action.PHASE and event.value["phase"] == "drain":
        loop.record(Action.SENT, first=500, last=749, count=250, status="acknowledged")
        loop.record(Action.SENT, first=750, last=999, count=250, status="acknowledged")
        loop.record(Action.WORKLOAD_DONE, acknowledged=1000, failed=0, unknown=0)


def read_everything(
    cluster: Cluster, experiment: Experiment, spark: Any, folder: RunFolder, early: EarlyReads
) -> None:
    for name in experiment.promise.outputs:
        (folder.data / name).mkdir()
        (folder.data / name / "read.json").write_text("{}")


def test_a_run_passes_all_phases_and_its_verdict_is_held(stage: Stage) -> None:
    results = stage.run()
    assert (results.ended, results.outcome) == ("completed", Outcome.HELD), results.reason
    assert stage.phases() == PHASES
    assert results.faults[0].healed
    assert stage.leftovers() == 0
    assert (stage.folder.logs / "echo-server-1" / "log.txt").exists()
    assert stage.folder.read_results() == results
    assert stage.folder.read_manifest()["images"]["echo/server"].startswith("streamquake/toolbox")


PRINT_PHASES = """
import json, os, pathlib
lines = pathlib.Path("history.jsonl").read_text().splitlines()[1:]
phases = [e["value"]["phase"] for e in map(json.loads, lines) if e["action"] == "phase"]
print(phases[-2:], os.path.exists("metrics.parquet"), os.path.exists("results.json"))
raise SystemExit(1)
"""


def test_the_program_of_a_check_reads_the_complete_record_and_is_judged(stage: Stage) -> None:
    program = (sys.executable, "-c", PRINT_PHASES)
    results = stage.run(checks=({"command": {"name": "mine", "run": program}},))

    assert (results.ended, results.outcome) == ("completed", Outcome.VIOLATED)
    assert results.checks[-1].check == "mine"
    assert results.checks[-1].summary == "['tear down', 'commands'] True False"
    assert stage.phases() == [*PHASES, "commands"]


def test_a_run_that_fails_starts_no_program_of_a_check(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*given: object) -> None:
        raise ContainerError("the engine is gone")

    monkeypatch.setattr(runner, "collect_outputs", fail)
    results = stage.run(checks=({"command": {"run": (sys.executable, "-c", PRINT_PHASES)}},))

    assert results.ended == "failed_to_run"
    assert results.checks[-1].outcome == Outcome.UNDECIDED
    assert not read_history(stage.folder.history).of(Action.COMMAND_ENDED)


def test_a_missing_program_of_a_check_ends_the_run_before_anything_starts(stage: Stage) -> None:
    results = stage.run(checks=({"command": {"run": ("/nowhere/judge",)}},))

    assert (results.ended, results.cause) == ("failed_to_run", "bad input")
    assert "checks.command: there is no program `/nowhere/judge`" in results.reason
    assert stage.phases() == ["prepare"]


def test_a_check_whose_sql_is_not_allowed_ends_the_run_before_anything_starts(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reject(experiment: Experiment, file: str, spark: Callable[[], object]) -> None:
        assert experiment.checks
        assert spark() is stage.spark
        raise bad_input(file, "the relation is not given here")

    monkeypatch.setattr(runner, "reject_unsafe_queries", reject)
    results = stage.run(checks=({"sql": {"query": "SELECT * FROM others"}},))
    assert (results.ended, results.cause) == ("failed_to_run", "bad input")
    assert results.reason == "on-fakes: the relation is not given here"
    assert stage.phases() == ["prepare"]


def test_job_and_load_are_those_of_the_experiment_in_a_group_of_the_run(stage: Stage) -> None:
    run_id = stage.run().run_id
    assert stage.prepared_for == [("on-fakes", run_id, run_id)] * 2


def test_results_and_view_have_the_time_since_the_start(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[tuple[float, float]] = []

    def update(now: Figures) -> None:
        shown.append((now.elapsed_s, stage.clock.now_ns() / 1e9))

    monkeypatch.setattr(stage.view, "update", update)
    stage.clock.sleep(0.26)
    stage.during_load = lambda loop: stage.clock.sleep(10_000)
    elapsed_s = stage.run().elapsed_s
    assert elapsed_s == round(stage.clock.now_ns() / 1e9, 1) > 10_000
    assert stage.clock.now_ns() / 1e9 != elapsed_s, "it is rounded"
    assert [each for each, _ in shown] == [now for _, now in shown]
    assert shown[-1][0] > 10_000


def test_a_completed_run_with_a_damaged_record_is_undecided(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def judge_damaged(experiment: Experiment, folder: RunFolder, **options: Any) -> Results:
        folder.metrics.write_bytes(b"no table")
        return judge(experiment, folder, **options)

    monkeypatch.setattr(runner, "judge", judge_damaged)
    results = stage.run()
    assert (results.ended, results.outcome) == ("completed", Outcome.UNDECIDED)
    assert results.reason.startswith("the metrics cannot be read"), results.reason


@pytest.mark.parametrize("error", [None, RuntimeError("no session")])
def test_spark_rehearses_the_experiment_at_low_priority(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, error: RuntimeError | None
) -> None:
    calls: list[tuple[str, Any]] = []

    def rehearse(experiment: Experiment, session: Any) -> None:
        calls.append((experiment.name, session))
        if error is not None:
            raise error

    monkeypatch.setattr(runner, "rehearse", rehearse)
    monkeypatch.setattr(runner, "lower_priority", lambda session: calls.append(("low", session)))
    monkeypatch.setattr(
        runner, "restore_priority", lambda session: calls.append(("usual", session))
    )
    stage.run()
    (work,) = stage.spark.works
    with contextlib.nullcontext() if error is None else pytest.raises(RuntimeError):
        work("session")
    assert calls == [("low", "session"), ("on-fakes", "session"), ("usual", "session")]


def test_a_promise_that_does_not_fit_what_is_sent_ends_the_run_early(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rehearse(experiment: Experiment, session: Any) -> None:
        raise bad_input("expected of totals", "no column `centz`")

    monkeypatch.setattr(runner, "rehearse", rehearse)
    for name in ("lower_priority", "restore_priority"):
        monkeypatch.setattr(runner, name, lambda session: None)
    monkeypatch.setattr(stage.spark, "use", lambda work: work("session"))

    results = stage.run()

    assert (results.ended, results.cause) == ("failed_to_run", ErrorKind.BAD_INPUT)
    assert "expected of totals: no column `centz`" in results.reason
    assert "disturb" not in stage.phases()
    assert stage.leftovers() == 0


class LongBatches:
    """A query that has committed everything a minute after the first poll."""

    service, id = "echo", "q"

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock

    def submit(self, cluster: Any) -> LongBatches:
        return self

    def pending(self) -> str | None:
        return None

    def follow(self, record_event: Any, measure: Any, stop: threading.Event) -> None: ...

    def drain_pending(self) -> Callable[[], str | None]:
        done_ns = self._clock.now_ns() + 60 * 10**9
        return lambda: None if self._clock.now_ns() >= done_ns else "a batch is running"


@pytest.mark.parametrize(("batch_s", "drained"), [(30, True), (20, False)])
def test_the_end_of_a_long_batch_is_awaited(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, batch_s: int, drained: bool
) -> None:
    """The drain awaits the current batch and the next one in addition to its limit."""
    monkeypatch.setattr(runner, "prepare_job", lambda *args: LongBatches(stage.clock))
    stage.during_load = lambda loop: loop.record(
        Action.CHECKPOINT_COMPLETED, checkpoint=1, durations_ms={"triggerExecution": batch_s * 1000}
    )
    stage.run(limits={"drain_s": 5})
    history = read_history(stage.folder.history)
    assert bool(history.of(Action.DRAINED)) == drained
    assert (
        drained or "not within 45 s" in history.of(Action.OUTPUTS_NOT_COMMITTED)[0].value["reason"]
    )
    assert any(f"the longest so far took {batch_s}.0 s" in line for line in stage.view.messages)


def test_the_end_of_a_short_batch_is_awaited_too(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job has committed after 60 s."""
    monkeypatch.setattr(runner, "prepare_job", lambda *args: LongBatches(stage.clock))
    stage.during_load = lambda loop: loop.record(
        Action.CHECKPOINT_COMPLETED, checkpoint=1, durations_ms={"triggerExecution": 500}
    )
    stage.run(limits={"drain_s": 59.5})
    assert read_history(stage.folder.history).of(Action.DRAINED)


def test_without_batches_none_is_awaited(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "prepare_job", lambda *args: LongBatches(stage.clock))
    stage.run(limits={"drain_s": 70})
    assert read_history(stage.folder.history).of(Action.DRAINED)
    assert not any("waiting for the batch" in line for line in stage.view.messages)


def test_a_container_that_dies_while_starting_fails_the_run_with_its_log(stage: Stage) -> None:
    def die_on_start(spec: ContainerSpec, argv: object) -> ExecResult:
        server = stage.runtime.by_name(spec.name)
        stage.runtime.write_log(server.id, "the disk failed")
        stage.runtime.die(server.id, exit_code=9)
        return ExecResult(exit_code=0, output="")

    stage.runtime.on_network_tool = [die_on_start]
    results = stage.run()
    assert (results.ended, results.outcome) == ("failed_to_run", Outcome.UNDECIDED)
    assert results.cause == "cluster failed"
    assert "exit code 9" in results.reason
    assert "the disk failed" in results.reason
    assert stage.leftovers() == 0


def test_a_sandbox_that_another_process_ends_makes_the_run_undecided(
    stage: Stage,
) -> None:
    sandbox = "streamquake-{}-echo-server-2-sandbox"

    def end_at_reading(event: Event) -> None:
        if event.action == Action.PHASE and event.value["phase"] == "read":
            stage.runtime.kill(stage.runtime.by_name(sandbox.format(stage.folder.path.name)).id)

    stage.during_load = lambda loop: loop.listen(end_at_reading)
    results = stage.run()
    (died,) = read_history(stage.folder.history).of(Action.SANDBOX_DIED)
    assert died.value == {"node": "echo/server-2", "exit_code": 137}
    assert (results.ended, results.outcome) == ("completed", Outcome.UNDECIDED)
    (execution,) = (check for check in results.checks if check.check == "execution")
    assert "the sandbox of echo/server-2 ended, which no fault did" in execution.summary


def test_a_wall_clock_that_is_set_makes_the_run_undecided(stage: Stage) -> None:
    def set_clock(event: Event) -> None:
        if event.value.get("phase") == "disturb":
            stage.clock.wall_clock_set_by_ns -= 5_000_000_000

    stage.during_load = lambda loop: loop.listen(set_clock)
    results = stage.run()
    (found,) = read_history(stage.folder.history).of(Action.HOST_CLOCK_SET)
    assert found.value == {"by_s": -5.0}
    assert (results.ended, results.outcome) == ("completed", Outcome.UNDECIDED)
    (execution,) = (check for check in results.checks if check.check == "execution")
    assert "the clock of the machine was set by -5.000 s" in execution.summary


def test_an_interrupted_run_is_healed_judged_and_removed(stage: Stage) -> None:
    def interrupt(loop: EventLoop) -> None:
        loop.listen(lambda event: stop(event.action))

    def stop(action: Action) -> None:
        if action == Action.FAULT_IN_EFFECT:
            raise Interrupted("SIGINT")

    stage.during_load = interrupt
    results = stage.run()
    assert results.ended == "interrupted"
    assert results.outcome == Outcome.UNDECIDED
    assert results.faults[0].in_effect
    assert results.faults[0].healed
    assert IntentLog(stage.folder.intents).open_intents() == ()
    assert stage.leftovers() == 0


def test_an_error_of_the_harness_is_reported_with_its_traceback(stage: Stage) -> None:
    def fail(loop: EventLoop) -> None:
        raise ZeroDivisionError("a bug")

    stage.during_load = fail
    results = stage.run()
    assert (results.ended, results.outcome) == ("failed_to_run", Outcome.UNDECIDED)
    assert results.cause == "internal error"
    assert "ZeroDivisionError: a bug" in results.reason
    assert "a bug" in (stage.folder.logs / "harness-traceback.txt").read_text()
    assert stage.leftovers() == 0


def test_an_error_of_the_machine_is_no_error_of_the_harness(stage: Stage) -> None:
    def fail(loop: EventLoop) -> None:
        raise OSError("no space left on device")

    stage.during_load = fail
    results = stage.run()
    assert results.cause == ErrorKind.MACHINE_UNSUITABLE
    assert results.reason == f"{results.cause}: OSError: no space left on device"


def test_a_second_interruption_only_shows_that_the_run_stops(stage: Stage) -> None:
    def interrupt_twice(loop: EventLoop) -> None:
        try:
            os.kill(os.getpid(), signal.SIGINT)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    stage.during_load = interrupt_twice
    assert stage.run().reason == "stopped by SIGINT"
    assert STOPPING in stage.view.messages
    assert stage.leftovers() == 0


def test_a_failed_tear_down_adds_a_warning_to_the_results(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reject(container: str) -> None:
        raise ContainerError("device or resource busy")

    monkeypatch.setattr(stage.runtime, "remove", reject)
    results = stage.run()
    assert results.outcome == Outcome.HELD
    assert any("device or resource busy" in warning for warning in results.warnings)


def test_a_kept_cluster_stays_without_an_owner(stage: Stage) -> None:
    stage.run(keep=True)
    found = stage.runtime.find({labels.RUN: ""})
    assert len(found) == 6
    assert {container.labels[labels.OWNER] for container in found} == {""}


@pytest.mark.parametrize("then", ["fails", "answers"])
def test_an_interruption_that_a_library_swallows_still_ends_the_run(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, then: str
) -> None:
    real_judge = judge

    def swallowing_judge(*args: Any, **kwargs: Any) -> Results:
        with contextlib.suppress(Interrupted):
            os.kill(os.getpid(), signal.SIGINT)
        if then == "fails":
            raise RuntimeError("SparkSession does not exist in the JVM")
        return real_judge(*args, **kwargs)

    monkeypatch.setattr(runner, "judge", swallowing_judge)
    results = stage.run()
    assert (results.ended, results.outcome) == ("interrupted", Outcome.UNDECIDED)
    assert "streamquake check" in results.reason
    assert stage.leftovers() == 0


def test_an_interruption_while_judging_leaves_a_record_to_judge(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def judge(*args: object, **kwargs: object) -> Results:
        raise Interrupted("SIGINT")

    monkeypatch.setattr(runner, "judge", judge)
    results = stage.run()
    assert (results.ended, results.outcome) == ("interrupted", Outcome.UNDECIDED)
    assert "streamquake check" in results.reason
    assert stage.leftovers() == 0


def test_an_interruption_that_only_the_judge_saw_leaves_a_record_to_judge(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted_judge(*args: Any, **kwargs: Any) -> Results:
        return replace(judge(*args, **kwargs), ended="interrupted")

    monkeypatch.setattr(runner, "judge", interrupted_judge)
    results = stage.run()
    assert (results.ended, results.outcome) == ("interrupted", Outcome.UNDECIDED)
    assert "streamquake check" in results.reason


class AdjustableLoad(Load):
    """A load whose failure and pending reason a test sets."""

    seconds = 4.0

    def __init__(self) -> None:
        self.failed: str | None = None
        self.reason: str | None = None
        self.stopped = 0

    def failure(self) -> str | None:
        return self.failed

    def pending(self) -> str | None:
        return self.reason

    def stop(self) -> None:
        self.stopped += 1


@pytest.fixture
def load(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> AdjustableLoad:
    """The stage's load, set by the test; it records no events by itself."""
    load = AdjustableLoad()

    @contextmanager
    def start_load(
        experiment: Experiment, cluster: Any, loop: EventLoop, group: str
    ) -> Iterator[AdjustableLoad]:
        loop.listen(lambda event: send_rest(loop, event))
        stage.during_load(loop)
        yield load

    monkeypatch.setattr(runner, "start_load", start_load)
    return load


STEADY: dict[Action, dict[str, Any]] = {
    Action.SENT: {"first": 0, "last": 499, "count": 500, "status": "acknowledged"},
    Action.OUTPUT_SEEN: {"output": "input", "end": 500, "grown": 500},
}


@pytest.mark.parametrize(
    ("recorded", "reason"),
    [
        ([], "steady state: not within 7 s: nothing was acknowledged yet"),
        ([Action.SENT], "steady state: not within 7 s: no output was observed yet"),
        ([Action.OUTPUT_SEEN], "steady state: not within 7 s: nothing was acknowledged yet"),
        ([Action.SENT, Action.OUTPUT_SEEN], ""),
    ],
)
def test_no_fault_is_injected_before_records_flow(
    stage: Stage, load: AdjustableLoad, recorded: list[Action], reason: str
) -> None:
    def on_load(loop: EventLoop) -> None:
        for action in recorded:
            loop.record(action, **STEADY[action])

    stage.during_load = on_load
    results = stage.run(limits={"steady_s": 7})
    assert results.reason == reason
    assert results.ended == ("failed_to_run" if reason else "completed")
    assert results.faults[0].in_effect == (not reason)


def test_a_failed_load_is_not_a_steady_state(stage: Stage, load: AdjustableLoad) -> None:
    load.failed = "the producer ended"
    results = stage.run(limits={"steady_s": 7})
    assert results.ended == "failed_to_run"
    assert results.reason == "steady state: not within 7 s: the producer ended"
    assert stage.phases()[-1] == "steady"


def record_steady(loop: EventLoop) -> None:
    for action, value in STEADY.items():
        loop.record(action, **value)


def test_a_load_that_does_not_end_leaves_the_run_undrained(
    stage: Stage, load: AdjustableLoad
) -> None:
    stage.during_load, load.reason = record_steady, "300 records are left"
    results = stage.run(limits={"drain_s": 5})
    history = read_history(stage.folder.history)
    (late,) = history.of(Action.WORKLOAD_NOT_FINISHED)
    assert late.value["reason"] == "workload finished: not within 9 s: 300 records are left"
    assert not history.of(Action.DRAINED)
    assert (results.ended, results.outcome) == ("completed", Outcome.UNDECIDED)
    assert stage.phases() == PHASES
    assert load.stopped == 0


def test_a_run_that_did_not_recover_is_not_drained(
    stage: Stage, load: AdjustableLoad, monkeypatch: pytest.MonkeyPatch
) -> None:
    def on_load(loop: EventLoop) -> None:
        record_steady(loop)
        loop.listen(lose_server)

    def lose_server(event: Event) -> None:
        if event.action == Action.PHASE and event.value["phase"] == "recover":
            monkeypatch.setattr(Cluster, "pending", lambda self: "echo/server-1 does not answer")

    stage.during_load = on_load
    stage.run(limits={"recover_s": 6})
    history = read_history(stage.folder.history)
    (lost,) = history.of(Action.NOT_RECOVERED)
    assert lost.value["reason"] == "recovery: not within 6 s: echo/server-1 does not answer"
    assert not history.of(Action.DRAINED, Action.WORKLOAD_NOT_FINISHED)
    assert load.stopped == 1
    assert stage.phases() == PHASES


class Query(LongBatches):
    """A job whose state a test sets: the next reasons not to run, and not to have committed."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(clock)
        self.pending_reasons: list[str | None] = []
        self.commits: str | None = None
        self.submitted_to: list[str] = []
        """The run of the cluster of each submission."""

    def submit(self, cluster: Cluster) -> Query:
        self.submitted_to.append(cluster.run_id)
        return self

    def pending(self) -> str | None:
        return self.pending_reasons.pop(0) if self.pending_reasons else None

    def drain_pending(self) -> Callable[[], str | None]:
        return lambda: self.commits


@pytest.fixture
def query(stage: Stage, load: AdjustableLoad, monkeypatch: pytest.MonkeyPatch) -> Query:
    fake_query = Query(stage.clock)
    stage.during_load = record_steady
    monkeypatch.setattr(runner, "prepare_job", lambda *args: fake_query)
    return fake_query


def test_a_job_is_submitted_and_running_before_the_load_starts(stage: Stage, query: Query) -> None:
    query.pending_reasons = ["tasks are being deployed"] * 3
    assert query.submitted_to == [stage.run().run_id]
    assert stage.phases() == [*PHASES[:2], "submit", *PHASES[2:]]
    assert query.pending_reasons == []


def test_a_job_that_never_runs_fails_the_run(stage: Stage, query: Query) -> None:
    query.pending_reasons = ["tasks are being deployed"] * 10_000
    results = stage.run(limits={"ready_s": 4})
    assert results.ended == "failed_to_run"
    assert results.reason == "job running: not within 4 s: tasks are being deployed"
    assert stage.phases()[-1] == "submit"


def test_a_job_that_is_not_running_again_has_not_recovered(stage: Stage, query: Query) -> None:
    def on_load(loop: EventLoop) -> None:
        record_steady(loop)
        loop.listen(break_job)

    def break_job(event: Event) -> None:
        if event.action == Action.FAULT_IN_EFFECT:
            query.pending_reasons = ["2 of 4 tasks run"] * 10_000

    stage.during_load = on_load
    stage.run(limits={"recover_s": 6})
    (lost,) = read_history(stage.folder.history).of(Action.NOT_RECOVERED)
    assert lost.value["reason"] == "recovery: not within 6 s: 2 of 4 tasks run"


@pytest.mark.parametrize("commits", [None, "no checkpoint since the load ended"])
def test_a_run_is_drained_when_the_job_has_committed(
    stage: Stage, query: Query, commits: str | None
) -> None:
    query.commits = commits
    stage.run(limits={"drain_s": 5})
    history = read_history(stage.folder.history)
    assert bool(history.of(Action.DRAINED)) == (commits is None)
    reasons = [e.value["reason"] for e in history.of(Action.OUTPUTS_NOT_COMMITTED)]
    assert reasons == ([] if commits is None else [f"outputs committed: not within 5 s: {commits}"])


def test_outputs_are_read_early_while_the_job_commits(
    stage: Stage, query: Query, load: AdjustableLoad, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last sample of the lag is by the positions of the job."""
    begun: list[tuple[str, str, Path, str]] = []
    used: list[object] = []

    class CapturingReads:
        def __init__(self, cluster: Cluster, experiment: Experiment, folder: RunFolder) -> None:
            begun.append((cluster.run_id, experiment.name, folder.path, stage.view.current_phase))

    def collect(*given: Any) -> None:
        used.append(given[-1])
        read_everything(*given)

    monkeypatch.setattr(runner, "EarlyReads", CapturingReads)
    monkeypatch.setattr(runner, "collect_outputs", collect)
    monkeypatch.setattr(load, "sample_last_lag", used.append)
    run_id = stage.run().run_id
    ((*names, path, phase),) = begun
    assert (names, phase) == ([run_id, "on-fakes"], "drain")
    assert path.resolve() == stage.folder.path.resolve()
    job, reads = used
    assert job is query
    assert isinstance(reads, CapturingReads)


@pytest.mark.parametrize("lag_reason", [None, "40 records behind"])
def test_commits_count_only_after_the_input_is_read_to_its_end(
    stage: Stage,
    query: Query,
    load: AdjustableLoad,
    monkeypatch: pytest.MonkeyPatch,
    lag_reason: str | None,
) -> None:
    requested: list[object] = []

    def lag_pending(job: object) -> str | None:
        requested.append(job)
        return lag_reason

    monkeypatch.setattr(Experiment, "checkpointed", property(lambda self: True))
    monkeypatch.setattr(load, "lag_pending", lag_pending, raising=False)

    def on_load(loop: EventLoop) -> None:
        record_steady(loop)
        loop.record(Action.CHECKPOINT_COMPLETED, checkpoint=1)

    stage.during_load = on_load
    stage.run(limits={"drain_s": 5})
    history = read_history(stage.folder.history)
    assert set(requested) == {query}
    reasons = [e.value["reason"] for e in history.of(Action.INPUT_NOT_READ)]
    assert reasons == (
        [] if lag_reason is None else [f"input read to its end: not within 5 s: {lag_reason}"]
    )
    assert bool(history.of(Action.DRAINED)) == (lag_reason is None)


def test_a_checkpoint_is_awaited_before_any_fault(
    stage: Stage, load: AdjustableLoad, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Experiment, "checkpointed", property(lambda self: True))
    stage.during_load = record_steady
    results = stage.run(limits={"steady_s": 7})
    assert results.reason == "steady state: not within 7 s: no checkpoint was completed yet"


def test_the_manifest_describes_the_run(stage: Stage) -> None:
    results = stage.run(seed=11)
    manifest = stage.folder.read_manifest()
    assert manifest["run_id"] == results.run_id == stage.folder.run_id
    assert manifest["seed"] == results.seed == 11
    assert manifest["argv"] == ["streamquake"]
    assert manifest["machine"]["cpus"] == os.cpu_count()
    assert manifest["experiment"]["name"] == "on-fakes"
    assert manifest["started_at"].endswith("+00:00")
    assert len(manifest["started_at"]) == len("2026-11-21T03:15:00+00:00")
    assert stage.folder.junit.exists()
    assert stage.folder.report.exists()


def test_a_run_is_added_to_the_store_with_its_judge(stage: Stage) -> None:
    results = stage.run()
    (stored,) = ResultsStore(stage.out).runs()
    assert (stored.run_id, stored.outcome) == (results.run_id, "held")
    assert stored.judge == results.judge == judge_digest()


def test_the_images_are_ready_and_named_before_the_cluster_starts(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ensure(topology: object, store: ImageStore, show_message: Callable[[str], None]) -> None:
        show_message(f"building in {stage.view.current_phase}")

    monkeypatch.setattr(runner, "ensure_images", ensure)
    stage.run()
    manifest = stage.folder.read_manifest()
    store = stage.runtime.images()
    assert manifest["image_ids"] == {
        image: store.image_id(image) for image in manifest["images"].values()
    }
    assert "building in prepare" in stage.view.messages


def test_what_the_verdict_needs_of_the_workload_is_stored_with_the_seed(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored: list[tuple[Path, int]] = []
    monkeypatch.setattr(Workload, "store", lambda self, *given: stored.append(given))
    stage.run(seed=11)
    ((data, seed),) = stored
    assert (data.resolve(), seed) == (stage.folder.data.resolve(), 11)


def test_a_report_that_cannot_be_written_keeps_the_verdict(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(runner, "render_report", fail)
    monkeypatch.setattr(runner, "write_junit", fail)
    results = stage.run()
    assert results.outcome == Outcome.HELD
    assert results.warnings == (
        "junit.xml could not be written: no space left",
        "report.html could not be written: no space left",
    )
    assert stage.folder.read_results() == results


def test_the_seed_and_the_limits_reach_the_scheduler(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    captured: dict[str, Any] = {}

    class CapturingScheduler(FaultScheduler):
        def __init__(self, steps: Any, **settings: Any) -> None:
            captured.update(settings, steps=steps)
            super().__init__(steps, **settings)

    monkeypatch.setattr(runner, "FaultScheduler", CapturingScheduler)
    stage.run(seed=11, limits={"effect_s": 3, "trigger_s": 17})
    assert (captured["seed"], captured["effect_s"], captured["trigger_s"]) == (11, 3, 17)
    assert [step.fault for step in captured["steps"]] == ["kill"]


def test_a_run_shows_its_phases_and_the_faults_in_effect(stage: Stage) -> None:
    shown: list[Any] = []
    phases: list[tuple[str, str]] = []

    class CapturingView(RecordingView):
        def phase(self, name: str, detail: str) -> None:
            phases.append((name, detail))

        def update(self, now: object) -> None:
            shown.append(now)

    stage.view = CapturingView()
    stage.during_load = lambda loop: loop.measure("lag", "input", 40.0)
    stage.run()
    assert phases == [(name, "") for name in [*PHASES, "judge"]]
    assert ("kill on echo/server-1",) in [figures.active for figures in shown]
    assert {figures.phase for figures in shown} <= set(PHASES)
    assert 40 in [figures.lag for figures in shown]
    elapsed = [figures.elapsed_s for figures in shown]
    assert elapsed == sorted(elapsed)
    assert 0 < elapsed[-1] < 1000


def test_the_verdict_is_shown_before_the_cluster_is_removed(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []
    removed_meanwhile = DedicatedClusters.removed_meanwhile

    @contextmanager
    def then_note(clusters: DedicatedClusters) -> Iterator[None]:
        with removed_meanwhile(clusters):
            yield
            events.append("the block ended")

    monkeypatch.setattr(DedicatedClusters, "removed_meanwhile", then_note)
    monkeypatch.setattr(stage.view, "show_message", events.append)

    results = stage.run()

    assert events[-2:] == [f"held: {run_sentences.why(results)}", "the block ended"]


def test_faults_without_duration_are_healed_before_the_run_recovers(stage: Stage) -> None:
    stage.run(faults=({**KILL, "for_s": None},))
    history = read_history(stage.folder.history)
    order = [
        str(event.value.get("phase", event.action))
        for event in history.of(Action.PHASE, Action.FAULT_IN_EFFECT, Action.FAULT_HEALED)
    ]
    at = order.index("fault in effect")
    assert order[at - 1 : at + 4] == [
        "disturb",
        "fault in effect",
        "heal",
        "fault healed",
        "recover",
    ]


@pytest.mark.parametrize(
    ("options", "master"),
    [({}, "local[*]"), ({"master": "spark://host:7077"}, "spark://host:7077")],
)
def test_spark_starts_before_anything_is_measured_and_ends_with_the_run(
    stage: Stage, options: Mapping[str, Any], master: str
) -> None:
    stage.run(options=options)
    assert stage.spark.calls == [
        (master, ""),
        ("use", "deploy"),
        ("stop", "judge"),
    ]


def test_outputs_are_read_and_judged_with_the_session_of_the_run(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Any] = []
    real_judge = judge

    def collect(
        cluster: Cluster, experiment: Experiment, spark: Any, folder: RunFolder, early: EarlyReads
    ) -> None:
        assert early is None, "without a job nothing is read early"
        read.append((cluster.run_id, experiment.name, spark, folder.path, stage.view.current_phase))
        read_everything(cluster, experiment, spark, folder, early)

    def recording_judge(*args: Any, **options: Any) -> Results:
        read.append(options["spark"]())
        options["warnings"] += ("added by the judge",)
        return real_judge(*args, **options)

    monkeypatch.setattr(runner, "collect_outputs", collect)
    monkeypatch.setattr(runner, "judge", recording_judge)
    results = stage.run()
    folder = stage.folder.path.resolve()
    assert read[1:] == [stage.spark]
    ((run_id, name, spark, path, phase),) = read[:1]
    assert (run_id, name, spark, phase) == (results.run_id, "on-fakes", stage.spark, "read")
    assert path.resolve() == folder
    assert results.warnings == ("added by the judge",)
    assert any(line.startswith("checking ") for line in stage.view.messages)


def test_an_interruption_while_reading_keeps_the_record_and_names_the_next_step(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*args: object, **kwargs: object) -> Any:
        raise Interrupted("SIGINT")

    def terminate(loop: EventLoop) -> None:
        raise Interrupted("SIGTERM")

    stage.during_load = terminate
    monkeypatch.setattr(runner, "judge", interrupt)
    results = stage.run()
    assert (results.ended, results.outcome) == ("interrupted", Outcome.UNDECIDED)
    assert f"streamquake check {stage.folder.path.resolve()}" in results.reason
    assert (results.run_id, results.experiment) == (stage.folder.run_id, "on-fakes")


def test_the_signal_that_interrupted_a_run_is_reported(stage: Stage) -> None:
    def interrupt(loop: EventLoop) -> None:
        raise Interrupted("SIGTERM")

    stage.during_load = interrupt
    assert stage.run().reason == "stopped by SIGTERM"
    assert stage.phases()[-1] == "steady"


def test_leftovers_of_a_dead_run_are_removed_first(stage: Stage) -> None:
    tags = {labels.RUN: "dead", labels.OWNER: f"{os.uname().nodename}:1:of-another-time"}
    stage.runtime.create_network("sq-dead", tags)
    stage.run()
    assert [found.name for found in stage.runtime.find_networks({})] == []


def test_the_cluster_is_removed_while_the_run_is_judged(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be removed is a warning of the run, after those of the judge."""
    removed = threading.Event()

    def judge_after_removal(*args: Any, **more: Any) -> Results:
        assert removed.wait(60), "the cluster is not removed before the verdict"
        return judge(*args, **{**more, "warnings": ("of the judge",)})

    def fail_to_remove(network: str) -> None:
        removed.set()
        raise ContainerError("the network is in use")

    monkeypatch.setattr(runner, "judge", judge_after_removal)
    monkeypatch.setattr(stage.runtime, "remove_network", fail_to_remove)
    results = stage.run()
    assert results.outcome == Outcome.HELD
    first, second = results.warnings
    assert first == "of the judge"
    assert "the network is in use" in second
    assert not stage.runtime.find({labels.RUN: ""})


def test_a_run_uses_the_cluster_of_its_provider(stage: Stage) -> None:
    leases: list[ClusterLease] = []
    clusters = DedicatedClusters()

    class CapturingLeases:
        """A provider of clusters that keeps each lease."""

        def cluster_for(self, lease: ClusterLease) -> contextlib.AbstractContextManager[Cluster]:
            leases.append(lease)
            lease.warn("the cluster was used before")
            return clusters.cluster_for(lease)

    results = stage.run(options={"cluster_leases": CapturingLeases()})
    assert stage.runtime.find({}), "the provider's cluster is removed by the run"
    clusters.remove()
    assert not stage.runtime.find({})
    (lease,) = leases
    assert (lease.run_id, lease.experiment.name) == (results.run_id, "on-fakes")
    assert (lease.runtime, lease.clock) == (stage.runtime, stage.clock)
    lease.show_message("a line")
    assert "a line" in stage.view.messages
    assert results.outcome == Outcome.HELD
    assert results.warnings == ("the cluster was used before",)


def test_commits_of_an_exactly_once_sink_are_recorded(stage: Stage, query: Query) -> None:
    def on_load(loop: EventLoop) -> None:
        record_steady(loop)
        loop.record(Action.CHECKPOINT_COMPLETED, checkpoint=3)
        loop.record(Action.OUTPUT_SEEN, output="input", end=600, grown=100)

    stage.during_load = on_load
    for sink, recorded in (("exactly-once", [3]), ("at-least-once", [])):
        stage.run(job={"jar": "job.jar", "sink": sink, "promise": PROMISE})
        committed = read_history(stage.folder.history).of(Action.SINK_COMMITTED)
        assert [event.value["checkpoint"] for event in committed] == recorded


PROMISE = {
    "outputs": {"input": {"kafka": "out", "identity": ("key",)}},
    "expected": "SELECT * FROM sent",
}


@pytest.mark.parametrize("pending_reasons", [None, "no output for 2 s, and 4 s are needed"])
def test_the_drain_awaits_quiet_output_of_an_existing_job(
    stage: Stage, load: AdjustableLoad, monkeypatch: pytest.MonkeyPatch, pending_reasons: str | None
) -> None:
    requested: list[object] = []

    def quiet_pending(job: object) -> Callable[[], str | None]:
        requested.append(job)
        return lambda: pending_reasons

    monkeypatch.setattr(load, "quiet_pending", quiet_pending, raising=False)
    stage.during_load = record_steady
    job = {"existing": {"group": "copier", "quiet_s": 4}, "promise": PROMISE}
    stage.run(job=job, limits={"drain_s": 5})
    history = read_history(stage.folder.history)
    assert requested == [ExistingJob(group="copier", quiet_s=4)]
    reasons = [event.value["reason"] for event in history.of(Action.OUTPUTS_NOT_QUIET)]
    assert reasons == (
        [] if pending_reasons is None else [f"outputs quiet: not within 9 s: {pending_reasons}"]
    )
    assert bool(history.of(Action.DRAINED)) == (pending_reasons is None)


def test_the_steady_state_does_not_await_output_of_a_job_that_writes_files(
    stage: Stage, load: AdjustableLoad
) -> None:
    stage.during_load = lambda loop: loop.record(Action.SENT, **STEADY[Action.SENT])
    files = {"outputs": {"rows": {"hdfs": "/out", "identity": ("key",)}}}
    job = {"existing": {}, "promise": {**PROMISE, **files}}
    results = stage.run(job=job, limits={"steady_s": 7})
    assert "steady state" not in results.reason
    assert "disturb" in stage.phases()


def test_a_table_with_rows_ends_the_run_before_its_load(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked: list[str] = []

    def reject(experiment: Experiment, cluster: Cluster, spark: Any) -> None:
        checked.append(cluster.run_id)
        raise TableNotEmpty("the table has rows")

    monkeypatch.setattr(runner, "reject_filled_tables", reject)
    tables = {"outputs": {"rows": {"table": "postgresql://host/shop/rows"}}}
    results = stage.run(job={"existing": {}, "promise": {**PROMISE, **tables}})

    assert (results.ended, results.outcome) == ("failed_to_run", Outcome.UNDECIDED)
    assert "the table has rows" in results.reason
    assert checked == [results.run_id]
    assert "steady" not in stage.phases()
    checked.clear()
    stage.run()
    assert checked == []


def test_transactions_are_recorded_after_recovery_and_after_the_drain(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded: list[tuple[str, str, str, str]] = []

    def record(experiment: Experiment, cluster: Cluster, loop: EventLoop, after: str) -> None:
        loop.record(Action.TRANSACTIONS_SEEN, after=after)
        recorded.append((experiment.name, cluster.run_id, after, stage.view.current_phase))

    monkeypatch.setattr(runner, "record_transactions", record)
    run_id = stage.run().run_id
    assert recorded == [
        ("on-fakes", run_id, "recovery", "recover"),
        ("on-fakes", run_id, "drain", "drain"),
    ]


def test_a_node_that_exits_is_restarted_unless_a_fault_keeps_it_down(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept_down: list[tuple[str, tuple[str, ...]]] = []

    @contextmanager
    def supervise(cluster: Cluster, loop: EventLoop, down: Callable[[], Any]) -> Iterator[None]:
        loop.listen(lambda event: kept_down.append((str(event.action), tuple(down()))))
        yield

    monkeypatch.setattr(runner, "supervise", supervise)
    stage.run()
    assert {down for action, down in kept_down if action == "fault in effect"} == {
        ("echo/server-1",)
    }
    assert {
        down for action, down in kept_down if action in ("sent", "fault healed", "drained")
    } == {()}


def test_a_job_is_watched_until_the_run_is_over(stage: Stage, query: Query) -> None:
    followed, ended = threading.Event(), threading.Event()

    def follow(record_event: Any, measure: Any, stop: threading.Event) -> None:
        followed.set()
        if stop.wait(60):
            ended.set()

    query.follow = follow  # type: ignore[method-assign]
    stage.run()
    assert followed.is_set()
    assert ended.wait(60)

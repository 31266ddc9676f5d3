"""Sample run folders, written by the real writers: a TaskManager is killed in the middle of a
checkpoint.

`python -m tests.reports.sample_run OUT [held|violated|failed|large]` writes one for manual
inspection.
"""

from __future__ import annotations

import math
import random
import sys
from dataclasses import dataclass
from pathlib import Path

from streamquake.reports.record.event import Action, EventDraft
from streamquake.reports.record.history import HistoryWriter, usual_kind
from streamquake.reports.record.metrics import Metrics
from streamquake.reports.record.outcome import CheckResult, Finding, Outcome, worst
from streamquake.reports.record.results import FaultRecord, Results
from streamquake.reports.record.run_folder import RunFolder
from streamquake.reports.run.html import render_report

RUN_BEGAN_MS = 1_795_230_000_000
KILLED_S = 31.482
RESTARTED_S = 44.9
SQL = "-- running totals\nINSERT INTO totals\nSELECT key, seq, SUM(amount) FROM sent\n"


@dataclass(frozen=True, kw_only=True)
class Shape:
    """The size of a sample run."""

    vertices: tuple[str, ...] = ("Source: input[1] -> Calc[2]", "GroupAggregate[4] -> Sink: totals")
    parallelism: int = 3
    checkpoints: int = 20
    every_s: float = 4.0

    @property
    def end_s(self) -> float:
        return 12 + self.checkpoints * self.every_s + 16


SMALL = Shape()
LARGE = Shape(
    vertices=(*SMALL.vertices, "Window(TUMBLE, 5 s)[7]", "StreamingFileWriter -> Committer[9]"),
    parallelism=6,
    checkpoints=200,
    every_s=2.0,
)


class Recorder:
    """Records events with their times in seconds, and writes them as a history in order of time."""

    def __init__(self) -> None:
        self._drafts: list[EventDraft] = []

    def record(self, at_s: float, action: Action, **value: object) -> None:
        draft = EventDraft(
            at_ns=round(at_s * 1e9),
            process="sample",
            kind=usual_kind(action),
            action=action,
            value=value,
        )
        self._drafts.append(draft)

    def write(self, path: Path) -> None:
        writer = HistoryWriter(path)
        for draft in sorted(self._drafts, key=lambda draft: draft.at_ns):
            writer.append(draft)
        writer.close()


def write_sample_run(out: Path, outcome: Outcome = Outcome.HELD, shape: Shape = SMALL) -> RunFolder:
    """Write the folder of a completed run, without its report."""
    folder = _create_folder(out, f"20261121-031500-{outcome}")
    recorder = Recorder()
    _phases_and_fault(recorder, shape)
    _checkpoints(recorder, shape)
    _tasks(recorder, shape)
    recorder.write(folder.history)
    _metrics(folder.metrics, shape)
    for host in ("flink-jobmanager-1", "flink-taskmanager-2", "kafka-broker-1"):
        (folder.logs / host).mkdir()
        (folder.logs / host / "log.txt").write_text("one line\n", encoding="utf-8")
    folder.write_results(sample_results(folder.run_id, outcome))
    return folder


def write_failed_run(out: Path) -> RunFolder:
    """Write the folder of a run whose cluster did not start: a history of one phase, and nothing
    judged."""
    folder = _create_folder(out, "20261121-031500-failed")
    recorder = Recorder()
    recorder.record(0.0, Action.PHASE, phase="deploy")
    recorder.write(folder.history)
    folder.write_results(
        Results(
            run_id=folder.run_id,
            experiment="kill-taskmanager-mid-checkpoint",
            seed=7,
            ended="failed_to_run",
            outcome=Outcome.UNDECIDED,
            reason="flink/jobmanager-1 ended with exit code 1, killed for lack of memory\n"
            "Starting JobManager\nOutOfMemoryError: heap",
            replay=f"streamquake replay {folder.path}",
        )
    )
    return folder


def _create_folder(out: Path, run_id: str) -> RunFolder:
    folder = RunFolder.create(out, run_id)
    folder.write_manifest(
        {
            "run_id": run_id,
            "experiment": {
                "name": "kill-taskmanager-mid-checkpoint",
                "topology": {"name": "flink-kafka-hdfs", "services": {"kafka": {"broker": 1}}},
                "job": {"sql": SQL, "parallelism": 3},
                "faults": [{"fault": "kill", "target": "one of flink/taskmanager", "for_s": 5}],
            },
            "seed": 7,
            "versions": {"streamquake": "0.1.0", "flink": "2.2.0", "kafka": "4.1.0"},
            "images": {"flink:2.2": "sha256:0f3a" + "0" * 56},
            "argv": ["streamquake", "run", "kill-taskmanager-mid-checkpoint", "--seed", "7"],
            "started_at": "2026-11-21T03:15:00+00:00",
        }
    )
    return folder


def sample_results(run_id: str, outcome: Outcome) -> Results:
    checks = (
        _exactly_once(outcome),
        CheckResult(
            check="recovery",
            outcome=Outcome.HELD,
            summary="recovered 17.9 s after the kill, within 60 s",
            counts={"outage_s": 12.4, "within_s": 60},
        ),
        CheckResult(
            check="effect",
            outcome=Outcome.HELD,
            summary="1 of 1 fault verified in effect and healed",
        ),
    )
    fault = FaultRecord(
        fault="kill",
        target="one of flink/taskmanager",
        nodes=("flink/taskmanager-2",),
        injected_s=KILLED_S,
        in_effect=True,
        evidence={
            "watched": "pidfd",
            "flink/taskmanager-2": {"status": "exited", "exit_code": 137, "pid": 0},
        },
        healed=True,
    )
    return Results(
        run_id=run_id,
        experiment="kill-taskmanager-mid-checkpoint",
        seed=7,
        ended="completed",
        outcome=worst(check.outcome for check in checks),
        checks=checks,
        faults=(fault,),
        recovery={
            "detected_s": 0.41,
            "restarted_s": 9.8,
            "restored_s": 12.1,
            "first_output_s": 12.4,
            "first_checkpoint_s": 15.2,
            "lag_normal_s": 17.9,
        },
        replay=f"streamquake replay runs/{run_id}",
    )


def _exactly_once(outcome: Outcome) -> CheckResult:
    if outcome == Outcome.HELD:
        return CheckResult(
            check="exactly_once",
            outcome=outcome,
            summary="all 200,000 records are once in totals and totals-files",
            counts={"expected": 200_000, "lost": 0, "duplicated": 0, "changed": 0, "late": None},
        )
    findings = tuple(
        Finding(
            what="duplicated",
            where=f"totals, partition {number % 4}, offset {50_112 + number}",
            detail={"key": number, "seq": 731 + number, "copies": 2, "window": "kill"},
        )
        for number in range(8)
    )
    return CheckResult(
        check="exactly_once",
        outcome=outcome,
        summary="9,214 records are twice in totals",
        counts={"expected": 200_000, "lost": 0, "duplicated": 9214, "changed": 0, "late": None},
        findings=findings,
    )


def _phases_and_fault(recorder: Recorder, shape: Shape) -> None:
    begins = {"deploy": 0.0, "steady": 9.0, "disturb": 15.0, "recover": KILLED_S + 6.2}
    begins |= {"drain": shape.end_s - 12, "judge": shape.end_s - 5, "tear down": shape.end_s - 1}
    for phase, at_s in begins.items():
        recorder.record(at_s, Action.PHASE, phase=phase)
    fault = {"step": 0, "fault": "kill", "target": "one of flink/taskmanager"}
    node = "flink/taskmanager-2"
    called_ns, seen_ns = round((KILLED_S - 0.002) * 1e9), round(KILLED_S * 1e9)
    recorder.record(KILLED_S - 0.01, Action.FAULT_CALLED, **fault, nodes=[node])
    recorder.record(
        KILLED_S + 0.08,
        Action.FAULT_IN_EFFECT,
        **fault,
        nodes=[node],
        called_ns=called_ns,
        seen_ns=seen_ns,
        evidence={node: {"exit_code": 137}},
    )
    recorder.record(KILLED_S + 0.1, Action.CONTAINER_DIED, node=node, exit_code=137)
    recorder.record(KILLED_S + 5, Action.HEAL_CALLED, **fault)
    recorder.record(KILLED_S + 5.5, Action.CONTAINER_STARTED, node=node)
    recorder.record(
        KILLED_S + 6,
        Action.FAULT_HEALED,
        **fault,
        called_ns=round((KILLED_S + 5) * 1e9),
        seen_ns=round((KILLED_S + 5.4) * 1e9),
        evidence={},
    )
    recorder.record(KILLED_S + 0.4, Action.JOB_FAILING, cause="TaskManager is no longer reachable")
    recorder.record(KILLED_S + 1.4, Action.JOB_RESTARTING, restart=1)
    recorder.record(RESTARTED_S - 0.2, Action.JOB_RESTORED, checkpoint=4)
    recorder.record(RESTARTED_S, Action.JOB_RUNNING)
    recorder.record(shape.end_s - 10, Action.OUTPUT_SEEN, output="totals", records=200_000)
    recorder.record(
        shape.end_s - 12, Action.WORKLOAD_DONE, acknowledged=200_000, failed=0, unknown=0
    )
    recorder.record(shape.end_s - 5.5, Action.DRAINED, lag=0)


def _checkpoints(recorder: Recorder, shape: Shape) -> None:
    chance = random.Random("sample:checkpoints")
    for number in range(1, shape.checkpoints + 1):
        begin_s = 12 + (number - 1) * shape.every_s + chance.uniform(0, 0.05)
        if KILLED_S < begin_s < RESTARTED_S:
            continue
        stamp = {"checkpoint": number, "trigger_ms": RUN_BEGAN_MS + round(begin_s * 1e3)}
        kind = {"type": "CHECKPOINT" if number % 4 else "UNALIGNED_CHECKPOINT"}
        recorder.record(begin_s + 0.1, Action.CHECKPOINT_TRIGGERED, **stamp, **kind)
        took_ms = round(chance.lognormvariate(math.log(420), 0.5))
        if begin_s < KILLED_S < begin_s + shape.every_s:
            reason = "TaskManager lost before it acknowledged"
            failed = {**stamp, **kind, "reason": reason}
            recorder.record(KILLED_S + 0.5, Action.CHECKPOINT_FAILED, **failed)
            continue
        recorder.record(
            begin_s + took_ms / 1e3 + 0.08,
            Action.CHECKPOINT_COMPLETED,
            **stamp,
            **kind,
            duration_ms=took_ms,
            state_bytes=chance.randrange(10**5, 10**6),
            persisted_bytes=chance.randrange(10**5) * (number % 4 == 0),
            alignment_ms=took_ms // 3,
        )


def _tasks(recorder: Recorder, shape: Shape) -> None:
    vertices = [
        {"id": f"v{place}", "name": name, "parallelism": shape.parallelism}
        for place, name in enumerate(shape.vertices)
    ]
    recorder.record(9.0, Action.JOB_SUBMITTED, job="j1", name="totals", vertices=vertices)
    recorder.record(11.5, Action.JOB_RUNNING, job="j1")
    for vertex in range(len(shape.vertices)):
        for subtask in range(shape.parallelism):
            _lane(recorder, f"v{vertex}", subtask, shape)


def _lane(recorder: Recorder, vertex: str, subtask: int, shape: Shape) -> None:
    host_number = subtask % 3 + 1
    lost = "FAILED" if host_number == 2 else "CANCELED"
    states: list[tuple[float, int, str]] = [
        (9.2, 0, "SCHEDULED"),
        (9.6, 0, "DEPLOYING"),
        (10.4, 0, "INITIALIZING"),
        (11.4, 0, "RUNNING"),
        (KILLED_S + 0.4, 0, lost),
        (KILLED_S + 1.4, 1, "SCHEDULED"),
        (41.3, 1, "DEPLOYING"),
        (42.6, 1, "INITIALIZING"),
        (44.6, 1, "RUNNING"),
        (shape.end_s - 2, 1, "CANCELED"),
    ]
    for at_s, attempt, state in states:
        recorder.record(
            at_s + subtask * 0.03,
            Action.TASK_CHANGED,
            job="j1",
            vertex=vertex,
            subtask=subtask,
            attempt=attempt,
            node=f"flink/taskmanager-{host_number}",
            state=state,
            start_ms=0,
        )


def _metrics(path: Path, shape: Shape) -> None:
    chance = random.Random("sample:metrics")
    metrics = Metrics(path)
    lag = 0.0
    for second in range(10, int(shape.end_s) - 1):
        is_down = KILLED_S <= second < RESTARTED_S
        sends = 4000 if second < shape.end_s - 13 else 0
        sent = sends * chance.uniform(0.96, 1.04)
        out = 0.0 if is_down else min(7000.0, sent + lag) * chance.uniform(0.93, 1.0)
        lag = max(0.0, lag + sent - out)
        figures = {("sent_per_s", "workload"): sent, ("lag", "input"): lag}
        for output in ("totals", "totals-files"):
            figures["output_per_s", output] = out * chance.uniform(0.97, 1.0)
        for place, vertex in enumerate(shape.vertices):
            busy = 0.0 if is_down else min(1.0, chance.uniform(0.3, 0.5) + lag / 60_000)
            figures["busy_ratio", vertex] = busy
            figures["backpressure_ratio", vertex] = max(0.0, busy - 0.45) * (2 - place)
            figures["records_in_per_s", vertex] = out
        figures["cpu", "flink/taskmanager-2"] = 0.0 if is_down else chance.uniform(0.4, 0.8)
        for (series, where), value in figures.items():
            metrics.add(round((second + 0.2) * 1e9), series, where, value)
    metrics.flush()


def main(out: str, which: str = "held") -> None:
    if which == "failed":
        folder = write_failed_run(Path(out))
    elif which == "large":
        folder = write_sample_run(Path(out), Outcome.HELD, LARGE)
    else:
        folder = write_sample_run(Path(out), Outcome.parse(which))
    print(render_report(folder))


if __name__ == "__main__":
    main(*sys.argv[1:])

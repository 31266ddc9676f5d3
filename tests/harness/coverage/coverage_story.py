"""Written histories of runs with faults: a source and a stateful operator on two TaskManagers."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from streamquake.faults.schedule.step import Step
from streamquake.harness.coverage.hits import hits_of
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.workloads.numbered import Numbered
from streamquake.reports.coverage.cell import Phase
from streamquake.reports.coverage.hit import CoveredRun, Hit
from streamquake.reports.record.event import Action
from streamquake.reports.record.history import History
from streamquake.topologies.loader import load_topology
from tests.harness.histories import KILLED, RESTARTED
from tests.harness.verdict.checkpoint_story import JOB, CheckpointStory, part, stamp

RUN = CoveredRun(
    run_id="20260101-000000-abcd",
    experiment="by-hand",
    folder=Path("runs/20260101-000000-abcd"),
    outcome="held",
    as_expected=1,
)
FIRST, SECOND = "flink/taskmanager-1", "flink/taskmanager-2"
PAUSED = {"status": "paused"}


def step(fault: str = "kill", target: str = FIRST, **when: Any) -> Step:
    return Step.model_validate(
        {"fault": fault, "target": target, "when": when or {"after_s": 1.0}, "for_s": 1.0}
    )


def planned(*steps: Step, topology: str = "flink-kafka-hdfs") -> Experiment:
    return Experiment(
        name="by-hand",
        topology=load_topology(topology),
        job={"sql": "SELECT 1", "config": {"execution.checkpointing.interval": "1s"}},  # type: ignore[arg-type]
        workload=Numbered(records=1, rate_per_s=1),
        faults=steps,
    )


def hits(history: History, *steps: Step) -> tuple[Hit, ...]:
    return hits_of(RUN, planned(*(steps or (step(),))), history)


def proven(history: History, *steps: Step) -> set[tuple[str, Phase, str, str]]:
    """The cells that a history proves."""
    found = (hit.cell for hit in hits(history, *steps) if hit.verified)
    return {(cell.fault, cell.phase, cell.place, cell.kind) for cell in found}


class CoverageStory(CheckpointStory):
    """A job that runs from second 1; triggers count from second 5."""

    def __init__(self, *, unaligned: bool = False) -> None:
        super().__init__()
        self.at(0, Action.PHASE, phase="prepare")
        self.submitted(0.5, unaligned_checkpoints=unaligned, aligned_checkpoint_timeout=0)
        self.tasks(0.8, attempt=0)
        self.at(1, Action.JOB_RUNNING, job=JOB)
        self.at(2, Action.PHASE, phase="steady")
        self.at(5, Action.PHASE, phase="disturb")

    def tasks(
        self,
        at_s: float,
        *,
        attempt: int,
        state: str = "RUNNING",
        nodes: tuple[str, str] = (FIRST, SECOND),
    ) -> CoverageStory:
        for vertex, name in (("v1", "source"), ("v2", "map")):
            for subtask, node in enumerate(nodes):
                self.at(
                    at_s,
                    Action.TASK_CHANGED,
                    job=JOB,
                    vertex=vertex,
                    vertex_name=name,
                    subtask=subtask,
                    attempt=attempt,
                    node=node,
                    state=state,
                    start_ms=stamp(at_s),
                )
        return self

    def ended(
        self,
        number: int,
        began_s: float,
        ack_s: float,
        *,
        seen_s: float = 0.0,
        failed: bool = False,
        **changed: Any,
    ) -> CoverageStory:
        """The end of a checkpoint: its last acknowledgement, or its failure, and when that was
        observed."""
        recorded = {
            "job": JOB,
            "checkpoint": number,
            "type": "CHECKPOINT",
            "trigger_ms": stamp(began_s),
            "duration_ms": round((ack_s - began_s) * 1000),
            "path": f"/chk-{number}",
            "reason": "a task failed",
            **changed,
        }
        action = Action.CHECKPOINT_FAILED if failed else Action.CHECKPOINT_COMPLETED
        self.at(seen_s or ack_s, action, **recorded)
        return self

    def committed(self, number: int, began_s: float, ack_s: float) -> CoverageStory:
        """A whole checkpoint, with the commit of its output 0.1 s after its end."""
        self.triggered(number, began_s)
        self.ended(number, began_s, ack_s)
        self.at(ack_s + 0.1, Action.SINK_COMMITTED, checkpoint=number, output="totals", end=number)
        return self

    def fault(
        self,
        called_s: float,
        *,
        took_s: float = 0.02,
        heal_s: float | None = None,
        number: int = 0,
        name: str = "kill",
        target: str = FIRST,
        nodes: tuple[str, ...] = (FIRST,),
        evidence: dict[str, Any] | None = None,
        trigger: int | None = None,
    ) -> CoverageStory:
        """A fault that was called and took effect; the heal is left to `healed`."""
        common = {"step": number, "fault": name, "target": target, "nodes": list(nodes)}
        index = {} if trigger is None else {"trigger_index": trigger}
        self.at(called_s, Action.FAULT_CALLED, **common, params={}, **index)
        seen_ns = round((called_s + took_s) * 1e9)
        sample = KILLED if evidence is None else evidence
        self.at(
            called_s + took_s,
            Action.FAULT_IN_EFFECT,
            **common,
            called_ns=round(called_s * 1e9),
            seen_ns=seen_ns,
            evidence=dict.fromkeys(nodes, sample),
        )
        return self if heal_s is None else self.healed(heal_s, common, sample)

    def healed(self, at_s: float, common: dict[str, Any], sample: dict[str, Any]) -> CoverageStory:
        started = datetime.fromtimestamp(stamp(at_s) / 1000, UTC).isoformat()
        again = {**RESTARTED, "started_at": started}
        after = again if sample is KILLED else {"status": "running"}
        seen_ns = round((at_s - 0.1) * 1e9)
        evidence = dict.fromkeys(common["nodes"], sample)
        self.at(
            at_s - 0.1, Action.FAULT_STILL_IN_EFFECT, **common, seen_ns=seen_ns, evidence=evidence
        )
        self.at(at_s, Action.HEAL_CALLED, **common, last_seen_ns=seen_ns, in_place_ns=seen_ns)
        self.at(
            at_s + 0.1,
            Action.FAULT_HEALED,
            **common,
            called_ns=round(at_s * 1e9),
            seen_ns=round((at_s + 0.1) * 1e9),
            evidence=dict.fromkeys(common["nodes"], after),
        )
        return self

    def job_failing(self, at_s: float) -> CoverageStory:
        self.at(at_s, Action.JOB_FAILING, job=JOB, cause="lost", failed_ms=stamp(at_s))
        return self

    def job_restored(self, at_s: float, checkpoint: int) -> CoverageStory:
        self.at(
            at_s,
            Action.JOB_RESTORED,
            job=JOB,
            checkpoint=checkpoint,
            restored_at_ms=stamp(at_s),
            path=f"/chk-{checkpoint}",
        )
        return self

    def job_running(
        self, at_s: float, attempt: int = 1, nodes: tuple[str, str] = (FIRST, SECOND)
    ) -> CoverageStory:
        self.tasks(at_s - 0.5, attempt=attempt, state="INITIALIZING", nodes=nodes)
        self.tasks(at_s, attempt=attempt, nodes=nodes)
        self.at(at_s, Action.JOB_RUNNING, job=JOB)
        return self


def acknowledged_by(*places: tuple[str, int], took_ms: int = 200) -> list[dict[str, Any]]:
    """The parts of a checkpoint that these subtasks acknowledged."""
    return [part(vertex, subtask, duration_ms=took_ms) for vertex, subtask in places]

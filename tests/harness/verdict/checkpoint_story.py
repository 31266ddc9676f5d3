"""Written histories of checkpoints, as an engine reports them: two sources, two maps."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from streamquake.harness.experiment.check import JudgedRun
from streamquake.reports.record.event import Action
from streamquake.reports.record.metrics import Metrics
from tests.harness.histories import Story, case

JOB = "job"
EPOCH_MS = 1_700_000_000_000
"""The engine's clock at the zero of the run's clock, in epoch ms."""
VERTICES = (
    {"id": "v1", "name": "source", "parallelism": 2},
    {"id": "v2", "name": "map", "parallelism": 2},
)
NAMES = {"v1": "source", "v2": "map"}
PLACES = [("v1", 0), ("v1", 1), ("v2", 0), ("v2", 1)]
EXPIRED = "Checkpoint expired before completing."


def stamp(at_s: float) -> int:
    """A moment of the run on the engine's clock."""
    return EPOCH_MS + round(at_s * 1000)


def part(vertex: str, subtask: int, **changed: Any) -> dict[str, Any]:
    """A quick aligned part; the keys of its phases may be changed."""
    recorded = {
        "vertex": vertex,
        "subtask": subtask,
        "start_delay_ms": 5,
        "alignment_ms": 1,
        "sync_ms": 2,
        "async_ms": 10,
        "processed_bytes": 0,
        "persisted_bytes": 0,
        "unaligned": False,
        "ack_ms": 0,
        **changed,
    }
    phases = ("start_delay_ms", "alignment_ms", "sync_ms", "async_ms")
    recorded.setdefault("duration_ms", sum(recorded[phase] for phase in phases))
    return recorded


def unaligned(*changed: dict[str, Any]) -> list[dict[str, Any]]:
    """Four unaligned parts; `changed` replace the last ones."""
    parts = {place: part(*place, unaligned=True, persisted_bytes=1000) for place in PLACES}
    return [*{**parts, **{(each["vertex"], each["subtask"]): each for each in changed}}.values()]


def in_all(parts: list[dict[str, Any]], took_ms: int) -> list[dict[str, Any]]:
    """The parts of a completed checkpoint that took so long: as long as its slowest part."""
    slowest = max(parts, key=lambda part: part["duration_ms"])
    return [
        {**part, "duration_ms": took_ms if part is slowest else min(took_ms, part["duration_ms"])}
        for part in parts
    ]


class CheckpointStory(Story):
    """A history of a job that takes checkpoints and restarts."""

    def submitted(self, at_s: float = 0.5, job: str = JOB, **config: Any) -> CheckpointStory:
        self.at(
            at_s,
            Action.JOB_SUBMITTED,
            job=job,
            name=job,
            vertices=list(VERTICES),
            edges=[{"from": "v1", "to": "v2"}],
            regions=[],
            config=config,
        )
        return self

    def triggered(
        self,
        number: int,
        at_s: float,
        job: str = JOB,
        trigger_ms: int | None = None,
        kind: str = "CHECKPOINT",
    ) -> CheckpointStory:
        self.at(
            at_s,
            Action.CHECKPOINT_TRIGGERED,
            job=job,
            checkpoint=number,
            type=kind,
            trigger_ms=stamp(at_s) if trigger_ms is None else trigger_ms,
        )
        return self

    def completed(
        self, number: int, at_s: float, took_s: float = 0.1, job: str = JOB, **changed: Any
    ) -> CheckpointStory:
        """A checkpoint from its trigger to its end; None leaves a key out, as in an older
        history."""
        kind = changed.get("type") or "CHECKPOINT"
        began_as = kind if "SAVEPOINT" in kind else "CHECKPOINT"
        self.triggered(number, at_s, job, changed.get("trigger_ms"), began_as)
        parts = changed.get("subtasks", unaligned())
        recorded = {
            "job": job,
            "checkpoint": number,
            "type": "UNALIGNED_CHECKPOINT",
            "trigger_ms": stamp(at_s),
            "duration_ms": round(took_s * 1000),
            "state_bytes": 5000,
            "checkpointed_bytes": 5000,
            "persisted_bytes": sum(each["persisted_bytes"] for each in parts or ()) or 4000,
            "path": f"/chk-{number}",
            **changed,
            "subtasks": parts,
        }
        if parts:
            recorded["subtasks"] = in_all(parts, max(0, recorded["duration_ms"] or 0))
        known = {key: value for key, value in recorded.items() if value is not None}
        self.at(at_s + took_s, Action.CHECKPOINT_COMPLETED, **known)
        return self

    def failed(
        self,
        number: int,
        at_s: float,
        took_s: float = 8.0,
        reason: str = EXPIRED,
        subtasks: list[dict[str, Any]] | None = None,
    ) -> CheckpointStory:
        self.triggered(number, at_s)
        parts = [part(*place) for place in PLACES[:2]] if subtasks is None else subtasks
        if parts:
            self.at(
                at_s + 1,
                Action.CHECKPOINT_ACKNOWLEDGED,
                job=JOB,
                checkpoint=number,
                acknowledged=len(parts),
                subtasks=4,
                ack_ms=stamp(at_s + 1),
            )
        self.at(
            at_s + took_s,
            Action.CHECKPOINT_FAILED,
            job=JOB,
            checkpoint=number,
            type="CHECKPOINT",
            trigger_ms=stamp(at_s),
            duration_ms=round(took_s * 1000),
            reason=reason,
            subtasks=parts,
        )
        return self

    def files(
        self, number: int, at_s: float, count: int, shared: Iterable[str] | None = None
    ) -> CheckpointStory:
        """The listing of its folder: its metadata, and other files of 100 bytes. `shared` are files
        of 200 bytes in the folder that checkpoints share; None leaves them out, as in an older
        history."""
        files = {"_metadata": 50, **{f"file-{n}": 100 for n in range(count - 1)}}
        recorded = {} if shared is None else {"shared": dict.fromkeys(shared, 200)}
        self.at(
            at_s,
            Action.CHECKPOINT_FILES,
            job=JOB,
            checkpoint=number,
            path=f"/chk-{number}",
            files=files,
            **recorded,
        )
        return self

    def injected(
        self, fault: str, start_s: float, end_s: float | None = None, step: int = 0
    ) -> CheckpointStory:
        """A fault that was in effect for a while, or until the run's end."""
        about = {"step": step, "fault": fault}
        self.at(start_s, Action.FAULT_IN_EFFECT, **about, seen_ns=int(start_s * 1e9), evidence={})
        if end_s is not None:
            self.at(end_s, Action.HEAL_CALLED, **about)
        return self

    def failing(self, at_s: float, cause: str = "lost", seen_s: float = 0.2) -> CheckpointStory:
        """A failure and its restart; both are observed some time later."""
        self.at(
            at_s + seen_s,
            Action.JOB_FAILING,
            job=JOB,
            cause=cause,
            task=None,
            failed_ms=stamp(at_s),
        )
        self.at(at_s + seen_s, Action.JOB_RESTARTING, job=JOB, restart=1, restarting_ms=stamp(at_s))
        return self

    def restored(self, number: int, at_s: float, job: str = JOB) -> CheckpointStory:
        self.at(at_s, Action.JOB_RESTORED, job=job, checkpoint=number, restored_at_ms=stamp(at_s))
        return self

    def running(
        self, at_s: float, initializing_ms: tuple[int, ...] = (10, 20, 30, 40), job: str = JOB
    ) -> CheckpointStory:
        """Every subtask runs, after restoring its state for so long."""
        for (vertex, subtask), spent_ms in zip(PLACES, initializing_ms, strict=True):
            self.at(
                at_s,
                Action.TASK_CHANGED,
                job=job,
                vertex=vertex,
                vertex_name=NAMES[vertex],
                subtask=subtask,
                attempt=1,
                node="flink/taskmanager-1",
                state="RUNNING",
                start_ms=stamp(at_s),
                initializing_ms=spent_ms,
            )
        self.at(at_s, Action.JOB_RUNNING, job=job)
        return self

    def judged(self, folder: Path) -> JudgedRun:
        return case(self, folder)


def press(
    folder: Path,
    ratio: float | Callable[[int], float],
    from_s: int = 0,
    until_s: int = 60,
    missed: range = range(0),
) -> None:
    """Samples once a second of the back-pressured share of the source's worst subtask, constant or
    by the second; the sink has none. The seconds `missed` have no samples."""
    metrics = Metrics(folder / "metrics.parquet")
    for second in (each for each in range(from_s, until_s + 1) if each not in missed):
        pressed = ratio(second) if callable(ratio) else ratio
        for name, share in (("source", pressed), ("sink", 0.0)):
            at_ns = second * 10**9
            metrics.add(at_ns, "back_pressured_ms_per_s", name, share * 900)
            metrics.add(at_ns, "back_pressured_ms_per_s_max", name, share * 1000)
    metrics.flush()


def reported(**report: Any) -> CheckpointStory:
    """Three aligned checkpoints with all that Flink reports, the third with a changed report of its
    completion; `parts` is a function that changes its subtasks."""
    story = CheckpointStory().submitted()
    for number in (1, 2, 3):
        parts = [
            part(*place, duration_ms=100, ack_ms=stamp(10.0 * number + 0.1)) for place in PLACES
        ]
        about = {"job": JOB, "checkpoint": number, "trigger_ms": stamp(10.0 * number)}
        story.triggered(number, 10.0 * number)
        story.at(10.0 * number, Action.CHECKPOINT_ACKNOWLEDGED, **about, acknowledged=4, subtasks=4)
        value = {"unaligned_subtasks": 0, "type": "CHECKPOINT", "subtasks": parts}
        if number == 3:
            changed = report.pop("parts", list)(parts)
            value = {**value, "subtasks": changed, **report}
        story.at(
            10.0 * number + 0.1,
            Action.CHECKPOINT_COMPLETED,
            **about,
            **{"duration_ms": 100, "persisted_bytes": 0, "state_bytes": 9, **value},
        )
    return story

"""One cell of the matrix: a fault, a phase of the protocol, a place, and a kind of checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Phase(StrEnum):
    """The phases of the protocol, in the order in which pages show them."""

    BARRIER = "barrier to acknowledgement"
    ACKNOWLEDGED = "acknowledged to completed"
    COMPLETED = "completed to committed"
    COMMIT = "commit"
    RESTART = "restart"
    RESTORE = "restore"
    RESCALE = "rescale"
    SAVEPOINT = "savepoint"
    PLANNED = "batch planned"
    RUNNING = "batch running"
    SINK_WRITTEN = "batch written"
    COMMITTED = "batch committed"
    LOAD_BEGIN = "load begins"
    LOAD_END = "load ends"
    BETWEEN = "between checkpoints"
    UNKNOWN = "not known"

    @property
    def meaning(self) -> str:
        """What the phase is, in one sentence."""
        return MEANINGS[self]


MEANINGS: Mapping[Phase, str] = {
    Phase.BARRIER: "A checkpoint was triggered, and a subtask has not acknowledged it.",
    Phase.ACKNOWLEDGED: "Every subtask acknowledged the checkpoint, and it is not completed.",
    Phase.COMPLETED: "The checkpoint is completed, and its output is not committed.",
    Phase.COMMIT: "The sink commits what the checkpoint prepared.",
    Phase.RESTART: "The job failed, and its state is not assigned yet.",
    Phase.RESTORE: "The state is assigned, and not every task runs.",
    Phase.RESCALE: "The job gets another parallelism.",
    Phase.SAVEPOINT: "A savepoint is in progress.",
    Phase.PLANNED: "The offsets of a micro-batch are in the log, and no task of it was scheduled.",
    Phase.RUNNING: "The tasks of a micro-batch run.",
    Phase.SINK_WRITTEN: "The sink has all records of a micro-batch; its commit is not in the log.",
    Phase.COMMITTED: "The commit of a micro-batch is in the log, and the next is not planned.",
    Phase.LOAD_BEGIN: "The load began, and the job is not in steady state.",
    Phase.LOAD_END: "The load sent all records, and the job has not committed all of them.",
    Phase.BETWEEN: "No checkpoint, restart or rescale was in progress.",
    Phase.UNKNOWN: "The record does not show in which phase it was.",
}


class Place(StrEnum):
    """The part of the pipeline that a fault affects."""

    SOURCE = "source"
    EXCHANGE = "exchange"
    OPERATOR = "stateful operator"
    SINK = "sink"
    COORDINATOR = "coordinator"
    BROKER = "broker"
    STORE = "store"
    UNKNOWN = "not known"


class CheckpointKind(StrEnum):
    """The kind of the checkpoint that a phase belongs to; of a restore, of the restored one."""

    ALIGNED = "aligned"
    UNALIGNED = "unaligned"
    SAVEPOINT = "savepoint"
    BATCH = "micro-batch"
    NONE = "none"
    UNKNOWN = "not known"


@dataclass(frozen=True, kw_only=True)
class CoverageCell:
    """One cell of the matrix."""

    fault: str
    phase: Phase
    place: Place
    kind: CheckpointKind

    @property
    def order(self) -> tuple[str, int, int, int]:
        """Its place in a list of cells: by fault, then in the order of the enumerations."""
        places = (_PHASES[self.phase], _PLACES[self.place], _KINDS[self.kind])
        return (self.fault, *places)


_PHASES = {phase: at for at, phase in enumerate(Phase)}
_PLACES = {place: at for at, place in enumerate(Place)}
_KINDS = {kind: at for at, kind in enumerate(CheckpointKind)}

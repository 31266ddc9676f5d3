"""The cells that the shipped faults could hit: what a campaign has still to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

from streamquake.cluster.engines.engine import job_runner
from streamquake.faults.fault import Fault, faults
from streamquake.faults.schedule.candidates import targets
from streamquake.faults.schedule.target import parse_target
from streamquake.harness.coverage.own_steps import own_phase, own_place
from streamquake.harness.coverage.places import places_of_target
from streamquake.harness.experiment.validation import fault_target_problem
from streamquake.harness.verdict.evidence.engine_clock import CLOCK_FAULT
from streamquake.reports.coverage.cell import CheckpointKind, CoverageCell, Phase, Place
from streamquake.topologies.loader import load_topology
from streamquake.topologies.model import Topology
from streamquake.topologies.named_files import SHIPPED, shipped_files

CHECKPOINTS = (CheckpointKind.ALIGNED, CheckpointKind.UNALIGNED, CheckpointKind.SAVEPOINT)
NO_CHECKPOINT = (CheckpointKind.NONE,)
DISK_MB = 256
OF_ANY_ENGINE = {Phase.LOAD_END: NO_CHECKPOINT}
"""The begin of the load is missing: triggers wait from steady state on."""
OF_CHECKPOINTS: Mapping[Phase, tuple[CheckpointKind, ...]] = {
    Phase.BARRIER: CHECKPOINTS,
    Phase.ACKNOWLEDGED: CHECKPOINTS,
    Phase.COMPLETED: CHECKPOINTS,
    Phase.RESTART: CHECKPOINTS,
    Phase.RESTORE: CHECKPOINTS,
    Phase.RESCALE: NO_CHECKPOINT,
    Phase.SAVEPOINT: (CheckpointKind.SAVEPOINT,),
    Phase.BETWEEN: NO_CHECKPOINT,
    **OF_ANY_ENGINE,
}
BATCH_PHASES = (
    Phase.PLANNED,
    Phase.RUNNING,
    Phase.SINK_WRITTEN,
    Phase.COMMITTED,
    Phase.RESTART,
    Phase.RESTORE,
)
OF_BATCHES: Mapping[Phase, tuple[CheckpointKind, ...]] = {
    **dict.fromkeys(BATCH_PHASES, (CheckpointKind.BATCH,)),
    **OF_ANY_ENGINE,
}
ENGINES: Mapping[str, Mapping[Phase, tuple[CheckpointKind, ...]]] = {
    "flink": OF_CHECKPOINTS,
    "spark": OF_BATCHES,
}
"""Engine of the job -> its phases, each with the kinds of checkpoints to which it may belong."""


@cache
def possible_cells() -> frozenset[CoverageCell]:
    """Every fault in every phase, place and kind of checkpoint in which a record could prove it on
    some shipped topology. Of a fault that moves the engine's stamps none of their phases."""
    topologies = [_with_settings(load_topology(name)) for name in shipped_files(SHIPPED, ".yaml")]
    return frozenset(
        cell
        for topology in topologies
        for fault in faults.values()
        for cell in _of(fault, topology)
    )


def _with_settings(topology: Topology) -> Topology:
    """The topology with the settings of nodes that some faults need."""
    services = {
        name: service.model_copy(
            update={
                "nodes": {
                    role: group.model_copy(update={"disk_mb": DISK_MB, "clock": "adjustable"})
                    for role, group in service.nodes.items()
                }
            }
        )
        for name, service in topology.services.items()
    }
    return topology.model_copy(update={"services": services})


def _of(fault: type[Fault], topology: Topology) -> Iterator[CoverageCell]:
    runner = job_runner(topology)
    phases = ENGINES.get(topology.services[runner[0]].engine, {}) if runner else {}
    places = _places(fault, topology)
    for phase, kinds in _phases_of(fault, phases).items():
        for place in places:
            for kind in kinds:
                yield CoverageCell(fault=fault.name, phase=phase, place=place, kind=kind)


def _phases_of(
    fault: type[Fault], phases: Mapping[Phase, tuple[CheckpointKind, ...]]
) -> Mapping[Phase, tuple[CheckpointKind, ...]]:
    own = own_phase(fault)
    if fault.name == CLOCK_FAULT:
        return {phase: kinds for phase, kinds in phases.items() if phase in OF_ANY_ENGINE}
    if own is None or not phases:
        return phases
    return {own: phases.get(own, CHECKPOINTS)}


def _places(fault: type[Fault], topology: Topology) -> frozenset[Place]:
    """Where the fault may be injected on a topology."""
    found: set[Place] = set()
    for target in _targets(fault, topology):
        if fault_target_problem(fault, target, topology) is None:
            found |= places_of_target(parse_target(target), topology)
    own = own_place(fault)
    if found and own is not None:
        return frozenset({own})
    return frozenset(found) - {Place.UNKNOWN}


def _targets(fault: type[Fault], topology: Topology) -> Iterator[str]:
    """A target for each part of the topology: all nodes of a role are in the same part."""
    if fault.target_kind == "nodes":
        yield from (f"one of {role}" for role in topology.roles())
    else:
        yield from targets(fault.target_kind, topology)

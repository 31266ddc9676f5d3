"""The cells that the shipped faults could hit."""

from __future__ import annotations

from streamquake.faults.fault import faults
from streamquake.harness.coverage.possible_cells import possible_cells
from streamquake.reports.coverage.cell import CheckpointKind, CoverageCell, Phase, Place


def cell(
    fault: str,
    phase: Phase,
    place: Place,
    kind: CheckpointKind = CheckpointKind.ALIGNED,
) -> CoverageCell:
    return CoverageCell(fault=fault, phase=phase, place=place, kind=kind)


def test_every_fault_could_hit_something() -> None:
    assert {found.fault for found in possible_cells()} == set(faults)


def test_every_coordinate_of_a_possible_cell_is_known() -> None:
    unknown = (Phase.UNKNOWN, Place.UNKNOWN, CheckpointKind.UNKNOWN)
    found = possible_cells()
    assert not [c for c in found if {c.phase, c.place, c.kind} & set(unknown)]


def test_a_node_can_be_killed_in_every_phase_and_a_link_only_where_it_is() -> None:
    found = possible_cells()
    batch = CheckpointKind.BATCH
    assert cell("kill", Phase.BARRIER, Place.OPERATOR) in found
    assert cell("kill", Phase.SINK_WRITTEN, Place.COORDINATOR, batch) in found
    assert cell("kill", Phase.BARRIER, Place.EXCHANGE) not in found
    assert cell("slow_link", Phase.BARRIER, Place.EXCHANGE) in found
    assert cell("kill", Phase.BARRIER, Place.OPERATOR, batch) not in found


def test_a_fault_of_one_step_is_possible_only_there() -> None:
    found = {(c.phase, c.place) for c in possible_cells() if c.fault == "fail_commit"}
    assert found == {(Phase.COMMIT, Place.SINK)}
    assert {c.phase for c in possible_cells() if c.fault == "savepoint"} == {Phase.SAVEPOINT}


def test_a_fault_of_one_engine_is_not_possible_in_the_phases_of_the_other() -> None:
    executor = {c.phase for c in possible_cells() if c.fault == "kill_executor"}
    assert Phase.RUNNING in executor
    assert Phase.BARRIER not in executor
    assert Phase.RUNNING not in {c.phase for c in possible_cells() if c.fault == "throw_in_task"}


def test_a_fault_that_moves_the_clock_is_possible_only_where_no_stamp_is_needed() -> None:
    assert {c.phase for c in possible_cells() if c.fault == "clock_skew"} == {Phase.LOAD_END}

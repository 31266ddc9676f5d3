"""Coverage for the terminal: a table of faults and phases, and the cells that were never hit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.table import Table
from rich.text import Text

from streamquake.reports.coverage.cell import CheckpointKind, CoverageCell, Phase, Place
from streamquake.reports.coverage.coverage import Coverage, HitCounts

STYLES = {1: "green", 0: "red", None: "yellow"}
"""Whether all runs were as expected -> the style of their count."""
HEADS: Mapping[Phase, str] = {
    Phase.BARRIER: "barrier\nto ack",
    Phase.ACKNOWLEDGED: "ack to\nend",
    Phase.COMPLETED: "to\ncommit",
    Phase.SAVEPOINT: "save-\npoint",
    Phase.PLANNED: "batch\nplanned",
    Phase.RUNNING: "batch\nrunning",
    Phase.SINK_WRITTEN: "batch\nwritten",
    Phase.COMMITTED: "batch\ndone",
    Phase.LOAD_BEGIN: "load\nbegins",
    Phase.LOAD_END: "load\nends",
    Phase.BETWEEN: "in be-\ntween",
    Phase.UNKNOWN: "not\nknown",
}
"""Shorter names for the heads of columns; a phase without one has its own name."""
NEVER, UNPROVEN = "·", "?"


def coverage_table(coverage: Coverage) -> Table:
    """Faults as rows and phases as columns. A number counts the injections with proof; `?2` are two
    without, `·` was never hit, and an empty cell is not possible."""
    matrix = coverage.matrix()
    phases = _phases(coverage)
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 1, 0, 0))
    table.add_column("\nfault", no_wrap=True)
    for phase in phases:
        table.add_column(HEADS.get(phase, f"\n{phase}"), justify="right", no_wrap=True)
    for fault in recorded_faults(coverage):
        cells = (_cell_text(matrix.get((fault, phase))) for phase in phases)
        table.add_row(Text(fault), *cells)
    return table


def recorded_faults(coverage: Coverage) -> list[str]:
    """The faults of which something is recorded."""
    return sorted({hit.cell.fault for hit in coverage.hits})


def summary_lines(coverage: Coverage) -> Iterator[str]:
    """The totals of all records."""
    total = coverage.counts_of(coverage.hits)
    never, possible = coverage.never_hit(), coverage.possible
    faults = {cell.fault for cell in possible} - set(recorded_faults(coverage))
    yield (
        f"runs: {len(coverage.runs)}; injections: {total.verified} with a proven phase, "
        f"{total.not_proven} without"
    )
    yield f"{len(possible) - len(never)} of {len(possible)} possible cells hit"
    if faults:
        yield f"{len(faults)} of {len({cell.fault for cell in possible})} faults not in any record"


def never_hit_lines(cells: Sequence[CoverageCell]) -> Iterator[str]:
    """The cells, a line for each fault and phase: the kinds of checkpoints, and the places."""
    pairs: dict[tuple[str, Phase], list[CoverageCell]] = {}
    for cell in cells:
        pairs.setdefault((cell.fault, cell.phase), []).append(cell)
    for (fault, phase), group in pairs.items():
        places = [place for place in Place if any(cell.place is place for cell in group)]
        kinds = [kind for kind in CheckpointKind if any(cell.kind is kind for cell in group)]
        of_kinds = "" if kinds == [CheckpointKind.NONE] else f" ({', '.join(kinds)})"
        yield f"{fault}: {phase}{of_kinds}: {', '.join(places)}"


def _phases(coverage: Coverage) -> list[Phase]:
    """The phases of which a cell is possible or recorded, in their order."""
    present = {cell.phase for cell in coverage.cells()}
    return [phase for phase in Phase if phase in present]


def _cell_text(counts: HitCounts | None) -> Text:
    if counts is None:
        return Text("")
    unproven = f"{UNPROVEN}{counts.not_proven}" if counts.not_proven else ""
    if not counts.verified:
        return Text(unproven or NEVER, style="dim")
    counted = Text(str(counts.verified), style=STYLES[counts.as_expected])
    return counted.append(f" {unproven}" if unproven else "", style="dim")

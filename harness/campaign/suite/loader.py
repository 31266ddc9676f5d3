"""Loading suites: by shipped name, by file, or every experiment of a folder, with every problem.

The experiments of a suite are read with it, so that nothing starts before all of them are valid.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamquake.harness.campaign.suite.model import RowSource, SuiteSource
from streamquake.harness.experiment.check import ALWAYS_ON
from streamquake.harness.experiment.loader import find_experiment, load_experiment
from streamquake.harness.experiment.model import Experiment
from streamquake.topologies.named_files import find_file
from streamquake.topologies.parsing import parse
from streamquake.topologies.problems import BadInput, Problem, bad_input, did_you_mean
from streamquake.topologies.yaml_document import Document, Place, read_document

SUITES = Path(__file__).parents[2] / "suites"
RECOVERY = "recovery"
"""The phases of a recovery are figures too, whether or not the check of that name is requested."""
FIGURES_FROM = (*ALWAYS_ON, RECOVERY)


@dataclass(frozen=True, kw_only=True)
class Row:
    """One row: its source in the document, and the files of its experiments."""

    source: RowSource
    experiment: Path | None
    """None where the claim cannot be measured."""
    control: Path | None
    names: tuple[str, ...]
    """The names of its experiments: its own, those of its series, the control's last."""
    series: tuple[Path, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Suite:
    """A suite, complete: every experiment was found and is valid."""

    name: str
    description: str
    rows: tuple[Row, ...]
    seed: int | None = None


def load_suite(name_or_path: str) -> Suite:
    """A shipped suite by name, any by path, or the experiments of a folder. Raises BadInput with
    every problem of the suite and of its experiments."""
    if Path(name_or_path).is_dir():
        return _of_folder(Path(name_or_path))
    try:
        path = find_file("suite", name_or_path, shipped=SUITES, suffix=".yaml", beside=None)
    except LookupError as error:
        raise bad_input(name_or_path, str(error)) from error
    return suite_of(read_document(path), beside=path.parent)


def suite_of(document: Document, *, beside: Path) -> Suite:
    """The suite of a document whose file is in the folder `beside`. Raises BadInput."""
    source, problems = parse(SuiteSource, document)
    parser = _SuiteParser(document, beside, list(problems))
    rows = parser.rows()
    if source is None or parser.problems:
        raise BadInput(dict.fromkeys(parser.problems))
    description = " ".join(source.description.split())
    return Suite(name=source.name, description=description, rows=rows, seed=source.seed)


def is_suite(document: Document) -> bool:
    """Whether a document is a suite, not an experiment or a topology."""
    return "rows" in document.data


def _of_folder(folder: Path) -> Suite:
    """Every experiment of a folder; its topologies and suites are left out."""
    rows: list[Row] = []
    problems: list[Problem] = []
    for path in sorted(folder.resolve().glob("*.yaml")):
        try:
            document = read_document(path)
            if is_suite(document) or "services" in document.data:
                continue
            experiment = load_experiment(str(path))
        except BadInput as bad:
            problems += bad.problems
            continue
        source = RowSource(experiment=str(path))
        rows.append(Row(source=source, experiment=path, control=None, names=(experiment.name,)))
    if not rows and not problems:
        problems.append(Problem(file=str(folder), message="no experiment (*.yaml) in this folder"))
    if problems:
        raise BadInput(problems)
    return Suite(name=folder.resolve().name, description="", rows=tuple(rows))


class _SuiteParser:
    """The parser of one suite: its document, and the problems found so far."""

    def __init__(self, document: Document, beside: Path, problems: list[Problem]) -> None:
        self._document = document
        self._beside = beside
        self.problems = problems
        self._loaded: dict[Path, Experiment | None] = {}

    def rows(self) -> tuple[Row, ...]:
        """The valid rows; `problems` has the mistakes of the others."""
        written = self._document.data.get("rows")
        found = [
            self._row(data, ("rows", number))
            for number, data in enumerate(written if isinstance(written, tuple) else ())
            if isinstance(data, Mapping)
        ]
        return tuple(row for row in found if row is not None)

    def _row(self, data: Mapping[str, Any], at: Place) -> Row | None:
        source, wrong = parse(RowSource, self._document, at)
        self.problems += wrong
        # The experiments are looked up in an invalid row too, so that their problems are reported.
        experiment = self._experiment(data.get("experiment"), (*at, "experiment"))
        control = self._experiment(data.get("control"), (*at, "control"))
        series = [*self._series(data.get("series"), (*at, "series"))]
        if source is not None and source.unavailable is not None:
            return Row(source=source, experiment=None, control=None, names=())
        if (
            source is None
            or experiment is None
            or None in series
            or (source.control and control is None)
        ):
            return None
        found = [entry for entry in (experiment, *series, control) if entry is not None]
        self._check_figures(source, at, [loaded for _, loaded in found])
        return Row(
            source=source,
            experiment=experiment[0],
            control=control[0] if control else None,
            names=tuple(loaded.name for _, loaded in found),
            series=tuple(point[0] for point in series if point),
        )

    def _series(self, written: Any, at: Place) -> Iterator[tuple[Path, Experiment] | None]:
        for number, point in enumerate(written if isinstance(written, tuple) else ()):
            name = point.get("experiment") if isinstance(point, Mapping) else None
            yield self._experiment(name, (*at, number, "experiment"))

    def _experiment(self, name: Any, at: Place) -> tuple[Path, Experiment] | None:
        """The file of an experiment, and the experiment; its problems are reported once."""
        if not isinstance(name, str) or not name:
            return None
        try:
            path = find_experiment(name, self._beside)
        except BadInput as bad:
            self.problems += [self._document.problem(at, p.message) for p in bad.problems]
            return None
        if path not in self._loaded:
            try:
                self._loaded[path] = load_experiment(str(path), seed=0)
            except BadInput as bad:
                self.problems += bad.problems
                self._loaded[path] = None
        found = self._loaded[path]
        return None if found is None else (path, found)

    def _check_figures(self, source: RowSource, at: Place, experiments: list[Experiment]) -> None:
        known = {check.title for experiment in experiments for check in experiment.checks}
        known |= set(FIGURES_FROM)
        for place, figure in _figures(source, at):
            if (wrong := _wrong_figure(figure, known)) is not None:
                self.problems.append(self._document.problem(place, wrong))


def _figures(source: RowSource, at: Place) -> Iterator[tuple[Place, str]]:
    for number, figure in enumerate(source.figures):
        yield (*at, "figures", number), figure
    for number, relation in enumerate(source.relations):
        yield (*at, "relations", number, "figure"), relation.figure
    for number, slope in enumerate(source.slopes):
        yield (*at, "slopes", number, "figure"), slope.figure
        if slope.over is not None:
            yield (*at, "slopes", number, "over"), slope.over


def _wrong_figure(figure: str, known: Collection[str]) -> str | None:
    check, dot, count = figure.partition(".")
    if not dot or not count:
        return f'expected CHECK.COUNT, such as `recovery.restarted_s`, got "{figure}"'
    if check not in known:
        message = (
            f'"{figure}": no check called "{check}" is requested by the experiments of this row'
        )
        return message + did_you_mean(check, known)
    return None

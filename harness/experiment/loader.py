"""Loading experiments: resolves names, reads files, reports every problem of every part at once."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel

from streamquake.cluster.engines.engine import job_runner
from streamquake.cluster.topology_validation import checked_topology
from streamquake.faults.schedule.random_schedule import Draw
from streamquake.faults.schedule.step import Step
from streamquake.faults.schedule.target import on_topology
from streamquake.harness.experiment.check import Check
from streamquake.harness.experiment.check_sql import unsafe_queries
from streamquake.harness.experiment.check_validation import check_problems
from streamquake.harness.experiment.current_names import with_current_names
from streamquake.harness.experiment.document import (
    ExperimentSource,
    Problems,
    checks_of,
    source_of,
    step_of,
    workload_of,
)
from streamquake.harness.experiment.job_placeholders import placeholders
from streamquake.harness.experiment.job_reader import JobReader
from streamquake.harness.experiment.model import JOB, OTHER_JOBS, Experiment, Job
from streamquake.harness.experiment.overrides import Override, apply, read_settings
from streamquake.harness.experiment.recorded_plan import reject_files
from streamquake.harness.experiment.restart_validation import whole_params
from streamquake.harness.experiment.schedule_drawing import drawn_steps
from streamquake.harness.experiment.validation import broken_rules
from streamquake.harness.experiment.workload import Workload
from streamquake.harness.reconcile.reading.record_format import RecordFormat, with_schemas
from streamquake.topologies.base_documents import KEY, merge_with_base
from streamquake.topologies.limits import SEED_LIMIT
from streamquake.topologies.loader import find_topology
from streamquake.topologies.model import Topology
from streamquake.topologies.named_files import file_beside, find_file
from streamquake.topologies.parsing import value_text
from streamquake.topologies.problems import BadInput, Problem, bad_input
from streamquake.topologies.templates import render
from streamquake.topologies.yaml_document import (
    Document,
    Place,
    frozen,
    read_document,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXPERIMENTS = Path(__file__).parents[1] / "experiments"
T = TypeVar("T")
LARGEST_SEED = 2**31 - 1
TOPOLOGY_PATH = "topology."


def load_experiment(
    name_or_path: str, *, sets: Sequence[str] = (), seed: int | None = None
) -> Experiment:
    """A shipped experiment by name, or any by path, with `sets` (`path=value`) applied.

    The seed is the argument, else the document's, else random. Raises BadInput with all problems.
    """
    path = find_experiment(name_or_path)
    return experiment_of(read_document(path), beside=path.parent, sets=sets, seed=seed)


def _base(name: str, beside: Path) -> Document:
    """The document that another one is a variant of; a variant may change parts of the topology."""
    document = read_document(find_experiment(name, beside))
    topology = document.data.get("topology")
    if not isinstance(topology, str):
        return document
    return replace(document, data={**document.data, "topology": {KEY: topology}})


def find_experiment(name_or_path: str, beside: Path | None = None) -> Path:
    """The file of an experiment. Raises BadInput."""
    try:
        return find_file(
            "experiment", name_or_path, shipped=EXPERIMENTS, suffix=".yaml", beside=beside
        )
    except LookupError as error:
        raise bad_input(name_or_path, str(error)) from error


def experiment_of(
    document: Document,
    *,
    beside: Path,
    sets: Sequence[str] = (),
    seed: int | None = None,
    spark: Callable[[], SparkSession] | None = None,
) -> Experiment:
    """The experiment of a document whose file is in `beside`, with the current names of faults.
    With `spark` the SQL of its checks is validated too. Raises BadInput."""
    layers = merge_with_base(document, lambda name: _base(name, beside))
    parser = _ExperimentParser(layers, beside, sets)
    experiment = _without_problems(*parser.experiment(seed))
    problems = [
        layers.problem((*_place_of_check(layers, title), parameter), message)
        for title, parameter, message in (unsafe_queries(experiment, spark) if spark else ())
    ]
    if problems:
        raise BadInput(problems)
    return with_current_names(experiment)


def given_seed(
    document: Document, *, beside: Path, sets: Sequence[str] = (), otherwise: int
) -> int:
    """The seed that the settings, the document or its base gives, or else another one. Raises
    BadInput for an unknown base."""
    layers = merge_with_base(document, lambda name: _base(name, beside))
    layers, _ = apply(layers, read_settings(sets)[0], ExperimentSource)
    given = layers.data.get("seed")
    # Any other value is reported when the experiment is read.
    return given if isinstance(given, int) else otherwise


def _without_problems(experiment: Experiment | None, problems: Problems) -> Experiment:
    if experiment is None or problems:
        raise BadInput(dict.fromkeys(problems))
    return experiment


def topology_for_use(name_or_path: str, beside: Path | None = None) -> Topology:
    """A valid topology to be deployed without an experiment. Raises BadInput with all problems."""
    topology, problems = checked_topology(find_topology(name_or_path, beside))
    if topology is None or problems:
        raise BadInput(problems)
    if not topology.nodes():
        raise bad_input(
            name_or_path,
            "it has only existing services, so nothing is to be deployed; name it in an experiment",
        )
    return topology


def experiment_document(experiment: Experiment) -> dict[str, Any]:
    """The experiment in the shape of YAML, with its topology and SQL inside.

    `experiment_of` parses it into the same experiment.
    """
    document = experiment.model_dump(mode="json", by_alias=True, exclude_none=True)
    document["faults"] = [step.document() for step in experiment.faults]
    return document


def experiment_of_plan(
    plan: Mapping[str, Any], file: str, seed: int | None = None, sets: Sequence[str] = ()
) -> Experiment:
    """The experiment that a run's manifest recorded; no other file is read but a jar.

    Former names of faults stay, because the history of the run has them too. Raises BadInput.
    """
    document = Document(file=file, data=frozen(plan))
    reject_files(document)
    parser = _ExperimentParser(document, Path(file).parent, sets, recorded=True)
    return _without_problems(*parser.experiment(seed))


class _ExperimentParser:
    """The state of parsing one experiment: its document, and the problems found so far."""

    def __init__(
        self, document: Document, beside: Path, sets: Sequence[str], *, recorded: bool = False
    ) -> None:
        self._beside = beside
        self._recorded = recorded
        """Whether it is a recorded plan, which may name no file to read."""
        settings, self.problems = read_settings(sets)
        self._into_topology = [
            replace(each, path=each.path.removeprefix(TOPOLOGY_PATH))
            for each in settings
            if each.path.startswith(TOPOLOGY_PATH)
        ]
        plain = [each for each in settings if not each.path.startswith(TOPOLOGY_PATH)]
        self._document = self._set(document, plain, ExperimentSource)
        self._jobs = JobReader(self._document, beside)

    def experiment(self, seed: int | None) -> tuple[Experiment | None, Problems]:
        """The experiment, if its parts could be read, and every problem."""
        source, wrong = source_of(self._document)
        self.problems += wrong
        workload, wrong = workload_of(self._document)
        self.problems += wrong
        if workload is not None and not self._recorded:
            workload = self._with_files(workload)
        checks, wrong = checks_of(self._document)
        self.problems += wrong
        topology = self._topology()
        steps = self._steps(topology)
        job, other_jobs = self._read_jobs(source, topology)
        if source is None or topology is None or workload is None:
            return None, self.problems
        if seed is None:
            seed = secrets.randbelow(LARGEST_SEED) if source.seed is None else source.seed
        elif not 0 <= seed <= SEED_LIMIT:
            message = f"expected a seed from 0 to {SEED_LIMIT}, got {value_text(seed)}"
            self.problems.append(Problem(file=self._document.file, path="seed", message=message))
            return None, self.problems
        experiment = Experiment(
            name=source.name,
            description=source.description.strip(),
            topology=topology,
            job=job,
            other_jobs=other_jobs,
            workload=workload,
            faults=tuple(steps.values()),
            checks=self._beside_the_document(checks),
            limits=source.limits,
            seed=seed,
            expect=source.expect,
        )
        self._judge(experiment, tuple(steps), drawn=source.draw is not None)
        if source.draw is not None and not self.problems:
            experiment = self._drawn(experiment, source.draw)
        return experiment, self.problems

    def _read_jobs(
        self, source: ExperimentSource | None, topology: Topology | None
    ) -> tuple[Job | None, Mapping[str, Job]]:
        """The job, and the other jobs, with what their files hold."""
        if source is None:
            return None, {}
        reader = self._jobs
        job = None if source.job is None else reader.job(source.job, topology, (JOB,))
        others = {
            name: reader.job(each, topology, (OTHER_JOBS, name))
            for name, each in source.other_jobs.items()
        }
        self.problems += reader.problems
        return job, others

    def _beside_the_document(self, checks: Sequence[Check]) -> tuple[Check, ...]:
        """The checks with the paths that the document wrote, and with what their files hold."""
        found = []
        for check in checks:
            try:
                found.append(check.beside(self._beside))
            except BadInput as error:
                self.problems += error.problems
            except (LookupError, ValueError, OSError) as error:
                place = (*_place_of_check(self._document, check.title), *check.files[:1])
                self.problems.append(self._document.problem(place, str(error)))
        return tuple(found)

    def _with_files(self, workload: Workload) -> Workload:
        """The workload with what its files hold."""
        at: Place = ("workload", workload.name)
        loads = workload.loads()
        return workload.with_loads(
            {below: self._load_with_files(load, (*at, *below)) for below, load in loads.items()}
        )

    def _load_with_files(self, load: Workload, place: Place) -> Workload:
        if isinstance(load, RecordFormat):
            load, wrong = with_schemas(load, self._beside, self._document, place)
            self.problems += wrong
            if wrong:
                return load
        try:
            return load.with_files(lambda name: file_beside(name, self._beside))
        except (LookupError, ValueError) as error:
            self.problems.append(self._document.problem(place, str(error)))
            return load

    def _drawn(self, experiment: Experiment, wanted: Draw) -> Experiment:
        """The experiment with a schedule of its seed; only of one without problems."""
        try:
            return experiment.model_copy(update={"faults": drawn_steps(experiment, wanted)})
        except LookupError as error:
            self.problems.append(self._document.problem(("draw",), str(error)))
            return experiment

    def _topology(self) -> Topology | None:
        value = self._document.data.get("topology")
        document = self._document
        if isinstance(value, str):
            try:
                document = find_topology(value, self._beside)
            except BadInput as error:
                self.problems += [self._at_its_name(p, value) for p in error.problems]
                return None
        elif not isinstance(value, Mapping):
            return None
        else:
            # A document of its own, so that settings and problems refer to the same places.
            lines = _below(document.lines, "topology")
            origins = _below(document.origins, "topology")
            document = replace(document, data=value, lines=lines, origins=origins)
            try:
                document = merge_with_base(document, lambda name: find_topology(name, self._beside))
            except BadInput as error:
                self.problems += error.problems
                return None
        document = self._set(document, self._into_topology, Topology)
        topology, wrong = checked_topology(document, recorded=self._recorded)
        self.problems += wrong
        return topology

    def _at_its_name(self, problem: Problem, name: str) -> Problem:
        """The problem of a missing topology, placed at the line that names the topology."""
        if problem.file != name:
            return problem
        return self._document.problem(("topology",), problem.message)

    def _steps(self, topology: Topology | None) -> dict[int, Step]:
        """Position in the document -> the step, if it could be parsed, with the topology's
        roles."""
        steps: dict[int, Step] = {}
        found = None if topology is None else job_runner(topology)
        engine = None if found is None or topology is None else topology.services[found[0]].engine
        entries = self._document.data.get("faults")
        for number, entry in enumerate(entries if isinstance(entries, tuple) else ()):
            if isinstance(entry, Mapping):
                step, wrong = step_of(self._document, ("faults", number), engine)
                self.problems += wrong
                if step is not None and topology is not None:
                    target = on_topology(step.target, topology)
                    params = step.params if wrong else whole_params(step)
                    steps[number] = step.model_copy(update={"target": target, "params": params})
        return steps

    def _judge(self, experiment: Experiment, positions: Sequence[int], *, drawn: bool) -> None:
        """Apply the rules between the parts. `positions` are the document's numbers of the steps
        that could be parsed."""
        for place, message in broken_rules(experiment):
            if place[0] == "faults":
                place = ("faults", positions[int(place[1])], *place[2:])
            elif place[0] == "checks":
                place = (*_place_of_check(self._document, str(place[1])), *place[2:])
            self.problems.append(self._document.problem(place, message))
        if self.problems:
            return
        for check, name, message in check_problems(experiment, drawn=drawn):
            place = (*_place_of_check(self._document, check), name)
            self.problems.append(self._document.problem(place, message))
        for place, file in self._jobs.files.items():
            name, kind = str(place[-2]), str(place[-1])
            try:
                program = experiment.jobs[name].programs()[kind]
                render(program, placeholders(experiment, "run", name), file)
            except BadInput as error:
                self.problems += error.problems

    def _set(
        self, document: Document, settings: Sequence[Override], model: type[BaseModel]
    ) -> Document:
        document, wrong = apply(document, settings, model)
        self.problems += wrong
        return document


def _place_of_check(document: Document, title: str) -> Place:
    """The place of a check's parameters."""
    entries = document.data.get("checks", ())
    named = (
        ("checks", number, name)
        for number, entry in enumerate(entries)
        if isinstance(entry, Mapping)
        for name, params in entry.items()
        if title == (params["name"] if isinstance(params, Mapping) and "name" in params else name)
    )
    return next(named, ("checks", 0, title))


def _below(places: Mapping[Place, T], key: str) -> dict[Place, T]:
    """The entries of the places below a key, with that key as the top."""
    return {place[1:]: known for place, known in places.items() if place[:1] == (key,)}

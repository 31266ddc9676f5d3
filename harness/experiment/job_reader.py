"""The jobs of an experiment's document: their programs, modules, jars and promises, from files."""

from __future__ import annotations

from pathlib import Path

from streamquake.cluster.engines.engine import job_runner
from streamquake.cluster.images.maven_jars import is_coordinates, snapshot_problem
from streamquake.harness.experiment.document import Problems
from streamquake.harness.experiment.model import Job
from streamquake.harness.experiment.outputs import JobPromise
from streamquake.harness.experiment.own_code import entry_problem, jar_problem, module_problem
from streamquake.harness.reconcile.reading.record_format import with_schemas
from streamquake.topologies.model import Topology
from streamquake.topologies.named_files import JOBS, file_beside, find_file, named_text
from streamquake.topologies.parsing import parse
from streamquake.topologies.problems import BadInput
from streamquake.topologies.templates import promise_mark, promise_text
from streamquake.topologies.yaml_document import Document, Place, parse_document

SUFFIXES = {"sql": ".sql", "pyspark": ".py"}


class JobReader:
    """Reads what the jobs of one document name, and collects the problems."""

    def __init__(self, document: Document, beside: Path) -> None:
        self.problems: Problems = []
        self.files: dict[Place, str] = {}
        """Place of a program -> the file that has its text."""
        self._document = document
        self._beside = beside

    def job(self, job: Job, topology: Topology | None, at: Place) -> Job:
        """The job with the texts of its programs and its promise, and a jar's full path."""
        if job.jar is not None:
            promise = self._with_schemas(job.promise, self._document, (*at, "promise"))
            jar = self._jar(job.jar, (*at, "jar"), job)
            return job.model_copy(update={"jar": jar, "promise": promise})
        texts = {kind: self._program(kind, given, at) for kind, given in job.programs().items()}
        modules = {name: self._module(name, given, at) for name, given in job.modules.items()}
        jars = tuple(self._jar(each, (*at, "jars", n)) for n, each in enumerate(job.jars))
        found = None if topology is None else job_runner(topology)
        supported = [kind for kind in texts if found is None or kind in found[1].programs]
        if supported and "promise" not in job.model_fields_set:
            promise = self._promise(supported[0], texts[supported[0]], at)
        else:
            promise = self._with_schemas(job.promise, self._document, (*at, "promise"))
        own = {"modules": modules, "jars": jars, "promise": promise}
        return job.model_copy(update={**texts, **own})

    def _program(self, kind: str, given: str, at: Place) -> str:
        """The text of a program; its file is remembered for the places in its promise."""
        text, path = self._text(given, SUFFIXES[kind], (*at, kind))
        self.files[*at, kind] = self._document.file if path is None else str(path)
        return text

    def _text(self, given: str, suffix: str | None, place: Place) -> tuple[str, Path | None]:
        """A text, which a document names by its file and a recorded plan holds; its file, if it was
        read."""
        if "\n" in given:
            return given, None
        path = self._file(given, suffix, place)
        if path is None:
            return "", None
        try:
            return named_text(path), path
        except ValueError as error:
            self.problems.append(self._document.problem(place, str(error)))
            return "", None

    def _module(self, name: str, given: str, at: Place) -> str:
        """The text of a Python module."""
        place = (*at, "modules", name)
        text, _ = self._text(given, None, place)
        if text and (problem := module_problem(name, text)):
            self.problems.append(self._document.problem(place, problem))
        return text

    def _jar(self, given: str, place: Place, started: Job | None = None) -> str:
        """The full path of a jar; as given where there is none, and for coordinates. `started` is
        the job of a jar that is started."""
        if is_coordinates(given):
            if problem := snapshot_problem(given):
                message = f"{problem}, or the jar by its path"
                self.problems.append(self._document.problem(place, message))
            return given
        path = self._file(given, None, place)
        if path is None:
            return given
        problem = jar_problem(path)
        if problem is None and started is not None:
            problem = entry_problem(path, started.entry_class)
        if problem is not None:
            self.problems.append(self._document.problem(place, problem))
        return str(path.resolve())

    def _file(self, name: str, suffix: str | None, place: Place) -> Path | None:
        """A file by its path, or a program with this ending also by the name of a shipped one."""
        try:
            if suffix is None:
                return file_beside(name, self._beside)
            return find_file("job", name, shipped=JOBS, suffix=suffix, beside=self._beside)
        except LookupError as error:
            self.problems.append(self._document.problem(place, str(error)))
            return None

    def _promise(self, kind: str, text: str, at: Place) -> JobPromise:
        block, file = promise_text(text, kind), self.files[*at, kind]
        if block is None:
            return JobPromise()
        first_line = text[: text.index(promise_mark(kind))].count("\n") + 1
        try:
            document = parse_document(block, file, first_line)
        except BadInput as error:
            self.problems += error.problems
            return JobPromise()
        promise, wrong = parse(JobPromise, document, ("streamquake",))
        self.problems += wrong
        return self._with_schemas(promise or JobPromise(), document, ("streamquake",))

    def _with_schemas(self, promise: JobPromise, document: Document, at: Place) -> JobPromise:
        """The promise with the texts of its outputs' schemas; their files are beside its
        document."""
        beside = self._beside if document is self._document else Path(document.file).parent
        outputs = {}
        for name, output in promise.outputs.items():
            outputs[name], wrong = with_schemas(output, beside, document, (*at, "outputs", name))
            self.problems += wrong
        return promise.model_copy(update={"outputs": outputs})

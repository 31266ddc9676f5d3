"""Plans that runs recorded: complete, so that no other file is read for one.

Where a document names a file, a recorded plan holds the file's text. A record may be written by
another person, and must not choose which files of this machine are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from streamquake.faults.fault import faults
from streamquake.harness.experiment.check import checks
from streamquake.harness.experiment.model import JOB, OTHER_JOBS
from streamquake.topologies.base_documents import KEY
from streamquake.topologies.named_files import is_shipped_job
from streamquake.topologies.parsing import value_at
from streamquake.topologies.problems import BadInput
from streamquake.topologies.yaml_document import Document, Place


def reject_files(document: Document) -> None:
    """Raise BadInput for every place of a recorded plan that names a file instead of its text."""
    problems = [
        document.problem(place, f"a record must hold the {what} itself, not the name of its file")
        for place, what in _texts(document.data)
        if _is_name(value_at(document.data, place))
    ]
    problems += [
        document.problem(
            place, "a record must hold the statements themselves, or name shipped ones"
        )
        for place in _statements(document.data)
        if _is_name(name := value_at(document.data, place)) and not is_shipped_job(name)
    ]
    problems += [
        document.problem(place, "a recorded plan must be complete, and have no base document")
        for place in ((KEY,), ("topology", KEY))
        if value_at(document.data, place) is not None
    ]
    if problems:
        raise BadInput(problems)


def _texts(plan: Any) -> Iterator[tuple[Place, str]]:
    """(place, kind) of the texts in a plan that a document names by their files."""
    yield ("topology",), "topology"
    for job in _jobs(plan):
        yield from _texts_of_job(plan, job)
    for service, nodes in _below(plan, ("topology", "services"), "nodes"):
        for role in nodes:
            yield ("topology", "services", service, "nodes", role, "rules"), "rule script"
    for service, files in _below(plan, ("topology", "services"), "files"):
        for path in files if isinstance(files, Mapping) else ():
            yield ("topology", "services", service, "files", path), "file"
    yield from _schemas(plan, ("workload",))
    entries = value_at(plan, ("checks",))
    for number, entry in enumerate(entries if isinstance(entries, tuple) else ()):
        for name in entry if isinstance(entry, Mapping) else ():
            for parameter in checks[name].files if name in checks else ():
                yield ("checks", number, name, parameter), parameter


def _jobs(plan: Any) -> Iterator[Place]:
    yield (JOB,)
    others = value_at(plan, (OTHER_JOBS,))
    for name in others if isinstance(others, Mapping) else ():
        yield OTHER_JOBS, name


def _texts_of_job(plan: Any, job: Place) -> Iterator[tuple[Place, str]]:
    yield (*job, "sql"), "program"
    yield (*job, "pyspark"), "program"
    modules = value_at(plan, (*job, "modules"))
    for name in modules if isinstance(modules, Mapping) else ():
        yield (*job, "modules", name), "module"
    yield from _schemas(plan, (*job, "promise", "outputs"))


def _schemas(plan: Any, described: Place) -> Iterator[tuple[Place, str]]:
    """Those of the formats of the parts at a place."""
    for name, schema in _below(plan, described, "schema"):
        place = (*described, name, "schema")
        yield place, "schema"
        for number in schema if isinstance(schema, Mapping) else ():
            yield (*place, number), "schema"


def _statements(plan: Any) -> Iterator[Place]:
    """The places at which a plan may name replacement statements of its job."""
    steps = value_at(plan, ("faults",))
    named = [(name, key) for name, fault in faults.items() for key in fault.statement_files]
    for number, _ in enumerate(steps if isinstance(steps, tuple) else ()):
        yield from (("faults", number, name, key) for name, key in named)


def _below(plan: Any, place: Place, key: str) -> Iterator[tuple[str, Any]]:
    """(name, value at the key) of each part at a place that has the key."""
    parts = value_at(plan, place)
    for name in parts if isinstance(parts, Mapping) else ():
        found = value_at(parts, (name, key))
        if found is not None:
            yield name, found


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and "\n" not in value

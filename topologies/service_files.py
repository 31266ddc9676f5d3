"""Reading the files that services name, so that a topology contains their texts."""

from __future__ import annotations

from pathlib import Path

from streamquake.topologies.model import Topology
from streamquake.topologies.named_files import file_beside, read_text
from streamquake.topologies.problems import Problem
from streamquake.topologies.yaml_document import Document, Place


def embed_files(
    topology: Topology, document: Document, at: Place
) -> tuple[Topology, list[Problem]]:
    """A topology with the text of every file in the `files` of its services, and the problems of
    these.

    A value of several lines is already the text, as in a recorded run; a path is resolved from the
    document's folder. A file that cannot be read is omitted.
    """
    problems: list[Problem] = []
    services = {}
    for name, service in topology.services.items():
        texts = {}
        for path, named in service.files.items():
            try:
                texts[path] = _text(named, Path(document.file).parent)
            except (LookupError, ValueError) as error:
                place = (*at, "services", name, "files", path)
                problems.append(document.problem(place, str(error)))
        services[name] = service.model_copy(update={"files": texts}) if service.files else service
    return topology.model_copy(update={"services": services}), problems


def _text(named: str, beside: Path) -> str:
    """The text of a file. Raises LookupError where there is none, ValueError where it cannot be
    read."""
    if "\n" in named:
        return named
    path = file_beside(named, beside)
    try:
        text = read_text(path)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from error
    return text if "\n" in text else f"{text}\n"

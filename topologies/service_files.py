"""The files that services name: a topology contains their texts, or their full paths."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from streamquake.topologies.model import Topology
from streamquake.topologies.named_files import file_beside, named_text
from streamquake.topologies.problems import Problem
from streamquake.topologies.secret_references import is_reference
from streamquake.topologies.yaml_document import Document, Place

LOCATION = ".location"
"""The end of the names of properties that are paths."""


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
    beside = Path(document.file).parent
    for name, service in topology.services.items():
        texts = {}
        for path, named in service.files.items():
            try:
                texts[path] = named if "\n" in named else named_text(file_beside(named, beside))
            except (LookupError, ValueError) as error:
                place = (*at, "services", name, "files", path)
                problems.append(document.problem(place, str(error)))
        properties = with_full_paths(service.properties, beside)
        services[name] = service.model_copy(update={"files": texts, "properties": properties})
    return topology.model_copy(update={"services": services}), problems


def with_full_paths(properties: Mapping[str, str], beside: Path) -> Mapping[str, str]:
    """Properties of clients with the full paths of the files that they name, which may be relative
    to a document, or begin with `~`."""
    return {
        name: str(beside.resolve() / os.path.expanduser(value))  # it keeps an unknown user
        if name.endswith(LOCATION) and not is_reference(value)
        else value
        for name, value in properties.items()
    }

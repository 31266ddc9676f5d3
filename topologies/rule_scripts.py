"""Reading the rule scripts that node groups name, so that a topology contains their text."""

from __future__ import annotations

import re
from pathlib import Path

from streamquake.topologies.model import NodeGroup, Topology
from streamquake.topologies.named_files import RULES, find_file, read_text
from streamquake.topologies.problems import Problem
from streamquake.topologies.yaml_document import Document, Place

RULE = re.compile(r"^RULE (.+)\n(?:.*\n)*?ENDRULE *$", re.MULTILINE)


def rule_names(text: str) -> tuple[str, ...]:
    """The names of a script's rules."""
    return tuple(name.strip() for name in RULE.findall(text))


def embed_rule_scripts(
    topology: Topology, document: Document, at: Place
) -> tuple[Topology, list[Problem]]:
    """A topology with the text of every script that its node groups name, and the problems of
    these.

    A value of several lines is already the text, as in a recorded run; a name is searched for among
    the shipped scripts, then in the document's folder. A script that cannot be read is omitted.
    """
    problems: list[Problem] = []
    services = {}
    for name, service in topology.services.items():
        nodes = {}
        for role, group in service.nodes.items():
            place = (*at, "services", name, "nodes", role, "rules")
            nodes[role], group_problems = _read(group, document, place)
            problems += group_problems
        services[name] = service.model_copy(update={"nodes": nodes})
    return topology.model_copy(update={"services": services}), problems


def _read(group: NodeGroup, document: Document, place: Place) -> tuple[NodeGroup, list[Problem]]:
    if group.rules is None:
        return group, []
    text, source = group.rules, "the text"
    without = group.model_copy(update={"rules": None})
    if "\n" not in text:
        try:
            path = find_file(
                "rule script", text, shipped=RULES, suffix=".btm", beside=Path(document.file).parent
            )
            text, source = read_text(path), str(path)
        except LookupError as error:
            return without, [document.problem(place, str(error))]
        except OSError as error:
            return without, [document.problem(place, f"{path} cannot be read: {error.strerror}")]
    if not RULE.search(text):
        message = f"expected rules, from a line `RULE NAME` to a line `ENDRULE`; {source} has none"
        return without, [document.problem(place, message)]
    return group.model_copy(update={"rules": text}), []

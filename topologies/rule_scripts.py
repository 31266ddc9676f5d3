"""Reading the rule scripts that node groups name, so that a topology contains their text."""

from __future__ import annotations

import re
from pathlib import Path

from streamquake.topologies.model import NodeGroup, Topology
from streamquake.topologies.named_files import RULES, find_file, named_text
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
    texts: list[str] = []
    problems: list[Problem] = []
    for script in group.rules:
        try:
            texts.append(_text(script, Path(document.file).parent))
        except ValueError as error:
            problems.append(document.problem(place, str(error)))
    return group.model_copy(update={"rules": tuple(texts) or None}), problems


def _text(script: str, beside: Path) -> str:
    """The text of a script. Raises ValueError when it cannot be read or contains no rule."""
    text, source = script, "the text"
    if "\n" not in text:
        path = _find(script, beside)
        text, source = named_text(path), str(path)
    if not RULE.search(text):
        raise ValueError(
            f"expected rules, from a line `RULE NAME` to a line `ENDRULE`; {source} has none"
        )
    return text


def _find(script: str, beside: Path) -> Path:
    try:
        return find_file("rule script", script, shipped=RULES, suffix=".btm", beside=beside)
    except LookupError as error:
        raise ValueError(str(error)) from error

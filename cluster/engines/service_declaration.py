"""The checks that every engine makes of a declared service: its roles, its image, its settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from streamquake.cluster.images.recipes import ImageRecipe, recipe
from streamquake.cluster.images.versions import UnknownImage
from streamquake.topologies.model import NodeSpec, Scalar, Service, Topology
from streamquake.topologies.problems import did_you_mean

Problems = list[tuple[tuple[str, ...], str]]
"""(path below the service, message)"""


def role_problems(
    declared: Service,
    known: Mapping[str, str],
    needed: Iterable[str],
    only_one: Iterable[str] = (),
    *,
    takes_rules: bool = False,
) -> Problems:
    """Unknown roles, missing roles, roles with more than one node where one is allowed, and rules
    for nodes that have no rule agent."""
    unknown = [
        (("nodes", role), f'{declared.engine} has no role "{role}"{did_you_mean(role, known)}')
        for role in declared.nodes
        if role not in known
    ]
    missing = [
        (("nodes",), f"{declared.engine} needs at least one node of the role {role}")
        for role in needed
        if role not in declared.nodes
    ]
    too_many = [
        (("nodes", role), f"expected one {role}, got {declared.nodes[role].count}")
        for role in only_one
        if role in declared.nodes and declared.nodes[role].count > 1
    ]
    return [*unknown, *missing, *too_many, *_rules_problems(declared, takes_rules)]


def _rules_problems(declared: Service, takes_rules: bool) -> Problems:
    problems: Problems = []
    for role, group in declared.nodes.items():
        if group.rules is None:
            continue
        place = ("nodes", role, "rules")
        if not takes_rules:
            message = f"a {role} of the engine {declared.engine} is started without a rule agent"
            problems.append((place, f"{message}; remove the rules"))
        elif foreign := group.image or declared.image:
            message = f"rules need the rule agent, which the image {foreign} does not contain"
            problems.append((place, f"{message}; remove the rules, or the image"))
    return problems


def owned_problems(declared: Service, owned: Iterable[str]) -> Problems:
    """Settings that a topology must not set because the plan of the nodes depends on them."""
    return [
        (("config", key), f"{key} is set by the engine {declared.engine} and cannot be given here")
        for key in owned
        if key in declared.config
    ]


def version_problems(declared: Service, kind: str) -> Problems:
    """A version, a connector or a plugin without an image recipe; images that the topology names
    may have any version, and bring their own connectors and plugins."""
    if _is_foreign(declared):
        brings = f"the image {declared.image or 'of each role'} brings its own"
        own = [key for key in ("connectors", "plugins") if getattr(declared, key)]
        return [((key,), f"{brings} {key}; remove the key") for key in own]
    for place, connectors, plugins in (
        ("version", {}, ()),
        ("connectors", declared.connectors, ()),
        ("plugins", {}, declared.plugins),
    ):
        try:
            recipe(kind, declared.version, connectors, plugins)
        except UnknownImage as error:
            return [((place,), str(error))]
    return []


def image_of(topology: Topology, node: NodeSpec, kind: str) -> str:
    """The image of a node: the one set for its group or its service, or the one built for the
    version."""
    declared = topology.services[node.service]
    return node.group.image or declared.image or _recipe_of(declared, kind).tag


def images_to_build(declared: Service, kind: str) -> tuple[ImageRecipe, ...]:
    """The recipe of a service's image; none where the topology names all images, and for a service
    that runs already."""
    if declared.endpoint is not None or _is_foreign(declared):
        return ()
    return (_recipe_of(declared, kind),)


def as_text(value: Scalar) -> str:
    """A setting in the syntax of the engines' own files: true, not True."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _recipe_of(declared: Service, kind: str) -> ImageRecipe:
    return recipe(kind, declared.version, declared.connectors, declared.plugins)


def _is_foreign(declared: Service) -> bool:
    return declared.image is not None or all(g.image for g in declared.nodes.values())

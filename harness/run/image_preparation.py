"""Make sure that every image of a topology exists before anything is started."""

from __future__ import annotations

from collections.abc import Callable

from streamquake.cluster.cluster import all_nodes
from streamquake.cluster.engines.engine import PortAllocator, engine
from streamquake.cluster.images.build import ensure, with_parents
from streamquake.cluster.images.recipes import ImageRecipe, recipe
from streamquake.cluster.images.store import ImageStore
from streamquake.topologies.model import Topology


def recipes_of(topology: Topology) -> tuple[ImageRecipe, ...]:
    """The images a topology is built from, and the toolbox every run needs."""
    kinds = [
        kind
        for name, service in topology.services.items()
        for kind in engine(service.engine).images(topology, name)
    ]
    named = (kind.partition(":") for kind in kinds)
    return (recipe("toolbox"), *(recipe(kind, version or None) for kind, _, version in named))


def images_of(topology: Topology) -> dict[str, str]:
    """Role -> the image its nodes run; our own tags hold a hash of all that goes in."""
    ports = PortAllocator(host=lambda node, port: port)
    return {
        node.role_name: engine(topology.services[node.service].engine)
        .plan(topology, node, ports)
        .image
        for node in all_nodes(topology)
    }


def not_verified(topology: Topology) -> tuple[str, ...]:
    """The releases of a topology whose files nobody here has pinned checksums of."""
    used = with_parents(recipes_of(topology))
    return tuple(f"{each.kind} {each.release}" for each in used if not each.verified)


def ensure_images(
    topology: Topology, store: ImageStore, show_message: Callable[[str], None]
) -> None:
    """Build what is missing, and say which releases are not verified. Raises ImageBuildFailed."""
    for release in not_verified(topology):
        show_message(
            f"warning: {release} is not verified: no checksums of it are pinned; look at its files,"
            " then: python -m streamquake.cluster.images.pin"
        )
    ensure(recipes_of(topology), store, show_message)

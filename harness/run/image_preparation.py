"""Builds or fetches the missing images of a topology before any container starts."""

from __future__ import annotations

from collections.abc import Callable

from streamquake.cluster.cluster import all_nodes
from streamquake.cluster.engines.engine import PortAllocator, engine
from streamquake.cluster.images.build import ensure, with_parents
from streamquake.cluster.images.recipes import BUILT, ImageRecipe, recipe
from streamquake.cluster.images.store import ImageStore
from streamquake.harness.run.foreign_images import foreign_image_problems
from streamquake.topologies.errors import ErrorKind, StreamquakeError
from streamquake.topologies.model import Topology

FETCH_LIMIT_S = 600.0
"""How long the container engine may take to fetch an image that a topology names."""


class ImageMissing(StreamquakeError):
    """An image that a topology names is not there and cannot be fetched, or is not built on one of
    ours although its nodes need that."""

    kind = ErrorKind.IMAGE_FAILED


def recipes_of(topology: Topology) -> tuple[ImageRecipe, ...]:
    """The recipes of a topology's images, and of the toolbox that every run needs."""
    built = [
        image
        for name, service in topology.services.items()
        for image in engine(service.engine).images(topology, name)
    ]
    return (recipe("toolbox"), *built)


def images_of(topology: Topology) -> dict[str, str]:
    """Role -> the image of its nodes; the tag of an image built here has a hash of its inputs."""
    ports = PortAllocator(host=lambda node, port: port)
    return {
        node.role_name: engine(topology.services[node.service].engine)
        .plan(topology, node, ports)
        .image
        for node in all_nodes(topology)
    }


def not_verified(topology: Topology) -> tuple[str, ...]:
    """The releases of a topology whose files have no pinned checksums."""
    used = with_parents(recipes_of(topology))
    return tuple(f"{image.kind} {image.release}" for image in used if not image.verified)


def ensure_images(
    topology: Topology, store: ImageStore, show_message: Callable[[str], None]
) -> None:
    """Build the missing images, fetch those that the topology names, and warn of releases that are
    not verified. Raises ImageBuildFailed and ImageMissing."""
    for release in not_verified(topology):
        show_message(
            f"warning: {release} is not verified, because its checksums are not pinned; check its "
            "files, then run: python -m streamquake.cluster.images.pin"
        )
    ensure(recipes_of(topology), store, show_message)
    for image in sorted(set(images_of(topology).values())):
        _require(image, store, show_message)
    for place, message in foreign_image_problems(topology, lambda: store):
        raise ImageMissing(f"{'.'.join(map(str, place))}: {message}")


def _require(image: str, store: ImageStore, show_message: Callable[[str], None]) -> None:
    if store.exists(image):
        return
    if image.startswith(BUILT):
        where = "is no image of this version of Streamquake"
    else:
        show_message(f"fetching the image {image}")
        if store.pull(image, FETCH_LIMIT_S):
            return
        where = "is not on this machine, and the container engine cannot fetch it"
    raise ImageMissing(
        f"the image {image} {where}; build it (`docker build -t {image} FOLDER`), load it (`docker "
        "load`), or name another one in the topology"
    )

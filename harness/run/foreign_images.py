"""Images that a topology names for nodes of a shipped engine.

Such nodes need the entry points, folders and class archives of the images that are built here, so
their images must be built on these. The images of the projects themselves are laid out otherwise: a
node of them would never be ready.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from streamquake.cluster.images.recipes import IMAGE_KINDS, recipe
from streamquake.cluster.images.store import ImageStore
from streamquake.topologies.model import Service, Topology
from streamquake.topologies.yaml_document import Place

OF_PROJECTS = frozenset(
    {
        *("flink", "apache/flink"),
        *("apache/kafka", "apache/kafka-native", "confluentinc/cp-kafka", "confluentinc/cp-server"),
        *("apache/hadoop", "spark", "apache/spark", "zookeeper"),
    }
)
"""Repositories of the projects' own images, which no image here is built on."""


def foreign_image_problems(
    topology: Topology, store: Callable[[], ImageStore | None]
) -> Iterator[tuple[Place, str]]:
    """(place, message) of each named image that is not built on one of ours. Where `store` gives
    None, and for an image that is not in it, only the projects' own images are known."""
    named = [
        (("services", name, *place), service, image)
        for name, service in topology.services.items()
        if service.endpoint is None and service.engine in IMAGE_KINDS
        for place, image in _named_images(service)
    ]
    images = store() if named else None
    for place, service, image in named:
        if _is_foreign(image, images):
            yield place, _message(service, image)


def _is_foreign(image: str, store: ImageStore | None) -> bool:
    built_here = None if store is None else store.is_built_here(image)
    return _repository(image) in OF_PROJECTS if built_here is None else not built_here


def _named_images(service: Service) -> Iterator[tuple[Place, str]]:
    if service.image is not None:
        yield ("image",), service.image
    for role, group in service.nodes.items():
        if group.image is not None:
            yield ("nodes", role, "image"), group.image


def _repository(image: str) -> str:
    """The name of an image without registry, tag and digest."""
    path = image.partition("@")[0]
    first, _, rest = path.partition("/")
    if rest and ({".", ":"} & set(first) or first == "localhost"):
        path = rest
    return path.partition(":")[0].removeprefix("library/")


def _message(service: Service, image: str) -> str:
    runs, ours = service.engine, recipe(service.engine).tag
    return (
        f"the image {image} is not built on an image of Streamquake, whose entry point and folders "
        f"the nodes of {runs} need; take a `version:` in its place, which runs {runs} as it was "
        f"released, or build it with `FROM {ours}` (`streamquake images build`)"
    )

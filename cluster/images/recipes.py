"""The image recipes, and the tag of an image: kind, release and a hash of all its inputs."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from types import MappingProxyType

from streamquake.cluster.images.maven_jars import is_coordinates, snapshot_problem
from streamquake.cluster.images.versions import UnknownImage, built_lines, debian, hint, pins_of

HERE = Path(__file__).parent
BUILT = "streamquake/"
"""The prefix of images that are built here; no registry has them."""
HASHED = re.compile(r"-[0-9a-f]{12}$")
"""The end of the tag of an image."""
IMAGE_KINDS = (
    "base",
    "toolbox",
    "kafka",
    "hdfs",
    "zookeeper",
    "flink",
    "spark",
    "postgres",
    "versitygw",
)
ROOTFS_KINDS = ("base", "toolbox", "postgres", "versitygw")
"""These start from Debian itself, the others from `base`."""
SPARK_SETS = ("spark-jars", "spark-avro")
"""Sets of jars for the Spark on this machine, in addition to its own."""


@dataclass(frozen=True)
class ImageRecipe:
    """The recipe of an image; `pins` contains every version and checksum that it uses."""

    kind: str
    version: str
    pins: Mapping[str, str] = field(hash=False)
    folder: Path
    parent: ImageRecipe | None = None
    connectors: tuple[tuple[str, str], ...] = ()
    """(name, version) of each connector that is set apart from the release."""
    plugins: tuple[str, ...] = ()
    """The Maven coordinates of the plugins that this image adds to its parent."""

    @property
    def release(self) -> str:
        """The exact release in the image."""
        return self.pins.get("release", self.version)

    @property
    def checksums(self) -> Path:
        """The pinned checksums of the fetched jars."""
        apart = [f"{name}-{version}" for name, version in self.connectors]
        return self.folder / f"{'+'.join([self.release, *apart])}.sha256"

    @property
    def verified(self) -> bool:
        """Whether its fetched files are compared with pinned checksums."""
        return self.checksums.exists() or not (self.folder / "pom.xml").exists()

    @cached_property
    def digest(self) -> str:
        """A hash of the recipe's files, its pins and its parent."""
        total = hashlib.sha256()
        for path in self._files():
            total.update(f"{path.relative_to(self.folder)}\n".encode())
            total.update(path.read_bytes())
        total.update(repr(sorted(self.pins.items())).encode())
        total.update(self.parent.digest.encode() if self.parent else b"")
        return total.hexdigest()

    @cached_property
    def tag(self) -> str:
        """`streamquake/<kind>:<release>-<hash>`."""
        return f"{BUILT}{self.kind}:{self.release}-{self.digest[:12]}"

    def key(self, *names: str) -> str:
        """A cache key of the named files and the pins only; edits of other files do not change
        it."""
        total = hashlib.sha256(repr(sorted(self.pins.items())).encode())
        for path in self._files():
            if path.relative_to(self.folder).parts[0] in names:
                total.update(path.read_bytes())
        return f"{self.kind}-{self.release}-{total.hexdigest()[:12]}"

    def _files(self) -> Iterator[Path]:
        for path in sorted(self.folder.rglob("*")):
            foreign = path.suffix == ".sha256" and path != self.checksums
            if path.is_file() and not foreign and path.name != ".DS_Store":
                yield path


def recipe(
    kind: str,
    version: str | None = None,
    connectors: Mapping[str, str] = MappingProxyType({}),
    plugins: Iterable[str] = (),
) -> ImageRecipe:
    """The recipe of a kind; a version is a release line ("2.2") or an exact release ("2.2.0").
    `connectors` are versions set apart from the release, `plugins` the Maven coordinates of those
    that a Flink gets in addition. Raises UnknownImage."""
    if kind not in IMAGE_KINDS:
        raise UnknownImage(f"no image kind {kind!r}{hint(kind, IMAGE_KINDS)}")
    plain = _recipe(kind, version, tuple(sorted(connectors.items())))
    added = tuple(sorted(set(plugins)))
    return _with_plugins(plain, added) if added else plain


def recipe_named(image: str) -> ImageRecipe | None:
    """The recipe of an image that a topology names without its hash, as `streamquake/KIND` or
    `streamquake/KIND:VERSION`; None for any other image. Raises UnknownImage."""
    kind, _, version = image.removeprefix(BUILT).partition(":")
    if not image.startswith(BUILT) or HASHED.search(version):
        return None
    return recipe(kind, version or None)


def jar_set(kind: str) -> ImageRecipe:
    """A set of jars for the host, such as `spark-jars`: a recipe without an image."""
    return _recipe(kind)


def all_recipes() -> list[ImageRecipe]:
    """Every image that is built before a run needs it, parents first."""
    return [recipe(kind, line) for kind in IMAGE_KINDS for line in built_lines(kind)]


def _with_plugins(plain: ImageRecipe, plugins: tuple[str, ...]) -> ImageRecipe:
    """The recipe of an image that adds plugins to that of a Flink. Raises UnknownImage."""
    if plain.kind != "flink":
        raise UnknownImage(f"the {plain.kind} image takes no plugins; Flink does")
    for plugin in plugins:
        if not is_coordinates(plugin):
            raise UnknownImage(
                f"expected the Maven coordinates of a plugin, GROUP:ARTIFACT:VERSION, got {plugin}"
            )
        if problem := snapshot_problem(plugin):
            raise UnknownImage(problem)
    return replace(
        plain,
        pins={"release": plain.release, "plugins": " ".join(plugins)},
        folder=HERE / "flink-plugins",
        plugins=plugins,
        parent=plain,
    )


@cache
def _recipe(
    kind: str, version: str | None = None, connectors: tuple[tuple[str, str], ...] = ()
) -> ImageRecipe:
    found = pins_of(kind, version, dict(connectors))
    pins = dict(found.pins)
    has_parent = kind in IMAGE_KINDS and kind not in ROOTFS_KINDS
    if kind in ROOTFS_KINDS:
        pins |= {f"debian.{key}": value for key, value in debian().items()}
    if kind == "spark":
        pins |= {"spark-jars": jar_set("spark-jars").digest}
    return ImageRecipe(
        kind=kind,
        version=found.line,
        pins=pins,
        folder=HERE / kind,
        connectors=found.connectors,
        parent=_recipe("base", pins.get("base")) if has_parent else None,
    )

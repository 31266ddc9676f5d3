"""The image recipes, and the tag of an image: kind, release and a hash of all its inputs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import yaml

from streamquake.topologies.errors import ErrorKind, StreamquakeError

HERE = Path(__file__).parent
VERSIONS = HERE / "versions.yaml"
BUILT = "streamquake/"
"""The prefix of images that are built here; no registry has them."""
IMAGE_KINDS = ("base", "toolbox", "kafka", "hdfs", "zookeeper", "flink", "spark")
ROOTFS_KINDS = ("base", "toolbox")
"""These start from Debian itself, the others from `base`."""
SPARK_SETS = ("spark-jars", "spark-avro")
"""Sets of jars for the Spark on this machine, in addition to its own."""


class UnknownImage(StreamquakeError, ValueError):
    """A kind or version that no recipe describes."""

    kind = ErrorKind.IMAGE_FAILED


@dataclass(frozen=True)
class ImageRecipe:
    """The recipe of an image; `pins` contains every version and checksum that it uses."""

    kind: str
    version: str
    pins: Mapping[str, str] = field(hash=False)
    folder: Path
    parent: ImageRecipe | None = None

    @property
    def release(self) -> str:
        """The exact release in the image."""
        return self.pins.get("release", self.version)

    @property
    def checksums(self) -> Path:
        """The pinned checksums of the fetched jars."""
        return self.folder / f"{self.release}.sha256"

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


def recipe(kind: str, version: str | None = None) -> ImageRecipe:
    """The recipe of a kind; a version is a release line ("2.2") or an exact release ("2.2.0").
    Raises UnknownImage."""
    if kind not in IMAGE_KINDS:
        raise UnknownImage(f"no image kind {kind!r}{_hint(kind, IMAGE_KINDS)}")
    return _recipe(kind, version)


def jar_set(kind: str) -> ImageRecipe:
    """A set of jars for the host, such as `spark-jars`: a recipe without an image."""
    return _recipe(kind, None)


def all_recipes() -> list[ImageRecipe]:
    """Every pinned image, parents first."""
    return [recipe(kind, line) for kind in IMAGE_KINDS for line in _lines(kind)]


def debian() -> Mapping[str, str]:
    """The Debian suite, and its image in registries."""
    return dict(_versions()["debian"])


def client_image(program: str) -> str:
    """The image to run a package client in; "" where there is none."""
    return str(_versions()["clients"].get(program, ""))


@cache
def _recipe(kind: str, version: str | None) -> ImageRecipe:
    line, pins = _pins(kind, version)
    has_parent = kind in IMAGE_KINDS and kind not in ROOTFS_KINDS
    if kind in ROOTFS_KINDS:
        pins |= {f"debian.{key}": value for key, value in debian().items()}
    if kind == "spark":
        pins |= {"spark-jars": jar_set("spark-jars").digest}
    return ImageRecipe(
        kind=kind,
        version=line,
        pins=pins,
        folder=HERE / kind,
        parent=_recipe("base", pins.get("base")) if has_parent else None,
    )


def _pins(kind: str, version: str | None) -> tuple[str, dict[str, str]]:
    lines = _lines(kind)
    requested = version or str(_versions()[kind]["default"])
    line = requested if requested in lines else requested.rpartition(".")[0]
    if line not in lines:
        raise UnknownImage(
            f"no {kind} version {requested!r}{_hint(requested, lines)}; known: {', '.join(lines)}. "
            f"Another is one line under {kind}.versions in {VERSIONS}, "
            "or a topology's own `image:`"
        )
    pins = {key: str(value) for key, value in lines[line].items()}
    if line == requested or pins.get("release") == requested:
        return line, pins
    return line, {**pins, "release": requested, "sha256": ""}


def _lines(kind: str) -> dict[str, dict[str, Any]]:
    lines: dict[str, dict[str, Any]] = _versions()[kind]["versions"]
    return lines


@cache
def _versions() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(VERSIONS.read_text(encoding="utf-8"))
    return loaded


def _hint(requested: str, known: tuple[str, ...] | dict[str, dict[str, Any]]) -> str:
    close = get_close_matches(requested, list(known), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""

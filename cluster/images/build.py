"""Build the missing images, parents first."""

from __future__ import annotations

import platform
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from streamquake.cluster.images import contexts, fetch
from streamquake.cluster.images.clients import Clients
from streamquake.cluster.images.recipes import ImageRecipe, jar_set
from streamquake.cluster.images.store import ImageBuild, ImageBuildFailed, ImageStore, StepFailed

ShowMessage = Callable[[str], None]
REGISTRY_PATIENCE_S = 20.0
"""Long enough to pull a small base image on a slow connection, short if no registry answers."""


def ensure(recipes: Iterable[ImageRecipe], images: ImageStore, show_message: ShowMessage) -> None:
    """Build the missing images of the recipes and of their parents; raises `ImageBuildFailed`."""
    missing = [recipe for recipe in with_parents(recipes) if not images.exists(recipe.tag)]
    if not missing:
        return
    with _one_builder(show_message):
        for recipe in missing:
            if not images.exists(recipe.tag):
                _build(recipe, images, show_message)


def with_parents(recipes: Iterable[ImageRecipe]) -> list[ImageRecipe]:
    """The recipes and all their parents, each once, parents first."""
    ordered: dict[str, ImageRecipe] = {}
    for recipe in recipes:
        chain = [recipe]
        while (parent := chain[-1].parent) is not None:
            chain.append(parent)
        ordered.update((link.tag, link) for link in reversed(chain))
    return list(ordered.values())


def spark_jars(show_message: ShowMessage = lambda line: None) -> list[Path]:
    """The jars that PySpark needs in addition to its own to read Kafka and PostgreSQL, fetched at
    the first use."""
    return host_jars("spark-jars", show_message)


def host_jars(kind: str, show_message: ShowMessage = lambda line: None) -> list[Path]:
    """The jars of a set for the host, fetched at the first use."""
    recipe = jar_set(kind)
    if (ready := contexts.jars_folder(recipe)).is_dir():
        # Without the lock: a verdict would wait for another process that builds an image.
        return sorted(ready.glob("*.jar"))
    with _one_builder(show_message), _failed_step_as(recipe.tag):
        return sorted(contexts.jars(recipe, Clients(show_message)).glob("*.jar"))


def _build(recipe: ImageRecipe, images: ImageStore, show_message: ShowMessage) -> None:
    start = time.monotonic()
    show_message(f"{recipe.tag}: building")
    lines: list[str] = []
    with _failed_step_as(recipe.tag, lines), _context() as context:
        contexts.lay_out(recipe, context, _arch(), Clients(show_message, images))
        images.build(_plan(recipe, context, images, show_message), lines.append)
    show_message(f"{recipe.tag}: built in {time.monotonic() - start:.0f} s")


def _plan(
    recipe: ImageRecipe, context: Path, images: ImageStore, show_message: ShowMessage
) -> ImageBuild:
    if recipe.parent is not None:
        return ImageBuild(context, recipe.tag, {"PARENT": recipe.parent.tag})
    pulled, packages = recipe.pins["debian.image"], recipe.pins["packages"]
    if images.exists(pulled) or images.pull(pulled, REGISTRY_PATIENCE_S):
        return ImageBuild(context, recipe.tag, {"ROOTFS": pulled, "PACKAGES": packages})
    show_message("no container registry answers: building the base image from Debian's packages")
    return ImageBuild(context, recipe.tag, {"ROOTFS": _own_rootfs(recipe, images)})


def _own_rootfs(recipe: ImageRecipe, images: ImageStore) -> str:
    suite, packages = recipe.pins["debian.suite"], recipe.pins["packages"]
    key = recipe.key()
    tag = f"streamquake/rootfs:{key}"
    if not images.exists(tag):
        tar = fetch.debian_rootfs(suite, packages, f"rootfs-{key}")
        images.import_tar(tar, tag)
        shutil.rmtree(tar.parent)
    return tag


@contextmanager
def _one_builder(show_message: ShowMessage) -> Iterator[None]:
    """Only one process at a time builds: two would fetch and build the same things twice."""
    folder = fetch.cache_root()
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / "build.lock")
    try:
        lock.acquire(blocking=False)
    except Timeout:
        show_message("another process is building images: waiting for it")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


@contextmanager
def _context() -> Iterator[Path]:
    """A folder on the cache's own file system, where jars can be linked instead of copied."""
    parent = fetch.cache_root() / "contexts"
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=parent) as folder:
        yield Path(folder)


@contextmanager
def _failed_step_as(tag: str, lines: list[str] | None = None) -> Iterator[None]:
    """Write the log of a failed step, and raise ImageBuildFailed with its path."""
    try:
        yield
    except StepFailed as failed:
        log = "\n".join([*(lines or []), failed.log])
        path = fetch.cache_root() / "logs" / f"{tag.replace('/', '-').replace(':', '-')}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(log, encoding="utf-8")
        raise ImageBuildFailed(tag, failed.step, log, path) from failed


def _arch() -> str:
    """The processor architecture of this machine in Go's notation; Docker Desktop's engine has the
    same."""
    machine = platform.machine().lower()
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)

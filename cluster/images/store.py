"""The interface of image building to a container engine, and the errors of a build."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from streamquake.topologies.errors import ErrorKind, StreamquakeError

IMAGE_LABEL = "streamquake.image"
"""The label of every image that is built here, and of those built on them, by which `docker image
prune` can find them."""


class StepFailed(StreamquakeError):
    """One step of a build failed; `log` is the tool's whole output."""

    kind = ErrorKind.IMAGE_FAILED

    def __init__(self, step: str, log: str) -> None:
        super().__init__(step)
        self.step = step
        self.log = log


class ImageBuildFailed(StreamquakeError):
    """An image could not be built; the message has its tag, the failed step, the last lines of the
    log, and the log's path."""

    kind = ErrorKind.IMAGE_FAILED
    SHOWN_LINES = 15

    def __init__(self, tag: str, step: str, log: str, log_path: Path) -> None:
        tail = "\n".join(f"  {line}" for line in log.strip().splitlines()[-self.SHOWN_LINES :])
        super().__init__(f"image {tag}: {step} failed\n{tail}\n  whole log: {log_path}")
        self.tag = tag
        self.step = step
        self.log_path = log_path


@dataclass(frozen=True)
class ImageBuild:
    """One build: the Dockerfile's folder, the tag and the arguments."""

    context: Path
    tag: str
    args: Mapping[str, str]


@dataclass(frozen=True)
class ToolCall:
    """A command in a container, with folders of this machine mounted at the same paths."""

    step: str
    image: str
    command: Sequence[str]
    folder: Path
    env: Mapping[str, str]
    mounts: Sequence[Path]


class ImageStore(Protocol):
    """The images of one container engine."""

    def exists(self, tag: str) -> bool:
        """Whether the engine has this image."""
        ...

    def image_id(self, tag: str) -> str | None:
        """The engine's id of this image, which changes with its content; None without one."""
        ...

    def is_built_here(self, tag: str) -> bool | None:
        """Whether this image is one that is built here, or is built on one; None without it."""
        ...

    def pull(self, ref: str, timeout_s: float) -> bool:
        """Pull the image; returns whether the engine has it within the time."""
        ...

    def import_tar(self, path: Path, tag: str) -> None:
        """Create an image from a root file system; raises `StepFailed`."""
        ...

    def build(self, build: ImageBuild, log: Callable[[str], None]) -> None:
        """Build and tag; every output line goes to `log`; raises `StepFailed`."""
        ...

    def run(self, call: ToolCall) -> str:
        """Run a command to its end as this user; returns its output, raises `StepFailed`."""
        ...

"""Run the package clients: on this machine, or in their own image if one is not installed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from streamquake.cluster.images.store import ImageStore, StepFailed, ToolCall
from streamquake.cluster.images.versions import client_image

INSTALL_HINTS = {
    "mvn": "install Maven 3.8 or newer (Debian: apt-get install maven; macOS: brew install maven)",
    "java": "install a Java 17 runtime (Debian: apt-get install openjdk-17-jre-headless)",
    "go": "install Go 1.21 or newer (macOS: brew install go)",
    "mmdebstrap": "use an engine that reaches a container registry, or install mmdebstrap",
}
BUILD_TOOLS = ("mvn", "go", "mmdebstrap")
"""What fetches jars, builds Go programs, and makes a base image where no container registry
answers."""
GO_NEEDED = (1, 21)
"""From this version Go fetches the release that a module needs."""
PULL_PATIENCE_S = 600.0
HOME = "/tmp/home"
"""A home folder in a client's image that any user can write."""


class Clients:
    """Runs commands on this machine, or in a container if the client is not installed here."""

    def __init__(
        self, show_message: Callable[[str], None], images: ImageStore | None = None
    ) -> None:
        self.show_message = show_message
        self._images = images

    def run(
        self,
        step: str,
        command: Sequence[str],
        folder: Path,
        env: Mapping[str, str] | None = None,
        mounts: Sequence[Path] = (),
    ) -> str:
        """The command's output; raises `StepFailed` with it when the command fails or is missing.

        `mounts` are the folders besides its own that the command reads and writes.
        """
        image = "" if _usable(command[0]) else client_image(command[0])
        images = self._images
        if not image or images is None or not _obtain(images, image):
            return run_here(step, command, folder, env)
        self.show_message(f"{command[0]} is not installed here: running it in {image}")
        inside = {"HOME": HOME, "MAVEN_OPTS": f"-Duser.home={HOME}", **(env or {})}
        return images.run(ToolCall(step, image, command, folder, inside, mounts))


def tools_not_here(images: ImageStore) -> tuple[str, ...]:
    """The programs that builds may need and that neither this machine nor the engine has; pulls
    nothing."""
    return tuple(
        program
        for program in BUILD_TOOLS
        if not _usable(program) and not ((image := client_image(program)) and images.exists(image))
    )


def run_here(
    step: str, command: Sequence[str], folder: Path, env: Mapping[str, str] | None = None
) -> str:
    """As `Clients.run`, only on this machine."""
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
    except FileNotFoundError:
        program = Path(command[0]).name
        hint = INSTALL_HINTS.get(program, f"install {program}")
        raise StepFailed(step, f"{program} is not installed: {hint}") from None
    if done.returncode != 0:
        raise StepFailed(step, done.stdout)
    return done.stdout


def _usable(program: str) -> bool:
    if shutil.which(program) is None:
        return False
    return program != "go" or _go_version() >= GO_NEEDED


def _go_version() -> tuple[int, int]:
    try:
        output = run_here("reading Go's version", ["go", "version"], Path.cwd())
    except StepFailed:
        return (0, 0)
    found = re.search(r"go(\d+)\.(\d+)", output)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _obtain(images: ImageStore, image: str) -> bool:
    return images.exists(image) or images.pull(image, PULL_PATIENCE_S)

"""The images of a Docker engine, as the image builder needs them."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import docker
from docker import errors

from streamquake.cluster.images.store import IMAGE_LABEL, ImageBuild, StepFailed, ToolCall

BUILD_TIMEOUT_S = 1800


class DockerImages:
    """An ImageStore on the docker SDK."""

    def __init__(self, client: docker.DockerClient | None = None) -> None:
        self._client = client or docker.from_env(timeout=BUILD_TIMEOUT_S)

    def exists(self, tag: str) -> bool:
        """Whether the engine has this image."""
        return self.image_id(tag) is not None

    def image_id(self, tag: str) -> str | None:
        """The engine's id of this image, which changes with its content; None without one."""
        try:
            return str(self._client.images.get(tag).id)
        except errors.ImageNotFound:
            return None

    def is_built_here(self, tag: str) -> bool | None:
        """Whether this image is one that is built here, or is built on one; None without it."""
        try:
            return IMAGE_LABEL in self._client.images.get(tag).labels
        except errors.ImageNotFound:
            return None

    def pull(self, ref: str, timeout_s: float) -> bool:
        """Query the registry; an engine that cannot reach it can take minutes to report that."""
        pulling = threading.Thread(target=self._try_pull, args=(ref,), daemon=True)
        pulling.start()
        pulling.join(timeout_s)
        return not pulling.is_alive() and self.exists(ref)

    def _try_pull(self, ref: str) -> None:
        try:
            self._client.images.pull(ref)
        except (errors.APIError, OSError):
            return

    def import_tar(self, path: Path, tag: str) -> None:
        """Create an image from a root file system."""
        repository, _, name = tag.rpartition(":")
        changes = [f"LABEL {IMAGE_LABEL}=1"]
        try:
            self._client.api.import_image_from_file(
                str(path), repository=repository, tag=name, changes=changes
            )
        except errors.APIError as failed:
            raise StepFailed("importing the root file system", str(failed)) from failed

    def build(self, build: ImageBuild, log: Callable[[str], None]) -> None:
        """Build and tag an image; the containers of its steps are removed."""
        answer = self._client.api.build(
            path=str(build.context),
            tag=build.tag,
            buildargs=dict(build.args),
            labels={IMAGE_LABEL: "1"},
            rm=True,
            forcerm=True,
            decode=True,
        )
        for message in answer:
            if text := str(message.get("stream", "")).rstrip():
                log(text)
            if error := message.get("error"):
                raise StepFailed("the engine's build", str(error))

    def run(self, call: ToolCall) -> str:
        """Run a command to its end as this user, in a container that is removed after it."""
        folders = {str(path): {"bind": str(path), "mode": "rw"} for path in _mounts(call)}
        try:
            output: bytes = self._client.containers.run(
                call.image,
                list(call.command),
                entrypoint="",
                working_dir=str(call.folder),
                environment=dict(call.env),
                user=f"{os.getuid()}:{os.getgid()}",
                volumes=folders,
                remove=True,
                stderr=True,
            )
        except errors.ContainerError as failed:
            raise StepFailed(call.step, str(failed.stderr or failed)) from failed
        except errors.APIError as failed:
            raise StepFailed(call.step, str(failed)) from failed
        return output.decode(errors="replace")


def _mounts(call: ToolCall) -> list[Path]:
    return [call.folder, *call.mounts]

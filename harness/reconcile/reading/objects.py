"""Lists and copies the objects of a folder, so that they are read as files of this machine.

An upload in several parts is an object only when it is complete, so none is read that a writer has
not committed. Source: https://docs.aws.amazon.com/AmazonS3/latest/userguide/mpuoverview.html.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from pyarrow import fs

from streamquake.harness.reconcile.reading.object_folder import (
    ACCESS_KEY,
    ENDPOINTS,
    SECRET_KEY,
    ObjectFolder,
    client_settings,
)
from streamquake.topologies.errors import ErrorKind, StreamquakeError

CONNECT_S, ANSWER_S, ATTEMPTS = 5, 30, 3
"""How long a connection and an answer may take in seconds, and how often a request is sent."""
AT_A_TIME = 8
CHUNK = 1 << 20
REJECTED = ("ACCESS_DENIED", "INVALID_ACCESS_KEY_ID", "SIGNATURE_DOES_NOT_MATCH", "UserNotFound")
"""Words in errors of keys that the store does not accept."""


class ObjectsUnreadable(StreamquakeError, ConnectionError):
    """The objects of a folder could not be listed or copied; the message has the store's words."""

    kind = ErrorKind.CLUSTER_FAILED


@dataclass(frozen=True, kw_only=True)
class ListedObjects:
    """The objects of a folder."""

    base: str
    """Bucket and path of what holds them: the folder, or that above an object by its own name."""
    sizes: Mapping[str, int]
    """Name below the base -> bytes."""
    is_folder: bool
    """Whether they are below the given path; otherwise the path is an object."""


def list_objects(folder: ObjectFolder) -> ListedObjects:
    """All objects of a folder, hidden ones included; none where there is no such folder. Raises
    ObjectsUnreadable."""
    with _failures_of(folder):
        return _listed(_client(folder), folder)


def copy_objects(folder: ObjectFolder, target: Path) -> Path:
    """Copy the objects of a folder to below `target`. Returns the path of the folder there, or that
    of the object. Raises ObjectsUnreadable; then some objects may have been copied."""
    with _failures_of(folder):
        client = _client(folder)
        listed = _listed(client, folder)

        def copy(name: str) -> None:
            _copy(client, f"{listed.base}/{name}", _path_of(target, name), listed.sizes[name])

        with ThreadPoolExecutor(AT_A_TIME, thread_name_prefix="objects") as pool:
            list(pool.map(copy, listed.sizes))
    return target if listed.is_folder else target / PurePosixPath(folder.path).name


def _client(folder: ObjectFolder) -> Any:
    return fs.S3FileSystem(
        **client_settings(folder.endpoint),
        connect_timeout=CONNECT_S,
        request_timeout=ANSWER_S,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=ATTEMPTS),
    )


def _listed(client: Any, folder: ObjectFolder) -> ListedObjects:
    try:
        found = client.get_file_info(fs.FileSelector(folder.key, recursive=True))
    except FileNotFoundError:  # of the folder; without the bucket it is another error
        found = []
    sizes = {
        info.path.removeprefix(f"{folder.key}/"): info.size
        for info in found
        if info.type == fs.FileType.File
    }
    own = client.get_file_info(folder.key)
    if not folder.path or own.type != fs.FileType.File:
        return ListedObjects(base=folder.key, sizes=sizes, is_folder=True)
    if sizes:
        raise ValueError("it is an object, and there are objects below it; name another folder")
    above, _, name = folder.key.rpartition("/")
    return ListedObjects(base=above, sizes={name: own.size}, is_folder=False)


def _path_of(target: Path, name: str) -> Path:
    """The path of a copy. Raises ValueError for a key that is no path below the target."""
    if {"", ".", ".."} & set(name.split("/")):
        raise ValueError(f'the key "{name}" is no name of a file')
    return target / name


def _copy(client: Any, key: str, path: Path, size: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # As they are stored: a client would decompress what is called `.gz`.
    with client.open_input_stream(key, compression=None) as source, path.open("xb") as file:
        shutil.copyfileobj(source, file, CHUNK)
    if (copied := path.stat().st_size) != size:
        raise ValueError(f"{key}: {copied:,} of {size:,} bytes; it was changed meanwhile")


@contextmanager
def _failures_of(folder: ObjectFolder) -> Iterator[None]:
    """Raise failures to read a folder as ObjectsUnreadable."""
    try:
        yield
    except (OSError, ValueError) as error:
        why = str(error)
        if any(word in why for word in REJECTED):
            why = f"{why}; the keys are {ACCESS_KEY} and {SECRET_KEY} in the environment"
        elif "NETWORK_CONNECTION" in why and folder.endpoint is None:
            why = f"{why}; the store is that of {ENDPOINTS[1]} in the environment, or else AWS"
        where = f"{folder.uri} at {folder.endpoint}" if folder.endpoint else folder.uri
        raise ObjectsUnreadable(f"{where} cannot be read: {why}") from error

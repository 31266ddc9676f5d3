"""A folder of an object store with S3's interface: its address, and how clients reach the store."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from streamquake.topologies.secret_names import without_login

SCHEME = "s3://"
FORM = f"{SCHEME}bucket/path"
BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,61}[A-Za-z0-9]")
ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
"""The environment variables with the store's URL, the first one that is set."""
REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")
DEFAULT_REGION = "us-east-1"
"""Without one; a store other than that of AWS rarely has several."""
ACCESS_KEY, SECRET_KEY = "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"
SESSION_TOKEN = "AWS_SESSION_TOKEN"
URL = re.compile(r"https?://(\$\{[\w.-]+\}|([\w.-]+|\[[0-9A-Fa-f:]+\])(:\d{1,5})?)/?", re.ASCII)
"""The URL of a store: a host with its port, or a port of a service that stands for both."""


@dataclass(frozen=True, kw_only=True)
class ObjectFolder:
    """The objects whose keys begin with a path, as in a folder, or one object."""

    bucket: str
    path: str
    """Without slashes at its ends; empty for the whole bucket."""
    endpoint: str | None = None
    """The URL of the store; None for that of the environment, or else of AWS."""

    @property
    def key(self) -> str:
        """Bucket and path in one text."""
        return f"{self.bucket}/{self.path}".rstrip("/")

    @property
    def uri(self) -> str:
        return f"{SCHEME}{self.key}"


def object_folder(uri: str, endpoint: str | None = None) -> ObjectFolder:
    """The folder of a URI. Its path is taken as it stands, without percent-encoding. Raises
    ValueError with the expected form."""
    bucket, _, path = uri.removeprefix(SCHEME).partition("/")
    if "@" in bucket:
        raise ValueError(
            f"an address stands in records, so it takes no keys; set {ACCESS_KEY} and {SECRET_KEY} "
            "in the environment"
        )
    if not (uri.startswith(SCHEME) and BUCKET.fullmatch(bucket) and uri.isprintable()):
        raise ValueError(f'expected {FORM}, got "{without_login(uri)}"')
    return ObjectFolder(bucket=bucket, path=path.strip("/"), endpoint=endpoint)


def store_url(endpoint: str) -> str:
    """The URL of a store as it was given. Raises ValueError with the expected form."""
    if URL.fullmatch(endpoint) is None:
        shown = without_login(endpoint)
        raise ValueError(f'expected a URL such as http://${{store.api}}, got "{shown}"')
    return endpoint


def client_settings(endpoint: str | None) -> Mapping[str, object]:
    """The settings of pyarrow's client for a store at this URL, or that of the environment. Without
    keys in the environment requests are not signed. Raises ValueError for half a pair of keys."""
    settings: dict[str, object] = {"region": _first_set(REGIONS) or DEFAULT_REGION}
    if url := endpoint or _first_set(ENDPOINTS):
        settings["endpoint_override"] = store_url(url)
    keys = [os.environ.get(name) for name in (ACCESS_KEY, SECRET_KEY)]
    if not any(keys):
        return {**settings, "anonymous": True}
    if not all(keys):
        missing = SECRET_KEY if keys[0] else ACCESS_KEY
        raise ValueError(f"{missing} is not set in the environment, and the other key is")
    settings |= {"access_key": keys[0], "secret_key": keys[1]}
    if token := os.environ.get(SESSION_TOKEN):
        settings["session_token"] = token
    return settings


def _first_set(names: tuple[str, ...]) -> str | None:
    return next((value for name in names if (value := os.environ.get(name))), None)

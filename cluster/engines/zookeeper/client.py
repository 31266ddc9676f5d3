"""Reading from one ZooKeeper server: whether it serves, the content of a path, the names below."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError

from streamquake.topologies.errors import ErrorKind, StreamquakeError

LOGGER = logging.getLogger(__name__)
# A server that is down is expected; without a handler Python prints every failed attempt.
LOGGER.addHandler(logging.NullHandler())


class ZooKeeperUnreachable(StreamquakeError):
    """The server does not answer, or does not serve now; a retry may help."""

    kind = ErrorKind.CLUSTER_FAILED


def require_serving(address: str, limit_s: float) -> None:
    """Return when the server accepts a session, which only a member of a working ensemble does.

    Raises ZooKeeperUnreachable after `limit_s` seconds.
    """
    with _session(address, limit_s):
        pass


def read(address: str, path: str, limit_s: float) -> bytes | None:
    """The content of a path, or None where there is none. Raises ZooKeeperUnreachable."""
    with _session(address, limit_s) as session:
        try:
            content: bytes = session.get_async(path).get(timeout=limit_s)[0]
        except NoNodeError:
            return None
        return content


def children(address: str, path: str, limit_s: float) -> tuple[str, ...]:
    """The names below a path, none where there is no such path. Raises ZooKeeperUnreachable."""
    with _session(address, limit_s) as session:
        try:
            names: list[str] = session.get_children_async(path).get(timeout=limit_s)
        except NoNodeError:
            return ()
        return tuple(names)


@contextmanager
def _session(address: str, limit_s: float) -> Iterator[KazooClient]:
    client = KazooClient(hosts=address, timeout=limit_s, logger=LOGGER)
    try:
        client.start(timeout=limit_s)
        yield client
    except KazooTimeoutError as error:
        raise ZooKeeperUnreachable(f"no answer to a client within {limit_s:g} s") from error
    except KazooException as error:
        raise ZooKeeperUnreachable(f"does not serve: {type(error).__name__}") from error
    finally:
        client.stop()
        client.close()

"""A session of requests to ports on this machine."""

from __future__ import annotations

import requests


def loopback_session() -> requests.Session:
    """A session that ignores the proxy in the environment, which is not meant for loopback."""
    session = requests.Session()
    session.trust_env = False
    return session

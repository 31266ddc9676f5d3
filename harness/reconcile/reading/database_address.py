"""The address of a table of PostgreSQL, as a URI."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from streamquake.topologies.secret_names import without_login

SCHEME = "postgresql"
FORM = f"{SCHEME}://[user@]host[:port]/database/[schema.]table"
SERVER = re.compile(r"([\w.-]+|\[[0-9A-Fa-f:.]+\])(?::(\d{1,5}))?", re.ASCII)
"""A host with its port; nothing that JDBC would take as a setting, and not several: the first one
that answers would be read, whichever that is."""
SERVICE = re.compile(r"\$\{[\w.-]+\}", re.ASCII)
"""A port of a service, which stands for host and port."""
PASSWORD = "PGPASSWORD"
"""The environment variable with the user's password, as for PostgreSQL's own clients."""


@dataclass(frozen=True, kw_only=True)
class TableAddress:
    """A table, and how to connect to its database."""

    server: str
    """HOST[:PORT], or a port of a service, `${SERVICE.PORT}`."""
    database: str
    schema: str | None
    table: str
    user: str | None

    @property
    def name(self) -> str:
        """The table as programs name it, with its schema if that was given."""
        return self.table if self.schema is None else f"{self.schema}.{self.table}"

    @property
    def quoted(self) -> str:
        """The same as an identifier that SQL reads exactly."""
        names = (self.table,) if self.schema is None else (self.schema, self.table)
        return ".".join('"' + name.replace('"', '""') + '"' for name in names)


def table_address(uri: str, *, services: bool = False) -> TableAddress:
    """The table of a URI; with `services` its server may be a port of a service. Names are
    percent-encoded as in other URIs. Raises ValueError with the expected form."""
    expected = ValueError(f'expected {FORM}, got "{shown(uri)}"')
    try:
        parts = urlsplit(uri)
        login, _, server = parts.netloc.rpartition("@")
        user, *names = (unquote(text, errors="strict") for text in (login, *_names(parts.path)))
    except ValueError:
        raise expected from None
    if ":" in login:
        raise ValueError(
            "the address of a table stands in records, so it takes no password; set "
            f"{PASSWORD} in the environment"
        )
    is_plain = all(text.isprintable() and "${" not in text for text in (user, *names))
    is_server = services and SERVICE.fullmatch(server) is not None
    is_server = is_server or _is_server(server)
    whole = parts.scheme == SCHEME and not parts.query and not parts.fragment and uri.isprintable()
    if not (whole and is_server and is_plain and names):
        raise expected
    database, *schema, table = names
    return TableAddress(
        server=server,
        database=database,
        schema=schema[0] if schema else None,
        table=table,
        user=user or None,
    )


def shown(uri: str) -> str:
    """A URI as messages have it: without a password, and without what follows the path."""
    return re.sub(r"[?#].*", "?…", without_login(uri))


def _names(path: str) -> list[str]:
    """Database, schema if there is one, and table of a path; none for another path."""
    _, *parts = path.split("/")
    names = parts[-1].split(".") if parts else []
    whole = len(parts) == 2 and len(names) in (1, 2) and all([*parts, *names])
    return [parts[0], *names] if whole else []


def _is_server(server: str) -> bool:
    found = SERVER.fullmatch(server)
    return found is not None and 0 < int(found[2] or 1) < 1 << 16

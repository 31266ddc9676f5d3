"""The address of a table of PostgreSQL, as a URI."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

SCHEME = "postgresql"
FORM = f"{SCHEME}://[user@]host[:port]/database/[schema.]table"
SERVER = re.compile(r"([\w.-]+|\[[0-9A-Fa-f:.]+\])(:\d{1,5})?", re.ASCII)
"""A host with its port; nothing that JDBC would take as a setting."""
SERVICE = re.compile(r"\$\{[\w.-]+\}", re.ASCII)
"""A port of a service, which stands for host and port."""
PASSWORD = "PGPASSWORD"
"""The environment variable with the user's password, as for PostgreSQL's own clients."""


@dataclass(frozen=True, kw_only=True)
class TableAddress:
    """A table, and how to connect to its database."""

    servers: str
    """HOST[:PORT], several of them between commas; or a port of a service, `${SERVICE.PORT}`."""
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
    expected = ValueError(f'expected {FORM}, got "{uri}"')
    try:
        parts = urlsplit(uri)
    except ValueError:
        raise expected from None
    user, _, servers = parts.netloc.rpartition("@")
    if ":" in user:
        raise ValueError(
            "the address of a table stands in records, so it takes no password; set "
            f"{PASSWORD} in the environment"
        )
    _, *path = parts.path.split("/")
    names = path[-1].split(".") if path else []
    is_service = services and SERVICE.fullmatch(servers) is not None
    is_known = is_service or all(map(SERVER.fullmatch, servers.split(",")))
    complete = len(path) == 2 and len(names) in (1, 2) and all([*path, *names])
    if parts.scheme != SCHEME or parts.query or parts.fragment or not (is_known and complete):
        raise expected
    database, *schema, table = map(unquote, (path[0], *names))
    return TableAddress(
        servers=servers,
        database=database,
        schema=schema[0] if schema else None,
        table=table,
        user=unquote(user) or None,
    )

"""Settings whose value is kept elsewhere: `${env:NAME}` or `${file:PATH}`.

A document and the record of a run then hold the reference, and never the secret. The form is that
of Kafka's configuration providers (https://kafka.apache.org/documentation/#config_providers).
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from streamquake.topologies.errors import ErrorKind, StreamquakeError

REFERENCE = re.compile(r"\$\{(env|file):([^}\n]+)\}")
FORMS = "`${env:NAME}` or `${file:PATH}`"
"""Both forms, as messages name them."""


class SecretMissing(StreamquakeError, LookupError):
    """A variable or a file that a setting refers to is not there."""

    kind = ErrorKind.BAD_INPUT


def is_reference(value: str) -> bool:
    """Whether a setting refers to a value that is kept elsewhere."""
    return REFERENCE.fullmatch(value) is not None


def resolved(name: str, value: str) -> str:
    """The value of a setting; that of a reference is read now, a file without its last line break.
    Raises SecretMissing."""
    if (reference := REFERENCE.fullmatch(value)) is None:
        return value
    kind, place = reference.groups()
    if kind == "env":
        if (found := os.environ.get(place)) is None:
            raise SecretMissing(f"{name}: the environment variable {place} is not set; set it")
        return found
    try:
        return Path(place).expanduser().read_text(encoding="utf-8").removesuffix("\n")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
        raise SecretMissing(f"{name}: {place} cannot be read: {reason}") from error

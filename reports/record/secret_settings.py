"""Secrets are kept out of every record. A setting is secret if its name or its value suggests it
(`secret_names.py`).

The settings below `config`, `env` and `properties` are checked, and the words of recorded command
lines. A reference to a secret (`secret_references.py`) is none. A secret within a job's program or
in the text of a rule is not recognised.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from streamquake.topologies.secret_names import contains_secret, names_secret
from streamquake.topologies.secret_references import is_reference

HIDDEN = "***"
"""The text in a record in place of a secret."""
_SETTINGS = ("config", "env", "properties")
_COMMANDS = ("argv", "again", "replay")
_PATH = re.compile(r"[\w.\[\]-]+")
"""The name of NAME=VALUE, which is shown; other text before an equals sign may be a secret."""


def hide_secrets(document: Any) -> Any:
    """The document with `HIDDEN` in place of each secret."""
    if isinstance(document, Mapping):
        return {key: _hide_below(str(key), value) for key, value in document.items()}
    if isinstance(document, list | tuple):
        return [hide_secrets(each) for each in document]
    return document


def hide_secret_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by name, such as those below `config` and `env`, with `HIDDEN` in place of each
    secret."""
    return {name: _hide_in_setting(str(name), value) for name, value in settings.items()}


def keys_of_hidden_secrets(document: Any, at: str = "") -> Iterator[str]:
    """The dotted keys of settings whose value is `HIDDEN`, in the form of `--set`."""
    for key, value in document.items() if isinstance(document, Mapping) else ():
        if value == HIDDEN:
            yield f"{at}{key}"
        yield from keys_of_hidden_secrets(value, f"{at}{key}.")


def _hide_below(key: str, value: Any) -> Any:
    if key in _SETTINGS and isinstance(value, Mapping):
        return hide_secret_settings(value)
    if key in _COMMANDS:
        return _hide_in_command(value)
    return hide_secrets(value)


def _hide_in_setting(name: str, value: Any) -> Any:
    if value in (None, "", (), [], {}) or isinstance(value, bool) or is_reference(str(value)):
        return value
    if names_secret(name):
        return HIDDEN
    if isinstance(value, Mapping):
        return hide_secret_settings(value)
    if isinstance(value, list | tuple):
        return [_hide_in_setting(name, each) for each in value]
    return HIDDEN if contains_secret(str(value)) else value


def _hide_in_command(command: Any) -> Any:
    if isinstance(command, list | tuple):
        return [without_secret(str(each)) for each in command]
    if not isinstance(command, str):
        return command
    try:
        words = shlex.split(command)
    except ValueError:  # an unclosed quote: the end of the value is not known
        return HIDDEN if _may_have_secret(command) else command
    shown = list(map(without_secret, words))
    return command if shown == words else shlex.join(shown)


def without_secret(word: str) -> str:
    """A word of a command line: NAME=VALUE with `HIDDEN` in place of a secret value, another word
    with a secret as `HIDDEN`. The value is all that follows the first equals sign, blanks included;
    it may be a mapping that holds the secret name."""
    name, equals, _ = word.partition("=")
    if equals and _PATH.fullmatch(name):
        return f"{name}={HIDDEN}" if _may_have_secret(word) else word
    return HIDDEN if contains_secret(word) else word


def _may_have_secret(command: str) -> bool:
    return names_secret(command) or contains_secret(command)

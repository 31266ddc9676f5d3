"""Secrets, which stand in no record: settings whose names say that their values are secret.

Looked for are the names below `config` and `env`, and NAME=VALUE in what was typed; of other values
those that are an address with a password. A secret within a job's program or in the text of a rule
is not known as one.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

HIDDEN = "***"
"""What stands in a record in place of a secret."""
_NAME = re.compile(
    r"pass(?:word|wd|phrase)|secret|token(?!s)|credential|private[-_.]?key|api[-_.]?key"
    r"|access[-_.]?key|jaas",
    re.IGNORECASE,
)
_LOGIN = re.compile(r"://[^/\s:@]*:[^/\s@]+@")
_SETTINGS = ("config", "env")
_COMMANDS = ("argv", "again", "replay")


def hidden(document: Any) -> Any:
    """The document with `HIDDEN` for each secret."""
    if isinstance(document, Mapping):
        return {key: _hidden_below(str(key), value) for key, value in document.items()}
    if isinstance(document, list | tuple):
        return [hidden(each) for each in document]
    return document


def hidden_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by name, as those below `config` and `env`, with `HIDDEN` for each secret."""
    return {name: _hidden_setting(str(name), value) for name, value in settings.items()}


def hidden_places(document: Any, at: str = "") -> Iterator[str]:
    """Where `HIDDEN` stands in settings, as `--set` names the places."""
    for key, value in document.items() if isinstance(document, Mapping) else ():
        if value == HIDDEN:
            yield f"{at}{key}"
        yield from hidden_places(value, f"{at}{key}.")


def _hidden_below(key: str, value: Any) -> Any:
    if key in _SETTINGS and isinstance(value, Mapping):
        return hidden_settings(value)
    if key in _COMMANDS:
        return _untyped(value)
    return hidden(value)


def _hidden_setting(name: str, value: Any) -> Any:
    is_value = isinstance(value, str | int | float) and not isinstance(value, bool)
    is_secret = _NAME.search(name) or _LOGIN.search(str(value))
    return HIDDEN if is_value and value != "" and is_secret else value


def _untyped(typed: Any) -> Any:
    if isinstance(typed, list | tuple):
        return [without_secret(str(each)) for each in typed]
    if not isinstance(typed, str) or not (_NAME.search(typed) or _LOGIN.search(typed)):
        return typed
    try:
        return shlex.join(map(without_secret, shlex.split(typed)))
    except ValueError:  # quotes that do not close: where the value ends is not known
        return HIDDEN


def without_secret(word: str) -> str:
    """A word as the shell gave it: all behind its sign is the value, with its blanks. It may be a
    mapping of settings, with the names within it."""
    name, equals, _ = word.partition("=")
    is_secret = _NAME.search(word) or _LOGIN.search(word)
    return f"{name}={HIDDEN}" if equals and is_secret else word

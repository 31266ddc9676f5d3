"""Registries: members are small files that register themselves; no list is ever edited.

Engines, faults, workloads and checks are each a registry over one package. Looking anything up
imports every module of the package first, also those of packages inside it, so adding a member is
adding a file or a folder. Then the installed plugins are imported, which may register members too.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import warnings
from collections.abc import Iterator, Mapping
from typing import Any, Generic, TypeVar

from streamquake.topologies.errors import ErrorKind, StreamquakeError
from streamquake.topologies.plugins import Plugin, plugins
from streamquake.topologies.problems import did_you_mean

T = TypeVar("T")
C = TypeVar("C", bound=type)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


class UnknownName(StreamquakeError, KeyError):
    """No member has this name; the message has the nearest name and all known names."""

    kind = ErrorKind.BAD_INPUT

    def __str__(self) -> str:
        return str(self.args[0])


class FormerName(FutureWarning):
    """A former name of a member was used."""


class Registry(Mapping[str, type[T]], Generic[T]):
    """Classes by their `name`, found in every module of one package, and in plugins."""

    def __init__(self, kind: str, package: str, base: type[T] | None = None) -> None:
        """`base` is the class of which every member is a subclass; None where that cannot be
        told, as of a protocol."""
        self.kind = kind
        self._base = base
        self._package = package
        self._members: dict[str, type[T]] = {}
        self._former: dict[str, str] = {}
        """Former name -> current name."""
        self._imported = False
        registries[kind] = self

    def register(self, member: C) -> C:
        """Class decorator: add a class under its `name` and its `former_names`. Raises ValueError
        for a name that another class has, or that is no word, and for a class that is none of the
        registry's."""
        if self._base is not None and not issubclass(member, self._base):
            raise ValueError(
                f"expected the {self.kind} {member.__qualname__} to be a subclass of "
                f"{_path(self._base)}"
            )
        if not f"{member.__module__}.".startswith(f"{self._package}."):
            self._import_package()  # the names of its members are taken, whatever is imported first
        name = member.name  # type: ignore[attr-defined]
        former = tuple(getattr(member, "former_names", ()))
        for each in (name, *former):
            if not isinstance(each, str) or not _NAME.fullmatch(each):
                raise ValueError(
                    f"expected a name of letters, digits, - and _ for the {self.kind} "
                    f"{member.__qualname__}, got {each!r}"
                )
            self._reject_taken(each, member)
        self._members[name] = member
        self._former.update(dict.fromkeys(former, name))
        return member

    def _reject_taken(self, name: str, member: type) -> None:
        known = self._members.get(self._former.get(name, name))
        if known is not None and _path(known) != _path(member):
            raise ValueError(
                f'the name "{name}" of the {self.kind} {member.__qualname__} is taken by '
                f"{_path(known)}; choose another name"
            )

    def current_name(self, name: str) -> str:
        """The name that replaced a former one, with a warning; any other name as it is."""
        self._discover()
        current = self._former.get(name, name)
        if current != name:
            message = f'the {self.kind} "{name}" is now called "{current}"'
            warnings.warn(message, FormerName, stacklevel=2)
        return current

    def __getitem__(self, name: str) -> type[T]:
        if name in self._members:  # no former name, and asked for thousands of times
            return self._members[name]
        self._discover()
        member = self._members.get(self._former.get(name, name))
        if member is None:
            known = did_you_mean(name, self._members)
            raise UnknownName(f'no {self.kind} is called "{name}"{known}')
        return member

    def __iter__(self) -> Iterator[str]:
        self._discover()
        return iter(sorted(self._members))

    def __len__(self) -> int:
        self._discover()
        return len(self._members)

    def registered_by(self, plugin: Plugin) -> tuple[str, ...]:
        """The names of the members that a plugin registered."""
        return tuple(name for name in sorted(self._members) if plugin.defines(self._members[name]))

    def _discover(self) -> None:
        self._import_package()
        plugins.load_installed()

    def _import_package(self) -> None:
        if self._imported:
            return
        self._imported = True
        package = importlib.import_module(self._package)
        for module in pkgutil.walk_packages(package.__path__, f"{self._package}."):
            importlib.import_module(module.name)


registries: dict[str, Registry[Any]] = {}
"""Kind -> the registry of that kind, of those that were imported."""


def members_of(plugin: Plugin) -> tuple[str, ...]:
    """What a plugin registered, such as `check continuity`."""
    return tuple(
        f"{kind} {name}"
        for kind, registry in registries.items()
        for name in registry.registered_by(plugin)
    )


def _path(member: type) -> str:
    return f"{member.__module__}.{member.__qualname__}"

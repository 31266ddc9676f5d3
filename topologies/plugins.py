"""Plugins: Python modules outside of Streamquake that register members of its registries.

An installed package names its module as an entry point of the group `streamquake.plugins`; the
registries import it at their first use. A single file is imported where a user names it. Nothing
else imports a plugin: a record or another document never does.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
import sys
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType

from streamquake.topologies.errors import message_of
from streamquake.topologies.problems import BadInput, Problem, bad_input

GROUP = "streamquake.plugins"
DIGITS = 16


@dataclass(frozen=True, kw_only=True)
class Plugin:
    """One plugin: a module, or a package with all its modules."""

    name: str
    """The installed distribution; of a single file, its name."""
    version: str
    """That of the distribution; empty for a single file."""
    module: str
    """The module, or the package, whose classes are the plugin's members."""
    file: str
    digest: str
    """A hash of the file, or of all modules of the package."""

    def __str__(self) -> str:
        return named(self.name, self.version, self.digest)

    def defines(self, member: type) -> bool:
        """Whether a class is of this plugin."""
        return f"{member.__module__}.".startswith(f"{self.module}.")


def named(name: str, version: str, digest: str) -> str:
    """A plugin as messages name it: by its version, or else by the digest of its file."""
    return f"{name} {version}" if version else f"{name} (digest {digest})"


class Plugins:
    """The plugins of this process."""

    def __init__(self) -> None:
        self._loaded: list[Plugin] = []
        self._looked_for_installed = False
        self._problems: list[Problem] = []
        """Those of installed plugins; every use of a registry reports them."""

    def load_file(self, path: Path) -> None:
        """Import a Python file. Raises BadInput for a file that does not exist, or cannot be
        imported."""
        file = path.resolve()
        if not file.is_file():
            raise bad_input(str(path), "no such plugin file")
        if file.suffix != ".py":
            raise bad_input(str(path), "expected a Python file (.py) as plugin")
        plugin = Plugin(
            name=file.name,
            version="",
            module=_module_name(file),
            file=str(file),
            digest=_hash([file.read_bytes()]),
        )
        if plugin in self._loaded:
            return
        try:
            _import_file(plugin.module, file)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise BadInput([_problem(f"plugin {path}", file, error)]) from error
        self._add(plugin)

    def load_installed(self) -> None:
        """Import the plugins of installed packages, once. Raises BadInput with every one that
        cannot be imported, each time."""
        if not self._looked_for_installed:
            self._looked_for_installed = True  # before, because a plugin may use a registry itself
            for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
                self._load_entry(entry)
        if self._problems:
            raise BadInput(self._problems)

    def loaded(self) -> tuple[Plugin, ...]:
        """All plugins: installed ones, and the files that were named. Raises BadInput."""
        self.load_installed()
        return tuple(self._loaded)

    def plugin_of(self, member: type) -> Plugin | None:
        """The plugin that a class is of; None for a class of Streamquake."""
        return next((plugin for plugin in self._loaded if plugin.defines(member)), None)

    def _load_entry(self, entry: EntryPoint) -> None:
        name, version = (entry.dist.name, entry.dist.version) if entry.dist else (entry.name, "")
        try:
            entry.load()
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - any error of foreign code
            place = f'plugin {name} {version} (entry point "{entry.name}")'
            self._problems.append(_problem(place, _place_of(entry.module), error))
            return
        module = _package_of(sys.modules[entry.module])
        plugin = Plugin(
            name=name,
            version=version,
            module=module.__name__,
            file=module.__file__ or "",
            digest=_hash(file.read_bytes() for file in _files(module)),
        )
        self._add(plugin)

    def _add(self, plugin: Plugin) -> None:
        """Add a plugin; one of the same module is replaced, such as an earlier text of a file, or
        another entry point of a package."""
        others = (other for other in self._loaded if other.module != plugin.module)
        self._loaded = [*others, plugin]


plugins = Plugins()


def _module_name(file: Path) -> str:
    """A name that no other file has."""
    return re.sub(r"\W", "_", f"streamquake_plugin_{file.stem}_{_hash([str(file).encode()])[:8]}")


def _import_file(name: str, file: Path) -> None:
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # models look up the types of their fields there
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise


def _package_of(module: ModuleType) -> ModuleType:
    """The package of an entry point's module; the module itself where it is a package, or is in
    none. A folder that several distributions share is no package of a plugin."""
    above = sys.modules.get(module.__name__.rpartition(".")[0])
    if hasattr(module, "__path__") or above is None or above.__file__ is None:
        return module
    return above


def _files(module: ModuleType) -> Iterator[Path]:
    """The Python files of a package, or the file of a module."""
    for folder in getattr(module, "__path__", ()):
        yield from sorted(Path(folder).rglob("*.py"))
    if not hasattr(module, "__path__") and module.__file__:
        yield Path(module.__file__)


def _place_of(module: str) -> Path | None:
    """The folder of the outermost package of a module that cannot be imported, or its file; None
    where there is none. Nothing is imported."""
    spec = importlib.util.find_spec(module.partition(".")[0])
    if spec is None:
        return None
    folders = spec.submodule_search_locations
    return Path(folders[0]) if folders else Path(spec.origin or "")


def _problem(plugin: str, place: Path | None, error: BaseException) -> Problem:
    """Why a plugin cannot be imported, and the line at its place that failed."""
    lines = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    if isinstance(error, SyntaxError):
        lines.append((error.filename or "", error.lineno))
    own = [
        f"{file}:{line}" for file, line in lines if place and Path(file).is_relative_to(place)
    ] or [str(place or "no such module")]
    reason = "it ends the program" if isinstance(error, SystemExit) else message_of(error)
    return Problem(file=plugin, message=f"cannot be imported ({own[-1]}): {reason}")


def _hash(parts: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()[:DIGITS]

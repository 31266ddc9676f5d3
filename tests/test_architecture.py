"""The rules of the project's structure, checked in the syntax trees: imports, interfaces,
docstrings.

Each rule is a function over a folder of sources, so that a test can check it with a planted
violation.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ORDER = ("topologies", "reports", "cluster", "faults", "harness")
"""Each folder imports only from itself and from those before it."""
ROOMS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "reports": (
        ("record",),
        ("render",),
        ("store", "run"),
        ("suite", "comparison"),
        ("junit", "trend", "coverage", "shrink"),
    ),
    "cluster": (
        ("adjustable_clock", "images", "job", "node", "steering"),
        ("run_context", "runtime"),
        ("jvm_agent", "live_cluster"),
        ("disks", "engines", "sandbox"),
        ("links",),
        ("cluster", "topology_validation"),
        ("compose", "node_replacement"),
    ),
    "faults": (
        ("requirement",),
        ("fault",),
        ("mechanisms",),
        ("schedule",),
        ("injection", "catalogue"),
    ),
    "harness": (
        ("interrupts", "reconcile"),
        ("experiment",),
        ("workloads", "verdict", "selftest"),
        ("coverage",),
        ("run",),
        ("campaign", "interactive", "project", "reference"),
        ("schema",),
        ("cli", "pytest"),
    ),
}
"""A room imports only from itself and from rooms of the groups before its own."""
NEIGHBOURS = {("selftest", "verdict")}
"""(from, to): allowed imports between rooms of one group."""
PACKAGE = "streamquake"
"""Its folder holds `__init__.py`, `__main__.py`, and links to the five folders, so that they can be
imported as `streamquake.NAME`. `rglob` does not follow links, so the rules read the folders
themselves."""
MIN_FILES = 500
"""A rule that reads fewer files than this does not read the whole product."""
DOCKER = ("docker", "testcontainers")
DOCKER_FOLDER = "cluster/runtime/docker/"
CLOCK = "cluster/runtime/clock.py"


@dataclass(frozen=True)
class Source:
    """One module: its path below the package, and its tree."""

    path: str
    text: str
    tree: ast.Module

    @property
    def folder(self) -> str:
        return self.path.partition("/")[0]

    @property
    def room(self) -> str:
        """The folder or module within the top folder; empty if the top folder has no rooms."""
        parts = Path(self.path).with_suffix("").parts
        return parts[1] if parts[0] in ROOMS and parts[1] != "__init__" else ""

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        return tuple(ast.walk(self.tree))

    @cached_property
    def imports(self) -> tuple[tuple[int, str], ...]:
        """(line, full module name) of every import, anywhere in the module."""
        return tuple(self._imports())

    def _imports(self) -> Iterator[tuple[int, str]]:
        for node in self.nodes:
            if isinstance(node, ast.Import):
                yield from ((node.lineno, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield from self._from(node)

    def _from(self, node: ast.ImportFrom) -> Iterator[tuple[int, str]]:
        module = node.module or ""
        if node.level:
            above = [PACKAGE, *Path(self.path).parts][: -node.level]
            module = ".".join([*above, *([module] if module else [])])
        for alias in node.names:
            yield node.lineno, f"{module}.{alias.name}"


@cache
def sources(root: Path) -> tuple[Source, ...]:
    """The modules of the five folders below `root`, and those of the package's own folder. They are
    parsed once for all rules."""
    files = [file for folder in (*ORDER, PACKAGE) for file in sorted((root / folder).rglob("*.py"))]
    texts = ((path, path.read_text(encoding="utf-8")) for path in files)
    return tuple(
        Source(path.relative_to(root).as_posix(), text, ast.parse(text)) for path, text in texts
    )


def wrong_directions(root: Path) -> list[str]:
    return [
        f"{source.path}:{line}: {source.folder} imports {name}"
        for source in sources(root)
        if source.folder in ORDER
        for line, name in source.imports
        if name.startswith(f"{PACKAGE}.") and not _allowed(source.folder, name.split(".")[1])
    ]


def _allowed(folder: str, imported: str) -> bool:
    if imported not in ORDER:
        return True  # the package's own names, such as its version
    return ORDER.index(imported) <= ORDER.index(folder)


def wrong_rooms(root: Path) -> list[str]:
    return [
        f"{source.path}:{line}: room {source.room} imports {name}"
        for source in sources(root)
        if source.room
        for line, name in source.imports
        if name.startswith(f"{PACKAGE}.{source.folder}.")
        and not _allowed_room(source.folder, source.room, name.split(".")[2])
    ]


def _allowed_room(folder: str, room: str, imported: str) -> bool:
    groups = {name: at for at, group in enumerate(ROOMS[folder]) for name in group}
    if room == imported or imported not in groups or (room, imported) in NEIGHBOURS:
        return True
    return room in groups and groups[imported] < groups[room]


def bare_names(root: Path) -> list[str]:
    """Imports such as `topologies.model`, which would load every class a second time."""
    return [
        f"{source.path}:{line}: import {PACKAGE}.{name}"
        for source in sources(root)
        for line, name in source.imports
        if name.split(".")[0] in ORDER
    ]


def docker_outside_its_folder(root: Path) -> list[str]:
    return [
        f"{source.path}:{line}: only {DOCKER_FOLDER} may use the engine's API; use ContainerRuntime"
        for source in sources(root)
        if not source.path.startswith(DOCKER_FOLDER)
        for line, name in source.imports
        if name.split(".")[0] in DOCKER
    ]


def single_faults(root: Path) -> list[str]:
    """Imports of a single fault. Other code uses attributes of `Fault`, so that a new fault is one
    file."""
    catalogue = f"{PACKAGE}.faults.catalogue"
    return [
        f"{source.path}:{line}: imports {name}; use an attribute of Fault"
        for source in sources(root)
        if not source.path.startswith("faults/catalogue/")
        for line, name in source.imports
        if f"{name}.".startswith(f"{catalogue}.")
    ]


def without_docstring(root: Path) -> list[str]:
    return [source.path for source in sources(root) if not ast.get_docstring(source.tree)]


def sleeps(root: Path) -> list[str]:
    """Calls of time.sleep and imports of it by name; code must use a Clock instead."""
    found = []
    for source in sources(root):
        if source.path == CLOCK:
            continue
        found += [f"{source.path}:{line}" for line, n in source.imports if n == "time.sleep"]
        found += [
            f"{source.path}:{node.lineno}"
            for node in source.nodes
            if isinstance(node, ast.Attribute)
            and node.attr == "sleep"
            and isinstance(node.value, ast.Name)
            and node.value.id in ("time", "asyncio")
        ]
    return found


def bare_excepts(root: Path) -> list[str]:
    return [
        f"{source.path}:{node.lineno}"
        for source in sources(root)
        for node in source.nodes
        if isinstance(node, ast.ExceptHandler) and node.type is None
    ]


def machine_paths(root: Path) -> list[str]:
    """Paths of a developer's machine in a source."""
    return [
        f"{source.path}:{number}: {line.strip()}"
        for source in sources(root)
        for number, line in enumerate(source.text.splitlines(), start=1)
        if any(
            place in line for place in ("/" + "home/", "/" + "Users/", "/" + "work/", "/" + "root/")
        )
    ]


RULES = (
    wrong_directions,
    wrong_rooms,
    bare_names,
    docker_outside_its_folder,
    single_faults,
    without_docstring,
    sleeps,
    bare_excepts,
    machine_paths,
)


@pytest.mark.parametrize("rule", RULES)
def test_the_package_follows_the_rule(rule: Callable[[Path], list[str]]) -> None:
    assert rule(ROOT) == []


def test_the_rules_read_the_whole_product() -> None:
    found = sources(ROOT)

    assert len(found) >= MIN_FILES
    assert {source.folder for source in found} == {*ORDER, PACKAGE}


def test_every_room_is_in_the_order() -> None:
    rooms = {
        folder: {s.room for s in sources(ROOT) if s.folder == folder} - {""} for folder in ROOMS
    }

    assert rooms == {
        folder: {name for group in groups for name in group} for folder, groups in ROOMS.items()
    }


def test_the_package_folder_has_only_links_to_the_folders() -> None:
    package = ROOT / PACKAGE
    links = {
        path.name: path.readlink().as_posix() for path in package.iterdir() if path.is_symlink()
    }
    files = {path.name for path in package.iterdir() if path.is_file()}

    assert links == {folder: f"../{folder}" for folder in ORDER}
    assert files == {"__init__.py", "__main__.py", "py.typed"}


@pytest.mark.parametrize(
    ("rule", "path", "text"),
    [
        (wrong_directions, "reports/bad.py", "from streamquake.harness import runner"),
        (wrong_directions, "cluster/bad.py", "def f():\n    import streamquake.faults.fault"),
        (wrong_directions, "topologies/bad.py", "from streamquake import cluster"),
        (wrong_directions, "faults/bad.py", "from ..harness.runner import run"),
        (wrong_directions, "faults/catalogue/bad.py", "from ...harness import runner"),
        (wrong_rooms, "harness/reconcile/bad.py", "from streamquake.harness.run import runner"),
        (wrong_rooms, "harness/verdict/checks/bad.py", "from streamquake.harness import selftest"),
        (wrong_rooms, "harness/run/bad.py", "def f():\n    import streamquake.harness.cli.runs"),
        (wrong_rooms, "harness/unnamed/bad.py", "from streamquake.harness import reconcile"),
        (wrong_rooms, "reports/record/bad.py", "from ..run import html"),
        (wrong_rooms, "cluster/runtime/bad.py", "from streamquake.cluster import engines"),
        (
            wrong_rooms,
            "cluster/engines/bad.py",
            "if TYPE_CHECKING:\n    from streamquake.cluster.cluster import Cluster",
        ),
        (bare_names, "harness/bad.py", "from topologies.model import Topology"),
        (bare_names, "reports/bad.py", "import cluster.runtime"),
        (docker_outside_its_folder, "streamquake/bad.py", "import docker"),
        (docker_outside_its_folder, "cluster/bad.py", "import docker"),
        (docker_outside_its_folder, "harness/bad.py", "from docker.errors import APIError"),
        (docker_outside_its_folder, "faults/bad.py", "from testcontainers.core import container"),
        (single_faults, "harness/bad.py", "from streamquake.faults.catalogue.kill import Kill"),
        (single_faults, "faults/schedule/bad.py", "from streamquake.faults.catalogue import kill"),
        (single_faults, "faults/injection/bad.py", "from ..catalogue.pause import Pause"),
        (single_faults, "streamquake/bad.py", "from streamquake.faults import catalogue"),
        (without_docstring, "harness/bad.py", "x = 1"),
        (sleeps, "harness/bad.py", "import time\ntime.sleep(1)"),
        (sleeps, "cluster/bad.py", "from time import sleep\nsleep(1)"),
        (bare_excepts, "harness/bad.py", "try:\n    x = 1\nexcept:\n    pass"),
        (machine_paths, "harness/bad.py", "x = '/" + "home/user/file'"),
    ],
)
def test_a_planted_violation_is_found(
    rule: Callable[[Path], list[str]], path: str, text: str, tmp_path: Path
) -> None:
    planted = tmp_path / path
    planted.parent.mkdir(parents=True)
    planted.write_text(text, encoding="utf-8")

    assert any(found.startswith(path) for found in rule(tmp_path))


@pytest.mark.parametrize(
    "text",
    [
        '"""The purpose."""\nfrom streamquake import __version__',
        '"""The purpose."""\nfrom streamquake.topologies.model import Topology',
        '"""The purpose."""\nfrom streamquake.reports import event',
        '"""The purpose."""\nimport time\nclock.sleep(1)\ntime.time()',
    ],
)
def test_an_allowed_source_has_no_violation(text: str, tmp_path: Path) -> None:
    good = tmp_path / "cluster" / "good.py"
    good.parent.mkdir()
    good.write_text(textwrap.dedent(text), encoding="utf-8")

    assert [found for rule in RULES for found in rule(tmp_path)] == []

"""What the structure promises, read from the syntax trees: directions, seams, docstrings.

Each rule is a function over a folder of sources, so that a planted violation can show it works.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import streamquake

PACKAGE = Path(streamquake.__file__).parent
ORDER = ("topologies", "reports", "cluster", "faults", "harness")
"""Each folder imports only from itself and from those before it."""
DOCKER = ("docker", "testcontainers")
DOCKER_FOLDER = "cluster/docker/"
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

    def imports(self) -> Iterator[tuple[int, str]]:
        """(line, full module name) of every import, wherever it stands."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from ((node.lineno, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield from self._from(node)

    def _from(self, node: ast.ImportFrom) -> Iterator[tuple[int, str]]:
        module = node.module or ""
        if node.level:
            above = ["streamquake", *Path(self.path).parts][: -node.level]
            module = ".".join([*above, *([module] if module else [])])
        for alias in node.names:
            yield node.lineno, f"{module}.{alias.name}"


def sources(root: Path) -> list[Source]:
    files = sorted(root.rglob("*.py"))
    texts = ((path, path.read_text(encoding="utf-8")) for path in files)
    return [
        Source(path.relative_to(root).as_posix(), text, ast.parse(text)) for path, text in texts
    ]


def wrong_directions(root: Path) -> list[str]:
    return [
        f"{source.path}:{line}: {source.folder} imports {name}"
        for source in sources(root)
        for line, name in source.imports()
        if name.startswith("streamquake.") and not _allowed(source.folder, name.split(".")[1])
    ]


def _allowed(folder: str, imported: str) -> bool:
    if imported not in ORDER or folder == "__main__.py":
        return True  # the package's own names, such as its version; and its outermost module
    return folder in ORDER and ORDER.index(imported) <= ORDER.index(folder)


def docker_elsewhere(root: Path) -> list[str]:
    return [
        f"{source.path}:{line}: only {DOCKER_FOLDER} speaks to the engine; use ContainerRuntime"
        for source in sources(root)
        if not source.path.startswith(DOCKER_FOLDER)
        for line, name in source.imports()
        if name.split(".")[0] in DOCKER
    ]


def without_docstring(root: Path) -> list[str]:
    return [source.path for source in sources(root) if not ast.get_docstring(source.tree)]


def sleeps(root: Path) -> list[str]:
    """Calls of time.sleep, and imports of it by name: time passes on a Clock."""
    found = []
    for source in sources(root):
        if source.path == CLOCK:
            continue
        found += [f"{source.path}:{line}" for line, n in source.imports() if n == "time.sleep"]
        found += [
            f"{source.path}:{node.lineno}"
            for node in ast.walk(source.tree)
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
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ExceptHandler) and node.type is None
    ]


def machine_paths(root: Path) -> list[str]:
    """Paths of one person's machine have no place in a source."""
    return [
        f"{source.path}:{number}: {line.strip()}"
        for source in sources(root)
        for number, line in enumerate(source.text.splitlines(), start=1)
        if any(
            place in line for place in ("/" + "home/", "/" + "Users/", "/" + "work/", "/" + "root/")
        )
    ]


RULES = (
    wrong_directions, docker_elsewhere, without_docstring, sleeps, bare_excepts, machine_paths,
)  # fmt: skip


@pytest.mark.parametrize("rule", RULES)
def test_package_keeps_the_rule(rule: Callable[[Path], list[str]]) -> None:
    assert rule(PACKAGE) == []


def test_every_folder_is_there() -> None:
    folders = {source.folder for source in sources(PACKAGE) if "/" in source.path}

    assert folders == set(ORDER)


@pytest.mark.parametrize(
    ("rule", "path", "text"),
    [
        (wrong_directions, "reports/bad.py", "from streamquake.harness import runner"),
        (wrong_directions, "cluster/bad.py", "def f():\n    import streamquake.faults.fault"),
        (wrong_directions, "topologies/bad.py", "from streamquake import cluster"),
        (wrong_directions, "faults/bad.py", "from ..harness.runner import run"),
        (wrong_directions, "faults/catalogue/bad.py", "from ...harness import runner"),
        (wrong_directions, "other/bad.py", "from streamquake.reports import event"),
        (docker_elsewhere, "cluster/bad.py", "import docker"),
        (docker_elsewhere, "harness/bad.py", "from docker.errors import APIError"),
        (docker_elsewhere, "faults/bad.py", "from testcontainers.core import container"),
        (without_docstring, "harness/bad.py", "x = 1"),
        (sleeps, "harness/bad.py", "import time\ntime.sleep(1)"),
        (sleeps, "cluster/bad.py", "from time import sleep\nsleep(1)"),
        (bare_excepts, "harness/bad.py", "try:\n    x = 1\nexcept:\n    pass"),
        (machine_paths, "harness/bad.py", "x = '/" + "home/somebody/file'"),
    ],
)
def test_planted_violation_is_found(
    rule: Callable[[Path], list[str]], path: str, text: str, tmp_path: Path
) -> None:
    planted = tmp_path / path
    planted.parent.mkdir(parents=True)
    planted.write_text(text, encoding="utf-8")

    assert any(found.startswith(path) for found in rule(tmp_path))


@pytest.mark.parametrize(
    "text",
    [
        '"""Says what it is."""\nfrom streamquake import __version__',
        '"""Says what it is."""\nfrom streamquake.topologies.model import Topology',
        '"""Says what it is."""\nfrom streamquake.reports import event',
        '"""Says what it is."""\nimport time\nclock.sleep(1)\ntime.time()',
    ],
)
def test_allowed_source_is_left_alone(text: str, tmp_path: Path) -> None:
    good = tmp_path / "cluster" / "good.py"
    good.parent.mkdir()
    good.write_text(textwrap.dedent(text), encoding="utf-8")

    assert [found for rule in RULES for found in rule(tmp_path)] == []

"""A line that a fault adds to the script that starts a node's process.

The script is stored in the container's own layer, so the line survives a restart of the node and a
crash of the harness, and is removed with the container. Each line ends with a mark, and only marked
lines are removed.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.node import Node
from streamquake.cluster.runtime.runtime import ContainerError

SCRIPT = "/docker-entrypoint.sh"
"""The path of the script in the shipped images, and in many others."""


def has_line(cluster: Cluster, node: Node, mark: str) -> bool:
    """Whether the script contains a line with this mark now."""
    return any(_has_mark(line, mark) for line in _read(cluster, node))


def put_line(cluster: Cluster, node: Node, line: str, mark: str) -> None:
    """Insert a shell line at the start of the script, replacing one with the same mark. Raises
    ContainerError when there is no such script, or it is no shell script."""
    first, *rest = (other for other in _read(cluster, node) if not _has_mark(other, mark))
    if not first.startswith("#!") or not first.rstrip().endswith("sh"):
        raise ContainerError(
            f"{node.name}: {SCRIPT} begins with {first!r}, and a shell script was expected; this "
            "fault works on images whose entrypoint is one"
        )
    _write(cluster, node, [first, f"{line}  {_ending(mark)}", *rest])


def remove_line(cluster: Cluster, node: Node, mark: str) -> None:
    """Remove the line with this mark; it need not exist."""
    lines = _read(cluster, node)
    remaining = [line for line in lines if not _has_mark(line, mark)]
    if remaining != lines:
        _write(cluster, node, remaining)


def _ending(mark: str) -> str:
    return f"# streamquake {mark}"


def _has_mark(line: str, mark: str) -> bool:
    return line.rstrip().endswith(_ending(mark))


def _read(cluster: Cluster, node: Node) -> list[str]:
    """Raises ContainerError when there is no such script."""
    with tempfile.TemporaryDirectory() as folder:
        cluster.runtime.copy_out(node.container, SCRIPT, Path(folder))
        script = Path(folder) / Path(SCRIPT).name
        return script.read_text(encoding="utf-8").split("\n")


def _write(cluster: Cluster, node: Node, lines: list[str]) -> None:
    cluster.runtime.put(node.container, {SCRIPT: "\n".join(lines)})

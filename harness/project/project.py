"""Writing a project that runs as it is: a topology, a job, an experiment, tests and a night.

The names of the documents differ from all shipped ones, which would take precedence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from streamquake.topologies.named_files import shorten
from streamquake.topologies.problems import BadInput, Problem, bad_input

TEMPLATES = Path(__file__).parent / "files"
FILES: Mapping[str, str] = {
    "chaos/first-cluster.yaml": "first-cluster.yaml",
    "chaos/first-job.sql": "first-job.sql",
    "chaos/lose-a-worker.yaml": "lose-a-worker.yaml",
    "chaos/test_chaos.py": "test_chaos.py.txt",
    ".github/workflows/chaos-night.yml": "chaos-night.yml",
}
"""File of the project -> its template. The module ends with `.txt`, so that no tool takes it for a
module of the package, and no template is in a hidden folder, which the packaging leaves out."""


def write_project(folder: Path) -> tuple[Path, ...]:
    """Write the files of a project, and return their paths. Raises BadInput, and writes nothing,
    where one exists or cannot be placed."""
    paths = {folder / name: TEMPLATES / template for name, template in FILES.items()}
    try:
        if problems := [*_obstacles(folder, tuple(paths))]:
            raise BadInput(problems)
        for path, template in paths.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as opened:
                opened.write(template.read_text(encoding="utf-8"))
    except OSError as error:
        message = f"the project cannot be written: {error.strerror}"
        raise bad_input(shorten(str(folder)), message) from error
    return tuple(paths)


def _obstacles(folder: Path, paths: tuple[Path, ...]) -> Iterator[Problem]:
    above = {parent for path in paths for parent in path.parents}
    for path in sorted(above):
        if (path.exists() or path.is_symlink()) and not path.is_dir():
            yield Problem(file=str(path), message="it is no folder; nothing was written")
    for path in paths:
        if path.exists() or path.is_symlink():
            yield Problem(file=str(path), message="it exists already; nothing was written")

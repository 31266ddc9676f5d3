"""The paths, links, commands and documents in the documentation pages are valid."""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from streamquake.harness.cli import program
from streamquake.harness.cli.validate import problems_of

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
FOLDERS = {path.name for path in ROOT.iterdir() if path.is_dir()} - {"runs", "build", "dist"}
QUOTED = re.compile(r"`([\w.*-]+(?:/[\w.*-]*)+)`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
PLACEHOLDER = re.compile(r"^[A-Z]+(\.\w+)?$")
"""A part such as NAME or NAME.py, a placeholder for the reader's own name."""
PROGRAM = re.compile(
    r"(?:^ {4}(?:\$ |\.venv/bin/)?|`)streamquake ([a-z]+)([^`\n#]*)", flags=re.MULTILINE
)
OPTION = re.compile(r"(?<!\S)--[a-z-]+")
TARGET = re.compile(r"(?:^ {4}|`)make ([a-z-]+)", flags=re.MULTILINE)
DOCUMENT = re.compile(
    r"^```yaml\n(?=name:|base:)((?:(?!```).*\n)+)|^( {4}name: .*\n(?: {4}.*\n)+)",
    flags=re.MULTILINE,
)
HISTORY = "CHANGELOG.md"
"""It names files of earlier releases."""


def dead_paths(text: str, root: Path = ROOT) -> Iterator[str]:
    """Quoted paths below the repository's own folders that do not exist."""
    for path in QUOTED.findall(text):
        parts = path.rstrip("/").split("/")
        if parts[0] not in FOLDERS or any(PLACEHOLDER.match(part) for part in parts):
            continue
        if not any(root.glob(path.rstrip("/"))):
            yield path


def dead_links(text: str, folder: Path) -> Iterator[str]:
    """Links to missing files, and to headings that a page does not have."""
    for link in LINK.findall(text):
        name, _, heading = link.partition("#")
        if "://" in link:
            continue
        file = folder / name
        page = file.read_text("utf-8") if name and file.suffix == ".md" and file.exists() else text
        if not file.exists() or (heading and heading not in anchors(page)):
            yield link


def unknown_commands(text: str) -> Iterator[str]:
    """Commands, options of commands, and targets of `make` that do not exist."""
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), flags=re.MULTILINE)
    yield from (f"make {target}" for target in TARGET.findall(text) if target not in targets)
    for name, rest in PROGRAM.findall(text):
        command = program.get_command(click.Context(program), name)
        if command is None:
            yield name
            continue
        known = {option for parameter in command.params for option in parameter.opts}
        yield from (f"{name} {option}" for option in OPTION.findall(rest) if option not in known)


def documents() -> list[tuple[str, str]]:
    """(page, text) of every complete YAML document: an experiment, a topology or a suite."""
    return [
        (page.name, textwrap.dedent(fenced or indented))
        for page in PAGES
        for fenced, indented in DOCUMENT.findall(page.read_text(encoding="utf-8"))
    ]


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_path_and_link_of_a_page_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    paths = [] if page.name == HISTORY else [*dead_paths(text)]

    assert [*paths, *dead_links(text, page.parent)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_of_a_page_is_known(page: Path) -> None:
    assert [*unknown_commands(page.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize(("page", "document"), documents())
def test_every_document_of_a_page_is_valid(page: str, document: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples" / "recorded", tmp_path, dirs_exist_ok=True)
    file = tmp_path / "document.yaml"
    file.write_text(document, encoding="utf-8")

    assert (problems_of(str(file)), page) == ((), page)


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md"}

    assert pages <= {*LINK.findall(index)}


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150


def test_a_dead_path_is_found() -> None:
    text = "`tests/conftest.py` `tests/none.py` `tests/NAME.py` `flink/taskmanager` `faults/*.py`"

    assert [*dead_paths(text)] == ["tests/none.py"]


def test_an_unknown_command_is_found() -> None:
    text = "    streamquake run x --keep --none\n`streamquake none` `make none` `make test`\n"

    assert [*unknown_commands(text)] == ["make none", "run --none", "none"]


def test_a_dead_link_is_found(tmp_path: Path) -> None:
    (tmp_path / "there.md").write_text("# A heading, `quoted`\n", encoding="utf-8")
    text = "[a](there.md) [b](there.md#a-heading-quoted) [c](none.md) [d](there.md#none) [e](#no)"

    assert [*dead_links(text, tmp_path)] == ["none.md", "there.md#none", "#no"]

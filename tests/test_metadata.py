"""The package's metadata agree with what is pinned, what is written down, and what is installed."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import streamquake

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
    "project"
]
LOWER = (">=", "~=", "==")


def pins(text: str) -> dict[str, Version]:
    """The versions of a file of requirements, by the normalised name of the package."""
    found = re.findall(r"^([\w.-]+)==(\S+)", text, flags=re.MULTILINE)
    return {canonicalize_name(name): Version(version) for name, version in found}


def untried(requirements: Iterable[str], pinned: dict[str, Version]) -> Iterator[str]:
    """Requirements whose lower bound is not the pinned release, to its minor version at least."""
    for text in requirements:
        requirement = Requirement(text)
        bounds = [Version(s.version) for s in requirement.specifier if s.operator in LOWER]
        tried = pinned[canonicalize_name(requirement.name)]
        if [bound.release[:2] for bound in bounds] != [tried.release[:2]] or bounds[0] > tried:
            yield text


@pytest.mark.parametrize(
    ("file", "extras"),
    [("", ("dev",)), ("-bench", ("bench",)), ("-mutants", ("mutants",))],
)
def test_every_lower_bound_is_a_release_that_was_tried(file: str, extras: tuple[str, ...]) -> None:
    pinned = pins((ROOT / f"requirements{file}.txt").read_text(encoding="utf-8"))
    optional = PROJECT["optional-dependencies"]
    requested = [*PROJECT["dependencies"], *(text for extra in extras for text in optional[extra])]

    assert [*untried(requested, pinned)] == []


@pytest.mark.parametrize("text", ["click", "click<9", "click>=8.4", "click>=8.5.2", "click>=9"])
def test_an_untried_bound_is_found(text: str) -> None:
    assert [*untried([text], {"click": Version("8.5.1")})] == [text]


def test_the_version_stands_in_one_place() -> None:
    assert PROJECT["version"] == streamquake.__version__


def test_the_changelog_names_the_version_as_its_newest_release() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    released = re.findall(r"^## \[(\d[^]]*)\] - \d{4}-\d{2}-\d{2}$", changelog, flags=re.MULTILINE)

    assert released[0] == PROJECT["version"]


def test_the_licence_is_the_whole_one_that_the_metadata_name() -> None:
    (file,) = PROJECT["license-files"]
    text = (ROOT / file).read_text(encoding="utf-8")

    assert PROJECT["license"] == "Apache-2.0"
    assert "Apache License\n                           Version 2.0, January 2004" in text
    assert "9. Accepting Warranty or Additional Liability." in text
    assert "END OF TERMS AND CONDITIONS" in text
    assert "APPENDIX: How to apply the Apache License to your work." in text

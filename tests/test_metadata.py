"""The package's metadata agree with the pinned releases, the changelog, the licence and the
installed version."""

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
    """The versions in a requirements file, by the normalised name of the package."""
    found = re.findall(r"^([\w.-]+)==(\S+)", text, flags=re.MULTILINE)
    return {canonicalize_name(name): Version(version) for name, version in found}


def untested_bounds(requirements: Iterable[str], pinned: dict[str, Version]) -> Iterator[str]:
    """Requirements whose lower bound is not the minor version of the pinned release, or is above
    it."""
    for text in requirements:
        requirement = Requirement(text)
        bounds = [Version(s.version) for s in requirement.specifier if s.operator in LOWER]
        pin = pinned[canonicalize_name(requirement.name)]
        if [bound.release[:2] for bound in bounds] != [pin.release[:2]] or bounds[0] > pin:
            yield text


@pytest.mark.parametrize(
    ("file", "extras"),
    [("", ("dev",)), ("-bench", ("bench",)), ("-mutants", ("mutants",))],
)
def test_every_lower_bound_is_a_tested_release(file: str, extras: tuple[str, ...]) -> None:
    pinned = pins((ROOT / f"requirements{file}.txt").read_text(encoding="utf-8"))
    optional = PROJECT["optional-dependencies"]
    requested = [*PROJECT["dependencies"], *(text for extra in extras for text in optional[extra])]

    assert [*untested_bounds(requested, pinned)] == []


@pytest.mark.parametrize("text", ["click", "click<9", "click>=8.4", "click>=8.5.2", "click>=9"])
def test_an_untested_bound_is_found(text: str) -> None:
    assert [*untested_bounds([text], {"click": Version("8.5.1")})] == [text]


def test_the_metadata_have_the_version_of_the_package() -> None:
    assert PROJECT["version"] == streamquake.__version__


def test_the_newest_release_in_the_changelog_is_the_version() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    released = re.findall(r"^## \[(\d[^]]*)\] - \d{4}-\d{2}-\d{2}$", changelog, flags=re.MULTILINE)

    assert released[0] == PROJECT["version"]


def test_the_licence_file_is_complete_and_that_of_the_metadata() -> None:
    (file,) = PROJECT["license-files"]
    text = (ROOT / file).read_text(encoding="utf-8")

    assert PROJECT["license"] == "Apache-2.0"
    assert "Apache License\n                           Version 2.0, January 2004" in text
    assert "9. Accepting Warranty or Additional Liability." in text
    assert "END OF TERMS AND CONDITIONS" in text
    assert "APPENDIX: How to apply the Apache License to your work." in text

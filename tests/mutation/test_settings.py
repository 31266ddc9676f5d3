"""The settings of mutmut: it passes over a path that is not there, without a word."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SETTINGS: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"][
    "mutmut"
]


def missing(patterns: Iterable[str], root: Path) -> list[str]:
    """The patterns that name no file or folder."""
    return [pattern for pattern in patterns if not any(root.glob(pattern))]


@pytest.mark.parametrize("setting", ["only_mutate", "pytest_add_cli_args_test_selection"])
def test_every_path_of_the_settings_is_there(setting: str) -> None:
    assert SETTINGS[setting]
    assert missing(SETTINGS[setting], ROOT) == []


def test_a_path_that_is_not_there_is_told(tmp_path: Path) -> None:
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "one.py").touch()
    (tmp_path / "link").symlink_to("room")
    given = ["room", "room/*.py", "link/one.py", "room/two.py", "hall/*.py"]
    assert missing(given, tmp_path) == ["room/two.py", "hall/*.py"]

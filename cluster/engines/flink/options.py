"""The configuration keys that a version of Flink reads.

Flink ignores unknown keys, also keys of older versions: a test that sets one does not test what it
intends. The lists in `options/` contain every option of a release, read from its jars; a version
between two releases is checked against the nearest older list.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from streamquake.cluster.engines.service_declaration import Problems
from streamquake.topologies.model import Service
from streamquake.topologies.problems import did_you_mean

FOLDER = Path(__file__).parent / "options"
OPEN_PREFIXES = (
    "metrics.reporter.",
    "events.reporter.",
    "traces.reporter.",
    "external-resource.",
    "sql-gateway.endpoint.",
    "flink.hadoop.",
    "fs.",
    "s3.",
)
"""After these prefixes users choose the names, or another library reads the keys."""


def config_problems(declared: Service, version: str) -> Problems:
    """Keys that this version would ignore."""
    return [
        (("config", key), message)
        for key in declared.config
        if (message := key_problem(key, version)) is not None
    ]


def key_problem(key: str, version: str) -> str | None:
    """Why a key would have no effect on a version, or None when it has one."""
    known = options(_nearest(version))
    if key in known or key.startswith(OPEN_PREFIXES):
        return None
    readers = [release for release in _releases() if key in options(release)]
    if readers:
        return f"Flink {version} ignores {key}; it is an option of {', '.join(readers)}"
    suggestion = did_you_mean(key, known).partition(" known: ")[0]
    return f"Flink {version} has no option {key}{suggestion.rstrip(';')}"


@cache
def options(release: str) -> frozenset[str]:
    """Every key that a release reads, including deprecated names of options."""
    return frozenset(
        name for key, (_, older) in _listed(release).items() for name in (key, *older.split())
    )


def defaults(version: str) -> Mapping[str, str]:
    """Each option of a version -> its default, as in the release."""
    return {key: default for key, (default, _) in _listed(_nearest(version)).items()}


@cache
def _listed(release: str) -> Mapping[str, tuple[str, str]]:
    """Each option of a release -> its default, and its deprecated names."""
    lines = (FOLDER / f"flink-{release}.tsv").read_text(encoding="utf-8").splitlines()
    rows = (line.split("\t") for line in lines if not line.startswith("#"))
    return {key: (default, older) for key, default, older in rows}


def _nearest(version: str) -> str:
    older = [release for release in _releases() if _line(release) <= _line(version)]
    return older[-1] if older else _releases()[0]


@cache
def _releases() -> tuple[str, ...]:
    found = (path.stem.removeprefix("flink-") for path in FOLDER.glob("flink-*.tsv"))
    return tuple(sorted(found, key=_line))


def _line(version: str) -> tuple[int, int]:
    major, minor = version.split(".")[:2]
    return int(major), int(minor)

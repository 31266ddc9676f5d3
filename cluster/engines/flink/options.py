"""The configuration keys that a version of Flink reads.

Flink ignores unknown keys, also keys of other versions: a test that sets one does not test what it
intends. The lists in `options/` contain every option of a release, read from its jars; a version
between two releases is checked against the nearest older list. Settings are written with the names
of the newest release; an older one gets them by its own names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from streamquake.cluster.engines.service_declaration import Problems
from streamquake.topologies.model import Scalar, Service
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
_DURATION = re.compile(r"(\d+) ?(ms|s|min|h)")
_MS = {"ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000}


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
    if key.startswith(OPEN_PREFIXES) or _own_name(key, version) is not None:
        return None
    readers = [release for release in _releases() if key in options(release)]
    if readers:
        return f"Flink {version} ignores {key}; it is an option of {', '.join(readers)}"
    suggestion = did_you_mean(key, known).partition(" known: ")[0]
    return f"Flink {version} has no option {key}{suggestion.rstrip(';')}"


def as_read_by(version: str, settings: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """The settings by the names, and in the units, that a version reads. Without options that only
    other versions have; keys that no list has are kept."""
    return dict(_as_read_by(version, settings))


def _as_read_by(version: str, settings: Mapping[str, Scalar]) -> Iterator[tuple[str, Scalar]]:
    defaults_of_version = defaults(version)
    for key, value in settings.items():
        own = _own_name(key, version)
        if own != key and own in settings:
            continue  # one option may have become two; its own name decides
        if own is not None:
            yield own, _in_its_unit(value, defaults_of_version.get(own, ""))
        elif not any(key in options(release) for release in _releases()):
            yield key, value


def _own_name(key: str, version: str) -> str | None:
    """The name under which a version reads an option of any release; None where it has none."""
    nearest = _nearest(version)
    if key in options(nearest):
        return key
    listed = [_listed(release).get(key, ("", ""))[1] for release in _releases()]
    older = [name for names in listed for name in names.split()]
    # The release's own name for it, before names that were old already.
    return next(
        (name for known in (_listed(nearest), options(nearest)) for name in older if name in known),
        None,
    )


def _in_its_unit(value: Scalar, default: str) -> Scalar:
    """A duration as a number of milliseconds, where the default shows that one is expected."""
    milliseconds = duration_ms(value)
    return value if milliseconds is None or not default.isdecimal() else milliseconds


def duration_ms(value: Scalar) -> int | None:
    """The milliseconds of a duration such as `10 s`; None for what is not written like that."""
    duration = _DURATION.fullmatch(str(value))
    return None if duration is None else int(duration[1]) * _MS[duration[2]]


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


@cache
def _nearest(version: str) -> str:
    older = [release for release in _releases() if line_of(release) <= line_of(version)]
    return older[-1] if older else _releases()[0]


@cache
def _releases() -> tuple[str, ...]:
    found = (path.stem.removeprefix("flink-") for path in FOLDER.glob("flink-*.tsv"))
    return tuple(sorted(found, key=line_of))


def line_of(version: str) -> tuple[int, int]:
    """The line of a version, for comparisons: (1, 20) of "1.20.1"."""
    major, minor = version.split(".")[:2]
    return int(major), int(minor)

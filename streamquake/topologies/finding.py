"""Finding the files that inputs name: those shipped with the package by name, others by path."""

from __future__ import annotations

from pathlib import Path

from streamquake.topologies.problems import did_you_mean

SHIPPED = Path(__file__).parent
JOBS = SHIPPED / "jobs"
RULES = SHIPPED / "rules"

LONGEST_SHOWN = 80


def find_file(what: str, name: str, *, shipped: Path, suffix: str, beside: Path | None) -> Path:
    """A shipped file by its name (with or without its ending), else a file by its path.

    A path is looked for from the folder `beside`, then from the current one. Raises LookupError,
    with the shipped names, where there is none.
    """
    if "/" not in name:
        for candidate in (shipped / name, shipped / f"{name}{suffix}"):
            if candidate.suffix == suffix and is_file(candidate):
                return candidate
    for folder in (beside, Path.cwd()):
        if folder is not None and name and is_file(folder / name):
            return folder / name
    places = " or ".join(str(folder) for folder in dict.fromkeys((beside, Path.cwd())) if folder)
    raise LookupError(
        f'no {what} is called "{shortened(name)}", and there is no such file in {places}'
        f"{did_you_mean(name.removesuffix(suffix), shipped_names(shipped, suffix))}"
    )


def is_file(path: Path) -> bool:
    """Whether a path leads to a file; one that no file can have does not."""
    try:
        return path.is_file()
    except OSError:
        return False


def shortened(name: str) -> str:
    """A name as messages show it."""
    return name if len(name) <= LONGEST_SHOWN else f"{name[:LONGEST_SHOWN]}…"


def shipped_names(folder: Path, suffix: str) -> tuple[str, ...]:
    """The names of the shipped files of a kind, without their ending."""
    return tuple(sorted(path.stem for path in folder.glob(f"*{suffix}")))

"""Trials until `explore` finds a planted bug, guided and at random.

    python -m tests.benchmarks.bench_explore [--bugs NAME,...] [--seeds 5] [--trials 300]
                                              [--out DIR]

Each bug of the suite `planted` is explored with each seed, once guided and once at random, until a
trial is violated. The arms take turns, so that other work on the machine meets both alike. A
trial takes about half a minute: all bugs and seeds take days, so name some. The same command goes
on where it ended.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

from rich.console import Console
from rich.table import Table

from streamquake.harness.campaign.suite.loader import load_suite

ARMS = {"guided": (), "random": ("--unguided",)}
"""The options of each arm."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--bugs", default=",".join(_planted()), help="experiments with a bug")
    parser.add_argument("--seeds", type=int, default=5, help="seeds of each bug")
    parser.add_argument("--trials", type=int, default=300, help="trials after which it gives up")
    parser.add_argument("--out", type=Path, default=Path("runs/bench-explore"))
    arguments = parser.parse_args()
    found: dict[tuple[str, str], list[int | None]] = {}
    bugs = arguments.bugs.split(",")
    for bug, seed, arm in product(bugs, range(1, arguments.seeds + 1), ARMS):
        trials = _trials_until_found(bug, seed, arm, arguments.trials, arguments.out)
        print(f"{bug}, seed {seed}, {arm}: {_shown(trials, arguments.trials)}", flush=True)
        found.setdefault((bug, arm), []).append(trials)
    Console().print(_table(bugs, found, arguments.trials))


def _planted() -> Iterator[str]:
    for row in load_suite("planted").rows:
        yield row.names[0]


def _trials_until_found(bug: str, seed: int, arm: str, most: int, out: Path) -> int | None:
    """The number of the first violated trial; None where none of `most` was. Raises RuntimeError
    where the exploration fails."""
    command = [sys.executable, "-m", "streamquake", "explore", bug, "--json", "--no-shrink"]
    command += [f"--trials={most}", f"--seed={seed}", "--repeats=0", f"--out={out / arm}"]
    ended = subprocess.run([*command, *ARMS[arm]], stdout=subprocess.PIPE, check=False, text=True)
    if ended.returncode not in (0, 1, 3):
        raise RuntimeError(f"`{' '.join(command)}` ended with {ended.returncode}")
    violated = (
        trial["trial"]
        for trial in json.loads(ended.stdout)["trials"]
        if trial["outcome"] == "violated"
    )
    return next(violated, None)


def _table(bugs: Sequence[str], found: dict[tuple[str, str], list[int | None]], most: int) -> Table:
    table = Table("bug", *(f"{arm}: trials, median" for arm in ARMS), "random / guided")
    for bug in bugs:
        # A bug that was not found needs more trials than there were.
        medians = [
            statistics.median(most + 1 if each is None else each for each in found[bug, arm])
            for arm in ARMS
        ]
        trials = [", ".join(_shown(each, most) for each in found[bug, arm]) for arm in ARMS]
        cells = [f"{each}; {median:g}" for each, median in zip(trials, medians, strict=True)]
        table.add_row(bug, *cells, f"{medians[1] / medians[0]:.1f}")
    return table


def _shown(trials: int | None, most: int) -> str:
    return f"> {most}" if trials is None else str(trials)


if __name__ == "__main__":
    main()

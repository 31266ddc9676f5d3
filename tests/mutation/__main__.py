"""The table of the mutants by module: how many the tests killed, and which survivors are equal.

`equal.tsv` lists the survivors that mean the same as the code, each with the reason. A mutant is
named there by its function and its changed line, because its number changes with the code. One that
only writes a name for Spark in other letters is equal too.
Mutants that were not run are counted as such, and not judged. Exit status 1 where a module is below
the share, or where nothing was run; with patterns of mutants as arguments, of their modules alone.
"""

from __future__ import annotations

import csv
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

COPY = Path(__file__).parents[2] / "build" / "mutants"
"""Where `scripts/mutants.sh` runs mutmut."""
MUTANTS = Path("mutants")
"""Where mutmut keeps its results, below the folder that it runs in."""
EQUAL = Path(__file__).with_name("equal.tsv")
KILLED_SHARE = 0.95
SURVIVED = 0
KILLED = (1, 3, 24, 36, 37, 152, 255, -9, -11, -24)
"""Exit codes of the tests: a mutant that never ends, or ends the process, is noticed too."""
NO_TESTS = (5, 33)
SPARK_IN = ("streamquake/harness/verdict/checks", "streamquake/harness/verdict/evidence")
"""Where columns are named to Spark in its usual setting, in which `Key` is `key`."""


@dataclass
class Module:
    """The mutants of one module, counted by status, and the survivors that are not equal."""

    name: str
    counts: Counter[str] = field(default_factory=Counter)
    survivors: list[str] = field(default_factory=list)

    @property
    def judged(self) -> int:
        """How many mutants could be killed: without the equal ones, and those not run."""
        return sum(self.counts[each] for each in ("killed", "survived", "no tests"))

    @property
    def share(self) -> float:
        return self.counts["killed"] / self.judged if self.judged else 1.0

    @property
    def row(self) -> str:
        counted = (f"{self.counts[each]:9}" for each in COLUMNS)
        share = f"{self.share:8.1%}" if self.judged else "       -"
        return f"{self.name.removeprefix('streamquake.'):42}{''.join(counted)}{share}"


COLUMNS = ("killed", "survived", "no tests", "equal", "not run")
TITLE = f"{'module':42}{''.join(f'{each:>9}' for each in COLUMNS)}{'share':>8}"


def equal_mutants() -> Mapping[tuple[str, str], str]:
    """The reason of each equal mutant, by its function and its changed line."""
    with EQUAL.open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return {(function, line): reason for function, line, reason in rows}


def changed_lines(mutant: str, path: Path) -> tuple[str, str]:
    """The code that the mutant changes, and what it has in place of it, without indentation."""
    from mutmut.mutation.diff_apply import get_diff_for_mutant

    lines = get_diff_for_mutant(mutant, path=path).splitlines()[2:]
    old, new = (
        " ".join(line[1:].strip() for line in lines if line.startswith(sign)) for sign in "-+"
    )
    return old, new


def is_equal(
    mutant: str, path: Path, listed: Mapping[tuple[str, str], str], of_spark: frozenset[str]
) -> bool:
    """Whether a mutant means the same as the code: it is listed, or it writes a name for Spark in
    other letters, which tells small and capital ones not apart."""
    function = mutant.rpartition("__mutmut_")[0]
    old, new = changed_lines(mutant, path)
    same_name = old.lower() == new.lower() and path.as_posix() in of_spark
    return (function, new) in listed or same_name


def modules_of_spark() -> frozenset[str]:
    """The checks and the evidence that ask Spark, by their files."""
    found = (path for room in SPARK_IN for path in Path(room).glob("*.py"))
    return frozenset(p.as_posix() for p in found if "pyspark" in p.read_text(encoding="utf-8"))


def modules() -> Iterator[Module]:
    """The modules that mutmut made mutants of."""
    listed, of_spark = equal_mutants(), modules_of_spark()
    for meta in sorted(MUTANTS.glob("streamquake/**/*.py.meta")):
        path = meta.relative_to(MUTANTS).with_suffix("")
        module = Module(".".join(path.with_suffix("").parts))
        codes: Mapping[str, int | None] = json.loads(meta.read_text("utf-8"))["exit_code_by_key"]
        for mutant, code in codes.items():
            status = _status(code)
            if status == "survived":
                if is_equal(mutant, path, listed, of_spark):
                    status = "equal"
                else:
                    module.survivors.append(mutant)
            module.counts[status] += 1
        if codes:
            yield module


def _status(code: int | None) -> str:
    if code in KILLED:
        return "killed"
    if code in NO_TESTS:
        return "no tests"
    return "survived" if code == SURVIVED else "not run"


def main(patterns: Sequence[str]) -> int:
    """Print the table and the survivors; 1 where a module is below the share."""
    found = list(modules())
    judged = [each for each in found if not patterns or _is_named(each.name, patterns)]
    print(TITLE)
    for module in judged:
        print(module.row)
    for mutant in (each for module in judged for each in module.survivors):
        print(f"survived: {mutant}")
    below = [each for each in judged if each.judged and each.share < KILLED_SHARE]
    for module in below:
        print(f"{module.name}: {module.share:.1%} killed, {KILLED_SHARE:.0%} are needed")
    if not any(each.judged for each in judged):
        print("no mutant was run")
        return 1
    return 1 if below else 0


def main_in_copy(patterns: Sequence[str]) -> int:
    """`main` on what was run last; 1 where nothing was."""
    if not COPY.is_dir():
        print(f"no mutant was run: {COPY} is missing; `make mutants` makes it")
        return 1
    with chdir(COPY):
        return main(patterns)


def _is_named(module: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch(f"{module}.x", each) or each.startswith(module) for each in patterns)


if __name__ == "__main__":
    sys.exit(main_in_copy(sys.argv[1:]))

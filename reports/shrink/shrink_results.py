"""The smallest experiment that fails as a run did, and how it was found.

shrink-<run>/shrink.json   shrink.html   smallest.yaml   tries.jsonl
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from streamquake.reports.record.group_folder import GroupFolder
from streamquake.reports.record.outcome import Outcome
from streamquake.reports.record.results import Ended
from streamquake.reports.suite.rate import Rate

SCHEMA = 1


@dataclass(frozen=True, kw_only=True)
class TriedRun:
    """One run of a candidate: whether it `fails`, `passes` or is `undecided`."""

    run: str | None
    outcome: str
    why: str


@dataclass(frozen=True, kw_only=True)
class TriedCandidate:
    """A candidate: what was taken away for it, its tries, and whether it counts; None where it was
    not decided."""

    text: str
    tries: str
    counts: bool | None
    runs: tuple[TriedRun, ...]


@dataclass(frozen=True, kw_only=True)
class ShrinkResults:
    """The results of a shrink so far."""

    run: str
    """The run that was shrunk."""
    experiment: str
    seed: int
    check: str
    found: str
    """The class of the finding; empty for a check that reports none."""
    rule: str
    """How many tries of a candidate must fail."""
    ended: Ended
    reason: str = ""
    cause: str = ""
    is_smallest: bool = False
    """Whether nothing more can be taken away; False where the shrink ended before."""
    taken_away: tuple[str, ...] = ()
    rate: Rate | None = None
    """The share of the decided tries of the smallest experiment that fail; None where not even the
    experiment of the run failed again often enough."""
    runs: tuple[TriedRun, ...] = ()
    """The tries of the smallest experiment."""
    candidates: tuple[TriedCandidate, ...] = ()
    deployments: int = 0
    """How many clusters were started for all the runs."""
    runs_made: int = 0
    """How many runs this call made; the other tries were taken over from earlier ones."""
    elapsed_s: float = 0.0
    again: str = ""
    """The command that continues the shrink."""
    warnings: tuple[str, ...] = ()

    @property
    def failure(self) -> str:
        return f"{self.check} finds {self.found}" if self.found else f"{self.check} is violated"

    @property
    def headline(self) -> str:
        """The result in a few words."""
        if self.rate is None:
            return "not reproduced" if self.ended == "completed" else self.ended.replace("_", " ")
        if self.is_smallest:
            return "smallest experiment found"
        return "smaller experiment found" if self.taken_away else "nothing taken away yet"

    @property
    def outcome(self) -> Outcome:
        """Held where there is an experiment that fails as the run did, else undecided."""
        return Outcome.UNDECIDED if self.rate is None else Outcome.HELD

    @property
    def undecided(self) -> tuple[TriedCandidate, ...]:
        """The candidates with an undecided try."""
        return tuple(
            each
            for each in self.candidates
            if any(tried.outcome == "undecided" for tried in each.runs)
        )

    def to_json(self) -> dict[str, Any]:
        return {"schema": SCHEMA, "headline": self.headline, **asdict(self)}


class ShrinkFolder(GroupFolder):
    """The folder of the shrink of one run."""

    kind: ClassVar[str] = "shrink"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.smallest = path / "smallest.yaml"
        self.tries = path / "tries.jsonl"

    @classmethod
    def of_run(cls, out: Path, run_id: str) -> Self:
        """The folder for the shrink of a run, which an earlier call may have begun."""
        folder = cls(out / f"{cls.kind}-{run_id}")
        folder.path.mkdir(parents=True, exist_ok=True)
        return folder

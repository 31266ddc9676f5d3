"""What a check is: a judgement over the history and the data of a run.

A check is one file in `harness/verdict/checks/`: a frozen model whose fields are its YAML
parameters, a `name`, and `check(case)`. It never talks to a cluster, so that a run can be judged
again from its folder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from pydantic import Field

from streamquake.reports.record.event_field import MissingField
from streamquake.reports.record.history import History
from streamquake.reports.record.outcome import CheckResult, Finding, Outcome, class_of
from streamquake.topologies.errors import message_of
from streamquake.topologies.model import LONGEST_NAME, Model
from streamquake.topologies.registry import Registry

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streamquake.harness.experiment.model import Experiment

MAX_FINDINGS = 8
ALWAYS_ON = ("progress", "effect", "execution")
"""Checks of every run, whether an experiment names them or not."""


@dataclass(frozen=True, kw_only=True)
class JudgedRun:
    """The evidence of a run that checks judge: plan, history, and the folder of the output data.

    `data` holds one folder of Parquet files for each output (see `outputs.py`), `metrics` is
    the file of samples, `logs` holds a folder for each node with its log; `spark` gives the
    session, started at the first call.
    """

    experiment: Experiment
    history: History
    data: Path
    metrics: Path
    spark: Callable[[], SparkSession]
    logs: Path | None = None
    """None where the judged records are no run's."""
    shared: dict[str, Any] = field(init=False, default_factory=dict, compare=False, repr=False)
    """Evidence that several checks need and that costs time to read, by a name of its own."""


@dataclass(frozen=True, kw_only=True)
class CheckCommand:
    """A program of the user, which a run starts on this machine when its record is complete."""

    argv: tuple[str, ...]
    timeout_s: float


@dataclass(frozen=True, kw_only=True)
class HttpQuestion:
    """A page that is asked for."""

    url: str | None
    """Whom to ask, or None for a node of the cluster."""
    node: str | None
    port: int
    path: str
    status: int
    """The expected HTTP status."""


@dataclass(frozen=True, kw_only=True)
class CommandQuestion:
    """A command in the container of a node, which is expected to exit with 0."""

    node: str
    argv: Sequence[str]
    output: str | None
    """What it is expected to print, without white space around it; None for anything."""


@dataclass(frozen=True, kw_only=True)
class CheckProbe:
    """A question that a run asks again and again, from steady state to the drain."""

    question: HttpQuestion | CommandQuestion
    values: Mapping[str, Any]
    """Place in the JSON of the answer, such as `jobs.0.state` -> the value that is expected."""
    every_s: float
    timeout_s: float


class Check(Model):
    """The base of every check."""

    name: ClassVar[str]
    classes: ClassVar[tuple[str, ...]] = ()
    """The finding classes that it can report; an experiment's `expect` names them."""
    files: ClassVar[tuple[str, ...]] = ()
    """The parameters that may name a file of which the plan of a run holds the content."""
    needs_keys: ClassVar[bool] = False
    """Whether it finds records by the `key` and `seq` of a generated load."""
    needs_topic: ClassVar[bool] = False
    """Whether it judges when records were appended to an output, `output` or the first topic."""

    @property
    def title(self) -> str:
        """What results and `expect` call it: its name, or the one that the experiment gives to one
        of several checks with this name."""
        return self.name

    def queries(self) -> Mapping[str, str]:
        """Parameter -> its SQL over the relations of a run (`check_sql.py`), which is validated
        before anything is executed."""
        return {}

    def command(self) -> CheckCommand | None:
        """What a run starts for this check. Only the run does: to judge a record starts nothing."""
        return None

    def probe(self) -> CheckProbe | None:
        """What a run asks for this check while it lasts; the answers are events."""
        return None

    def beside(self, folder: Path) -> Self:
        """The check with the paths that its document wrote, which is in this folder, and with what
        its files hold. Raises LookupError, ValueError or OSError for a file that cannot be read."""
        return self

    def check(self, case: JudgedRun) -> CheckResult:
        raise NotImplementedError

    def held(self, summary: str, **counts: Any) -> CheckResult:
        return CheckResult(check=self.title, outcome=Outcome.HELD, summary=summary, counts=counts)

    def undecided(self, why: str, findings: tuple[Finding, ...] = (), **counts: Any) -> CheckResult:
        return CheckResult(
            check=self.title,
            outcome=Outcome.UNDECIDED,
            summary=why,
            counts=counts,
            findings=shown(findings),
        )

    def violated(
        self, summary: str, findings: tuple[Finding, ...] = (), **counts: Any
    ) -> CheckResult:
        return CheckResult(
            check=self.title,
            outcome=Outcome.VIOLATED,
            summary=summary,
            counts=counts,
            findings=shown(findings),
        )


def shown(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """The first findings, and the first one of every class, in their order."""
    firsts = {class_of(finding): index for index, finding in reversed([*enumerate(findings)])}
    chosen = {*firsts.values(), *range(max(0, MAX_FINDINGS - len(firsts)))}
    return tuple(finding for index, finding in enumerate(findings) if index in chosen)


class UserCheck(Check):
    """The base of checks whose rule the user writes: an experiment may have several of one kind."""

    given_name: Annotated[
        str | None, Field(alias="name", pattern=r"^[a-z][a-z0-9_-]*$", max_length=LONGEST_NAME)
    ] = None
    """What results and `expect` call the check. Several of one kind need a name each."""

    @property
    def title(self) -> str:
        return self.given_name or self.name


checks: Registry[Check] = Registry("check", "streamquake.harness.verdict.checks", base=Check)


def check_safely(check: Check, case: JudgedRun) -> CheckResult:
    """Judge; a check that crashes, ends the program or has no result is undecided, never held."""
    try:
        result: Any = check.check(case)
    except SystemExit:  # of a plugin: its status would be the outcome of the run
        return check.undecided("the check itself failed: it ends the program")
    except MissingField as missing:
        return check.undecided(str(missing))
    except Exception as error:  # noqa: BLE001 - the guard: a crashed check is undecided
        return check.undecided(f"the check itself failed: {message_of(error)}")
    if isinstance(result, CheckResult):
        return result
    return check.undecided(
        f"the check itself failed: expected a CheckResult, got {type(result).__name__}"
    )

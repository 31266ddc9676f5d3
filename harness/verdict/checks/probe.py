"""`probe`: an HTTP interface, or a command in a node, answers as expected, but for a bounded
time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self
from urllib.parse import unquote_plus

from pydantic import AfterValidator, Field, model_validator

from streamquake.harness.experiment.check import (
    CheckProbe,
    CommandQuestion,
    HttpQuestion,
    JudgedRun,
    UserCheck,
    checks,
)
from streamquake.harness.verdict.evidence.answer_moments import (
    contradicted_moments,
    longest_gap_s,
)
from streamquake.harness.verdict.evidence.missing_answers import missing_answer
from streamquake.reports.record.fault_windows import fault_windows
from streamquake.reports.record.history import History
from streamquake.reports.record.outcome import CheckResult, Finding
from streamquake.reports.record.run_events import ProbeAnswered
from streamquake.topologies.limits import Limit
from streamquake.topologies.model import Words
from streamquake.topologies.secret_names import contains_secret, names_secret, without_login

OUTAGE = "outage"
STILL_OUT = "not_answered_at_the_end"
URL = re.compile(r"https?://(\[[^\s/@\]]+\]|[^\s/@:]+)(:\d{1,5})?([/?]\S*)?")
NODE = re.compile(r"[a-z0-9-]+/[a-z0-9-]+")
PAGE_OF_NODE = re.compile(rf"(?P<node>{NODE.pattern}):(?P<port>\d{{1,5}})(?P<path>/\S*)?")

PARAMETER = re.compile(r"[/?&;#](?P<name>[^/?&;#=]+)=(?P<value>[^?&;#]+)")


def _place(ask: str) -> str:
    if not any(form.fullmatch(ask) for form in (URL, PAGE_OF_NODE, NODE)):
        reason = "; it is recorded, so it takes no user and no password" if "@" in ask else ""
        raise ValueError(
            "expected a URL such as http://localhost:8080/health, a node and its port such as "
            "flink/jobmanager-1:8081/overview, or a node that runs a command, got "
            f'"{without_login(ask)[:80]}"{reason}'
        )
    if secret := next(_secret_parameters(ask), None):
        raise ValueError(
            f'the URL is recorded, so it takes no secret; leave "{secret}" out, or ask a page that '
            "needs none"
        )
    return ask


def _secret_parameters(url: str) -> Iterator[str]:
    """The names of the parameters of a URL that have a secret."""
    for match in PARAMETER.finditer(url):
        name, value = unquote_plus(match["name"]), unquote_plus(match["value"])
        if names_secret(name) or contains_secret(value):
            yield name


@dataclass(frozen=True, kw_only=True)
class Outage:
    """A time without the expected answer, in seconds since the run began."""

    began_s: float
    """When the last expected answer before it was asked."""
    seen_s: float
    """When the first unexpected answer came."""
    last_seen_s: float
    """When the last unexpected answer was asked."""
    over_s: float | None
    """When the next expected answer came; None if it lasted to the end."""
    reason: str

    @property
    def at_least_s(self) -> float:
        return max(0.0, self.last_seen_s - self.seen_s)

    def at_most_s(self, end_s: float) -> float:
        return (end_s if self.over_s is None else self.over_s) - self.began_s


@checks.register
class Probe(UserCheck):
    """Held when an HTTP interface, or a command in the container of a node, gave the expected
    answer from steady state to the drain, except for outages of at most `outage_within_s` each.

    It is asked every `every_s` seconds. An outage is as long as the answers around it prove: it is
    violated when the time between the first and the last unexpected answer is longer than the
    limit, or when the last answer of all is an unexpected one; undecided when only the time between
    the expected answers around it is longer, when the answer was an unexpected one before any
    fault, when nothing was asked for longer than the limit, when the record lacks an answer, and
    when the moments of its questions and answers contradict each other.
    """

    name: ClassVar[str] = "probe"
    classes: ClassVar[tuple[str, ...]] = (OUTAGE, STILL_OUT)

    ask: Annotated[
        str,
        Field(max_length=2000, examples=["http://localhost:8080/health"]),
        AfterValidator(_place),
    ]
    """What is asked: a URL such as http://localhost:8080/health, which is recorded and therefore
    cannot have a password or a token; NODE:PORT/PATH of the cluster, such as
    flink/jobmanager-1:8081/overview, with a port that the cluster publishes; or NODE alone, such as
    postgres/server-1, which runs the command `run`."""
    run: Words = ()
    """The command that is run in the container of the node, as a list of words, such as
    `[psql, -tAc, SELECT count(*) FROM payments]`. It is recorded; its environment is that of the
    container. It is expected to exit with 0."""
    prints: Annotated[str, Field(max_length=2000)] | None = None
    """What the command is expected to print, without white space around it; anything when left
    out."""
    status: Annotated[int, Field(ge=100, le=599)] = 200
    """The HTTP status that is expected. Redirections are not followed."""
    values: Mapping[str, str | int | float | bool | None] = {}
    """Place in the JSON of the answer -> the value that is expected there, such as `{status: UP}`
    or `{jobs.0.status: RUNNING}`. The answer of a command is what it prints."""
    every_s: Limit = 0.5
    """Seconds between two questions."""
    timeout_s: Annotated[float, Field(gt=0, le=8)] = 2
    """Seconds until a question without an answer counts as unanswered."""
    outage_within_s: Limit
    """How long an outage may last, in seconds."""

    @model_validator(mode="after")
    def _can_be_seen(self) -> Self:
        if self.outage_within_s <= self.every_s:
            raise ValueError(
                f"with a question every {self.every_s:g} s no outage of {self.outage_within_s:g} s "
                "is seen; ask more often"
            )
        return self

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if (NODE.fullmatch(self.ask) is not None) != bool(self.run):
            raise ValueError(
                "`run` is a command for a node: give `ask: NODE` and `run: [PROGRAM, …]`, or an "
                "`ask` with a port or a URL and no `run`"
            )
        given = self.model_fields_set & ({"status"} if self.run else {"prints"})
        if given:
            kind = "a command has no HTTP status" if self.run else "only a command prints"
            raise ValueError(f"{', '.join(given)}: {kind}")
        return self

    def probe(self) -> CheckProbe:
        return CheckProbe(
            question=self._question(),
            values=self.values,
            every_s=self.every_s,
            timeout_s=self.timeout_s,
        )

    def _question(self) -> HttpQuestion | CommandQuestion:
        if self.run:
            return CommandQuestion(node=self.ask, argv=self.run, output=self.prints)
        node = PAGE_OF_NODE.fullmatch(self.ask)
        return HttpQuestion(
            url=self.ask if node is None else None,
            node=None if node is None else node["node"],
            port=0 if node is None else int(node["port"]),
            path="/" if node is None else node["path"] or "/",
            status=self.status,
        )

    def check(self, case: JudgedRun) -> CheckResult:
        answers = [each for each in case.history.of(ProbeAnswered) if each.check == self.title]
        if not answers:
            return self.undecided("the record has no answer, which only a run asks for")
        if problem := next(contradicted_moments(answers), None):
            return self.undecided(problem)
        outages = list(outages_of(answers))
        end_s = answers[-1].at_s
        longest_s = max((each.at_most_s(end_s) for each in outages), default=0.0)
        counts: dict[str, Any] = {
            "outages": len(outages),
            "longest_outage_s": round(longest_s, 1),
        }
        if findings := tuple(self._findings(outages, answers[-1].is_last)):
            return self.violated(
                f"{self._summary(outages, longest_s)}: {outages[-1].reason}",
                findings,
                **counts,
            )
        if reason := self._uncertainty(case.history, answers, outages, longest_s):
            return self.undecided(reason, **counts)
        return self.held(
            self._summary(outages, longest_s)
            if outages
            else f"answered as expected for {end_s - answers[0].asked_s:.0f} s",
            **counts,
        )

    def _summary(self, outages: Sequence[Outage], longest_s: float) -> str:
        allowed = f"up to {longest_s:.1f} s; {self.outage_within_s:g} s allowed"
        if len(outages) == 1:
            return f"one outage of {allowed}"
        return f"{len(outages)} outages, the longest of {allowed}"

    def _findings(self, outages: Sequence[Outage], is_complete: bool) -> Iterator[Finding]:
        for each in outages:
            detail = {"at_least_s": round(each.at_least_s, 1), "reason": each.reason}
            where = f"{each.seen_s:.1f} s"
            if each.over_s is None and is_complete:
                yield Finding(what=STILL_OUT, where=where, detail=detail)
            elif each.at_least_s > self.outage_within_s:
                yield Finding(what=OUTAGE, where=where, detail=detail)

    def _uncertainty(
        self,
        history: History,
        answers: Sequence[ProbeAnswered],
        outages: Sequence[Outage],
        longest_s: float,
    ) -> str | None:
        called = [window.called_s for window in fault_windows(history)]
        if outages and outages[0].seen_s < min(called, default=float("inf")):
            when = "before any fault" if called else "in a run without a fault"
            return f"the answer was an unexpected one {when}: {outages[0].reason}"
        if (missing := missing_answer(answers, history)) is not None:
            return missing
        if (gap_s := longest_gap_s(answers)) > self.outage_within_s:
            return f"nothing was asked for {gap_s:.1f} s, so an outage may have been missed"
        if longest_s > self.outage_within_s:
            return (
                f"an outage took between {max(each.at_least_s for each in outages):.1f} and "
                f"{longest_s:.1f} s, and {self.outage_within_s:g} s are allowed; ask more often"
            )
        return None


def outages_of(answers: Sequence[ProbeAnswered]) -> Iterator[Outage]:
    """The outages between recorded answers, of which each has another result than the one before;
    the last one of the probe may repeat it."""
    first: ProbeAnswered | None = None
    for answer in answers:
        if first is not None and (answer.met or not answer.is_last):
            yield _ended_outage(first, answer)
            first = None
        if not answer.met:
            first = first or answer
    if first is not None:
        yield _outage(first, last_seen_s=answers[-1].asked_s, over_s=None)


def _ended_outage(first: ProbeAnswered, after: ProbeAnswered) -> Outage:
    """An outage that ended before an answer. Before an unexpected one of another result, an
    expected answer is missing in the record: the one before it at the latest."""
    if after.met and not after.before_met:
        return _outage(first, last_seen_s=after.before_asked_s, over_s=after.at_s)
    over_s = after.at_s if after.before_at_s is None else after.before_at_s
    return _outage(first, last_seen_s=None, over_s=over_s)


def _outage(first: ProbeAnswered, *, last_seen_s: float | None, over_s: float | None) -> Outage:
    return Outage(
        began_s=first.asked_s if first.before_asked_s is None else first.before_asked_s,
        seen_s=first.at_s,
        last_seen_s=first.at_s if last_seen_s is None else last_seen_s,
        over_s=over_s,
        reason=first.reason or "the record does not say why",
    )

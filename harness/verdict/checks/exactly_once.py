"""`exactly_once`: each output has every expected record exactly once, and no other record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

from pydantic import Field
from pyspark.sql import DataFrame

from streamquake.harness.experiment.check import Check, JudgedRun, checks
from streamquake.harness.experiment.outputs import Output
from streamquake.harness.reconcile.examples import presented
from streamquake.harness.reconcile.parallel_jobs import in_parallel
from streamquake.harness.reconcile.reading.stored_output import StoredOutput
from streamquake.harness.reconcile.result import (
    NOTHING_EXPECTED,
    VIOLATIONS,
    Differences,
    ReconciliationResult,
    open_classes,
    unjudged_reasons,
    violated_classes,
)
from streamquake.harness.verdict.anomaly_attribution import attribute_anomalies
from streamquake.harness.verdict.evidence.drain import not_drained
from streamquake.harness.verdict.evidence.late_records import late_dropped
from streamquake.harness.verdict.evidence.reading_contradictions import contradicted_reading
from streamquake.harness.verdict.evidence.record_damage import RecordDamage, damage_of
from streamquake.harness.verdict.expected_output import (
    count_sends,
    expectations,
    has_status,
    has_unsettled_sends,
    reconciled_output,
    register_sent,
)
from streamquake.harness.verdict.held_back_records import HeldBackRecords, find_held_back
from streamquake.reports.record.outcome import CheckResult, Finding, Outcome, class_of, worst
from streamquake.topologies.errors import message_of

FIGURES: Mapping[str, tuple[str, ...]] = {
    "kafka": ("ends", "stable_ends", "uncommitted"),
    "hdfs": ("pending_files",),
    "s3": ("pending_files",),
    "table": ("prepared",),
}
"""Kind of an output -> the facts of its reading beside the records."""
ORDERED = ("reordered", "regression")
"""The classes that compare a record with the one before it."""


@dataclass(frozen=True, kw_only=True)
class OutputVerdict:
    """The result for one output."""

    outcome: Outcome
    summary: str
    counts: Mapping[str, int | None]
    findings: tuple[Finding, ...] = ()
    doubt: str = ""
    """As in the result of a check."""


@checks.register
class ExactlyOnce(Check):
    """Every output holds every acknowledged record once, unchanged and in order; nothing else."""

    name: ClassVar[str] = "exactly_once"
    classes: ClassVar[tuple[str, ...]] = (
        "lost",
        "duplicated",
        "phantom",
        "changed",
        "reordered",
        "malformed",
        "invisible",
        "gap",
        "regression",
        "unmatched_retraction",
        "wrong_partition",
    )

    min_records: Annotated[int, Field(ge=1)] = 1
    """With fewer acknowledged records than this nothing is proven."""

    def check(self, case: JudgedRun) -> CheckResult:
        outputs = case.experiment.promise.outputs
        if not outputs:
            return self.undecided(
                "the job declares no outputs; name them in the comment block at the top of its SQL"
            )
        acknowledged = count_sends(case, "acknowledged")
        if acknowledged < self.min_records:
            return self.undecided(
                f"{acknowledged:,} records were acknowledged, and at least "
                f"{self.min_records:,} are needed to prove anything"
            )
        register_sent(case)
        with expectations(case) as expected:
            judged = in_parallel(
                lambda name: _judge_safely(case, name, outputs[name], expected), outputs, case.spark
            )
        verdicts = dict(zip(outputs, judged, strict=True))
        outcome = worst(verdict.outcome for verdict in verdicts.values())
        late = _late(case)
        message = [verdict.summary for verdict in verdicts.values() if verdict.outcome == outcome]
        message += [
            f"{count:,} records were too late for their window" for count in late.values() if count
        ]
        return CheckResult(
            check=self.name,
            outcome=outcome,
            summary="; ".join(message),
            counts={**_all_counts(verdicts), **late},
            findings=tuple(finding for v in verdicts.values() for finding in v.findings),
            doubt="; ".join(v.doubt for v in verdicts.values() if v.doubt),
        )


def _judge_safely(
    case: JudgedRun, name: str, output: Output, expected: Mapping[str, DataFrame]
) -> OutputVerdict:
    """The result for one output; an output that cannot be judged does not affect the others."""
    try:
        return _judge(case, name, output, expected.get(name))
    except Exception as error:  # noqa: BLE001 - the guard: a crash is undecided
        return _undecided_verdict(name, f"it cannot be judged: {message_of(error)}")


def _judge(case: JudgedRun, name: str, output: Output, expected: DataFrame | None) -> OutputVerdict:
    """Reconcile one output with its expected records, where that is possible."""
    stored = StoredOutput(path=case.data / name)
    if expected is None:
        return _undecided_verdict(name, "it has no expected records (`expected:` in the job's SQL)")
    if not stored.complete:
        return _undecided_verdict(name, "it was not read")
    if damage := stored.of_another(output.place) or stored.lost_files():
        return _undecided_verdict(name, damage)
    if not has_status(expected, output.columns) and has_unsettled_sends(case):
        return _undecided_verdict(
            name,
            "it depends on sends of unknown result, and the input topic that would settle them "
            "was not read",
        )
    figures = _figures(output.kind, stored.facts())
    with reconciled_output(case, name, output, expected) as found:
        return _verdict_of(case, name, output, expected, found, figures)


def _verdict_of(
    case: JudgedRun,
    name: str,
    output: Output,
    expected: DataFrame,
    found: ReconciliationResult,
    figures: Mapping[str, int | None],
) -> OutputVerdict:
    """The verdict on one output that was read completely, from its reconciliation."""
    stored = StoredOutput(path=case.data / name)
    if found.proves_nothing:
        return _undecided_verdict(name, NOTHING_EXPECTED)
    counts = {**found.counts, **figures}
    findings = tuple(_of_output(name, finding) for finding in found.findings)
    sends = next(case.experiment.workload.send_problems(case.history), "")
    unknown = _unknown_classes(case, output, expected, sends)
    if "phantom" in unknown and counts["malformed"] and output.table is None:
        # A malformed record was never sent, and cannot be retracted later; a row of a table can be
        # replaced.
        counts["phantom"] = counts["malformed"]
        unknown -= {"phantom"}
    damage = damage_of(stored, duplicated=bool(counts["duplicated"]))
    unknown |= _damaged_classes(damage, counts)
    counts |= {name: None for name in unknown if counts.get(name) is not None}
    findings = tuple(each for each in findings if class_of(each) not in unknown)
    if output.kafka:
        counts["invisible"] = None if counts["lost"] is None else 0
    if findings and found.differences is not None:
        try:
            hidden, findings = _with_causes(
                case, name, output, expected, found.differences, counts, findings
            )
            counts |= hidden
        except Exception as error:  # noqa: BLE001 - the guard: an anomaly stays one without a cause
            cause = {"cause": f"it is not known: {message_of(error)}"}
            findings = tuple(replace(f, detail={**f.detail, **cause}) for f in findings)
    verdict = _verdict(f"{name} ({output.kind})", counts, tuple(map(presented, findings)), sends)
    contradicted = contradicted_reading(case, name, stored)
    doubts = (damage.message, contradicted, _uncertain_sends(sends), _not_ended(counts))
    return _uncertain(verdict, "; ".join(filter(None, doubts)))


def _unknown_classes(
    case: JudgedRun, output: Output, expected: DataFrame, sends: str
) -> frozenset[str]:
    """The classes that are not known yet, or that what was sent leaves open: `sends` is a
    contradiction in the record of the sends, or empty."""
    unknown = frozenset[str]()
    if case.experiment.job is not None and not_drained(case.history):
        unknown |= {*open_classes(replaced=output.replaces)}
    if sends:
        unknown |= {"lost", "phantom", "gap"}
        if not has_status(expected, output.columns):  # values are computed from what was sent
            unknown |= {"changed"}
    return unknown


def _damaged_classes(damage: RecordDamage, counts: Mapping[str, int | None]) -> frozenset[str]:
    """The classes of which all anomalies may be due to damage of the record."""
    at_most = {"duplicated": damage.repeated, **dict.fromkeys(ORDERED, 2 * damage.unplaced)}
    return frozenset(name for name, n in at_most.items() if n and n >= (counts.get(name) or 0))


def _uncertain_sends(sends: str) -> str:
    return f"what was sent is not certain: {sends}" if sends else ""


def _not_ended(counts: Mapping[str, int | None]) -> str:
    """A message where transactions are prepared and not ended: what they changed may still appear
    in a table. Empty where there are none."""
    if not (prepared := counts.get("prepared")):
        return ""
    return (
        f"{prepared:,} prepared transactions that changed tables of its database are neither "
        "committed nor rolled back"
    )


def _uncertain(verdict: OutputVerdict, damage: str) -> OutputVerdict:
    """The verdict on a damaged or unfinished reading: nothing is held; a violation stays one."""
    if not damage:
        return verdict
    return replace(
        verdict,
        outcome=max(verdict.outcome, Outcome.UNDECIDED),
        summary=f"{verdict.summary}; {damage}",
        doubt=damage,
    )


def _with_causes(
    case: JudgedRun,
    name: str,
    output: Output,
    expected: DataFrame,
    wrong: Differences,
    counts: Mapping[str, int | None],
    findings: tuple[Finding, ...],
) -> tuple[Mapping[str, int], tuple[Finding, ...]]:
    """How many lost records are invisible, and the findings with their causes."""
    if not (output.kafka and counts["lost"]):
        return {}, _all_findings(case, name, wrong, HeldBackRecords(records=0), findings)
    facts = StoredOutput(path=case.data / name).facts()
    hidden = find_held_back(case, name, output, expected, facts, wrong)
    return {"invisible": hidden.records}, _all_findings(case, name, wrong, hidden, findings)


def _all_findings(
    case: JudgedRun,
    name: str,
    wrong: Differences,
    hidden: HeldBackRecords,
    findings: tuple[Finding, ...],
) -> tuple[Finding, ...]:
    """The findings: all anomalies by cause, the held-back records by partition, the examples."""
    recorded = attribute_anomalies(case, name, wrong, findings)
    # Records missing from an output that was not drained are no finding, nor is their cause.
    classes = {class_of(finding) for finding in findings}
    groups = (_of_output(name, each) for each in recorded.groups if each.what in classes)
    held_back = (_of_output(name, each) for each in hidden.findings)
    return (*groups, *held_back, *recorded.findings)


def _verdict(
    where: str, counts: Mapping[str, int | None], findings: tuple[Finding, ...], sends: str
) -> OutputVerdict:
    if wrong := [f"{counts[name]:,} {name}" for name in violated_classes(counts)]:
        outcome, summary = Outcome.VIOLATED, f"{', '.join(wrong)} in {where}"
    elif counts["lost"] is None:
        outcome, summary = Outcome.UNDECIDED, f"{where}: it is not known which records are lost"
        if not sends:
            summary = (
                f"{where}: the job had not committed everything, so missing records may still "
                "arrive"
            )
    elif missing := unjudged_reasons(counts):
        outcome, summary = Outcome.UNDECIDED, f"{where}: {'; '.join(missing)}"
    else:
        outcome = Outcome.HELD
        summary = f"{counts['expected']:,} records once each, unchanged, in {where}"
    return OutputVerdict(outcome=outcome, summary=summary, counts=counts, findings=findings)


def _undecided_verdict(name: str, why: str) -> OutputVerdict:
    return OutputVerdict(
        outcome=Outcome.UNDECIDED, summary=f"{name}: {why}", counts=dict.fromkeys(VIOLATIONS)
    )


def _figures(kind: str, facts: Mapping[str, Any]) -> dict[str, int | None]:
    """Figures of the reading beside the classes: `uncommitted` records, visible only to readers of
    uncommitted records; `held_back` offsets behind an open transaction; `pending_files` that the
    job had not finished; `prepared` transactions of a database that have not ended.
    Raises ValueError where the read did not note them."""
    needed = FIGURES[kind]
    if missing := [name for name in needed if facts.get(name) is None]:
        raise ValueError(f"the read of its records noted no {', '.join(missing)}")
    if kind == "table" and (facts.get("kind") != kind or type(facts["prepared"]) is not int):
        raise ValueError("what the read of its records noted is not that of a table")
    if kind == "kafka":
        held_back = sum(facts["ends"].values()) - sum(facts["stable_ends"].values())
        return {"uncommitted": facts["uncommitted"], "held_back": held_back}
    return {name: facts[name] for name in needed}


def _late(case: JudgedRun) -> dict[str, int | None]:
    """How many late records the engine reports as dropped, for a job that may drop them: no
    violation, and not counted as lost."""
    if case.experiment.promise.lateness_ms is None:
        return {}
    try:
        return {"late_dropped": late_dropped(case.metrics)}
    except ValueError:  # the verdict does not need this figure
        return {"late_dropped": None}


def _of_output(name: str, finding: Finding) -> Finding:
    return replace(finding, where=": ".join(part for part in (name, finding.where) if part))


def _all_counts(verdicts: Mapping[str, OutputVerdict]) -> dict[str, int | None]:
    """Sums over the outputs, None where any output was not judged; then each output's own."""
    names = dict.fromkeys(name for verdict in verdicts.values() for name in verdict.counts)
    sums = {name: _sum(v.counts.get(name, 0) for v in verdicts.values()) for name in names}
    if len(verdicts) == 1:
        return sums
    own = {
        f"{output}.{name}": count
        for output, v in verdicts.items()
        for name, count in v.counts.items()
    }
    return {**sums, **own}


def _sum(counts: Iterable[int | None]) -> int | None:
    known = list(counts)
    return None if None in known else sum(count for count in known if count is not None)

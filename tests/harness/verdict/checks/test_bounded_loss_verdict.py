"""The verdict of `bounded_loss` on given losses and their places, without Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from streamquake.harness.experiment.check import JudgedRun
from streamquake.harness.experiment.model import Job
from streamquake.harness.experiment.outputs import JobPromise, Output
from streamquake.harness.reconcile.result import VIOLATIONS, ReconciliationResult
from streamquake.harness.verdict.checks import bounded_loss
from streamquake.harness.verdict.checks.bounded_loss import AttributedRecords, BoundedLoss
from streamquake.harness.verdict.evidence.append_times import AppendedRecords
from streamquake.harness.verdict.evidence.loss_scope import LossScope, LossScopeUnknown
from streamquake.reports.record.event import Action
from streamquake.reports.record.outcome import CheckResult, Finding, Outcome
from tests.harness.histories import Story, experiment, no_spark

TOTALS = Output(kafka="totals", compare=("amount",), order="seq")
CLEAN = {"expected": 400, "actual": 400, **dict.fromkeys(VIOLATIONS, 0), "malformed": 0}
FIXED = "CREATE TABLE t WITH ('connector' =\n 'kafka', 'sink.partitioner' = 'fixed')"


def scope(*partitions: int, end_s: float = 14.0) -> LossScope:
    return LossScope(
        partitions=frozenset(partitions),
        injected_ns=10 * 10**9,
        start_ns=8 * 10**9,
        end_ns=int(end_s * 1e9),
        first=700,
        last=1400,
    )


@dataclass
class World:
    folder: Path
    counts: Mapping[str, int | None] = field(default_factory=lambda: dict(CLEAN))
    findings: tuple[Finding, ...] = ()
    scopes: tuple[LossScope, ...] | str = (scope(1), scope(1, 3, end_s=15.2346))
    places: Mapping[str, int] = field(default_factory=dict)
    outside: tuple[Finding, ...] = ()
    output: Output = TOTALS
    expected: tuple[str, ...] = ("totals",)
    columns: tuple[str, ...] = ("key", "seq", "status")
    unsettled: bool = False
    drained: bool = True
    sql: str = FIXED
    calls: list[Any] = field(default_factory=list)

    def append_times_of(self, case: JudgedRun, name: str | None) -> AppendedRecords:
        self.calls.append(name)
        records: Any = None
        return AppendedRecords(
            name="totals", topic="t", partitions=4, records=records, map={}, began_ms=0
        )

    def scopes_of(
        self, history: Any, vertex: str | None, partitions: int, slack_s: float, spread: bool
    ) -> tuple[LossScope, ...]:
        assert history[0].action == Action.SENT
        self.calls.append((vertex, partitions, slack_s, spread))
        if isinstance(self.scopes, str):
            raise LossScopeUnknown(self.scopes)
        return self.scopes

    @contextmanager
    def expectations(self, case: JudgedRun) -> Iterator[dict[str, Any]]:
        assert self.calls[-1] == "sent"
        yield {name: SimpleNamespace(columns=list(self.columns)) for name in self.expected}

    @contextmanager
    def reconciled_output(
        self, case: JudgedRun, name: str, output: Output, wanted: Any
    ) -> Iterator[ReconciliationResult]:
        assert (case.data, name, output) == (self.folder, "totals", self.output)
        assert list(self.columns) == wanted.columns
        yield ReconciliationResult(counts=self.counts, findings=self.findings)

    def attributed(
        self, case: JudgedRun, output: AppendedRecords, wanted: Any, scopes: tuple[LossScope, ...]
    ) -> AttributedRecords:
        assert (case.data, output.name, scopes) == (self.folder, "totals", self.scopes)
        assert list(self.columns) == wanted.columns
        self.calls.append("attributed")
        return AttributedRecords(counts=self.places, findings=self.outside)

    def judged(self, **params: Any) -> CheckResult:
        recorded = Story().sent(1, 400)
        if self.drained:
            recorded.at(20, Action.DRAINED)
        job = Job(sql=self.sql, promise=JobPromise(outputs={"totals": self.output}))
        case = JudgedRun(
            experiment=experiment().model_copy(update={"job": job}),
            history=recorded.history(),
            data=self.folder,
            metrics=self.folder / "none",
            spark=no_spark,
        )
        return BoundedLoss(**params).check(case)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    created = World(tmp_path)
    for name in ("append_times_of", "scopes_of"):
        monkeypatch.setattr(bounded_loss, name, getattr(created, name))
    monkeypatch.setattr(bounded_loss, "_attribute", created.attributed)
    monkeypatch.setattr(bounded_loss, "register_sent", lambda case: created.calls.append("sent"))
    monkeypatch.setattr(
        bounded_loss, "has_unsettled_sends", lambda case: created.unsettled and bool(case.history)
    )
    for name in ("expectations", "reconciled_output"):
        monkeypatch.setattr(bounded_loss, name, getattr(created, name))
    return created


def lost(world: World, count: int = 6) -> World:
    world.counts = {**CLEAN, "lost": count, "duplicated": 1}
    world.places = {"in scope": count + 1}
    return world


def test_loss_in_scope_is_held_with_all_figures(world: World) -> None:
    result = lost(world, 1200).judged(output="totals", vertex="Writer", slack_s=0.5)

    assert result.outcome == Outcome.HELD
    assert result.summary == (
        "1,200 lost and 1 duplicated in totals, all of restarted subtasks and of that time"
    )
    assert result.counts == {
        "lost": 1200,
        "duplicated": 1,
        "phantom": 0,
        "changed": 0,
        "reordered": 0,
        "in_scope": 1201,
        "outside_subtask": 0,
        "outside_window": 0,
        "unattributed": 0,
        "window_s": 7.235,
        "affected_partitions": 2,
    }
    assert world.calls == [
        "totals",
        ("Writer", 4, 0.5, False),
        "sent",
        "attributed",
    ]


def test_without_loss_nothing_is_attributed(world: World) -> None:
    result = world.judged()
    assert (result.outcome, result.counts["in_scope"]) == (Outcome.HELD, 0)
    assert world.calls == [None, (None, 4, 2.0, False), "sent"]
    world.output = TOTALS.model_copy(update={"identity": ("key", "window")})
    assert world.judged().outcome == Outcome.HELD


def test_a_single_duplicate_is_attributed_too(world: World) -> None:
    world.counts, world.places = {**CLEAN, "duplicated": 1}, {"outside the window": 1}
    assert world.judged().outcome == Outcome.VIOLATED


@pytest.mark.parametrize("place", ["outside the failed subtask", "outside the window"])
def test_loss_elsewhere_is_violated(world: World, place: str) -> None:
    lost(world, 2000)
    world.places = {"in scope": 1, place: 1200, "unattributed": 800}
    world.outside = (Finding(what=place, where="totals: partition 2"),)
    world.findings = (Finding(what="lost"),)
    result = world.judged(at_most=5)
    assert result.outcome == Outcome.VIOLATED
    assert result.summary == f"1,200 {place} in totals (2,000 lost and 1 duplicated)"
    assert result.findings == world.outside
    assert result.counts["outside_" + place.split()[-1]] == 1200


@pytest.mark.parametrize("name", ["phantom", "changed", "reordered"])
def test_every_other_class_is_never_allowed(world: World, name: str) -> None:
    world.counts = {**CLEAN, name: 1200}
    world.findings = (Finding(what="lost"), Finding(what=f"{name}, of none"), Finding(what=name))
    result = world.judged()
    assert result.outcome == Outcome.VIOLATED
    assert result.summary == f"1,200 {name} in totals (0 lost and 0 duplicated)"
    assert [each.what for each in result.findings] == [f"{name}, of none", name]
    assert result.counts[name] == 1200


REQUESTED = ("gap", "regression", "wrong_partition", "unmatched_retraction")


@pytest.mark.parametrize("name", REQUESTED)
def test_a_requested_class_is_violated(world: World, name: str) -> None:
    world.counts = {**CLEAN, **dict.fromkeys(REQUESTED, 0), name: 3}
    world.findings = (Finding(what=name, where="offset 3"),)
    result = world.judged()
    assert result.outcome == Outcome.VIOLATED
    assert result.summary == f"3 {name} in totals (0 lost and 0 duplicated)"
    assert result.findings == world.findings
    assert [result.counts[each] for each in REQUESTED].count(0) == len(REQUESTED) - 1


def test_lost_records_leave_gaps_and_extra_copies_are_regressions(world: World) -> None:
    lost(world, 6)
    world.counts = {**world.counts, "gap": 6, "regression": 1}
    assert world.judged().outcome == Outcome.HELD
    world.counts = {**world.counts, "gap": 7, "regression": 2}
    result = world.judged()
    assert result.outcome == Outcome.VIOLATED
    assert result.summary == "7 gap, 2 regression in totals (6 lost and 1 duplicated)"


def test_a_requested_class_that_cannot_be_judged_is_undecided(world: World) -> None:
    world.counts = {**CLEAN, "wrong_partition": None}
    result = world.judged()
    assert (result.outcome, result.counts["wrong_partition"]) == (Outcome.UNDECIDED, None)
    assert result.summary == (
        "totals: wrong_partition was requested and could not be judged: it needs a topic as the "
        "actual side"
    )
    assert result.findings == ()


def test_every_violation_is_named(world: World) -> None:
    lost(world)
    world.counts = {**world.counts, "changed": 2}
    world.places = {"outside the window": 3, "outside the failed subtask": 4}
    assert world.judged().summary == (
        "2 changed, 4 outside the failed subtask, 3 outside the window in totals (6 lost and 1 "
        "duplicated)"
    )


def test_more_than_is_allowed_is_violated(world: World) -> None:
    result = lost(world, 1200).judged(at_most=1200)
    assert result.outcome == Outcome.VIOLATED
    assert result.summary == "1,200 lost and 1 duplicated in totals, 1,200 allowed"
    (finding,) = result.findings
    assert (finding.what, finding.where) == ("too many", "totals")
    assert finding.detail == result.counts
    assert world.judged(at_most=1201).outcome == Outcome.HELD
    world.counts, world.places = {**CLEAN, "duplicated": 3}, {"in scope": 3}
    assert world.judged(at_most=3).outcome == Outcome.HELD


def test_without_a_restart_nothing_could_be_lost(world: World) -> None:
    world.scopes = (scope(), scope())
    result = world.judged()
    assert (result.outcome, result.counts["affected_partitions"]) == (Outcome.UNDECIDED, 0)
    assert result.summary == "totals: no subtask restarted, so that nothing could be lost"
    assert result.findings == ()


def test_records_without_a_place_are_undecided(world: World) -> None:
    lost(world, 1200)
    world.places = {"in scope": 1, "unattributed": 1200}
    result = world.judged()
    assert (result.outcome, result.counts["unattributed"]) == (Outcome.UNDECIDED, 1200)
    assert result.summary == (
        "1,200 of 1,201 records in totals cannot be attributed: before the fault their keys "
        "had no partition, or several"
    )


NO_WORD = "the job's sinks do not set 'sink.partitioner' = 'fixed', so that a partition does not "


@pytest.mark.parametrize(
    ("about", "why"),
    [
        ({"scopes": "no fault took effect"}, "no fault took effect"),
        (
            {"sql": "CREATE TABLE t WITH ('connector' = 'kafka')"},
            NO_WORD + "show which subtask wrote to it",
        ),
        (
            {"drained": False},
            "totals: the job had not committed everything, so missing records may still arrive",
        ),
        ({"expected": ("other",)}, "totals: it has no expected records"),
        (
            {"columns": ("key", "seq"), "unsettled": True},
            "totals: it depends on sends of unknown result",
        ),
        (
            {"counts": {**CLEAN, "expected": 0, "actual": 0}},
            "totals: no acknowledged record was expected",
        ),
        (
            {
                "counts": {**CLEAN, "lost": 1},
                "output": TOTALS.model_copy(update={"identity": ("key", "window")}),
            },
            "totals: its records are identified by key, window, and only with key and seq can one "
            "be traced to its send",
        ),
        (
            {"sql": "CREATE TABLE t WITH ('connector' = 'filesystem')"},
            "no table of the job's SQL is seen to write totals, so that its partitioner is not "
            "known",
        ),
        (
            {"sql": f"{FIXED}; ALTER TABLE t RESET ('sink.partitioner')"},
            "the statements on the job's table t are not all understood, so that its partitioner "
            "is not known; write its options into one CREATE TABLE",
        ),
    ],
)
def test_without_evidence_there_is_no_verdict(
    world: World, about: dict[str, Any], why: str
) -> None:
    for name, value in about.items():
        setattr(world, name, value)
    result = world.judged()
    assert (result.outcome, result.summary, result.counts) == (Outcome.UNDECIDED, why, {})


HASHED = "CREATE TABLE t WITH ('connector' = 'upsert-kafka', 'topic' = '${output.totals}')"
FIXED_ELSEWHERE = (
    "CREATE TABLE a WITH ('connector' = 'kafka', 'topic' = 'a', 'sink.partitioner' = 'fixed')"
)


def test_the_partitioner_of_another_table_or_in_a_comment_proves_nothing(world: World) -> None:
    world.sql = f"-- 'sink.partitioner' = 'fixed'\n{HASHED}; {FIXED_ELSEWHERE}"
    result = world.judged()
    assert result.outcome == Outcome.UNDECIDED
    assert result.summary == NO_WORD + "show which subtask wrote to it"


@pytest.mark.parametrize(
    "about",
    [
        {"columns": ("key", "seq")},
        {"columns": ("key", "status"), "unsettled": True},
    ],
)
def test_irrelevant_gaps_do_not_prevent_a_verdict(world: World, about: dict[str, Any]) -> None:
    for name, value in about.items():
        setattr(world, name, value)
    assert world.judged().outcome == Outcome.HELD

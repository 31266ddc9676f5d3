"""The verdict of `exactly_once` on a given reconciliation, without Spark.

The reconciliation has its own tests for the classes, their counts and the examples. These tests
cover the verdict, also where facts about an output are missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import pytest

from streamquake.harness.experiment.check import JudgedRun
from streamquake.harness.experiment.model import Job
from streamquake.harness.experiment.outputs import JobPromise, Output
from streamquake.harness.reconcile.result import VIOLATIONS, ReconciliationResult
from streamquake.harness.verdict.anomaly_attribution import Attribution
from streamquake.harness.verdict.checks import exactly_once
from streamquake.harness.verdict.checks.exactly_once import ExactlyOnce
from streamquake.harness.verdict.held_back_records import HeldBackRecords
from streamquake.harness.workloads.numbered import Numbered
from streamquake.reports.record.event import Action
from streamquake.reports.record.metrics import Metrics
from streamquake.reports.record.outcome import CheckResult, Finding, Outcome
from tests.harness.histories import Story, experiment, no_spark

LOAD = Numbered(records=400, rate_per_s=100)
COPY = Output(kafka="copy", compare=("amount",), order="seq")
FILES = Output(hdfs="/output/copy", compare=("amount",), order="seq")
TABLE = Output(table="postgresql://host/shop/copy", compare=("amount",))
KAFKA = {
    "kind": "kafka",
    "uncommitted": 3,
    "ends": {"0": 9, "1": 5},
    "stable_ends": {"0": 7, "1": 5},
}
CLEAN = {"expected": 400, "actual": 400, **dict.fromkeys(VIOLATIONS, 0), "malformed": 0}


@dataclass
class World:
    """The facts about a run's outputs, by output."""

    folder: Path
    promise: JobPromise
    counts: dict[str, Mapping[str, int | None]] = field(default_factory=dict)
    findings: dict[str, tuple[Finding, ...]] = field(default_factory=dict)
    facts: dict[str, dict[str, Any]] = field(default_factory=dict)
    unread: tuple[str, ...] = ()
    columns: tuple[str, ...] = ("key", "seq", "amount", "status")
    unsettled: bool = False
    hidden: HeldBackRecords = field(default_factory=lambda: HeldBackRecords(records=0))
    groups: tuple[Finding, ...] = ()
    drained: bool = True
    acknowledged: int = 400
    lost_files: str = ""
    other: str = ""
    miscount: str = ""
    repeated: int = 0
    misplaced: str = ""
    unplaced: int = 0
    unrecorded_end: str = ""
    sink: Literal["exactly-once", "at-least-once"] = "exactly-once"
    events: list[tuple[float, Action, dict[str, Any]]] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)

    @contextmanager
    def expectations(self, case: JudgedRun) -> Iterator[dict[str, Any]]:
        frame = SimpleNamespace(columns=list(self.columns))
        yield {name: frame for name in self.promise.outputs if name in self.counts}

    @contextmanager
    def reconciled_output(
        self, case: JudgedRun, name: str, output: Output, wanted: Any
    ) -> Iterator[ReconciliationResult]:
        assert case.data == self.folder
        assert output == self.promise.outputs[name]
        assert wanted is not None
        wrong: Any = f"wrong {name}"
        yield ReconciliationResult(
            counts=self.counts[name], findings=self.findings.get(name, ()), differences=wrong
        )

    def attributed(
        self, case: JudgedRun, name: str, wrong: Any, findings: tuple[Finding, ...]
    ) -> Attribution:
        assert case.data == self.folder
        assert wrong == f"wrong {name}"
        self.calls.append(f"attributed {name}")
        return Attribution(groups=self.groups, findings=findings)

    def invisible(
        self, case: JudgedRun, name: str, output: Output, wanted: Any, facts: Any, wrong: Any
    ) -> HeldBackRecords:
        assert case.data == self.folder
        assert wrong == f"wrong {name}"
        assert output == self.promise.outputs[name]
        assert wanted is not None
        assert facts == self.facts.get(name, KAFKA)
        self.calls.append(f"invisible {name}")
        return self.hidden

    def judged(self, *, job: bool = True, **params: Any) -> CheckResult:
        story = Story().sent(1, self.acknowledged)
        end = self.acknowledged + 7
        story.at(2, Action.SENT, first=end - 7, last=end - 1, count=7, status="failed")
        if self.drained:
            story.at(4, Action.DRAINED)
        for at_s, action, value in self.events:
            story.at(at_s, action, **value)
        recorded = Job(sql="SELECT 1", promise=self.promise, sink=self.sink) if job else None
        plan = experiment().model_copy(update={"job": recorded, "workload": LOAD})
        case = JudgedRun(
            experiment=plan,
            history=story.history(),
            data=self.folder,
            metrics=self.folder / "metrics.parquet",
            spark=no_spark,
        )
        return ExactlyOnce(**params).check(case)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    created = World(tmp_path, JobPromise(outputs={"copy": COPY}))
    created.counts["copy"] = CLEAN

    def of_folder(path: Path) -> Any:
        name = path.name
        return SimpleNamespace(
            complete=name not in created.unread,
            facts=lambda: created.facts.get(name, KAFKA),
            lost_files=lambda: created.lost_files,
            miscount=lambda: created.miscount,
            misplaced=lambda: created.misplaced,
            unplaced=lambda: created.unplaced,
            ends_without_records=lambda: created.unrecorded_end,
            repeated_records=lambda: created.repeated,
            repeats_places=lambda: False,
            of_another=lambda place: created.other,
        )

    monkeypatch.setattr(exactly_once, "register_sent", lambda case: created.calls.append("sent"))
    for name in ("expectations", "reconciled_output"):
        monkeypatch.setattr(exactly_once, name, getattr(created, name))
    monkeypatch.setattr(exactly_once, "has_unsettled_sends", lambda case: created.unsettled)
    monkeypatch.setattr(exactly_once, "attribute_anomalies", created.attributed)
    monkeypatch.setattr(exactly_once, "find_held_back", created.invisible)
    monkeypatch.setattr(exactly_once, "StoredOutput", lambda path: of_folder(path))
    return created


def test_a_clean_output_is_held_with_all_figures(world: World) -> None:
    result = world.judged()
    assert (result.outcome, result.findings) == (Outcome.HELD, ())
    assert result.summary == "400 records once each, unchanged, in copy (kafka)"
    assert result.counts == {**CLEAN, "uncommitted": 3, "held_back": 2, "invisible": 0}
    assert world.calls == ["sent"]


def test_a_reading_without_all_of_its_files_is_not_judged(world: World) -> None:
    world.lost_files = "1 of 8 files are missing"
    world.counts["copy"] = {**CLEAN, "lost": 9}
    result = world.judged()
    assert (result.outcome, result.summary) == (Outcome.UNDECIDED, "copy: 1 of 8 files are missing")


@pytest.mark.parametrize(("lost", "outcome"), [(0, Outcome.UNDECIDED), (9, Outcome.VIOLATED)])
def test_a_reading_with_another_count_is_not_held_and_hides_no_violation(
    world: World, lost: int, outcome: Outcome
) -> None:
    world.miscount = "409 records were read, and the record holds 400"
    world.counts["copy"] = {**CLEAN, "lost": lost}
    result = world.judged()
    assert (result.outcome, result.doubt) == (outcome, world.miscount)
    assert result.summary.endswith(f"in copy (kafka); {world.miscount}")


@pytest.mark.parametrize(
    ("duplicated", "lost", "outcome", "kept"),
    [
        (2, 0, Outcome.UNDECIDED, []),
        (3, 0, Outcome.VIOLATED, ["duplicated"]),  # one of them is a real duplicate
        (2, 9, Outcome.VIOLATED, ["lost"]),
        (0, 0, Outcome.HELD, []),
    ],
)
def test_copies_at_the_same_position_are_no_duplicates(
    world: World, duplicated: int, lost: int, outcome: Outcome, kept: list[str]
) -> None:
    world.repeated = 2
    world.counts["copy"] = {**CLEAN, "duplicated": duplicated, "lost": lost}
    wrong = {"duplicated": duplicated, "lost": lost}
    world.findings["copy"] = tuple(Finding(what=name) for name, count in wrong.items() if count)

    result = world.judged()

    assert (result.outcome, [each.what for each in result.findings]) == (outcome, kept)
    assert result.counts["duplicated"] == (None if duplicated == 2 else duplicated)
    message = "2 records have the position of another record and were not read"
    assert result.summary.endswith(message) == (duplicated > 0)


@pytest.mark.parametrize(
    ("reordered", "outcome", "kept"),
    [
        (2, Outcome.UNDECIDED, []),
        (3, Outcome.VIOLATED, ["reordered"]),  # one of them is really out of order
        (0, Outcome.UNDECIDED, []),
    ],
)
def test_records_without_a_place_are_not_out_of_order(
    world: World, reordered: int, outcome: Outcome, kept: list[str]
) -> None:
    world.misplaced, world.unplaced = "1 records have no offset of partition 0", 1
    world.counts["copy"] = {**CLEAN, "reordered": reordered}
    world.findings["copy"] = (Finding(what="reordered"),) if reordered else ()

    result = world.judged()

    assert (result.outcome, [each.what for each in result.findings]) == (outcome, kept)
    assert result.counts["reordered"] == (reordered if kept else None)
    assert result.doubt == world.misplaced


def test_a_topic_that_ends_behind_its_records_is_not_held(world: World) -> None:
    world.unrecorded_end = "no record of partition 0 is stored behind offset 8"
    assert world.judged().outcome == Outcome.HELD, "the job may write transactions"
    world.sink = "at-least-once"
    result = world.judged()
    assert (result.outcome, result.doubt) == (Outcome.UNDECIDED, world.unrecorded_end)
    assert result.summary.endswith(f"in copy (kafka); {world.unrecorded_end}")


@pytest.mark.parametrize(
    ("counted", "why"),
    [
        ({"acknowledged": 405, "failed": 7}, "412 records were settled, and the history contains"),
        ({"acknowledged": 407, "failed": 0}, "407 sends were acknowledged, and the history"),
    ],
)
def test_what_a_contradictory_load_sent_decides_no_loss(
    world: World, counted: dict[str, int], why: str
) -> None:
    done = {"unknown": 0, **counted}
    world.events = [(3, Action.WORKLOAD_DONE, done)]
    world.counts["copy"] = {**CLEAN, "lost": 5, "phantom": 3}
    world.findings["copy"] = (Finding(what="lost"), Finding(what="phantom"))
    result = world.judged()
    assert (result.outcome, result.findings) == (Outcome.UNDECIDED, ())
    assert (result.counts["lost"], result.counts["phantom"]) == (None, None)
    assert result.summary.startswith("copy (kafka): it is not known which records are lost; ")
    assert f"what was sent is not certain: {why}" in result.summary

    world.counts["copy"] = {**CLEAN, "lost": 5, "duplicated": 2, "changed": 1}
    world.findings["copy"] = tuple(Finding(what=each) for each in ("lost", "duplicated", "changed"))
    result = world.judged()
    assert result.outcome == Outcome.VIOLATED
    assert [each.what for each in result.findings] == ["duplicated", "changed"]
    assert why in result.doubt

    world.columns = ("key", "seq", "total")
    result = world.judged()
    assert [each.what for each in result.findings] == ["duplicated"], "totals are of what was sent"

    world.events = [(3, Action.WORKLOAD_DONE, {"acknowledged": 400, "failed": 7, "unknown": 0})]
    result = world.judged()
    assert [each.what for each in result.findings] == ["lost", "duplicated", "changed"]
    assert not result.doubt


@pytest.mark.parametrize(
    ("output", "facts", "missing"),
    [
        (FILES, {"kind": "files"}, "pending_files"),
        (COPY, {"pending_files": 0, "kind": "files", "ends": {}}, "stable_ends, uncommitted"),
        (TABLE, {"pending_files": 0, "kind": "files"}, "prepared"),
        (TABLE, {"kind": "table", "prepared": None}, "prepared"),
    ],
)
def test_facts_of_the_read_that_are_missing_are_named(
    world: World, output: Output, facts: dict[str, Any], missing: str
) -> None:
    world.promise = JobPromise(outputs={"copy": output})
    world.facts["copy"] = facts
    result = world.judged()
    assert result.outcome == Outcome.UNDECIDED
    assert f"the read of its records noted no {missing}" in result.summary


def test_files_have_their_own_figures(world: World) -> None:
    world.promise = JobPromise(outputs={"copy": FILES})
    world.facts["copy"] = {"kind": "hdfs", "pending_files": 4}
    result = world.judged()
    assert result.counts == {**CLEAN, "pending_files": 4}
    assert result.summary.endswith("in copy (hdfs)")


@pytest.mark.parametrize("name", VIOLATIONS)
def test_each_class_alone_is_violated(world: World, name: str) -> None:
    world.counts["copy"] = {**CLEAN, name: 1200}
    world.findings["copy"] = (Finding(what=name, where="offset 3"), Finding(what=name))
    world.groups = (Finding(what=name, where="written at rest"), Finding(what="other"))
    result = world.judged()
    assert result.outcome == Outcome.VIOLATED
    assert result.summary == f"1,200 {name} in copy (kafka)"
    assert [(each.what, each.where) for each in result.findings] == [
        (name, "copy: written at rest"),
        (name, "copy: offset 3"),
        (name, "copy"),
    ]
    hidden = ["invisible copy"] if name == "lost" else []
    assert world.calls == ["sent", *hidden, "attributed copy"]


def test_held_back_records_are_reported_by_partition(world: World) -> None:
    world.counts["copy"] = {**CLEAN, "lost": 9}
    world.findings["copy"] = (Finding(what="lost"),)
    world.hidden = HeldBackRecords(
        records=6, findings=(Finding(what="invisible", where="partition 0"),)
    )
    result = world.judged()
    assert (result.counts["lost"], result.counts["invisible"]) == (9, 6)
    assert [each.where for each in result.findings] == ["copy: partition 0", "copy"]


def test_files_have_no_invisible_records(world: World) -> None:
    world.promise = JobPromise(outputs={"copy": FILES})
    world.facts["copy"] = {"kind": "hdfs", "pending_files": 0}
    world.counts["copy"] = {**CLEAN, "lost": 9}
    world.findings["copy"] = (Finding(what="lost"),)
    assert "invisible" not in world.judged().counts
    assert world.calls == ["sent", "attributed copy"]


def test_several_classes_are_named_in_their_order(world: World) -> None:
    world.counts["copy"] = {**CLEAN, "changed": 2, "lost": 1}
    assert world.judged().summary == "1 lost, 2 changed in copy (kafka)"


def test_records_missing_from_an_undrained_output_may_still_arrive(world: World) -> None:
    world.drained = False
    world.counts["copy"] = {**CLEAN, "lost": 9, "gap": 2, "duplicated": 0}
    world.findings["copy"] = (Finding(what="lost"), Finding(what="gap"))
    result = world.judged()
    assert result.outcome == Outcome.UNDECIDED
    assert result.summary == (
        "copy (kafka): the job had not committed everything, so missing records may still arrive"
    )
    assert result.findings == ()
    counts = result.counts
    assert (counts["lost"], counts["gap"], counts["invisible"]) == (None, None, None)
    assert counts["duplicated"] == 0
    assert world.calls == ["sent"], "nothing is attributed"


def test_a_duplicate_is_violated_although_the_job_was_not_drained(world: World) -> None:
    world.drained = False
    world.counts["copy"] = {**CLEAN, "lost": 9, "duplicated": 1}
    world.findings["copy"] = (Finding(what="lost"), Finding(what="duplicated"))
    world.groups = (Finding(what="lost"), Finding(what="duplicated"))
    result = world.judged()
    assert (result.outcome, result.summary) == (Outcome.VIOLATED, "1 duplicated in copy (kafka)")
    assert [each.what for each in result.findings] == ["duplicated", "duplicated"]
    assert result.counts["lost"] is None


def test_without_a_job_the_output_is_final(world: World) -> None:
    world.drained = False
    topic = Output(kafka="input", compare=("amount", "payload", "checksum"), order="seq")
    world.promise = JobPromise(outputs={"input": topic})
    world.counts = {"input": {**CLEAN, "lost": 9}}
    result = world.judged(job=False)
    assert (result.outcome, result.summary) == (Outcome.VIOLATED, "9 lost in input (kafka)")


TOTALS = Output(kafka="totals", compare=("amount",), retracts="op = 'd'")
BY_KEY = {"key": "get_json_object(_key, '$.key')"}
UPSERTS = Output(kafka="totals", compare=("amount",), identity=("key",), upsert=True, map=BY_KEY)


@pytest.mark.parametrize("output", [TOTALS, UPSERTS])
def test_intermediate_totals_are_no_violation(world: World, output: Output) -> None:
    world.drained = False
    world.promise = JobPromise(outputs={"copy": output})
    world.counts["copy"] = {**CLEAN, "changed": 3, "phantom": 2}
    world.findings["copy"] = (Finding(what="changed"), Finding(what="phantom, of none"))
    result = world.judged()
    assert result.outcome == Outcome.UNDECIDED
    assert [result.counts[name] for name in VIOLATIONS] == [None] * 5
    assert result.findings == ()


@pytest.mark.parametrize("malformed", [0, 2])
def test_a_malformed_record_is_never_retracted(world: World, malformed: int) -> None:
    world.drained = False
    world.promise = JobPromise(outputs={"copy": TOTALS})
    world.counts["copy"] = {**CLEAN, "phantom": 5, "malformed": malformed}
    world.findings["copy"] = (Finding(what="phantom"),)
    result = world.judged()
    assert result.counts["phantom"] == (2 if malformed else None)
    assert result.outcome == (Outcome.VIOLATED if malformed else Outcome.UNDECIDED)
    assert [each.what for each in result.findings] == (["phantom"] if malformed else [])


def test_a_class_that_could_not_be_judged_makes_it_undecided(world: World) -> None:
    world.counts["copy"] = {**CLEAN, "gap": None}
    result = world.judged()
    assert result.outcome == Outcome.UNDECIDED
    assert result.summary.startswith("copy (kafka): gap was requested and could not be judged")


@pytest.mark.parametrize(
    ("about", "why"),
    [
        ({"counts": {}}, "it has no expected records (`expected:` in the job's SQL)"),
        ({"unread": ("copy",)}, "it was not read"),
        ({"other": "a was read, and the output is b"}, "a was read, and the output is b"),
        (
            {"unsettled": True, "columns": ("key", "seq")},
            "it depends on sends of unknown result, and the input topic that would settle them was "
            "not read",
        ),
        (
            {"counts": {"copy": {**CLEAN, "expected": 0, "actual": 0}}},
            "no acknowledged record was expected",
        ),
    ],
)
def test_missing_facts_about_an_output_leave_it_undecided(
    world: World, about: dict[str, Any], why: str
) -> None:
    for name, value in about.items():
        setattr(world, name, value)
    result = world.judged()
    assert (result.outcome, result.summary) == (Outcome.UNDECIDED, f"copy: {why}")
    assert result.counts == dict.fromkeys(VIOLATIONS)


@pytest.mark.parametrize(
    ("unsettled", "columns"), [(True, ("key", "status")), (False, ("key", "seq"))]
)
def test_unknown_sends_matter_only_without_their_status_in_the_expectation(
    world: World, unsettled: bool, columns: tuple[str, ...]
) -> None:
    world.unsettled, world.columns = unsettled, columns
    assert world.judged().outcome == Outcome.HELD


def test_one_empty_side_is_judged_against_the_other(world: World) -> None:
    world.counts["copy"] = {**CLEAN, "expected": 0, "actual": 2, "phantom": 2}
    assert world.judged().outcome == Outcome.VIOLATED


@pytest.mark.parametrize(("least", "outcome"), [(400, Outcome.HELD), (401, Outcome.UNDECIDED)])
def test_too_few_records_prove_nothing(world: World, least: int, outcome: Outcome) -> None:
    result = world.judged(min_records=least)
    assert result.outcome == outcome
    assert (outcome == Outcome.HELD) or result.summary == (
        "400 records were acknowledged, and at least 401 are needed to prove anything"
    )


def test_a_job_without_outputs_has_none_to_judge(world: World) -> None:
    world.promise = JobPromise(outputs={})
    assert world.judged().summary == (
        "the job declares no outputs; name them in the comment block at the top of its SQL"
    )
    assert world.calls == []


def test_the_worst_of_two_outputs_decides_and_their_counts_are_summed(world: World) -> None:
    world.promise = JobPromise(outputs={"copy": COPY, "files": FILES})
    world.facts["files"] = {"kind": "hdfs", "pending_files": 1}
    world.counts["files"] = {**CLEAN, "lost": 2, "duplicated": 1}
    world.findings["files"] = (Finding(what="lost"),)
    result = world.judged()
    assert (result.outcome, result.summary) == (
        Outcome.VIOLATED,
        "2 lost, 1 duplicated in files (hdfs)",
    )
    assert [each.where for each in result.findings] == ["files"]
    counts = result.counts
    assert (counts["lost"], counts["expected"], counts["held_back"]) == (2, 800, 2)
    assert (counts["copy.lost"], counts["files.lost"], counts["files.pending_files"]) == (0, 2, 1)
    both = {**CLEAN, "changed": 1}
    world.counts.update(copy=both, files=both)
    assert world.judged().summary == "1 changed in copy (kafka); 1 changed in files (hdfs)"


def test_a_sum_over_an_output_that_was_not_judged_is_not_known(world: World) -> None:
    world.promise = JobPromise(outputs={"copy": COPY, "other": COPY})
    world.counts["other"], world.unread = CLEAN, ("other",)
    result = world.judged()
    assert (result.outcome, result.summary) == (Outcome.UNDECIDED, "other: it was not read")
    assert (result.counts["lost"], result.counts["copy.lost"]) == (None, 0)
    assert result.counts["expected"] == 400


@pytest.mark.parametrize(
    ("late", "text"), [(1200, "; 1,200 records were too late for their window"), (0, "")]
)
def test_late_records_are_counted_separately(world: World, late: int, text: str) -> None:
    world.promise = JobPromise(outputs={"copy": COPY}, lateness_ms=500)
    metrics = Metrics(world.folder / "metrics.parquet")
    for at_s, value in ((1, late / 2), (2, late)):
        metrics.add(at_s * 10**9, "late_records_dropped", "window", value)
    metrics.flush()
    result = world.judged()
    assert result.outcome == Outcome.HELD
    assert result.counts["late_dropped"] == late
    assert result.summary == f"400 records once each, unchanged, in copy (kafka){text}"


def test_an_anomaly_of_unknown_cause_is_reported_as_such_and_violated(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> Any:
        raise ValueError("no such column")

    monkeypatch.setattr(exactly_once, "attribute_anomalies", fail)
    world.counts["copy"] = {**CLEAN, "duplicated": 2}
    world.findings["copy"] = (Finding(what="duplicated", detail={"key": "k"}),)
    result = world.judged()
    assert result.outcome == Outcome.VIOLATED
    (finding,) = result.findings
    assert (finding.what, finding.detail["key"]) == ("duplicated", "k")
    assert finding.detail["cause"] == "it is not known: ValueError: no such column"


def test_an_output_that_cannot_be_judged_hides_nothing_of_another(world: World) -> None:
    world.promise = JobPromise(outputs={"broken": COPY, "copy": COPY})
    world.counts = {"broken": {"actual": 3}, "copy": {**CLEAN, "duplicated": 2}}
    world.findings["copy"] = (Finding(what="duplicated"),)
    result = world.judged()
    assert (result.outcome, result.summary) == (Outcome.VIOLATED, "2 duplicated in copy (kafka)")
    world.counts["copy"] = CLEAN
    result = world.judged()
    assert result.outcome == Outcome.UNDECIDED
    assert result.summary.startswith("broken: it cannot be judged: KeyError")

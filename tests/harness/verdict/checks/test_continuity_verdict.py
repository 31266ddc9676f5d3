"""What `continuity` makes of the pauses that were found, with these given: no Spark is needed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from streamquake.harness.experiment.check import JudgedRun
from streamquake.harness.verdict.checks import continuity
from streamquake.harness.verdict.checks.continuity import Continuity, GroupPauses
from streamquake.harness.verdict.evidence.append_times import AppendedRecords, AppendTimesUnknown
from streamquake.harness.verdict.evidence.pauses import TimeSpan, UsualGaps
from streamquake.reports.record.event import Action
from streamquake.reports.record.outcome import CheckResult, Finding, Outcome
from tests.harness.histories import Story, case

BEGAN_MS = 1_767_225_600_000


def looked(what: str, continuous: int, of: int) -> GroupPauses:
    found = (Finding(what=f"a {what} paused", where="totals: 1"),)
    return GroupPauses(counts={what: of}, of=of, continuous=continuous, findings=found)


@dataclass
class World:
    folder: Path
    usual: UsualGaps | None = field(default_factory=lambda: UsualGaps(p99_ms=80.4, rhythm_ms=60.6))
    keys: GroupPauses = field(default_factory=lambda: looked("key", 1200, 1200))
    lanes: GroupPauses = field(default_factory=lambda: looked("partition", 3, 4))
    attempts: bool = True
    others: list[tuple[float, Action, dict[str, Any]]] = field(default_factory=list)
    asked: list[Any] = field(default_factory=list)

    def appended(self, case: JudgedRun, name: str | None) -> AppendedRecords:
        self.asked.append(name)
        if name == "files":
            raise AppendTimesUnknown("files is no output that is a topic")
        records: Any = "records"
        return AppendedRecords(
            name="totals", topic="t", partitions=4, records=records, map={}, began_ms=BEGAN_MS
        )

    def usual_gaps(self, records: Any, by: str, until_ms: int) -> UsualGaps | None:
        self.asked.append((records, by, until_ms - BEGAN_MS))
        return self.usual

    def looked(
        self, check: Continuity, case: JudgedRun, output: AppendedRecords, span: TimeSpan
    ) -> tuple[GroupPauses, GroupPauses]:
        moments = tuple(each - BEGAN_MS for each in span if each is not None)
        self.asked.append((output.name, *moments))
        return self.keys, self.lanes

    def judged(self, **params: Any) -> CheckResult:
        recorded = Story()
        for subtask in range(3 if self.attempts else 0):
            task = {"vertex": "c", "subtask": subtask, "node": "tm-1", "state": "RUNNING"}
            recorded.at(2, Action.TASK_CHANGED, **task, attempt=0)
            if subtask:
                recorded.at(21, Action.TASK_CHANGED, **task, attempt=1)
        about = {"step": 0, "fault": "kill"}
        recorded.at(20, Action.FAULT_CALLED, **about)
        recorded.at(20.5, Action.FAULT_IN_EFFECT, **about, seen_ns=int(20.5e9), evidence={})
        recorded.at(24, Action.FAULT_HEALED, **about)
        for at_s, action, value in self.others:
            recorded.at(at_s, action, **value)
        recorded.at(60, Action.WORKLOAD_DONE)
        return Continuity(**{"within_s": 2.0, **params}).check(case(recorded, self.folder))


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    made = World(tmp_path)
    monkeypatch.setattr(continuity, "appended", made.appended)
    monkeypatch.setattr(continuity, "usual_gaps", made.usual_gaps)
    monkeypatch.setattr(
        Continuity,
        "_looked",
        lambda self, case, output, span: made.looked(self, case, output, span),
    )
    return made


def test_keys_that_went_on_are_held_and_both_kinds_are_told(world: World) -> None:
    result = world.judged(output="totals", min_keys=1200)
    assert result.outcome == Outcome.HELD
    assert result.summary == "1,200 of 1,200 keys of totals never paused longer than 2 s"
    assert result.counts == {
        "key": 1200,
        "normal_gap_p99_ms": 80,
        "normal_rhythm_ms": 61,
        "restarted": 2,
        "partition": 4,
    }
    # From the longest usual gap before the call of the fault until five seconds after its heal.
    assert world.asked == ["totals", ("records", "key", 20_000), ("totals", 19_920, 29_000)]


def test_pauses_end_when_another_fault_is_called(world: World) -> None:
    world.others.append((30.0, Action.FAULT_CALLED, {"step": 1, "fault": "pause"}))
    assert world.judged(fault="kill").outcome == Outcome.HELD
    assert world.asked[-1] == ("totals", 19_920, 29_000, 30_000)


def test_a_job_that_was_not_seen_running_again_holds_nothing(world: World) -> None:
    world.others.append((25.0, Action.JOB_FAILING, {}))
    result = world.judged()
    assert result.outcome == Outcome.UNDECIDED
    assert result.summary.endswith("; the job failed at 25.0 s and was not seen running again")
    assert world.asked[-1] == ("totals", 19_920, 60_000), "to the end of the load"
    assert world.judged(by="partitions").outcome == Outcome.VIOLATED
    world.others.append((26.0, Action.JOB_RUNNING, {}))
    assert world.judged().outcome == Outcome.HELD


@pytest.mark.parametrize(("share", "outcome"), [(0.76, Outcome.VIOLATED), (0.75, Outcome.HELD)])
def test_the_share_that_is_needed_decides(world: World, share: float, outcome: Outcome) -> None:
    result = world.judged(by="partitions", share=share)
    assert result.outcome == outcome
    message = "3 of 4 partitions of totals never paused longer than 2 s"
    assert result.summary == (message if outcome == Outcome.HELD else f"{message}, 76% needed")
    assert result.findings == (() if outcome == Outcome.HELD else world.lanes.findings)
    assert result.counts["restarted"] == 2
    assert world.judged(share=share).outcome == Outcome.HELD


@pytest.mark.parametrize(
    ("unseen", "share", "outcome"),
    [(1, 0.6, Outcome.HELD), (1, 0.61, Outcome.UNDECIDED), (1, 0.76, Outcome.VIOLATED)],
)
def test_partitions_that_may_have_stopped_before_anything_came_are_none_that_went_on(
    world: World, unseen: int, share: float, outcome: Outcome
) -> None:
    world.lanes = replace(world.lanes, unseen=unseen)
    result = world.judged(by="partitions", share=share)
    assert result.outcome == outcome
    assert ("from 1 more nothing ever came" in result.summary) == (outcome == Outcome.UNDECIDED)


def test_with_too_few_keys_nothing_is_proven(world: World) -> None:
    result = world.judged(min_keys=1201)
    assert result.outcome == Outcome.UNDECIDED
    assert result.summary == (
        "totals: the load sent 1,200 keys all through the fault without a pause of its own, and at "
        "least 1,201 are needed"
    )
    assert (result.counts["key"], result.counts["partition"]) == (1200, 4)


def test_without_any_group_none_went_on(world: World) -> None:
    world.lanes = looked("partition", 0, 0)
    assert world.judged(by="partitions").outcome == Outcome.VIOLATED


@pytest.mark.parametrize(
    ("usual", "text"),
    [
        (UsualGaps(p99_ms=2000, rhythm_ms=60), "one gap of a hundred lasted 2,000 ms or more"),
        (UsualGaps(p99_ms=2000, rhythm_ms=2000), "one gap of a hundred lasted 2,000 ms or more"),
        (
            UsualGaps(p99_ms=10, rhythm_ms=2100),
            "a key paused 2,100 ms or more for half of the time",
        ),
    ],
)
def test_a_limit_no_longer_than_usual_tells_nothing(
    world: World, usual: UsualGaps, text: str
) -> None:
    world.usual = usual
    result = world.judged()
    assert result.outcome == Outcome.UNDECIDED
    assert result.summary == (
        f"totals: before the fault, too, {text}, so that a limit of 2 s proves nothing; send more "
        "often or allow more"
    )
    assert result.counts["normal_rhythm_ms"] == usual.rhythm_ms
    assert len(world.asked) == 2, "nothing more is looked at"


def test_an_engine_that_tells_nothing_of_attempts_leaves_restarts_unknown(world: World) -> None:
    world.attempts = False
    assert world.judged().counts["restarted"] is None


def test_without_evidence_there_is_no_verdict(world: World) -> None:
    assert world.judged(output="files").summary == "files is no output that is a topic"
    assert world.judged(fault="pause").summary == "pause was not in effect, so nothing failed over"
    assert world.judged(within_s=41).summary.startswith("the load ended 40.0 s after the fault")
    world.usual = None
    result = world.judged()
    assert (result.outcome, result.summary, result.counts) == (
        Outcome.UNDECIDED,
        "totals: no key came twice before the fault",
        {},
    )

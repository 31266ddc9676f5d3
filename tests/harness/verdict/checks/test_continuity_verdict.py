"""The verdict of `continuity` on given pauses, without Spark."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from streamquake.harness.experiment.check import JudgedRun
from streamquake.harness.verdict.checks import continuity
from streamquake.harness.verdict.checks.continuity import Continuity, GroupPauses
from streamquake.harness.verdict.evidence.append_times import AppendedRecords, AppendTimesUnknown
from streamquake.harness.verdict.evidence.pauses import OtherCauses, TimeSpan, UsualGaps
from streamquake.reports.record.event import Action
from streamquake.reports.record.outcome import CheckResult, Finding, Outcome
from tests.harness.histories import Story, case

BEGAN_MS = 1_767_225_600_000


def group_pauses(
    what: str, continuous: int, of: int, perhaps_continuous: int | None = None
) -> GroupPauses:
    found = (Finding(what=f"a {what} paused", where="totals: 1"),)
    return GroupPauses(
        counts={what: of},
        of=of,
        continuous=continuous,
        perhaps_continuous=continuous if perhaps_continuous is None else perhaps_continuous,
        findings=found,
    )


@dataclass
class World:
    folder: Path
    usual: UsualGaps | None = field(default_factory=lambda: UsualGaps(p99_ms=80.4, period_ms=60.6))
    keys: GroupPauses = field(default_factory=lambda: group_pauses("key", 1200, 1200))
    lanes: GroupPauses = field(default_factory=lambda: group_pauses("partition", 3, 4))
    attempts: bool = True
    others: list[tuple[float, Action, dict[str, Any]]] = field(default_factory=list)
    calls: list[Any] = field(default_factory=list)
    causes: OtherCauses | None = None

    def append_times_of(self, case: JudgedRun, name: str | None) -> AppendedRecords:
        self.calls.append(name)
        if name == "files":
            raise AppendTimesUnknown("files is no output that is a topic")
        records: Any = "records"
        return AppendedRecords(
            name="totals", topic="t", partitions=4, records=records, map={}, began_ms=BEGAN_MS
        )

    def usual_gaps(self, records: Any, by: str, until_ms: int) -> UsualGaps | None:
        self.calls.append((records, by, until_ms - BEGAN_MS))
        return self.usual

    def group_pauses(
        self,
        check: Continuity,
        case: JudgedRun,
        output: AppendedRecords,
        span: TimeSpan,
        causes: OtherCauses,
    ) -> tuple[GroupPauses, GroupPauses]:
        self.causes = causes
        moments = tuple(each - BEGAN_MS for each in span if each is not None)
        self.calls.append((output.name, *moments))
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
    created = World(tmp_path)
    monkeypatch.setattr(continuity, "append_times_of", created.append_times_of)
    monkeypatch.setattr(continuity, "usual_gaps", created.usual_gaps)
    monkeypatch.setattr(
        Continuity,
        "_pauses",
        lambda self, *found: created.group_pauses(self, *found),
    )
    return created


def test_keys_that_continued_are_held_with_the_figures_of_both_kinds(world: World) -> None:
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
    assert world.calls == ["totals", ("records", "key", 20_000), ("totals", 19_920, 29_000)]


def test_pauses_end_when_another_fault_is_called(world: World) -> None:
    world.others.append((30.0, Action.FAULT_CALLED, {"step": 1, "fault": "pause"}))
    assert world.judged(fault="kill").outcome == Outcome.HELD
    assert world.calls[-1] == ("totals", 19_920, 29_000, 30_000)


def test_after_an_earlier_fault_pauses_count_from_the_call(world: World) -> None:
    about = {"step": 1, "fault": "pause"}
    world.others += [
        (40.0, Action.FAULT_CALLED, about),
        (40.5, Action.FAULT_IN_EFFECT, {**about, "evidence": {}}),
        (42.0, Action.FAULT_HEALED, about),
    ]
    assert world.judged(fault="pause").outcome == Outcome.HELD
    assert world.calls[-2:] == [("records", "key", 20_000), ("totals", 39_920, 47_000, 40_000)]


def test_a_job_that_was_not_seen_running_again_holds_nothing(world: World) -> None:
    world.others.append((25.0, Action.JOB_FAILING, {}))
    result = world.judged()
    assert result.outcome == Outcome.UNDECIDED
    assert result.summary.endswith("; the job failed at 25.0 s and was not seen running again")
    assert world.calls[-1] == ("totals", 19_920, 60_000), "to the end of the load"
    assert world.judged(by="partitions").outcome == Outcome.VIOLATED
    world.others.append((26.0, Action.JOB_RUNNING, {}))
    assert world.judged().outcome == Outcome.HELD


@pytest.mark.parametrize(("share", "outcome"), [(0.76, Outcome.VIOLATED), (0.75, Outcome.HELD)])
def test_the_required_share_decides(world: World, share: float, outcome: Outcome) -> None:
    result = world.judged(by="partitions", share=share)
    assert result.outcome == outcome
    message = "3 of 4 partitions of totals never paused longer than 2 s"
    assert result.summary == (message if outcome == Outcome.HELD else f"{message}, 76% needed")
    assert result.findings == (() if outcome == Outcome.HELD else world.lanes.findings)
    assert result.counts["restarted"] == 2
    assert world.judged(share=share).outcome == Outcome.HELD


@pytest.mark.parametrize(
    ("without_records", "share", "outcome"),
    [(1, 0.6, Outcome.HELD), (1, 0.61, Outcome.UNDECIDED), (1, 0.76, Outcome.VIOLATED)],
)
def test_partitions_without_any_record_do_not_count_as_continuous(
    world: World, without_records: int, share: float, outcome: Outcome
) -> None:
    world.lanes = replace(world.lanes, without_records=without_records)
    result = world.judged(by="partitions", share=share)
    assert result.outcome == outcome
    assert ("1 more never had a record" in result.summary) == (outcome == Outcome.UNDECIDED)


def test_with_too_few_keys_nothing_is_proven(world: World) -> None:
    result = world.judged(min_keys=1201)
    assert result.outcome == Outcome.UNDECIDED
    assert result.summary == (
        "totals: the load sent 1,200 keys throughout the fault without a pause of its own, and at "
        "least 1,201 are needed"
    )
    assert (result.counts["key"], result.counts["partition"]) == (1200, 4)


def test_without_groups_the_share_is_zero(world: World) -> None:
    world.lanes = group_pauses("partition", 0, 0)
    assert world.judged(by="partitions").outcome == Outcome.VIOLATED


@pytest.mark.parametrize(
    ("usual", "text"),
    [
        (UsualGaps(p99_ms=2000, period_ms=60), "one gap of a hundred lasted 2,000 ms or more"),
        (UsualGaps(p99_ms=2000, period_ms=2000), "one gap of a hundred lasted 2,000 ms or more"),
        (
            UsualGaps(p99_ms=10, period_ms=2100),
            "a key paused 2,100 ms or more for half of the time",
        ),
    ],
)
def test_a_limit_no_longer_than_usual_pauses_proves_nothing(
    world: World, usual: UsualGaps, text: str
) -> None:
    world.usual = usual
    result = world.judged()
    assert result.outcome == Outcome.UNDECIDED
    assert result.summary == (
        f"totals: already before the fault {text}, so that a limit of 2 s proves nothing; send "
        "more often or allow more"
    )
    assert result.counts["normal_rhythm_ms"] == usual.period_ms
    assert len(world.calls) == 2, "nothing else is computed"


def test_without_reported_attempts_the_restarts_are_unknown(world: World) -> None:
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
        "totals: no key has two records before the fault",
        {},
    )


def sends(*moments_s: float) -> list[tuple[float, Action, dict[str, Any]]]:
    """One acknowledged record at each moment."""
    about = {"count": 1, "status": "acknowledged"}
    return [
        (at_s, Action.SENT, {"first": number, "last": number, **about})
        for number, at_s in enumerate(moments_s)
    ]


@pytest.mark.parametrize(
    ("since_s", "sent_s"),
    [
        (25, 29),
        (27, 31),  # over the end of the interval, at 29 s
        (17, 21),  # over the call
    ],
)
def test_a_pause_that_the_load_itself_made_is_undecided(
    world: World, since_s: int, sent_s: int
) -> None:
    """The load sent nothing for four seconds; a pause over an end of the interval counts in full,
    and so does the silence."""
    world.keys = group_pauses("key", 900, 1200, perhaps_continuous=1200)
    world.others = sends(*range(1, since_s + 1), *range(sent_s, 60))
    result = world.judged()
    assert result.outcome == Outcome.UNDECIDED
    assert world.causes is not None
    assert world.causes.silences == ((BEGAN_MS + since_s * 1000, BEGAN_MS + sent_s * 1000),)
    assert result.summary.endswith("100% needed; the load itself sent nothing for 4.0 s")
    world.keys = group_pauses("key", 900, 1200, perhaps_continuous=1199)
    assert world.judged().outcome == Outcome.VIOLATED
    assert world.judged(share=0.99).outcome == Outcome.UNDECIDED


def test_a_silence_of_the_load_at_another_time_is_no_cause(world: World) -> None:
    world.others = sends(*range(1, 10), *range(13, 35), *range(39, 60))
    world.judged()
    assert world.causes == OtherCauses()


@pytest.mark.parametrize(("back_s", "is_down"), [(19.0, False), (21.0, True)])
def test_a_pause_of_a_job_that_was_down_before_the_fault_is_undecided(
    world: World, back_s: float, is_down: bool
) -> None:
    """Only a pause that began until it ran again."""
    world.keys = group_pauses("key", 900, 1200, perhaps_continuous=1200 if is_down else 900)
    world.others = [(15.0, Action.JOB_FAILING, {}), (back_s, Action.JOB_RUNNING, {})]
    result = world.judged()
    assert result.outcome == (Outcome.UNDECIDED if is_down else Outcome.VIOLATED)
    assert ("the job had failed by itself at 15.0 s" in result.summary) == is_down
    down_until_ms = BEGAN_MS + 21_000 if is_down else None
    assert world.causes == OtherCauses(down_until_ms=down_until_ms)

"""The verdict of `throughput` on given stamps, without Spark."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from streamquake.harness.experiment.check import JudgedRun
from streamquake.harness.verdict.checks import throughput
from streamquake.harness.verdict.checks.throughput import Throughput
from streamquake.harness.verdict.evidence import stopped_partitions as partitions
from streamquake.harness.verdict.evidence.append_times import AppendedRecords, AppendTimesUnknown
from streamquake.harness.verdict.evidence.output_rate import OutputRate
from streamquake.harness.verdict.evidence.stopped_partitions import StoppedPartition
from streamquake.reports.record.event import Action
from streamquake.reports.record.outcome import CheckResult, Outcome
from tests.harness.histories import Story, case

BEGAN_MS = 1_767_225_600_000
INJECTED_S, HEALED_S, ENDED_S = 20.0, 22.0, 30.0


@dataclass(frozen=True)
class WrittenStamps:
    """The records of an output: moments in seconds since the run began, and partitions."""

    at_s: tuple[float, ...]
    partitions: tuple[int, ...]

    def select(self, *columns: str) -> WrittenStamps:
        assert columns == ("timestamp_ms", "partition")
        return self

    def toArrow(self) -> pa.Table:
        stamps = [BEGAN_MS + round(at_s * 1000) for at_s in self.at_s]
        return pa.table({"timestamp_ms": stamps, "partition": self.partitions})


def stamps_of_run(
    every_s: float = 0.1,
    *,
    silent: Iterable[tuple[float, float]] = (),
    until_s: float = ENDED_S,
) -> WrittenStamps:
    """Continuous records, alternating between two partitions, except for some silences."""
    moments = [change * every_s for change in range(int(until_s / every_s))]
    written = [at for at in moments if not any(start < at < end for start, end in silent)]
    return WrittenStamps(tuple(written), tuple(change % 2 for change in range(len(written))))


@dataclass
class Run:
    folder: Path
    stamps: WrittenStamps = field(default_factory=stamps_of_run)
    sent_until_s: float = ENDED_S
    unsent_s: tuple[float, float] = (0.0, 0.0)
    """The load sent nothing between these moments."""
    injected_s: float = INJECTED_S
    """When the judged fault was called."""
    first_s: float = INJECTED_S
    """When the first fault was called."""
    slow_s: tuple[float, float] = (0.0, 0.0)
    """Between these moments the load sent one record a second instead of ten."""
    silent: tuple[StoppedPartition, ...] = ()
    others: list[tuple[float, Action, dict[str, Any]]] = field(default_factory=list)
    calls: list[Any] = field(default_factory=list)

    def story(self) -> Story:
        recorded, first = Story(), 0
        for second in range(1, round(self.sent_until_s) + 1):
            if not self.unsent_s[0] < second < self.unsent_s[1]:
                count = 1 if self.slow_s[0] < second <= self.slow_s[1] else 10
                sent = {"first": first, "last": first + count - 1, "count": count}
                recorded.at(second, Action.SENT, **sent, status="acknowledged")
                first += count
        about = {"step": 0, "fault": "kill"}
        recorded.at(INJECTED_S, Action.FAULT_CALLED, **about)
        recorded.at(INJECTED_S + 0.5, Action.FAULT_IN_EFFECT, **about, evidence={})
        recorded.at(HEALED_S, Action.FAULT_HEALED, **about)
        for at_s, action, value in self.others:
            recorded.at(at_s, action, **value)
        return recorded.at(self.sent_until_s, Action.WORKLOAD_DONE)

    def acts(self, step: int, fault: str, called_s: float, healed_s: float | None) -> None:
        """Another fault, and a load until 100 s."""
        about = {"step": step, "fault": fault}
        self.sent_until_s = 100.0
        self.others.append((called_s, Action.FAULT_CALLED, about))
        self.others.append((called_s + 0.5, Action.FAULT_IN_EFFECT, {**about, "evidence": {}}))
        if healed_s is not None:
            self.others.append((healed_s, Action.FAULT_HEALED, about))

    def output(self, case: JudgedRun, name: str | None) -> AppendedRecords:
        self.calls.append(name)
        records: Any = self.stamps
        return AppendedRecords(
            name="totals", topic="totals", partitions=2, records=records, map={}, began_ms=BEGAN_MS
        )

    def stopped(
        self,
        case: JudgedRun,
        output: AppendedRecords,
        lanes: Any,
        injected_ms: int,
        limit_ms: float,
        cut_ms: int | None,
        first_ms: int,
    ) -> tuple[StoppedPartition, ...]:
        assert (output.name, injected_ms - BEGAN_MS) == ("totals", self.injected_s * 1000)
        assert first_ms - BEGAN_MS == self.first_s * 1000
        assert [len(lane) for lane in lanes] == [len(self.stamps.at_s)] * 2
        self.calls.append(limit_ms if cut_ms is None else (limit_ms, cut_ms - BEGAN_MS))
        return self.silent

    def judged(self, **params: Any) -> CheckResult:
        check = Throughput(**{"outage_within_s": 2.0, **params})
        return check.check(case(self.story(), self.folder))


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    created = Run(tmp_path)
    monkeypatch.setattr(throughput, "append_times_of", created.output)
    monkeypatch.setattr(throughput, "stopped_partitions", created.stopped)
    return created


@pytest.mark.parametrize(
    ("slow_s", "outcome"),
    [
        ((0, 0), Outcome.VIOLATED),
        ((20.0, 23.0), Outcome.UNDECIDED),
        ((26.0, 28.0), Outcome.VIOLATED),
    ],
)
def test_a_poor_second_of_a_load_that_was_slow_itself_proves_nothing(
    run: Run, slow_s: tuple[float, float], outcome: Outcome
) -> None:
    """The output has a tenth of its rate from 21 to 23 s."""
    moments = [change / 10 for change in range(int(ENDED_S * 10))]
    kept = [at for at in moments if not 21.05 < at < 22.95 or at == 22.0]
    run.stamps = WrittenStamps(tuple(kept), tuple(change % 2 for change in range(len(kept))))
    run.slow_s = slow_s

    result = run.judged(least_share=0.5)

    assert result.outcome == outcome, result.summary
    slow = "the load itself was at 10% of its usual rate then"
    assert (slow in result.summary) == (outcome == Outcome.UNDECIDED)


def test_continuous_output_is_held_with_its_figures(run: Run) -> None:
    run.stamps = stamps_of_run(silent=[(20.95, 22.0)])
    result = run.judged(output="totals")
    assert result.outcome == Outcome.HELD
    assert result.summary == (
        "totals stopped for 1.1 s at most, 2 s allowed; its worst second had 0% of the usual 10 "
        "records"
    )
    assert result.counts == {
        "outage_s": 1.1,
        "usual_per_s": 10.0,
        "least_share": 0.0,
        "peak_share": 1.0,
        "available_share": 0.8571,
        "usual_gap_s": 0.1,
        "partitions_stopped": 0,
    }
    assert run.calls == ["totals", 2000.0]


def test_too_long_an_outage_is_violated_with_its_start(run: Run) -> None:
    run.stamps = stamps_of_run(silent=[(20.95, 23.5)])
    result = run.judged()
    assert result.outcome == Outcome.VIOLATED
    (finding,) = result.findings
    assert (finding.what, finding.where) == ("an outage", "totals")
    assert finding.detail == {"gap_ms": 2600, "since_s": 20.9}
    assert run.judged(outage_within_s=2.6).outcome == Outcome.HELD


def test_a_poor_second_alone_is_violated(run: Run) -> None:
    run.stamps = stamps_of_run(silent=[(22.95, 23.55)])
    result = run.judged(least_share=0.5)
    assert result.outcome == Outcome.VIOLATED
    assert result.summary.endswith("its worst second had 40% of the usual 10 records, 50% needed")
    (finding,) = result.findings
    assert (finding.what, finding.where) == ("a poor second", "totals")
    assert finding.detail == result.counts
    assert run.judged(least_share=0.4).outcome == Outcome.HELD


def test_stopped_partitions_are_violated_and_each_is_reported(run: Run) -> None:
    run.silent = tuple(
        StoppedPartition(
            partition=lane,
            last_ms=BEGAN_MS + 21_500,
            silent_ms=8500,
            usual_gap_ms=200,
            keys=3 + lane,
        )
        for lane in (0, 1)
    )
    result = run.judged()
    assert result.outcome == Outcome.VIOLATED
    assert result.summary.endswith("10 records; 2 of its partitions never resumed")
    assert result.counts["partitions_stopped"] == 2
    assert [(each.what, each.where) for each in result.findings] == [
        ("a partition stopped", "totals: 0"),
        ("a partition stopped", "totals: 1"),
    ]
    assert result.findings[1].detail == {
        "silent_ms": 8500,
        "since_s": 21.5,
        "usual_gap_ms": 200,
        "keys": 4,
    }


def test_an_outage_like_those_before_the_fault_proves_nothing(run: Run) -> None:
    run.stamps = stamps_of_run(silent=[(9.95, 12.0), (20.95, 25.0)])
    result = run.judged()
    assert result.outcome == Outcome.UNDECIDED
    assert result.summary.endswith(
        "; already before the fault it stopped for 2.1 s, so that the limit proves nothing"
    )
    run.stamps = stamps_of_run(silent=[(9.95, 12.0), (20.95, 25.3)])
    assert run.judged().outcome == Outcome.VIOLATED, "more than twice as long"


def test_batches_of_several_seconds_have_no_usual_second(run: Run) -> None:
    run.stamps = stamps_of_run(every_s=3.0)
    message = (
        "totals stopped for 3.0 s at most, 4 s allowed; most seconds before the fault had no output"
    )
    held = run.judged(outage_within_s=4)
    assert held.outcome == Outcome.HELD
    assert (held.summary, held.counts["least_share"]) == (message, None)
    assert held.counts["peak_share"] is None
    requested = run.judged(outage_within_s=4, least_share=0.5)
    assert requested.outcome == Outcome.UNDECIDED
    assert requested.summary == f"{message}, so that there is no share of the usual rate"


def test_an_output_that_has_not_resumed_is_undecided(run: Run) -> None:
    run.stamps = stamps_of_run(silent=[(22.95, ENDED_S)])
    result = run.judged(outage_within_s=10)
    assert result.outcome == Outcome.UNDECIDED
    assert result.summary.endswith("; it had not resumed when the load ended")


def test_a_longer_earlier_outage_hides_no_unended_one(run: Run) -> None:
    """The interval ends at 27 s, five seconds after the heal; the load continues."""
    run.stamps = stamps_of_run(silent=[(20.05, 21.95), (25.35, ENDED_S)])
    result = run.judged()
    assert (result.outcome, result.counts["outage_s"]) == (Outcome.UNDECIDED, 2.0)
    assert result.summary.endswith("; it had not resumed when the load ended")
    run.stamps = stamps_of_run(silent=[(20.05, 21.95), (25.35, 27.05)])
    assert run.judged().outcome == Outcome.HELD
    run.stamps = stamps_of_run(silent=[(20.05, 21.95), (26.55, ENDED_S)])
    assert run.judged().outcome == Outcome.HELD, "half a second is no outage"


def test_an_outage_of_another_fault_does_not_count_for_the_named_one(run: Run) -> None:
    """The other fault is called before or after the interval ends, five seconds after the heal."""
    run.others.append((26.0, Action.FAULT_CALLED, {"step": 1, "fault": "pause"}))
    run.stamps = stamps_of_run(silent=[(26.05, 29.0)])
    held = run.judged(fault="kill")
    assert (held.outcome, held.counts["outage_s"]) == (Outcome.HELD, 0.1)
    assert run.calls == [None, (2000.0, 26_000)]

    run.stamps = stamps_of_run(silent=[(25.55, 29.0)])
    assert run.judged(fault="kill").outcome == Outcome.HELD, "half a second is no outage"
    run.stamps = stamps_of_run(silent=[(25.45, 29.0)])
    started = run.judged(fault="kill")
    assert (started.outcome, started.counts["outage_s"]) == (Outcome.UNDECIDED, 0.6)
    assert started.summary.endswith("; it had not resumed when another fault was called")

    run.stamps = stamps_of_run(silent=[(23.05, 29.0)])
    assert run.judged(fault="kill").outcome == Outcome.VIOLATED


def test_only_time_before_any_fault_is_usual(run: Run) -> None:
    """The output stopped after the kill, and again after the pause that is judged."""
    run.acts(1, "pause", 60.0, 62.0)
    run.injected_s = 60.0
    run.stamps = stamps_of_run(silent=[(20.05, 29.95), (60.05, 69.95)], until_s=100)
    result = run.judged(fault="pause", outage_within_s=3)
    assert (result.outcome, result.counts["usual_gap_s"]) == (Outcome.VIOLATED, 0.1)

    run.others.append((64.0, Action.FAULT_CALLED, {"step": 2, "fault": "kill"}))
    result = run.judged(fault="pause", outage_within_s=5)
    assert result.outcome == Outcome.UNDECIDED
    assert result.summary.endswith("; it had not resumed when another fault was called")


def test_an_outage_that_an_earlier_fault_began_counts_from_the_call(run: Run) -> None:
    run.acts(1, "slow_link", 29.0, 31.0)
    run.injected_s = 29.0
    run.stamps = stamps_of_run(silent=[(20.05, 30.05)], until_s=100)
    result = run.judged(fault="slow_link")
    assert (result.outcome, result.counts["outage_s"]) == (Outcome.HELD, 1.1)
    poor = run.judged(fault="slow_link", least_share=0.5)
    assert poor.outcome == Outcome.UNDECIDED
    assert poor.summary.endswith("50% needed; it had stopped before the fault was called")
    run.stamps = stamps_of_run(silent=[(20.05, 31.05)], until_s=100)
    result = run.judged(fault="slow_link")
    assert (result.outcome, result.counts["outage_s"]) == (Outcome.VIOLATED, 2.1)
    assert result.findings[0].detail == {"gap_ms": 2100, "since_s": 29.0}


def test_a_fault_that_may_still_act_is_undecided(run: Run) -> None:
    run.acts(1, "isolate", 23.0, None)
    run.others.append((23.5, Action.JOB_RUNNING, {}))
    run.stamps = stamps_of_run(silent=[(50, 60)], until_s=100)
    result = run.judged()
    assert result.outcome == Outcome.UNDECIDED
    assert result.summary == "the heal of isolate (faults[1]) was not seen"


def test_a_job_that_was_down_before_the_named_fault_holds_nothing(run: Run) -> None:
    run.others.append((21.0, Action.JOB_FAILING, {}))
    run.acts(1, "pause", 40.0, 42.0)
    run.injected_s = 40.0
    run.stamps = stamps_of_run(until_s=100)
    result = run.judged(fault="pause")
    assert result.outcome == Outcome.UNDECIDED
    assert "the job failed at 21.0 s and was not seen running again" in result.summary
    run.others.append((24.0, Action.JOB_RUNNING, {}))
    assert run.judged(fault="pause").outcome == Outcome.HELD


def test_a_failure_long_after_the_recovery_is_not_of_the_fault(run: Run) -> None:
    run.sent_until_s = 100.0
    for at_s, action in (
        (21.0, Action.JOB_FAILING),
        (23.0, Action.JOB_RUNNING),
        (70.0, Action.JOB_FAILING),
        (80.0, Action.JOB_RUNNING),
    ):
        run.others.append((at_s, action, {}))
    run.stamps = stamps_of_run(silent=[(21.05, 22.95), (69.05, 79.95)], until_s=100)
    result = run.judged()
    assert (result.outcome, result.counts["outage_s"]) == (Outcome.HELD, 2.0)
    del run.others[-1]
    result = run.judged()
    assert result.outcome == Outcome.UNDECIDED
    assert result.summary.endswith("; the job failed at 70.0 s and was not seen running again")


def test_an_outage_while_the_load_sent_nothing_is_undecided(run: Run) -> None:
    run.sent_until_s, run.unsent_s = 60.0, (23.0, 35.0)
    run.stamps = stamps_of_run(silent=[(22.95, 35.25)], until_s=60)
    result = run.judged(least_share=0.5)
    assert result.outcome == Outcome.UNDECIDED
    assert result.summary.endswith("50% needed; the load itself sent nothing for 12.0 s")
    assert run.judged().outcome == Outcome.UNDECIDED
    assert run.judged(outage_within_s=20, least_share=0.5).outcome == Outcome.UNDECIDED
    assert run.judged(outage_within_s=20).outcome == Outcome.HELD

    run.stamps = stamps_of_run(silent=[(22.95, 37.25)], until_s=60)
    result = run.judged(least_share=0.5)
    assert (result.outcome, result.counts["outage_s"]) == (Outcome.VIOLATED, 14.4)
    (finding,) = result.findings
    assert finding.detail == {"gap_ms": 2400, "since_s": 22.9}, "it lasted longer than the silence"


def test_partitions_that_may_have_stopped_are_undecided(run: Run) -> None:
    stopped = StoppedPartition(
        partition=1, last_ms=BEGAN_MS + 21_500, silent_ms=8500, usual_gap_ms=200, keys=3
    )
    unclear = replace(stopped, unclear="its records may not be committed yet: no drain")
    run.silent = (unclear,)
    result = run.judged()
    assert (result.outcome, result.counts["partitions_stopped"]) == (Outcome.UNDECIDED, None)
    assert result.summary.endswith(
        "; partition 1 has no record since 21.5 s, and its records may not be committed yet: "
        "no drain"
    )
    run.silent = (unclear, replace(stopped, partition=0))
    result = run.judged()
    assert (result.outcome, result.counts["partitions_stopped"]) == (Outcome.VIOLATED, None)
    assert [finding.where for finding in result.findings] == ["totals: 0"]


def test_a_job_that_was_not_seen_running_again_holds_nothing(run: Run) -> None:
    run.others.append((23.0, Action.JOB_FAILING, {}))
    result = run.judged()
    assert result.outcome == Outcome.UNDECIDED
    assert result.summary.endswith("; the job failed at 23.0 s and was not seen running again")
    run.stamps = stamps_of_run(silent=[(27.05, 29.55)])
    assert run.judged().outcome == Outcome.VIOLATED
    run.others.append((24.0, Action.JOB_RUNNING, {}))
    run.stamps = stamps_of_run()
    assert run.judged().outcome == Outcome.HELD


def test_missing_evidence_leaves_it_undecided(run: Run) -> None:
    assert run.judged(fault="pause").summary == "pause was not in effect, so nothing failed over"
    run.stamps = WrittenStamps((), ())
    assert run.judged().summary == "totals: no record was written"
    run.stamps = stamps_of_run(silent=[(-1, 17)])
    result = run.judged()
    assert (result.outcome, result.counts) == (Outcome.UNDECIDED, {})
    assert "there was output for 3 whole seconds before the fault" in result.summary


def test_an_output_that_cannot_be_read_is_undecided(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unread(case: JudgedRun, name: str | None) -> AppendedRecords:
        raise AppendTimesUnknown("totals: it was not read")

    monkeypatch.setattr(throughput, "append_times_of", unread)
    result = run.judged()
    assert (result.outcome, result.summary) == (Outcome.UNDECIDED, "totals: it was not read")


def lanes(run: Run, *, limit_ms: float = 2000) -> dict[int, StoppedPartition]:
    """The silent partitions, before their keys are checked."""
    stamps, which = throughput._stamps(run.output(case(run.story(), run.folder), None))
    injected_ms, end_ms = BEGAN_MS + 20_000, BEGAN_MS + 30_000
    found = partitions._silent_partitions(stamps, which, injected_ms, end_ms, limit_ms)
    return {lane.partition: lane for lane in found}


def test_a_partition_is_silent_if_it_was_active_before_the_fault(run: Run) -> None:
    def out(until: float, every_s: float) -> list[float]:
        return [change * every_s for change in range(int(until / every_s) + 1)]

    moments: dict[int, list[float]] = {
        0: out(29, 0.5),
        1: out(22, 0.5),
        2: out(22, 4),
        3: [17, 18, 19, 21],
        4: out(21, 2),
    }
    rows = [(at, lane) for lane, each in moments.items() for at in each]
    run.stamps = WrittenStamps(tuple(at for at, _ in rows), tuple(lane for _, lane in rows))

    found = lanes(run)

    assert {*found} == {1, 4}, "2 has too few gaps, or too long ones, and 3 too few"
    assert found[1] == StoppedPartition(
        partition=1, last_ms=BEGAN_MS + 22_000, silent_ms=8000, usual_gap_ms=500
    )
    assert {*lanes(run, limit_ms=8000)} == {4}
    assert {*lanes(run, limit_ms=10_000)} == set()


@pytest.mark.parametrize(("back_s", "outcome"), [(19.5, "violated"), (23.0, "undecided")])
def test_an_outage_of_a_job_that_was_down_before_the_fault_is_undecided(
    run: Run, back_s: float, outcome: str
) -> None:
    run.stamps = stamps_of_run(silent=[(18.95, 23.5)])
    run.others = [(19.0, Action.JOB_FAILING, {}), (back_s, Action.JOB_RUNNING, {})]

    result = run.judged()

    assert str(result.outcome) == outcome, result.summary
    message = "; the job had failed by itself at 19.0 s and did not run when the fault was called"
    assert result.summary.endswith(message) == (outcome == "undecided")


def test_a_load_that_waits_for_unknown_sends_has_ended(run: Run) -> None:
    """It was seen to be done long after its last acknowledged record."""
    run.stamps = stamps_of_run(until_s=30)
    run.others = [(58.0, Action.SENT, {"first": 0, "last": 9, "count": 10, "status": "unknown"})]
    story = run.story().at(60, Action.WORKLOAD_DONE)

    result = Throughput(outage_within_s=2.0).check(case(story, run.folder))

    assert result.outcome == Outcome.HELD, result.summary


@pytest.mark.parametrize("down", [False, True])
def test_a_failure_by_itself_before_the_first_fault_does_not_excuse_a_later_one(
    run: Run, down: bool
) -> None:
    """Kills at 20 s and at 60 s. The job had failed by itself at 19.5 s and was back at 21 s; the
    output stopped for 1 s then, and for 10 s after the second kill."""
    if down:
        run.others += [(19.5, Action.JOB_FAILING, {}), (21.0, Action.JOB_RUNNING, {})]
    run.acts(1, "kill", 60.0, 62.0)
    run.others += [(61.0, Action.JOB_FAILING, {}), (69.0, Action.JOB_RUNNING, {})]
    run.stamps = stamps_of_run(silent=[(19.95, 21.05), (60.05, 69.95)], until_s=100)
    result = run.judged(outage_within_s=3)
    assert result.outcome == Outcome.VIOLATED, result.summary
    assert result.findings[0].detail["since_s"] == 60.0


@pytest.mark.parametrize("failed_s", [50.0, 75.0])
def test_a_failure_by_a_checkpoint_that_hung_since_the_fault_is_of_the_fault(
    run: Run, failed_s: float
) -> None:
    """The store is away from 20 s to 22 s. The checkpoint in progress hangs; it expires at
    `failed_s` (a time-out of 30 s or 55 s) as one failure too many, and the restart stops the
    output for 12 s. No checkpoint completed since the fault."""
    run.sent_until_s = 150.0
    run.others += [
        (19.9, Action.CHECKPOINT_TRIGGERED, {"checkpoint": 2}),
        (18.0, Action.CHECKPOINT_TRIGGERED, {"checkpoint": 1}),
        (18.5, Action.CHECKPOINT_COMPLETED, {"checkpoint": 1}),
        (failed_s, Action.CHECKPOINT_FAILED, {"checkpoint": 2, "reason": "expired"}),
        (
            failed_s,
            Action.JOB_FAILING,
            {"cause": "Exceeded checkpoint tolerable failure threshold"},
        ),
        (failed_s + 11, Action.JOB_RUNNING, {}),
    ]
    run.stamps = stamps_of_run(silent=[(failed_s + 0.05, failed_s + 11.95)], until_s=150)
    result = run.judged(outage_within_s=5)
    assert result.outcome != Outcome.HELD, result.summary


@pytest.mark.parametrize("kind", ["nothing", "query", "executor"])
def test_an_executor_lost_by_itself_long_after_the_fault_is_not_of_the_fault(
    run: Run, kind: str
) -> None:
    """A worker is killed at 20 s and healed at 22 s; its executor is lost at 21 s, and tasks run
    again at 23 s. At 70 s another executor is lost by itself (out of memory); tasks run again at
    80 s. Control: the query itself fails at 70 s."""
    run.sent_until_s = 150.0
    run.others += [(20.8, Action.EXECUTOR_LOST, {"executor": "1"}), (23.0, Action.JOB_RUNNING, {})]
    if kind != "nothing":
        lost = Action.EXECUTOR_LOST if kind == "executor" else Action.JOB_FAILING
        run.others += [(70.0, lost, {}), (80.0, Action.JOB_RUNNING, {})]
    run.stamps = stamps_of_run(silent=[(70.05, 79.95)], until_s=150)
    result = run.judged(outage_within_s=5)
    assert result.outcome == Outcome.HELD, result.summary


def test_an_outage_of_exactly_the_limit_is_within_it(run: Run) -> None:
    run.stamps = stamps_of_run(silent=[(20.95, 23.5)])
    outage_s = run.judged(outage_within_s=10).counts["outage_s"]
    assert outage_s is not None
    assert outage_s == pytest.approx(2.6)
    assert run.judged(outage_within_s=outage_s).outcome == Outcome.HELD
    assert run.judged(outage_within_s=outage_s - 0.002).outcome == Outcome.VIOLATED


def test_figures_are_rounded_to_what_was_measured(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Times to milliseconds, shares to hundredths of a percent; each text to a tenth of a
    second."""
    measured = OutputRate(
        usual_per_s=1000 / 7,
        usual_gap_ms=30_151,
        outage_ms=60_049,
        loaded_outage_ms=0,
        loaded_outage_from_ms=0,
        unsent_ms=0,
        silent_before_ms=0,
        outage_open=False,
        open_ms=0,
        least_share=2 / 3,
        worst_from_ms=0,
        peak_share=8 / 7,
        available_share=1 / 3,
    )
    monkeypatch.setattr(throughput, "_rate", lambda *args: measured)
    result = run.judged()
    assert result.counts == {
        "outage_s": 60.049,
        "usual_per_s": 142.9,
        "least_share": 0.6667,
        "peak_share": 1.14,
        "available_share": 0.3333,
        "usual_gap_s": 30.151,
        "partitions_stopped": 0,
    }
    assert "stopped for 60.0 s at most" in result.summary
    assert "already before the fault it stopped for 30.2 s" in result.summary

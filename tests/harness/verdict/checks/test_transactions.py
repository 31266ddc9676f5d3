"""Transactions: a run that ends all of its transactions, and the same run with one change."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from streamquake.harness.experiment.check import JudgedRun
from streamquake.harness.verdict.checks.transactions import Transactions
from streamquake.harness.verdict.evidence.transaction_samples import samples_of
from streamquake.reports.record.event import Action
from streamquake.reports.record.history import History
from streamquake.reports.record.metrics import Metrics
from streamquake.reports.record.outcome import CheckResult, Outcome
from tests.harness.histories import Story, experiment, no_spark

DRAINED_S = 30
EPOCH_MS = 1_700_000_000_000
TOPIC = {"outputs": {"totals": {"kafka": "totals"}}}
TWO_TOPICS = {"totals": {"kafka": "totals"}, "copies": {"kafka": "copies"}}
FOLDER = {"outputs": {"files": {"hdfs": "/output"}}}


def transaction(name: str = "run-totals-0-1", state: str = "CompleteCommit", **fields: Any) -> Any:
    recorded = {"id": name, "state": state, "coordinator": 1, "epoch": 0, "timeout_ms": 20_000}
    return {**recorded, "started_ms": None, **fields}


def ongoing(since_s: float) -> Any:
    return transaction("run-totals-1-1", "Ongoing", started_ms=EPOCH_MS + int(since_s * 1000))


@dataclass(frozen=True)
class Run:
    """The record of a run: (stable end, end) once a second, and two samples of the ids."""

    ends: tuple[tuple[int, int], ...] = tuple(
        (100 * (min(at_s, DRAINED_S) // 5), 20 * min(at_s, DRAINED_S)) for at_s in range(36)
    )
    more: tuple[tuple[int, int], ...] = ()
    """A second partition, sampled beside the first."""
    series: tuple[str, ...] = ("stable_end", "end", "held_back")
    last_held_back: int | None = None
    """The last sample of `held_back`, if it is not the difference of the ends."""
    every_s: float = 1.0
    missed: range = range(0)
    """The seconds without samples."""
    recovered: tuple[Any, ...] | None = (transaction(),)
    between: tuple[Any, ...] | None = None
    drained: tuple[Any, ...] | None = (transaction(), transaction("run-totals-1-1", "Empty"))
    unanswered: str | None = None
    silent: str | None = None
    """Why one of several brokers was unreachable."""
    sampled: bool = True
    drains: bool = True
    loaded_s: float | None = None
    """When the load began; without it, when the run did."""
    moved_clock: str | None = None
    """The node whose clock a fault moved."""
    job: Any = field(default_factory=lambda: {"promise": TOPIC})
    told: Story | None = None
    """Another story than that of these fields."""

    def story(self) -> Story:
        story = Story()
        if self.moved_clock is not None:
            moved = {"fault": "clock_skew", "nodes": [self.moved_clock]}
            story.at(1, Action.FAULT_CALLED, step=0, **moved)
        if self.loaded_s is not None:
            story.at(self.loaded_s, Action.PHASE, phase="steady")
        self._inspect(story, 15, "recovery", self.recovered)
        self._inspect(story, 20, "recovery", self.between)
        if self.drains:
            story.at(DRAINED_S, Action.DRAINED)
        self._inspect(story, DRAINED_S + 0.1, "drain", self.drained)
        return story

    def _inspect(
        self, story: Story, at_s: float, after: str, found: tuple[Any, ...] | None
    ) -> None:
        requested = {"after": after, "asked_ms": EPOCH_MS + int(at_s * 1000)}
        if self.silent is not None and found is not None:
            both = {"unanswered": self.silent, "transactions": list(found)}
            story.at(at_s, Action.TRANSACTIONS_SEEN, **requested, **both)
        elif self.unanswered is not None:
            story.at(at_s, Action.TRANSACTIONS_SEEN, **requested, unanswered=self.unanswered)
        elif found is not None:
            story.at(at_s, Action.TRANSACTIONS_SEEN, **requested, transactions=list(found))

    def judged(self, folder: Path, **parameters: Any) -> CheckResult:
        metrics = Metrics(folder / "metrics.parquet")
        for partition, ends in enumerate((self.ends, self.more) if self.sampled else ()):
            for change, (stable, end) in enumerate(ends):
                if change in self.missed:
                    continue
                values = {"stable_end": stable, "end": end, "held_back": end - stable}
                if self.last_held_back is not None and change == len(ends) - 1:
                    values["held_back"] = self.last_held_back
                for late_ns, series in enumerate(self.series):
                    at_ns = round(change * self.every_s * 10**9) + late_ns * 1000
                    metrics.add(at_ns, series, f"totals/{partition}", values[series])
        metrics.flush()
        promise = {"partitions": 2 if self.more else 1, **self.job.get("promise", {})}
        job = {"sql": "SELECT 1", **self.job, "promise": promise}
        created = experiment(0).model_dump(by_alias=True) | {"job": job}
        case = JudgedRun(
            experiment=type(experiment(0)).model_validate(created),
            history=(self.told or self.story()).history(),
            data=folder / "data",
            metrics=folder / "metrics.parquet",
            spark=no_spark,
        )
        return Transactions(**parameters).check(case)


GOOD = Run()


def test_a_run_that_ended_all_of_its_transactions_is_held(tmp_path: Path) -> None:
    result = GOOD.judged(tmp_path, invisible_at_most_s=5, timeout_at_least_s=20)
    assert result.outcome == Outcome.HELD, result.summary
    assert result.counts == {
        "ids": 2,
        "open": 0,
        "hanging": 0,
        "longest_stall_s": 3.0,
        "max_held_back": 80,
        "timeouts_aborted": 0,
        "shortest_timeout_s": 20.0,
    }


@pytest.mark.parametrize(
    ("read", "outcome"),
    [
        ('{"0": 600}', Outcome.HELD),
        ('{"0": 500}', Outcome.UNDECIDED),
        ('{"0": "600"}', Outcome.HELD),
        ("600", Outcome.HELD),
        ("no number", Outcome.HELD),
    ],
)
def test_samples_that_contradict_what_was_read_decide_nothing(
    read: str, outcome: Outcome, tmp_path: Path
) -> None:
    """Another check judges damaged facts about the read."""
    (tmp_path / "data" / "totals").mkdir(parents=True)
    facts = f'{{"schema": 1, "ends": {read}}}'
    (tmp_path / "data" / "totals" / "read.json").write_text(facts)
    result = GOOD.judged(tmp_path)
    assert result.outcome == outcome, result.summary
    assert ("600 after the drain, and it was read up to 500" in result.summary) == (
        outcome == Outcome.UNDECIDED
    )


@pytest.mark.parametrize(("end", "outcome"), [(600, Outcome.HELD), (700, Outcome.UNDECIDED)])
def test_samples_that_contradict_the_seen_growth_decide_nothing(
    end: int, outcome: Outcome, tmp_path: Path
) -> None:
    story = GOOD.story().at(35, Action.OUTPUT_SEEN, output="totals", end=end, grown=1)
    result = replace(GOOD, told=story).judged(tmp_path)
    assert result.outcome == outcome, result.summary
    assert ("seen to grow to 700" in result.summary) == (outcome == Outcome.UNDECIDED)


@pytest.mark.parametrize(("asked_s", "outcome"), [(29.5, Outcome.HELD), (12, Outcome.UNDECIDED)])
def test_an_answer_from_before_the_drain_decides_nothing(
    asked_s: float, outcome: Outcome, tmp_path: Path
) -> None:
    story = Story().at(1, Action.CHECKPOINT_TRIGGERED, checkpoint=1, trigger_ms=EPOCH_MS + 1000)
    for event in GOOD.story().history():
        asked = {"asked_ms": EPOCH_MS + int(asked_s * 1000)}
        changed = asked if event.value.get("after") == "drain" else {}
        story.at(event.at_s, event.action, **{**event.value, **changed})
    result = replace(GOOD, told=story).judged(tmp_path)
    assert result.outcome == outcome, result.summary
    assert ("were asked last 18.0 s before the drain" in result.summary) == (asked_s == 12)


def test_a_transaction_open_beyond_its_time_out_hangs(tmp_path: Path) -> None:
    left = replace(GOOD, drained=(transaction(), ongoing(since_s=-1.06)))
    result = left.judged(tmp_path)
    assert result.outcome == Outcome.VIOLATED
    (finding,) = result.findings
    assert (finding.what, finding.where) == ("hanging transaction", "run-totals-1-1")
    assert finding.detail["open_for_s"] == 31.2
    assert result.counts["hanging"] == 1
    assert left.judged(tmp_path, hanging=1).outcome == Outcome.HELD


@pytest.mark.parametrize(
    ("node", "outcome"),
    [
        ("kafka/broker-1", Outcome.UNDECIDED),
        ("of another version", Outcome.UNDECIDED),
        ("flink/taskmanager-1", Outcome.VIOLATED),
    ],
)
def test_an_open_transaction_has_no_age_by_a_clock_that_a_fault_moved(
    tmp_path: Path, node: str, outcome: Outcome
) -> None:
    """Its coordinator stamped its begin an hour ago, perhaps seconds before the query."""
    ended = replace(GOOD, moved_clock=node)
    assert ended.judged(tmp_path).outcome == Outcome.HELD
    left = replace(ended, recovered=(ongoing(5),), drained=(transaction(), ongoing(since_s=-3600)))
    result = left.judged(tmp_path)
    assert result.outcome == outcome, result.summary
    unknown = outcome == Outcome.UNDECIDED
    why = "run-totals-1-1 is open after the drain, and a fault moved a broker's clock"
    assert (why in result.summary) == unknown
    assert (result.counts["timeouts_aborted"] is None) == unknown


def test_a_transaction_open_within_its_time_out_is_only_counted(tmp_path: Path) -> None:
    """Also one that the coordinator has not aborted yet, up to the last moment."""
    result = replace(GOOD, drained=(transaction(), ongoing(since_s=0.1))).judged(tmp_path)
    assert result.outcome == Outcome.HELD
    assert (result.counts["open"], result.counts["hanging"]) == (1, 0)


def test_records_hidden_after_the_last_write_are_violated(tmp_path: Path) -> None:
    hidden = replace(GOOD, ends=(*GOOD.ends[:-1], (597, 600)))
    result = hidden.judged(tmp_path)
    assert result.outcome == Outcome.VIOLATED
    assert result.summary == "totals/0 hides 3 offsets though nothing writes"
    # Only an allowed open transaction explains it.
    assert hidden.judged(tmp_path, hanging=1).outcome == Outcome.VIOLATED
    left = replace(hidden, drained=(transaction(), ongoing(since_s=20)))
    assert left.judged(tmp_path, hanging=1).outcome == Outcome.HELD


def test_a_stable_end_that_did_not_move_while_the_end_grew_is_violated(tmp_path: Path) -> None:
    stalled = replace(
        GOOD, ends=tuple((100 if 5 <= at < 25 else s, e) for at, (s, e) in enumerate(GOOD.ends))
    )
    result = stalled.judged(tmp_path, invisible_at_most_s=10)
    assert result.outcome == Outcome.VIOLATED
    assert result.summary == "totals/0 did not move from 100 for 18.0 s, 10 s allowed"
    assert result.counts["longest_stall_s"] == 18.0
    # Right after the sample before it to right before the one after it, 20 s passed.
    assert stalled.judged(tmp_path, invisible_at_most_s=19.9).outcome == Outcome.UNDECIDED
    assert stalled.judged(tmp_path, invisible_at_most_s=20).outcome == Outcome.HELD
    assert stalled.judged(tmp_path).outcome == Outcome.HELD, "not judged without a limit"


def test_records_hidden_from_the_first_sample_stall_also_if_the_end_does_not_grow(
    tmp_path: Path,
) -> None:
    """A job that failed right after a commit has written records of the next transaction."""
    ends = ((100, 100),) * 5 + ((200, 250),) * 20 + ((600, 600),) * 11
    stalled = replace(GOOD, ends=ends)
    result = stalled.judged(tmp_path, invisible_at_most_s=18.9)
    assert result.outcome == Outcome.VIOLATED, result.summary
    (stall,) = result.findings
    assert stall.detail["to_s"] - stall.detail["from_s"] == 19
    assert stall.detail["offsets_hidden"] == 50
    assert stalled.judged(tmp_path, invisible_at_most_s=21).outcome == Outcome.HELD


def test_the_longest_of_several_stalls_is_reported_first(tmp_path: Path) -> None:
    shorter, longer = (
        tuple((100 if 5 <= at < until else s, e) for at, (s, e) in enumerate(GOOD.ends))
        for until in (20, 25)
    )
    stalled = replace(GOOD, ends=shorter, more=longer, every_s=1.03)
    result = stalled.judged(tmp_path, invisible_at_most_s=10)
    assert result.summary.startswith("totals/1 did not move from 100 for 18.5 s, 10 s allowed; tot")
    assert [each.where for each in result.findings] == ["totals/1", "totals/0"]
    assert result.counts["longest_stall_s"] == 18.5


@pytest.mark.parametrize(
    ("series", "still"),
    [(GOOD.series, 1), (("end", "stable_end", "held_back"), 2)],
)
def test_the_first_and_the_last_records_may_be_invisible_too(
    tmp_path: Path, series: tuple[str, ...], still: int
) -> None:
    """Whichever of the two ends is sampled first."""
    ends = (*[(0, 0)] * still, *[(0, 50)] * (35 - still), (0, 80))
    result = replace(GOOD, ends=ends, series=series).judged(tmp_path, invisible_at_most_s=10)
    (stall,) = (each for each in result.findings if each.what == "invisible for too long")
    assert stall.detail["to_s"] - stall.detail["from_s"] == 34
    assert (stall.detail["stable_end"], stall.detail["offsets_hidden"]) == (0, 80)


def test_stable_ends_alone_show_no_stall(tmp_path: Path) -> None:
    """Without the ends themselves it is unknown what was written meanwhile."""
    alone = replace(GOOD, series=("stable_end", "held_back"))
    assert alone.judged(tmp_path).outcome == Outcome.HELD
    assert alone.judged(tmp_path, invisible_at_most_s=5).outcome == Outcome.UNDECIDED


def test_a_single_hidden_record_is_violated_too(tmp_path: Path) -> None:
    result = replace(GOOD, ends=(*GOOD.ends[:-1], (599, 600))).judged(tmp_path)
    assert result.outcome == Outcome.VIOLATED


def test_the_first_sample_after_the_drain_shows_what_can_be_read(tmp_path: Path) -> None:
    once = replace(GOOD, ends=GOOD.ends[:31])
    result = once.judged(tmp_path)
    assert "1 partitions readable to their end" in result.summary, result.summary


def test_at_most_three_hanging_transactions_are_named(tmp_path: Path) -> None:
    left = tuple({**ongoing(since_s=-9), "id": name} for name in "abcd")
    result = replace(GOOD, drained=left).judged(tmp_path)
    assert (result.summary.count(" was open "), len(result.findings)) == (3, 4)


def test_an_idle_partition_is_no_stall(tmp_path: Path) -> None:
    idle = replace(GOOD, ends=tuple((100, 100) for _ in range(36)))
    result = idle.judged(tmp_path, invisible_at_most_s=1)
    assert result.outcome == Outcome.HELD
    assert result.counts["longest_stall_s"] == 0


def test_a_time_out_shorter_than_needed_is_violated(tmp_path: Path) -> None:
    result = GOOD.judged(tmp_path, timeout_at_least_s=60)
    assert result.outcome == Outcome.VIOLATED
    assert result.findings[0].what == "time-out too short"


@pytest.mark.parametrize(("first_ms", "then_ms"), [(20_000, 900_000), (900_000, 20_000)])
def test_a_later_time_out_does_not_correct_one_that_was_too_short(
    first_ms: int, then_ms: int, tmp_path: Path
) -> None:
    """A restarted job may set another time-out for the same id."""
    ids = [(transaction(timeout_ms=each),) for each in (first_ms, then_ms)]
    result = replace(GOOD, recovered=ids[0], drained=ids[1]).judged(tmp_path, timeout_at_least_s=60)
    assert result.outcome == Outcome.VIOLATED, result.summary
    assert result.counts["shortest_timeout_s"] == 20


@pytest.mark.parametrize(("since_s", "aborted"), [(10, 1), (10.1, 1), (12, 0)])
def test_an_open_transaction_aborted_after_its_time_out_is_counted(
    since_s: float, aborted: int, tmp_path: Path
) -> None:
    run = replace(
        GOOD,
        recovered=(ongoing(since_s),),
        drained=(transaction("run-totals-1-1", "CompleteAbort"),),
    )
    assert run.judged(tmp_path).counts["timeouts_aborted"] == aborted


def test_the_last_sample_shows_whether_it_was_aborted(tmp_path: Path) -> None:
    run = replace(
        GOOD,
        recovered=(ongoing(5),),
        between=(ongoing(5),),
        drained=(transaction("run-totals-1-1", "CompleteAbort"),),
    )
    assert run.judged(tmp_path).counts["timeouts_aborted"] == 1


NOTHING = replace(GOOD, recovered=None, drained=None, sampled=False)


@pytest.mark.parametrize(
    ("run", "parameters", "reason"),
    [
        (replace(GOOD, job={"promise": FOLDER}), {}, "no exactly-once sink into Kafka"),
        (
            replace(GOOD, job={"promise": TOPIC, "sink": "at-least-once"}),
            {},
            "no exactly-once sink into Kafka",
        ),
        (NOTHING, {}, "no coordinator reported"),
        (replace(GOOD, unanswered="no broker runs", sampled=False), {}, "no coordinator reported"),
        (replace(GOOD, silent="kafka/broker-2", sampled=False), {}, "not every broker answered"),
        (replace(GOOD, drains=False), {}, "the job was not drained"),
        (replace(GOOD, drained=None, ends=GOOD.ends[:20]), {}, "after the drain no coordinator"),
        (replace(GOOD, sampled=False), {"invisible_at_most_s": 5}, "were not sampled"),
        (replace(GOOD, unanswered="no broker runs"), {"timeout_at_least_s": 5}, "time-out"),
    ],
)
def test_without_evidence_there_is_no_verdict(
    run: Run, parameters: dict[str, float], reason: str, tmp_path: Path
) -> None:
    result = run.judged(tmp_path, **parameters)
    assert result.outcome == Outcome.UNDECIDED
    assert reason in result.summary


def test_no_transactional_id_is_no_evidence(tmp_path: Path) -> None:
    result = replace(GOOD, recovered=(), drained=()).judged(tmp_path)
    assert result.outcome == Outcome.UNDECIDED
    assert "no transactional id of the run was seen" in result.summary


@pytest.mark.parametrize(
    ("recovered", "drained", "reason"),
    [
        ((transaction(),), (), "after the drain no transactional id was reported"),
        (
            (ongoing(14), transaction()),
            (transaction(),),
            "after the drain nothing was reported of run-totals-1-1",
        ),
        (
            (ongoing(14), transaction()),
            (transaction("run-totals-1-1"),),
            "after the drain nothing was reported of run-totals-0-1, whose transaction was over",
        ),
        ((ongoing(14), transaction("a", "Dead")), (transaction("run-totals-1-1"),), ""),
        ((ongoing(14),), (transaction(), transaction("run-totals-1-1")), ""),
    ],
)
def test_a_reported_id_must_be_reported_again_after_the_drain(
    recovered: tuple[Any, ...], drained: tuple[Any, ...], reason: str, tmp_path: Path
) -> None:
    result = replace(GOOD, recovered=recovered, drained=drained).judged(tmp_path)
    assert result.outcome == (Outcome.UNDECIDED if reason else Outcome.HELD)
    assert reason in result.summary


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (replace(GOOD, sampled=False), "the ends of totals/0 were not sampled until the drain"),
        (
            replace(GOOD, ends=GOOD.ends[:27]),
            "the ends of totals/0 were not sampled until the drain",
        ),
        (replace(GOOD, ends=GOOD.ends[:28]), ""),  # 3 s before the drain, the length of a hole
        (replace(GOOD, drained=None), "after the drain no coordinator answered"),
        (replace(GOOD, recovered=None, drained=None), "after the drain no coordinator answered"),
        (replace(GOOD, unanswered="no broker runs"), "after the drain no coordinator answered"),
        (replace(GOOD, silent="kafka/broker-2"), ""),
    ],
)
def test_both_kinds_of_evidence_are_needed(run: Run, message: str, tmp_path: Path) -> None:
    """An open transaction without records hides nothing, and a coordinator may have forgotten one
    that hides records."""
    result = run.judged(tmp_path)
    assert result.outcome == (Outcome.UNDECIDED if message else Outcome.HELD), result.summary
    assert message in result.summary
    assert (result.counts["hanging"] is None) == ("no coordinator" in message)


@pytest.mark.parametrize("state", ["PrepareCommit", "PrepareAbort", "PrepareEpochFence"])
@pytest.mark.parametrize(("since_s", "outcome"), [(-5, Outcome.VIOLATED), (5, Outcome.HELD)])
def test_a_transaction_not_ended_in_every_partition_hangs(
    tmp_path: Path, state: str, since_s: float, outcome: Outcome
) -> None:
    left = {**ongoing(since_s), "state": state}

    assert replace(GOOD, drained=(transaction(), left)).judged(tmp_path).outcome == outcome


@pytest.mark.parametrize(
    ("left", "message"),
    [
        (transaction("a", "Unknown"), "the state of a after the drain is Unknown"),
        (transaction("a", "Ongoing"), "a is open after the drain, and since when is not recorded"),
        (
            transaction("a", "PrepareAbort"),
            "a is PrepareAbort after the drain, and since when is not recorded",
        ),
        (transaction("a", timeout_ms=None), "the time-out of a is recorded as None ms"),
        (transaction("a", timeout_ms="900000"), "the time-out of a is recorded as 900000 ms"),
        (transaction("a", timeout_ms=2**31), "the time-out of a is recorded as 2147483648 ms"),
        (
            {**ongoing(since_s=DRAINED_S + 20.2), "id": "a"},
            "a is open, and began 20 s after the query",
        ),
        ("a", "the state of None after the drain is None"),
    ],
)
def test_an_unreadable_id_is_not_judged_and_hides_no_other(
    tmp_path: Path, left: Any, message: str
) -> None:
    alone = replace(GOOD, drained=(transaction(), left)).judged(tmp_path)
    hanging = ongoing(since_s=-9)
    beside = replace(GOOD, drained=(transaction(), left, hanging)).judged(tmp_path)

    assert alone.outcome == Outcome.UNDECIDED
    assert message in alone.summary
    assert beside.outcome == Outcome.VIOLATED
    assert [each.where for each in beside.findings] == [hanging["id"]]


def test_the_longest_time_out_and_a_late_answer_are_readable(tmp_path: Path) -> None:
    read = {**ongoing(since_s=DRAINED_S + 10), "timeout_ms": 2**31 - 1}
    assert replace(GOOD, drained=(transaction(), read)).judged(tmp_path).outcome == Outcome.HELD


def test_an_unreadable_time_out_is_not_long_enough(tmp_path: Path) -> None:
    recovered = (transaction("run-totals-1-1", timeout_ms=None), transaction())
    recorded = replace(GOOD, recovered=recovered)
    assert recorded.judged(tmp_path).outcome == Outcome.HELD
    requested = recorded.judged(tmp_path, timeout_at_least_s=20)
    assert requested.outcome == Outcome.UNDECIDED
    assert "the time-out of run-totals-1-1 is recorded as None ms" in requested.summary


def test_the_time_of_the_query_is_needed_to_judge_an_open_transaction(tmp_path: Path) -> None:
    story = replace(GOOD, drained=(transaction(), ongoing(since_s=-9))).story()
    (last,) = (
        poll
        for poll in story.history().of(Action.TRANSACTIONS_SEEN)
        if poll.value["after"] == "drain"
    )
    (poll,) = samples_of(History([replace(last, value={**last.value, "asked_ms": None})]))
    assert not poll.hanging
    assert [each.uncertainty for each in poll.ids if each.uncertainty] == [
        "run-totals-1-1 is open after the drain, and since when is not recorded"
    ]


@pytest.mark.parametrize("state", ["Ongoing", "PrepareCommit"])
def test_an_unended_transaction_may_hide_unsampled_offsets(tmp_path: Path, state: str) -> None:
    ending = {**ongoing(since_s=29), "state": state}
    run = replace(GOOD, drained=(transaction(), ending))
    assert run.judged(tmp_path).outcome == Outcome.HELD
    unsampled_vertices = replace(run, ends=GOOD.ends[:20]).judged(tmp_path)
    assert unsampled_vertices.outcome == Outcome.UNDECIDED
    assert f"{state} after the drain, and the ends were not sampled" in unsampled_vertices.summary


def test_every_partition_is_sampled_after_the_drain_where_one_is(tmp_path: Path) -> None:
    both = replace(GOOD, more=GOOD.ends)
    assert both.judged(tmp_path).outcome == Outcome.HELD
    one = replace(GOOD, more=GOOD.ends[:DRAINED_S]).judged(tmp_path)
    assert one.outcome == Outcome.UNDECIDED
    assert "totals/1 was not sampled after the drain, and others were" in one.summary
    # Sampled until the drain, the report of the coordinators is enough.
    neither = replace(both, ends=GOOD.ends[:DRAINED_S], more=GOOD.ends[:DRAINED_S])
    assert neither.judged(tmp_path).outcome == Outcome.HELD


@pytest.mark.parametrize("outputs", [TOPIC["outputs"], TWO_TOPICS])
@pytest.mark.parametrize("parameters", [{}, {"invisible_at_most_s": 5}])
def test_every_promised_partition_is_sampled(
    tmp_path: Path, outputs: dict[str, Any], parameters: dict[str, Any]
) -> None:
    """Nothing was sampled of the second partition, or of the second output."""
    promise = {"outputs": outputs, "partitions": 2 if outputs == TOPIC["outputs"] else 1}
    result = replace(GOOD, job={"promise": promise}).judged(tmp_path, **parameters)
    assert result.outcome == Outcome.UNDECIDED, result.summary
    missing = "totals/1" if outputs == TOPIC["outputs"] else "copies/0"
    assert f"{missing} was not sampled after the drain" in result.summary


@pytest.mark.parametrize(
    ("missed", "at_most_s"),
    [
        (range(7, 9), 5.0),  # grown after 5 s, moved by 10 s
        (range(16, 25), 10.0),  # another value began and ended in between
        (range(18, 22), 8.0),  # records hidden at 22 s may be hidden since 17 s
        (range(28, 36), 5.0),  # from the last sample to the drain
    ],
)
def test_a_stall_may_extend_to_the_samples_around_it(
    tmp_path: Path, missed: range, at_most_s: float
) -> None:
    with_hole = replace(GOOD, missed=missed)
    limit_s = at_most_s - 0.1
    assert with_hole.judged(tmp_path, invisible_at_most_s=at_most_s).outcome == Outcome.HELD
    result = with_hole.judged(tmp_path, invisible_at_most_s=limit_s)
    assert result.outcome == Outcome.UNDECIDED, result.summary
    assert f" to {at_most_s:.1f} s by the samples around it" in result.summary


@pytest.mark.parametrize(
    ("first", "loaded_s", "limit_s", "message"),
    [
        (15, 5.0, 9.9, "totals/0 was first sampled 10.0 s after the load began, and 9.9 s are"),
        (15, 5.0, 10.0, ""),
        (15, None, 14.9, "totals/0 was first sampled 15.0 s after the load began"),
        # Records hidden at 12 s may be hidden since the load began at 8 s, until 15 s.
        (12, 8.0, 6.9, " for 2.0 to 7.0 s by the samples around it"),
        (12, 8.0, 7.0, ""),
    ],
)
def test_a_stall_may_have_ended_before_the_first_sample(
    tmp_path: Path, first: int, loaded_s: float | None, limit_s: float, message: str
) -> None:
    late = replace(GOOD, missed=range(first), loaded_s=loaded_s)
    result = late.judged(tmp_path, invisible_at_most_s=limit_s)
    assert result.outcome == (Outcome.UNDECIDED if message else Outcome.HELD), result.summary
    assert message in result.summary
    assert late.judged(tmp_path).outcome == Outcome.HELD, "not judged without a limit"


def test_a_partition_that_was_empty_at_its_first_sample_had_no_stall(tmp_path: Path) -> None:
    ends = tuple((0, 0) if at_s < 14 else GOOD.ends[at_s] for at_s in range(36))
    late = replace(GOOD, ends=ends, missed=range(13), loaded_s=3.0)
    assert late.judged(tmp_path, invisible_at_most_s=5).outcome == Outcome.HELD


@pytest.mark.parametrize(
    ("ends", "held_back", "outcome"),
    [
        ((500, 600), 100, Outcome.VIOLATED),
        ((500, 600), 0, Outcome.UNDECIDED),
        ((600, 600), 100, Outcome.UNDECIDED),
        ((600, 600), 0, Outcome.HELD),
    ],
)
def test_contradictory_ends_after_the_drain_prove_nothing(
    tmp_path: Path, ends: tuple[int, int], held_back: int, outcome: Outcome
) -> None:
    run = replace(GOOD, ends=(*GOOD.ends[:35], ends), last_held_back=held_back)
    result = run.judged(tmp_path)
    assert result.outcome == outcome, result.summary
    contradiction = f"the last end of totals/0 is 600, its stable end {ends[0]}, and {held_back}"
    assert (contradiction in result.summary) == (outcome == Outcome.UNDECIDED)


@pytest.mark.parametrize("back", [(99, 120), (100, 99)])
def test_an_end_that_went_back_leaves_stalls_unknown(tmp_path: Path, back: tuple[int, int]) -> None:
    """A stall that is interrupted by a wrong sample looks like two shorter ones."""
    run = replace(GOOD, ends=(*GOOD.ends[:7], back, *GOOD.ends[8:]))
    result = run.judged(tmp_path, invisible_at_most_s=30)
    assert result.outcome == Outcome.UNDECIDED, result.summary
    assert " end of totals/0 went back from " in result.summary
    assert run.judged(tmp_path).outcome == Outcome.HELD, "not judged without a limit"


def test_a_stable_end_beyond_the_end_decides_nothing(tmp_path: Path) -> None:
    """Committed records are before the end of their partition."""
    beyond = replace(GOOD, ends=(*GOOD.ends[:-1], (700, 600)), last_held_back=0)
    result = beyond.judged(tmp_path)
    assert (result.outcome, result.summary) == (
        Outcome.UNDECIDED,
        "the last end of totals/0 is 600, its stable end 700, and 0 offsets are recorded as held "
        "back",
    )

"""The rows that belong together, how long they take, and the shards of a suite."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from streamquake.harness.campaign.suite import shards
from streamquake.harness.campaign.suite.durations import OVERHEAD_S, Durations, duration_text
from streamquake.harness.campaign.suite.loader import Row, Suite
from streamquake.harness.campaign.suite.model import RowSource
from streamquake.harness.campaign.suite.row_groups import row_groups
from streamquake.harness.campaign.suite.shards import Shard, shard_of
from streamquake.harness.experiment.model import Experiment
from streamquake.reports.store.stored_run import ELAPSED
from streamquake.topologies.problems import BadInput
from tests.harness.campaign.suite.fake_suites import experiment
from tests.reports.stored_runs import stored

Load = Callable[..., Experiment]


def row(name: str, *others: str, control: str | None = None, repeats: int = 1) -> Row:
    return Row(
        source=RowSource(experiment=name, repeats=repeats),
        experiment=Path(name),
        control=Path(control) if control else None,
        names=(name,),
        series=tuple(map(Path, others)),
    )


def suite(*rows: Row) -> Suite:
    return Suite(name="sample", description="", rows=rows)


@pytest.fixture(autouse=True)
def load(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "load_experiment", lambda name, seed: experiment(name))


def durations(**seconds: float) -> Durations:
    return Durations.of(stored(name, figures={ELAPSED: of}) for name, of in seconds.items())


def test_rows_that_share_an_experiment_are_one_group() -> None:
    not_measured = Row(source=RowSource(experiment="x"), experiment=None, control=None, names=())
    rows = [
        row("a", control="plain"),
        row("b"),
        row("c", "d"),
        not_measured,
        row("d", control="plain"),
        not_measured,
        row("e"),
    ]
    assert row_groups(rows) == [(0, 2, 4), (1,), (3,), (5,), (6,)]
    assert row_groups([]) == []


def test_the_duration_of_a_run_is_the_median_of_the_recorded_ones() -> None:
    recorded = [stored("a", figures={ELAPSED: seconds}) for seconds in (30.0, 90.0, 40.0)]
    known = Durations.of([*recorded, stored("b", figures={"other": 1.0})])

    assert known.expected_s(experiment("a")) == 40.0
    assert known.expected_s(experiment("b")) == 2.0 + OVERHEAD_S, "1,000 records at 500 a second"
    assert known.total_s([experiment("a"), experiment("a"), experiment("b")]) == 82 + OVERHEAD_S


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-3, "0 s"), (119.4, "119 s"), (120, "2 min"), (3540, "59 min"), (18_720, "5 h 12 min")],
)
def test_a_duration_for_readers(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


def test_shards_take_about_equally_long_and_contain_every_row_once() -> None:
    rows = [row(name) for name in "abcdef"]
    known = durations(a=100, b=60, c=50, d=40, e=30, f=20)

    parts = [shard_of(suite(*rows), Shard(number=k, of=3), known) for k in (1, 2, 3)]

    assert [[each.names[0] for each in part.rows] for part in parts] == [
        ["a"],
        ["b", "e", "f"],
        ["c", "d"],
    ]
    assert parts[0].name == "sample"


def test_a_shard_counts_repeats_and_shared_experiments_once_a_repeat() -> None:
    rows = [row("a", control="plain"), row("b", control="plain", repeats=3), row("c"), row("d")]
    known = durations(a=10, b=10, plain=10, c=75, d=10)

    first = shard_of(suite(*rows), Shard(number=1, of=2), known)

    assert [each.names[0] for each in first.rows] == ["c"], "75 s, the group of a and b 70 s"
    longer = durations(a=10, b=10, plain=12, c=75, d=10)
    first = shard_of(suite(*rows), Shard(number=1, of=2), longer)
    assert [each.names[0] for each in first.rows] == ["a", "b"], "76 s"


def test_a_shard_without_rows_is_bad_input() -> None:
    both = suite(row("a"), row("b", control="a"))
    assert shard_of(both, Shard(number=1, of=2), Durations()) == both
    with pytest.raises(BadInput, match=r"shard 2/2 of sample is empty: .* into at most 1"):
        shard_of(both, Shard(number=2, of=2), Durations())


def test_rows_that_cannot_be_measured_are_shown_by_the_first_shard() -> None:
    not_here = Row(source=RowSource(experiment="x"), experiment=None, control=None, names=("x",))
    rows = suite(row("a"), not_here, row("b"))
    parts = [shard_of(rows, Shard(number=k, of=2), Durations()) for k in (1, 2)]
    assert [[each.names[0] for each in part.rows] for part in parts] == [["a", "x"], ["b"]]
    with pytest.raises(BadInput, match="it can be split into at most 2"):
        shard_of(rows, Shard(number=3, of=3), Durations())

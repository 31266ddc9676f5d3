"""Records that are sent at the distances of their own times."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from streamquake.harness.workloads.data_sets.data_set import DataSet
from streamquake.harness.workloads.data_sets.own_times import OwnTimes
from streamquake.harness.workloads.recorded import Recorded
from streamquake.harness.workloads.sending.pace import EvenPace, OwnPace

S = 1_000_000_000


def after_s(*times: Any, speed: float = 1.0) -> list[float]:
    found = DataSet.of(json.dumps({"at": at}).encode() for at in times)
    return [each / S for each in OwnTimes(by="at", speed=speed).after_ns(found)]


def test_milliseconds_and_texts_are_times() -> None:
    assert after_s(1_700_000_000_000, 1_700_000_000_250) == [0, 0.25]
    assert after_s("2026-02-28 23:59:59.5", "2026-03-01T00:00:00", "2026-03-01 00:00:01Z") == [
        *(0, 0.5, 1.5),
    ]
    assert after_s("2026-03-01T00:00:00Z", "2026-03-01T01:00:01+01:00") == [0, 1]


def test_a_record_that_is_earlier_follows_at_once() -> None:
    assert after_s(5_000, 7_000, 6_000, 4_000, 8_000) == [0, 2, 2, 2, 3]


def test_the_speed_divides_the_distances() -> None:
    assert after_s(0, 10_000, 20_000, speed=4) == [0, 2.5, 5]


@pytest.mark.parametrize(
    "value",
    [
        *(None, True, 1.5, "yesterday", "", {"ms": 1}),
        *("1712041500000", "20260131", "2026-W05-1", "2026-01-31", 10**400, -(10**17)),
        *("0000-01-01 00:00", "2026-02-30 00:00"),
    ],
)
def test_a_record_without_a_time_is_rejected(value: Any) -> None:
    with pytest.raises(
        ValueError, match=r"record 2: at is .*; expected milliseconds or a time such"
    ):
        after_s(0, value)


def test_the_slowest_speed_is_bounded() -> None:
    with pytest.raises(ValueError, match="greater than or equal to"):
        OwnTimes(by="at", speed=1e-300)


def test_a_load_of_more_than_a_day_is_rejected() -> None:
    day_ms = 24 * 3600 * 1000
    assert after_s(0, day_ms) == [0, 24 * 3600]
    with pytest.raises(ValueError, match="at speed 1 the records take 240 hours, more than 24; ra"):
        after_s(0, 10 * day_ms)


def test_records_are_due_at_their_own_times() -> None:
    pace = OwnPace([0, 2 * S, 2 * S, 5 * S])
    pace.begin(100 * S)
    assert [pace.due((100 + at) * S) for at in (0, 1, 2, 4, 5, 9)] == [1, 1, 3, 3, 4, 4]
    assert pace.most(100 * S, 101 * S) == 4


def test_after_a_stall_an_even_load_catches_up_at_twice_its_rate() -> None:
    pace = EvenPace(100, 0)
    pace.begin(S)
    assert (pace.due(S), pace.due(2 * S)) == (1, 101)
    assert pace.most(S, 2 * S) == 201


def load_of(folder: Path, *times: int, **more: Any) -> Recorded:
    file = folder / "events.jsonl"
    file.write_text("".join(json.dumps({"at": at}) + "\n" for at in times))
    return Recorded.model_validate({"file": str(file), **more}).with_files(Path)


def test_the_plan_has_the_time_that_the_load_takes(tmp_path: Path) -> None:
    load = load_of(tmp_path, 1000, 4000, 31_000, pace={"by": "at", "speed": 10})
    assert (load.seconds, load.span_s) == (3, 3)
    pace = load.pace(load.data_set(1), 0)
    pace.begin(0)
    assert [pace.due(at) for at in (0, S, 3 * S)] == [1, 2, 3]

    (tmp_path / "events.jsonl").unlink()
    document = json.loads(load.model_dump_json(by_alias=True, exclude_none=True))
    assert Recorded.model_validate(document).seconds == 3


def test_records_of_one_moment_take_a_moment(tmp_path: Path) -> None:
    assert 0 < load_of(tmp_path, 7, 7, pace={"by": "at"}).seconds < 0.1


def test_without_a_pace_the_rate_is_even(tmp_path: Path) -> None:
    assert load_of(tmp_path, 1, 2).seconds == 0.002
    assert load_of(tmp_path, 1, 2, rate_per_s=4).seconds == 0.5


def test_a_rate_and_a_pace_contradict_each_other(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="give either `rate_per_s`, or `pace`"):
        load_of(tmp_path, 1, pace={"by": "at"}, rate_per_s=1)


def test_a_field_without_times_is_rejected_with_its_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"events.jsonl: record 1: when is null; expected milli"):
        load_of(tmp_path, 1, pace={"by": "when"})

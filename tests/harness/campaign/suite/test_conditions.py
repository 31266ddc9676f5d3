"""The conditions under which the runs of a suite were made."""

from __future__ import annotations

from streamquake.harness.campaign.suite.conditions import conditions_of
from tests.reports.stored_runs import stored

MACHINE = {"cpus": 2, "memory_bytes": 24 << 30, "system": "Linux-6"}


def test_the_conditions_are_those_of_all_runs() -> None:
    first = stored(
        "a",
        started_at="2026-01-02T01:00:00+00:00",
        machine=MACHINE,
        load_1m=0.5,
        versions={"flink": "2.2.1", "python": "3.11"},
        streamquake="0.2.0",
    )
    second = stored(
        "b",
        started_at="2026-01-01T23:00:00+00:00",
        machine={**MACHINE, "cpus": 4},
        load_1m=11.25,
        versions={"flink": "2.3.0"},
        streamquake="0.2.0",
    )
    assert conditions_of([first, second]) == (
        "2 runs of 2026-01-01 to 2026-01-02, by Streamquake 0.2.0",
        "2 processors, 24 GiB, Linux-6",
        "4 processors, 24 GiB, Linux-6",
        "load average at the start of a run: 0.5 to 11.2",
        "flink 2.2.1 and 2.3.0, python 3.11",
    )


def test_what_is_not_recorded_is_left_out() -> None:
    bare = stored("a", started_at="", machine={}, load_1m=None, versions={}, streamquake="1")
    assert conditions_of([bare]) == ("1 runs, by Streamquake 1", "an unknown machine")
    assert conditions_of([]) == ()

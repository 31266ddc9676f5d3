"""The names of sandboxes."""

from __future__ import annotations

from streamquake.cluster.sandbox import LONGEST_NAME, sandbox_name

RUN = "streamquake-20261130-120000-abcd"


def test_a_sandbox_is_called_after_its_node() -> None:
    name = f"{RUN}-flink-taskmanager-10"

    assert sandbox_name(name) == f"{name}-sandbox"


def test_a_long_name_is_cut_and_stays_unique() -> None:
    hosts = [f"stream-processing-of-orders-taskmanager-{number}" for number in range(1, 100)]

    names = {sandbox_name(f"{RUN}-{host}") for host in hosts}

    assert len(names) == len(hosts)
    assert {len(name) for name in names} == {LONGEST_NAME}
    assert all(name.startswith(f"{RUN}-stream-pr") and name.endswith("-sandbox") for name in names)


def test_the_longest_name_that_fits_is_not_cut() -> None:
    longest = "x" * (LONGEST_NAME - len("-sandbox"))

    assert sandbox_name(longest) == f"{longest}-sandbox"
    assert len(sandbox_name(f"{longest}x")) == LONGEST_NAME

from __future__ import annotations

from typing import Any

import pytest

from streamquake.cluster.engines.flink.plan import edges, regions
from tests.cluster.engines.recorded import answer


def plan(widths: dict[str, int], *links: tuple[str, str, str, str]) -> dict[str, Any]:
    nodes = [
        {
            "id": vertex,
            "parallelism": width,
            "inputs": [
                {"id": source, "ship_strategy": ship, "exchange": exchange}
                for source, target, ship, exchange in links
                if target == vertex
            ],
        }
        for vertex, width in widths.items()
    ]
    return {"nodes": nodes}


def test_a_keyed_job_is_one_region() -> None:
    recorded = answer("plan")["plan"]
    (region,) = regions(recorded)
    assert len(region) == 9
    assert {edge["ship"] for edge in edges(recorded)} == {"HASH", "REBALANCE"}


def test_forward_edges_form_one_region_per_subtask_index() -> None:
    forward = plan({"a": 3, "b": 3}, ("a", "b", "FORWARD", "pipelined_bounded"))
    assert regions(forward) == [[("a", n), ("b", n)] for n in range(3)]


@pytest.mark.parametrize(
    ("senders", "receivers", "expected"),
    [
        (4, 2, [["a0", "a1", "b0"], ["a2", "a3", "b1"]]),
        (2, 4, [["a0", "b0", "b1"], ["a1", "b2", "b3"]]),
        (3, 2, [["a0", "b0"], ["a1", "a2", "b1"]]),
        (2, 3, [["a0", "b0", "b1"], ["a1", "b2"]]),
    ],
)
def test_a_rescale_edge_joins_the_subtasks_that_flink_connects(
    senders: int, receivers: int, expected: list[list[str]]
) -> None:
    rescaled = plan({"a": senders, "b": receivers}, ("a", "b", "RESCALE", "pipelined"))
    assert [[f"{v}{n}" for v, n in region] for region in regions(rescaled)] == expected


@pytest.mark.parametrize("exchange", ["blocking", "pipelined_approximate"])
def test_blocking_and_approximate_exchanges_separate_regions(exchange: str) -> None:
    separated = plan({"a": 2, "b": 2}, ("a", "b", "HASH", exchange))
    assert len(regions(separated)) == 4

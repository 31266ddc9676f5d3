"""The bottleneck in longer and wider graphs than that of the check's tests."""

from __future__ import annotations

import numpy as np

from streamquake.harness.verdict.evidence.bottleneck import (
    POOL,
    BackpressureSource,
    JobGraph,
    VertexLoad,
    load_of,
    root_of,
)
from streamquake.harness.verdict.evidence.pressure import BACK_PRESSURED, Ratios
from streamquake.reports.record.event import Action
from streamquake.reports.record.job_events import JobSubmitted
from streamquake.reports.record.metrics import Samples
from tests.harness.histories import Story


def graph(*edges: str) -> JobGraph:
    """Vertices are letters; an edge is two of them."""
    names = dict.fromkeys(sorted({*"".join(edges)}))
    return JobGraph(
        names={name: name for name in names},
        edges=tuple((edge[0], edge[1], "FORWARD") for edge in edges),
    )


def load(pressed: float, busy: float = 0.0) -> VertexLoad:
    return VertexLoad(pressed=Ratios(mean=pressed, max=pressed, samples=9), busy=busy, pool=0.0)


def test_all_downstream_vertices_are_below_a_vertex() -> None:
    chain = graph("ab", "bc", "cd", "be")
    assert chain.below("a") == {*"bcde"}
    assert (chain.below("c"), chain.below("d")) == ({"d"}, set())
    assert graph("ab", "ba").below("a") == {"a", "b"}, "and it ends"


def test_only_the_last_back_pressured_vertex_leads_to_the_root() -> None:
    """The consumer of the first back-pressured vertex is as busy, and not the root."""
    chain = graph("ab", "bc", "cd", "ax")
    loads = {"a": load(0.9), "b": load(0.2), "c": load(0.9), "d": load(0, 0.9), "x": load(0, 0.95)}
    assert root_of(chain, loads, ["a", "c"]) == BackpressureSource(vertices=("d",))


def test_of_several_consumers_the_most_strained_one_is_the_root() -> None:
    wide = graph("ab", "ac", "ad")
    loads = {"a": load(0.9), "b": load(0, 0.7), "c": load(0, 0.9), "d": load(0, 0.8)}
    assert root_of(wide, loads, ["a"]) == BackpressureSource(vertices=("c",))


def test_a_root_link_leads_into_consumers_without_back_pressure() -> None:
    wide = graph("ab", "ac")
    loads = {"a": load(0.9), "b": load(0.3), "c": load(0)}
    assert root_of(wide, loads, ["a"]) == BackpressureSource(vertices=("c",), is_link=True)
    pressed = {"a": load(0.9), "b": load(0.3), "c": load(0.3)}
    assert root_of(wide, pressed, ["a"]) == BackpressureSource(vertices=("b", "c"), is_link=True)
    assert root_of(wide, pressed, []) is None


def test_missing_edges_and_unsampled_vertices_are_unknown() -> None:
    (submitted,) = Story().at(1, Action.JOB_SUBMITTED).history().of(JobSubmitted)
    assert JobGraph.of(submitted) == JobGraph(names={}, edges=())
    once = {"a": Samples(at_s=np.array([3.0, 5.0]), value=np.array([400.0, 800.0]))}
    pressed = {BACK_PRESSURED: once, f"{BACK_PRESSURED}_max": once}
    assert load_of(pressed, "b", 3, 5) is None
    found = load_of(pressed, "a", 3, 5)
    assert found is not None
    assert (found.pressed.max, found.busy, found.pool) == (0.6, None, None)
    assert str(found) == "back-pressured 0.60, busy unknown, input pool unknown"
    pools = {"a": Samples(at_s=np.array([2.9, 3.0, 5.0, 5.1]), value=np.array([9, 0.2, 0.4, 9]))}
    full = load_of({**pressed, POOL: pools}, "a", 3, 5)
    assert full is not None
    assert full.pool is not None
    assert round(full.pool, 6) == 0.3
    others = load_of({**pressed, POOL: {"b": pools["a"]}}, "a", 3, 5)
    assert others is not None
    assert others.pool is None

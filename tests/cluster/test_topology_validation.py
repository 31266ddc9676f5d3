"""The problems that engines find in a topology."""

from __future__ import annotations

from streamquake.cluster.topology_validation import topology_problems
from streamquake.topologies.model import Topology

ROUTE = {"from": "kafka/broker", "to": "kafka/broker"}


def _with_links(**links: object) -> Topology:
    services = {"kafka": {"engine": "kafka", "nodes": {"broker": 2}}}
    return Topology.model_validate({"name": "two", "services": services, "links": links})


def test_two_links_on_the_same_route_are_rejected() -> None:
    by_name = topology_problems(_with_links(a={**ROUTE, "port": "input"}))
    assert by_name == []

    ((place, message),) = topology_problems(
        _with_links(a={**ROUTE, "port": 9000}, b={**ROUTE, "port": 9000}, c={**ROUTE, "port": 9001})
    )

    assert place == ("links", "b")
    assert "port 9000 of kafka/broker, as the link a does" in message

"""Addresses in documents, as this machine reaches them."""

from __future__ import annotations

from streamquake.cluster.cluster import Cluster
from streamquake.topologies.templates import render


def on_this_machine(cluster: Cluster, address: str) -> str:
    """An address with the published port in place of `${SERVICE.PORT}`, if it names one."""
    ports = {
        f"{node.spec.service}.{port}": cluster.address(node, number)
        for node in cluster.nodes.values()
        for port, number in cluster.topology.services[node.spec.service].ports.items()
    }
    return render(address, ports)

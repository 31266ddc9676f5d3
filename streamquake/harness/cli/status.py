"""What `status` and `up` show of a cluster: as a document, and as a table."""

from __future__ import annotations

from typing import Any

from rich.table import Table
from rich.text import Text

from streamquake.cluster.cluster import Cluster, Node, NodeDied
from streamquake.cluster.engine import engine
from streamquake.harness.kept import Kept
from streamquake.reports.text import make_console


def status_document(kept: Kept) -> dict[str, Any]:
    """The state of everything, as plain data."""
    cluster = kept.cluster
    return {
        "run": cluster.run_id,
        "topology": cluster.topology.name,
        "folder": str(kept.folder.path),
        "nodes": [_node(cluster, node) for node in cluster.nodes.values()],
        "services": [
            {"service": name, "pending": _pending(cluster, name)}
            for name in cluster.topology.services
        ],
        "faults": [
            {"fault": intent.fault, "params": dict(intent.params), "nodes": list(intent.names)}
            for intent in kept.intents.open()
        ],
    }


def print_status(kept: Kept) -> None:
    """The same as a table."""
    document = status_document(kept)
    console = make_console()
    console.print(Text(f"{document['run']}  {document['topology']}  {document['folder']}"))
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 3, 0, 0))
    for column in ("node", "state", "address", "ports on this host"):
        table.add_column(column)
    for node in document["nodes"]:
        style = "" if node["state"] == "running" else "red"
        ports = ", ".join(f"{p['name']} {p['address']}" for p in node["ports"])
        table.add_row(node["node"], Text(node["state"], style=style), node["ip"], ports)
    console.print(table)
    for service in document["services"]:
        state = f"not ready: {service['pending']}" if service["pending"] else "ready"
        console.print(Text(f"{service['service']}: {state}"))
    for fault in document["faults"]:
        console.print(Text(f"open: {fault['fault']} on {', '.join(fault['nodes'])}", style="red"))


def _node(cluster: Cluster, node: Node) -> dict[str, Any]:
    state = cluster.state(node)
    named = {
        port: name
        for name, port in engine(cluster.topology.services[node.spec.service].engine)
        .ports()
        .items()
    }
    return {
        "node": node.name,
        "state": str(state.status),
        "exit_code": state.exit_code,
        "ip": node.ip,
        "ports": [
            {
                "name": named.get(port, str(port)),
                "port": port,
                "address": cluster.address(node, port),
            }
            for port in node.host_ports
        ],
    }


def _pending(cluster: Cluster, service: str) -> str | None:
    try:
        return cluster.pending([service])
    except NodeDied as died:
        return str(died).partition("\n")[0]

"""The state of a cluster as `status` and `up` show it: as a document, and as a table."""

from __future__ import annotations

from typing import Any

from rich.table import Table
from rich.text import Text

from streamquake.cluster.cluster import Cluster, NodeDied
from streamquake.cluster.engines.engine import ports_of
from streamquake.cluster.node import Node
from streamquake.faults.injection.injection import evidence_now
from streamquake.faults.injection.intents import Intent
from streamquake.harness.interactive.session import ClusterSession
from streamquake.reports.render.run_sentences import finding_text
from streamquake.reports.run.text import make_console


def status_document(session: ClusterSession) -> dict[str, Any]:
    """The nodes, services and open faults of a cluster, as plain data."""
    cluster = session.cluster
    return {
        "run": cluster.run_id,
        "topology": cluster.topology.name,
        "folder": str(session.folder.path),
        "nodes": [_node(cluster, node) for node in cluster.nodes.values()],
        "services": [
            {"service": name, "pending": _pending(cluster, name)}
            for name in cluster.topology.services
        ],
        "proxy": None if cluster.links.proxy is None else cluster.links.proxy.url,
        "faults": [_fault(cluster, intent) for intent in session.intents.open_intents()],
    }


def print_status(session: ClusterSession) -> None:
    """Print the status document as a table."""
    document = status_document(session)
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
    if document["proxy"] is not None:
        console.print(Text(f"links: Toxiproxy answers at {document['proxy']}"))
    for fault in document["faults"]:
        console.print(_fault_text(fault), soft_wrap=True)


def _fault(cluster: Cluster, intent: Intent) -> dict[str, Any]:
    """An open fault with its evidence as of now."""
    try:
        found = evidence_now(intent, cluster)
    except Exception as error:  # noqa: BLE001 - a fault that cannot be checked hides no other
        found, check_error = {}, f"{type(error).__name__}: {error}"
    else:
        check_error = ""
    return {
        "id": intent.id,
        "fault": intent.fault,
        "params": dict(intent.params),
        "target": intent.target,
        "nodes": list(intent.names),
        "since": intent.at,
        "by": intent.by,
        "evidence": {
            name: {
                "in_effect": evidence.in_effect,
                "gone": evidence.healed,
                "seen": dict(evidence.observations),
            }
            for name, evidence in found.items()
        },
        "not_looked_at": check_error,
    }


def _fault_text(fault: dict[str, Any]) -> Text:
    text = Text.assemble(
        (f"open: {fault['fault']} on {', '.join(fault['nodes'])}", "red"),
        f"  id {fault['id']}, since {fault['since']}, by {fault['by']}",
    )
    for name in fault["nodes"]:
        evidence = fault["evidence"].get(name)
        text.append(f"\n  {name}: {_evidence(evidence, fault['not_looked_at'])}")
    return text


def _evidence(evidence: dict[str, Any] | None, check_error: str) -> str:
    if evidence is None:
        return f"could not be checked: {check_error}" if check_error else "the target was removed"
    state = (
        "in effect"
        if evidence["in_effect"]
        else "healed"
        if evidence["gone"]
        else "effect not verified"
    )
    return f"{state}; {finding_text(evidence['seen'])}"


def _node(cluster: Cluster, node: Node) -> dict[str, Any]:
    state = cluster.state(node)
    named = {port: name for name, port in ports_of(cluster.topology, node.spec.service).items()}
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

"""Deployed links: every declared TCP path runs through one Toxiproxy, transparently for the
engines.

For each pair of nodes of a link there is a proxy. In the network namespace of the *from* node a NAT
rule redirects connections to `to:port` to that proxy; addresses, host names and settings of the
engines are unchanged, so any image works. The rules are in the node's sandbox, from before its
process starts, and remain when the process ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from streamquake.cluster.engines.engine import ports_of
from streamquake.cluster.images.recipes import recipe
from streamquake.cluster.links.toxiproxy import ADMIN_PORT, Toxiproxy, ToxiproxyError
from streamquake.cluster.live_cluster import LiveCluster
from streamquake.cluster.runtime import labels
from streamquake.cluster.runtime.free_ports import free_port
from streamquake.cluster.runtime.runtime import ContainerError, ContainerSpec, PortTaken
from streamquake.cluster.runtime.waiting import wait_until
from streamquake.topologies.model import Link, Topology

PROXY_NODE = "links/toxiproxy-1"
FIRST_PORT = 21_000
CHAIN = "STREAMQUAKE-LINKS"
BYTES = re.compile(r"\bbytes_(?:received|acked):(\d+)")
"""The fields of a connection in `ss -i`: bytes received, and bytes the peer has acknowledged."""


@dataclass(frozen=True, kw_only=True)
class LinkPath:
    """One pair of nodes of a link, and the proxy port its connections pass through."""

    link: str
    source: str
    target: str
    target_host: str
    target_port: int
    proxy_port: int

    @property
    def name(self) -> str:
        """The proxy's name, such as `sink:flink-taskmanager-1>kafka-broker-1`.

        Without slashes: Toxiproxy's admin paths do not match a name that has one, encoded or not.
        """
        return f"{self.link}:{self.source}>{self.target}".replace("/", "-")


def paths_of(topology: Topology) -> tuple[LinkPath, ...]:
    """The path of every node pair of every link; a node has no path to itself."""
    nodes = topology.nodes()
    pairs = [
        (name, link, source, target)
        for name, link in topology.links.items()
        for source in nodes
        for target in nodes
        if source.role_name == link.from_ and target.role_name == link.to and source != target
    ]
    return tuple(
        LinkPath(
            link=name,
            source=source.name,
            target=target.name,
            target_host=target.host,
            target_port=port_number(topology, link),
            proxy_port=FIRST_PORT + number,
        )
        for number, (name, link, source, target) in enumerate(pairs)
    )


def port_number(topology: Topology, link: Link) -> int:
    """The container port of a link: a number, or a port name of the target's engine."""
    if isinstance(link.port, int):
        return link.port
    service = link.to.partition("/")[0]
    return ports_of(topology, service)[link.port]


class Links:
    """The links of one cluster."""

    def __init__(self, cluster: LiveCluster) -> None:
        self._cluster = cluster
        self.paths = paths_of(cluster.topology)
        self.proxy: Toxiproxy | None = None
        self.proxy_ip = ""
        self.proxy_container = ""
        """The server of all proxies, and its container; empty without links."""
        self._attached: dict[str, str] = {}
        """Node -> the start of the sandbox that has its rules."""

    def of(self, link: str) -> tuple[LinkPath, ...]:
        return tuple(path for path in self.paths if path.link == link)

    def between(self, source: str, target: str) -> tuple[LinkPath, ...]:
        """The paths of every link from one node to another."""
        return tuple(p for p in self.paths if (p.source, p.target) == (source, target))

    def start(self, run_labels: Mapping[str, str], addresses: Iterator[str]) -> None:
        """Start the proxy container and create every proxy; without links, nothing."""
        if not self.paths:
            return
        self.proxy_ip = next(addresses)
        for attempt in range(5):
            port = free_port()
            try:
                self.proxy_container = self._cluster.runtime.start(self._spec(run_labels, port))
                break
            except PortTaken:
                if attempt == 4:
                    raise
        self._use(port)
        assert self.proxy is not None
        wait_until(self.proxy.pending, what="Toxiproxy", limit_s=30, clock=self._cluster.clock)
        for path in self.paths:
            self._create(path)

    def attach(self, node: str, sandbox: str) -> None:
        """Add the rules that send a node's link connections through the proxy, in its sandbox,
        unless this start of the sandbox has them. They may be added twice: they are in a chain of
        their own, which is emptied first."""
        rules = [
            [
                "-A",
                CHAIN,
                "-p",
                "tcp",
                "-d",
                self.target_ip(path),
                "--dport",
                str(path.target_port),
                "-j",
                "DNAT",
                "--to-destination",
                f"{self.proxy_ip}:{path.proxy_port}",
            ]
            for path in self.paths
            if path.source == node
        ]
        started_at = self._cluster.runtime.inspect(sandbox).started_at
        if not rules or self._attached.get(node) == started_at:
            return
        chain = f"{{ {_nat('-N', CHAIN)} 2>/dev/null || {_nat('-F', CHAIN)}; }}"
        jump = ["OUTPUT", "-j", CHAIN]
        jumps = f"{{ {_nat('-C', *jump)} 2>/dev/null || {_nat('-A', *jump)}; }}"
        script = " && ".join([chain, *(_nat(*rule) for rule in rules), jumps])
        result = self._cluster.runtime.in_network_namespace(sandbox, ["sh", "-c", script])
        if result.exit_code != 0:
            raise ContainerError(f"links of {node} could not be added: {result.output}")
        self._attached[node] = started_at

    def bytes_passed(self, paths: Sequence[LinkPath]) -> int:
        """Bytes that the connections of some paths have carried, both ways.

        The proxy's own counters grow only when a connection closes, and an engine's connections
        live as long as its job. So the kernel's counters of the open ones are added.
        """
        assert self.proxy is not None
        closed = self.proxy.bytes_passed([path.name for path in paths])
        ports = " or ".join(f"sport = :{path.proxy_port}" for path in paths)
        open_now = self.connections(f"( {ports} )")
        return closed + sum(int(number) for number in BYTES.findall(open_now))

    def connections(self, *wanted: str) -> str:
        """The output of `ss -i` for the proxy's open connections, or for those that match a filter.
        Raises ContainerError."""
        listed = self._cluster.runtime.in_network_namespace(
            self.proxy_container, ["ss", "-tinHO", "state", "established", *wanted]
        )
        if listed.exit_code != 0:
            raise ContainerError(f"connections of the proxy could not be listed: {listed.output}")
        return listed.output

    def target_ip(self, path: LinkPath) -> str:
        """The address of a path's target node, also while that node is still being started."""
        return self._cluster.ip_of(path.target)

    def remove_toxic(self, path: LinkPath, name: str) -> bool:
        """Remove a toxic from a path; if the server hangs, recreate the proxy.

        Removing a toxic under Kafka traffic can hang Toxiproxy's admin call
        (Shopify/toxiproxy#558); a new proxy has no toxics, but its connections are lost. Returns
        whether the proxy was recreated.
        """
        if self.proxy is None:
            return False
        try:
            self.proxy.remove_toxic(path.name, name)
        except ToxiproxyError:
            self.proxy.delete(path.name)
            self._create(path)
            return True
        return False

    def _create(self, path: LinkPath) -> None:
        assert self.proxy is not None
        upstream = f"{path.target_host}:{path.target_port}"
        self.proxy.create(path.name, f"0.0.0.0:{path.proxy_port}", upstream)

    def find(self) -> None:
        """Find the proxy of a cluster that another process started."""
        run_labels = {labels.RUN: self._cluster.run_id, labels.NODE: PROXY_NODE}
        for found in self._cluster.runtime.find(run_labels):
            self.proxy_container = found.id
            self.proxy_ip = found.labels[labels.ADDRESS]
            self._use(int(found.labels[labels.PORTS].split(":")[1]))

    def _use(self, port: int) -> None:
        self.proxy = Toxiproxy(f"http://127.0.0.1:{port}")

    def _spec(self, run_labels: Mapping[str, str], port: int) -> ContainerSpec:
        return ContainerSpec(
            name=self._cluster.container_name("toxiproxy"),
            image=recipe("toolbox").tag,
            command=("toxiproxy-server", "-host", "0.0.0.0", "-proxy-metrics"),
            labels={
                **run_labels,
                labels.NODE: PROXY_NODE,
                labels.PORTS: f"{ADMIN_PORT}:{port}",
                labels.ADDRESS: self.proxy_ip,
            },
            network=self._cluster.network,
            ip=self.proxy_ip,
            hostname="toxiproxy",
            aliases=("toxiproxy",),
            ports={ADMIN_PORT: port},
            memory_mb=256,
        )


def _nat(*arguments: str) -> str:
    """One call of iptables on the NAT table."""
    return " ".join(["iptables", "-w", "-t", "nat", *arguments])

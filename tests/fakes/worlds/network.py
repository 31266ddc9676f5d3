"""Packets between the containers of a fake cluster, filtered by a table of rules in each."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.runtime.fake_runtime import FakeContainer, FakeRuntime
from streamquake.cluster.runtime.runtime import ContainerSpec, ContainerStatus, ExecResult
from streamquake.faults.mechanisms.netfilter import ADD_CHAIN, INSPECT, PROBE_PORTS, REMOVE_CHAIN
from streamquake.faults.mechanisms.reachability import HOLD
from tests.fakes import FakeToxiproxy

PROBE = int(PROBE_PORTS.partition(":")[0])
"""The source port of connection attempts."""
LISTENING = 7777
"""The port on which every node listens."""
NAME_SERVER = "127.0.0.11"


@dataclass
class Rule:
    """One rule of a chain, as written, and the packets it has matched."""

    text: str
    packets: int = 0

    def matches(self, packet: Packet) -> bool:
        words = shlex.split(self.text)
        options = {w: words[n + 1] for n, w in enumerate(words[:-1]) if w.startswith("-")}
        return (
            options.get("-s", packet.source) == packet.source
            and options.get("-d", packet.target) == packet.target
            and options.get("-p", packet.protocol) == packet.protocol
            and int(options.get("--sport", packet.sport)) == packet.sport
            and int(options.get("--dport", packet.dport)) == packet.dport
            and ("--ports" not in words or packet.is_from_probe)
            and ("--syn" not in words or packet.flags == "SYN")
            and ("--tcp-flags" not in words or packet.flags != "RST")
        )

    @property
    def verdict(self) -> str:
        return self.text.rpartition("-j ")[2].split()[0]


@dataclass(frozen=True, kw_only=True)
class Packet:
    source: str
    target: str
    sport: int = 40_000
    dport: int = 40_000
    protocol: str = "tcp"
    flags: str = "SYN"

    @property
    def is_from_probe(self) -> bool:
        return PROBE in (self.sport, self.dport)

    def reply(self, flags: str) -> Packet:
        return Packet(
            source=self.target,
            target=self.source,
            sport=self.dport,
            dport=self.sport,
            protocol=self.protocol,
            flags=flags,
        )


@dataclass
class Table:
    """The packet filter of one network namespace."""

    chains: dict[str, list[Rule]] = field(default_factory=dict)
    jumps: dict[str, list[str]] = field(default_factory=lambda: {"INPUT": [], "OUTPUT": []})

    def restore(self, document: str) -> None:
        """Apply a document as `iptables-restore --noflush` does."""
        for line in document.splitlines():
            match line.split(" ", 2):
                case [declared, *_] if declared.startswith(":"):
                    self.chains[declared[1:]] = []
                case ["-I", hook, jump]:
                    self.jumps[hook].insert(0, jump.split()[-1])
                case ["-A", chain, rule]:
                    self.chains[chain].append(Rule(rule))

    def remove(self, chain: str) -> None:
        self.chains.pop(chain, None)
        for hook, jumps in self.jumps.items():
            self.jumps[hook] = [jump for jump in jumps if jump != chain]

    def reset_counters(self, chain: str) -> None:
        for rule in self.chains.get(chain, []):
            rule.packets = 0

    def verdict(self, hook: str, packet: Packet) -> str:
        for chain in self.jumps[hook]:
            for rule in self.chains[chain]:
                if rule.matches(packet):
                    rule.packets += 1
                    if rule.verdict != "RETURN":
                        return rule.verdict
                    break
        return "ACCEPT"

    def listed(self) -> Iterator[str]:
        """As `iptables-save` without counters."""
        for chain, rules in self.chains.items():
            yield f":{chain} - [0:0]"
            yield from (f"-A {chain} {rule.text}" for rule in rules)

    def saved(self, mark: str) -> Iterator[str]:
        for chain, rules in self.chains.items():
            if mark in chain:
                yield f":{chain} - [0:0]"
                yield from (f"[{rule.packets}:0] -A {chain} {rule.text}" for rule in rules)


@dataclass
class StreamCounters:
    """One direction of a path through the proxy: the bytes that it received and passed on."""

    received: int = 0
    passed: int = 0
    segments: int = 0

    def move(self, more: int, toxics: Mapping[str, Mapping[str, int]]) -> None:
        """Receive some more bytes, and pass them on unless a toxic stops them."""
        self.received += more
        if "timeout" not in toxics:
            self.passed += more
            self.segments += -(-more // toxics.get("slicer", {}).get("average_size", 500))

    def sent(self) -> str:
        passed = f"bytes_sent:{self.passed} bytes_acked:{self.passed}"
        return f"{passed} data_segs_out:{self.segments}"


class Network:
    """The namespaces of a cluster's containers, and the packets between them."""

    def __init__(self, cluster: Cluster, runtime: FakeRuntime) -> None:
        self.busy = False
        """Whether the system's nodes send packets to each other."""
        self._cluster = cluster
        self._runtime = runtime
        self._tables: dict[tuple[str, int], Table] = {}
        self._flows: dict[tuple[str, str], StreamCounters] = {}

    def tool(self, spec: ContainerSpec, argv: Sequence[str]) -> ExecResult | None:
        here = self._runtime.by_name(spec.name)
        if list(argv) == ["ss", "-ltnH"]:
            return _output(f"LISTEN 0 9 0.0.0.0:{LISTENING} 0.0.0.0:*")
        if list(argv) == ["ss", "-tinHO", "state", "established"]:
            return _output(*self._connections())
        match argv:
            case ["sh", "-c", script, "sh", document] if script == ADD_CHAIN:
                self.table(here).restore(document)
                return _output()
            case ["iptables", "-w", "-Z", chain]:
                self.table(here).reset_counters(chain)
                return _output()
            case ["sh", "-c", script, "sh", chain] if script == REMOVE_CHAIN:
                self.table(here).remove(chain)
                return _output()
            case ["sh", "-c", script] if script.startswith("iptables-save"):
                return _output("*filter", *self.table(here).listed(), "*nat")
            case ["bash", "-c", script, "bash", mark, _, _, *tries] if script == INSPECT:
                for at in tries if self.busy else ():
                    self._connect(here, at, sport=40_000)
                probes = [f"probe {at} {self._probe(here, at)}" for at in tries]
                return _output(*probes, *self.table(here).saved(mark))
            case ["bash", "-c", script, "bash", _, _, sends, *tries] if script == HOLD:
                return _output(*(f"held {at} {self._hold(here, at, sends)}" for at in tries))
        return None

    def lookup(self, spec: ContainerSpec, argv: Sequence[str]) -> ExecResult | None:
        """A name lookup from inside a container."""
        if "getent" not in argv:
            return None
        assert spec.beside is not None
        table = self.table(self._runtime.containers[spec.beside])
        query = Packet(source="127.0.0.1", target=NAME_SERVER, dport=53, protocol="udp")
        if table.verdict("OUTPUT", query) != "ACCEPT":
            return ExecResult(exit_code=2, output="")
        reply = table.verdict("OUTPUT", query.reply("")) == "ACCEPT"
        return ExecResult(exit_code=0 if reply else 124, output="")

    def table(self, container: FakeContainer) -> Table:
        """The rules of a container's current namespace: a restarted container has a new one."""
        return self._tables.setdefault((container.id, container.state.pid), Table())

    def _connections(self) -> Iterator[str]:
        """The proxy's connections, one for each path, with more bytes at each call."""
        for path in self._cluster.links.paths:
            source, target = (self._cluster.node(n).ip for n in (path.source, path.target))
            up, down = self._flow(path.name, "upstream"), self._flow(path.name, "downstream")
            near = f"0 0 10.0.0.4:{path.proxy_port} {source}:40000"
            far = f"0 0 10.0.0.4:50000 {target}:{path.target_port}"
            yield f"{near} cubic {down.sent()} bytes_received:{up.received}"
            yield f"{far} cubic {up.sent()} bytes_received:{down.received}"

    def _flow(self, path: str, stream: str) -> StreamCounters:
        """One direction of a path, after some more bytes."""
        proxy, flow = (
            self._cluster.links.proxy,
            self._flows.setdefault((path, stream), StreamCounters()),
        )
        assert isinstance(proxy, FakeToxiproxy)
        toxics = [t for t in proxy.toxics(path).values() if t["stream"] == stream]
        flow.move(1000 if proxy.busy else 0, {t["type"]: t["attributes"] for t in toxics})
        return flow

    def _probe(self, here: FakeContainer, at: str) -> str:
        outcome = self._connect(here, at)
        return {"connected": "0", "refused": "111 Connection refused"}.get(outcome, "124")

    def _hold(self, here: FakeContainer, at: str, sends: str) -> str:
        outcome = self._connect(here, at)
        if outcome != "connected":
            return self._probe(here, at)
        proxy, link = self._cluster.links.proxy, self._link_of(here, at)
        kinds = {t["type"] for t in proxy.toxics(link).values()} if proxy and link else set()
        reset = sends and "reset_peer" in kinds
        return "104 Connection reset by peer" if reset else "142"

    def _connect(self, here: FakeContainer, at: str, sport: int = PROBE) -> str:
        ip, port = at.split(":")
        link = self._link_of(here, at)
        path = next((p for p in self._cluster.links.paths if p.name == link), None)
        proxy = self._cluster.links
        peer = self._runtime.containers[proxy.proxy_container] if path else self._container_at(ip)
        syn = Packet(
            source=here.spec.ip or "",
            target=proxy.proxy_ip if path else ip,
            sport=sport,
            dport=path.proxy_port if path else int(port),
        )
        out = self.table(here).verdict("OUTPUT", syn)
        if out != "ACCEPT":
            rejected = out == "REJECT" and self._receives(here, syn.reply("RST"))
            return "refused" if rejected else "timed out"
        if peer is None or peer.state.status not in (
            ContainerStatus.RUNNING,
            ContainerStatus.PAUSED,
        ):
            return "timed out"
        verdict = self.table(peer).verdict("INPUT", syn)
        open_peer = path is not None or (syn.dport == LISTENING and self._process_runs(peer))
        if verdict == "DROP":
            return "timed out"
        flags = "SYN+ACK" if open_peer and verdict == "ACCEPT" else "RST"
        answer = syn.reply(flags)
        if self.table(peer).verdict("OUTPUT", answer) != "ACCEPT":
            return "timed out"
        if not self._receives(here, answer):
            return "timed out"
        return "connected" if flags == "SYN+ACK" else "refused"

    def _receives(self, here: FakeContainer, packet: Packet) -> bool:
        return self.table(here).verdict("INPUT", packet) == "ACCEPT"

    def _link_of(self, here: FakeContainer, at: str) -> str | None:
        for path in self._cluster.links.paths:
            source, target = (self._cluster.nodes.get(n) for n in (path.source, path.target))
            ours = source is not None and source.sandbox == here.id
            if ours and target and at == f"{target.ip}:{path.target_port}":
                return path.name
        return None

    def _process_runs(self, sandbox: FakeContainer) -> bool:
        """Whether the process beside a sandbox exists, and so its kernel accepts connections."""
        return any(
            container.state.status in (ContainerStatus.RUNNING, ContainerStatus.PAUSED)
            for container in self._runtime.containers.values()
            if container.spec.beside == sandbox.id
        )

    def _container_at(self, ip: str) -> FakeContainer | None:
        found = (c for c in self._runtime.containers.values() if c.spec.ip == ip)
        return next(found, None)


def _output(*lines: str) -> ExecResult:
    return ExecResult(exit_code=0, output="".join(f"{line}\n" for line in lines))


def install(cluster: Cluster) -> Network:
    """Let the containers of a fake cluster reach each other where their rules allow it."""
    runtime = cluster.runtime
    assert isinstance(runtime, FakeRuntime)
    network = Network(cluster, runtime)
    runtime.on_network_tool.insert(0, network.tool)
    runtime.on_exec.insert(0, network.lookup)
    return network

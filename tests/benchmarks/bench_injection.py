"""Milliseconds from the call of a fault to its effect, compared with the docker command line.

    python -m tests.benchmarks.bench_injection [PAIRS]

The target's main process writes its clock into a file about every 0.3 ms: its last entry is the
earliest moment at which the command line can have taken effect, and the first entry after a pause
is its end. For a fault the moment counts at which its effect was observed in the kernel, and the
target's entries must not contradict it. A partition is measured until the last rule returns, and
compared with one bare `iptables` in the namespace and with the removal of the interface by `docker
network disconnect`. The arms are interleaved. Needs root on the engine's host.
"""

from __future__ import annotations

import itertools
import math
import os
import statistics
import struct
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from streamquake.cluster.cluster import Cluster, remove_cluster
from streamquake.cluster.images.recipes import recipe
from streamquake.cluster.node import Node
from streamquake.cluster.runtime import labels
from streamquake.cluster.runtime.clock import SystemClock
from streamquake.cluster.runtime.docker.runtime import DockerRuntime
from streamquake.cluster.runtime.runtime import ContainerSpec, InjectionTimes
from streamquake.cluster.sandbox import sandbox_spec
from streamquake.faults.catalogue.kill import Kill
from streamquake.faults.catalogue.partition import Partition
from streamquake.faults.catalogue.pause import Pause
from streamquake.faults.fault import PairTarget
from streamquake.topologies.model import Topology

PAIRS = 20
HELD_S = 0.15
GAP_S = 0.1
"""Longer than a busy machine delays the target, shorter than a pause lasts."""
TICKING = r"""
use Time::HiRes qw(time usleep); open(my $f, '>', '/dev/shm/ticks') or die;
while (1) { syswrite($f, pack('d', time)); usleep(200) }
"""
GOALS_MS = {"kill": 2.0, "pause": 1.0, "partition": 6.0}
TOPOLOGY = Topology.model_validate(
    {"name": "bench", "services": {"kafka": {"engine": "kafka", "nodes": {"broker": 2}}}}
)

Figures = dict[str, list[float]]


def main() -> None:
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else PAIRS
    figures: Figures = defaultdict(list)
    with two_nodes() as cluster:
        affected, other = cluster.nodes.values()
        for _ in range(pairs):
            measure_pause(cluster, affected, figures)
            measure_partition(cluster, affected, other, figures)
            measure_kill(cluster, affected, figures)
    report(figures)


def measure_pause(cluster: Cluster, affected: Node, figures: Figures) -> None:
    """Pause and unpause, with the fault, then with the command line."""
    fault = Pause()

    def with_fault() -> InjectionTimes:
        return fault.inject(cluster, affected)

    for arm, pause, unpause in (
        ("fault", with_fault, lambda: fault.heal(cluster, affected, {})),
        ("docker", docker("pause", affected), docker("unpause", affected)),
    ):
        ticks = Ticks(cluster, affected)
        paused_s, bracket = time.time(), pause()
        time.sleep(HELD_S)
        unpaused_s, _ = time.time(), unpause()
        time.sleep(GAP_S)
        last_s, first_s = ticks.gap()
        figures[f"unpause {arm}"].append((first_s - unpaused_s) * 1e3)
        add_figures("pause", paused_s, bracket, last_s, figures)


def measure_kill(cluster: Cluster, affected: Node, figures: Figures) -> None:
    """Kill, with the fault, then with the command line."""
    for kill in (lambda: Kill().inject(cluster, affected), docker("kill", affected)):
        ticks = Ticks(cluster, affected)
        called_s, bracket = time.time(), kill()
        last_s = ticks.all()[-1]
        add_figures("kill", called_s, bracket, last_s, figures)
        cluster.runtime.start_again(affected.container)


def measure_partition(cluster: Cluster, affected: Node, other: Node, figures: Figures) -> None:
    """Partition: with the fault, with one bare iptables, and with the engine's disconnect."""
    fault = Partition()
    pair = PairTarget(source=affected, target=other, both_ways=True)
    baseline = fault.baseline(cluster, pair)
    called_ns, bracket = time.time_ns(), fault.inject(cluster, pair)
    figures["partition fault"].append((bracket.seen_ns - called_ns) / 1e6)
    figures["partition bracket"].append((bracket.seen_ns - bracket.called_ns) / 1e6)
    fault.heal(cluster, pair, baseline)

    pid = cluster.state(affected).pid
    inside = ["nsenter", "-t", str(pid), "-n", "iptables", "-w"]
    rule = ["INPUT", "-s", other.ip, "-j", "DROP"]
    began = time.perf_counter()
    subprocess.run([*inside, "-A", *rule], check=True)
    figures["partition iptables"].append((time.perf_counter() - began) * 1e3)
    subprocess.run([*inside, "-D", *rule], check=True)

    devices = Path(f"/proc/{pid}/net/dev")
    began = time.perf_counter()
    disconnect = ["docker", "network", "disconnect", cluster.network, affected.container]
    with subprocess.Popen(disconnect) as command:
        while "eth0" in devices.read_text() and command.poll() is None:
            time.sleep(0.0002)
        figures["partition docker"].append((time.perf_counter() - began) * 1e3)
    connect = [
        "docker",
        "network",
        "connect",
        "--ip",
        affected.ip,
        cluster.network,
        affected.container,
    ]
    subprocess.run(connect, check=True)


def add_figures(
    what: str, called_s: float, bracket: InjectionTimes | None, last_s: float, figures: Figures
) -> None:
    """Add one injection in ms. The bracket of a fault gives its effect, and the target's last entry
    must not contradict it; for the command line that entry gives the effect.

    Raises RuntimeError if the target ran longer than its bracket."""
    if bracket is None:
        figures[f"{what} docker"].append((last_s - called_s) * 1e3)
        return
    figures[f"{what} fault"].append(bracket.seen_ns / 1e6 - called_s * 1e3)
    figures[f"{what} bracket"].append((bracket.seen_ns - bracket.called_ns) / 1e6)
    if last_s * 1e9 > bracket.seen_ns:
        late_ms = last_s * 1e3 - bracket.seen_ns / 1e6
        raise RuntimeError(f"{what}: the target ran {late_ms:.3f} ms longer than its bracket")


def docker(verb: str, node: Node) -> Callable[[], None]:
    """A call of the docker command line."""

    def run() -> None:
        subprocess.run(["docker", verb, node.container], check=True, stdout=subprocess.DEVNULL)

    return run


class Ticks:
    """The clock entries that the target writes from now on; readable after its end."""

    def __init__(self, cluster: Cluster, affected: Node) -> None:
        path = Path(f"/proc/{cluster.state(affected).pid}/root/dev/shm/ticks")
        deadline = time.monotonic() + 10
        while not (path.exists() and path.stat().st_size > 800):
            if time.monotonic() > deadline:
                raise RuntimeError(f"{affected.name} does not write its clock to {path}")
            time.sleep(0.01)
        self._file = path.open("rb")
        self._file.seek(path.stat().st_size // 8 * 8 - 800)

    def all(self) -> list[float]:
        content = self._file.read()
        return [tick for (tick,) in struct.iter_unpack("d", content[: len(content) // 8 * 8])]

    def gap(self) -> tuple[float, float]:
        """The entries before and after the pause."""
        ticks = self.all()
        gaps = [(a, b) for a, b in itertools.pairwise(ticks) if b - a > GAP_S]
        if len(gaps) != 1:
            raise RuntimeError(f"{len(gaps)} gaps in the target's clock instead of one")
        return gaps[0]


def report(figures: Figures) -> None:
    """Print each arm's median and maximum, its ratio to the command line, and the brackets."""
    for what in ("kill", "pause", "unpause", "partition"):
        plain = statistics.median(figures[f"{what} docker"])
        for arm in ("fault", "iptables", "docker"):
            if times := figures.get(f"{what} {arm}"):
                median = statistics.median(times)
                goal = f", goal {GOALS_MS[what]:g}" if arm == "fault" and what in GOALS_MS else ""
                print(
                    f"{what:<10}{arm:<9}{median:7.2f} ms median, {max(times):7.2f} maximum of "
                    f"{len(times)}, docker / this = {plain / median:5.1f}{goal}"
                )
        if widths := figures.get(f"{what} bracket"):
            p95 = sorted(widths)[math.ceil(0.95 * len(widths)) - 1]
            print(f"{what:<10}bracket  {p95:7.2f} ms wide at the 95th percentile, goal 5")
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")


@contextmanager
def two_nodes() -> Iterator[Cluster]:
    """Two bare nodes in a network; the first one writes its clock."""
    runtime, run_id = DockerRuntime(), f"bench-{os.getpid()}"
    cluster = Cluster(run_id=run_id, topology=TOPOLOGY, runtime=runtime, clock=SystemClock())
    marks = {labels.RUN: run_id, labels.OWNER: labels.owner_of_this_process()}
    try:
        subnet = runtime.create_network(cluster.network, marks)
        for number, spec in enumerate(TOPOLOGY.nodes(), start=10):
            ip = subnet.replace(".0/", f".{number}/").partition("/")[0]
            sandbox = runtime.start(sandbox_spec(cluster, spec, ip, {}, marks))
            container = runtime.start(
                ContainerSpec(
                    name=cluster.container_name(spec.host),
                    image=recipe("toolbox").tag,
                    command=("perl", "-e", TICKING),
                    labels=marks,
                    beside=sandbox,
                )
            )
            cluster.nodes[spec.name] = Node(
                spec=spec, container=container, sandbox=sandbox, ip=ip, host_ports={}
            )
        yield cluster
    finally:
        remove_cluster(runtime, run_id)


if __name__ == "__main__":
    main()

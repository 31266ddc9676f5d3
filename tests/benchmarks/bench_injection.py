"""Milliseconds from the call of a fault to its effect, beside the docker command line.

    python -m tests.benchmarks.bench_injection [PAIRS]

The target's main process writes its clock into a file about every 0.3 ms: its last entry is the
earliest moment at which the command line can have injected, and the first one after a pause its
end. Of a fault the latest moment counts, when the kernel was seen to have done it, and the target
must not contradict that. A partition is measured to the return of the last rule, beside one bare
`iptables` in the namespace and the interface's going after `docker network disconnect`. The arms
are interleaved. Needs root on the engine's host.
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
from streamquake.faults.catalogue.kill import Kill
from streamquake.faults.catalogue.partition import Partition
from streamquake.faults.catalogue.pause import Pause
from streamquake.faults.fault import PairTarget
from streamquake.topologies.model import Topology

PAIRS = 20
HELD_S = 0.15
GAP_S = 0.1
"""Longer than a busy machine keeps the target waiting, shorter than a pause is held."""
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
            pausing(cluster, affected, figures)
            partitioning(cluster, affected, other, figures)
            killing(cluster, affected, figures)
    report(figures)


def pausing(cluster: Cluster, affected: Node, figures: Figures) -> None:
    """Pause and unpause: the fault, then the command line."""
    fault = Pause()

    def ours() -> InjectionTimes:
        return fault.inject(cluster, affected)

    for arm, pause, unpause in (
        ("fault", ours, lambda: fault.heal(cluster, affected, {})),
        ("docker", docker("pause", affected), docker("unpause", affected)),
    ):
        ticks = Ticks(cluster, affected)
        paused_s, bracket = time.time(), pause()
        time.sleep(HELD_S)
        unpaused_s, _ = time.time(), unpause()
        time.sleep(GAP_S)
        last_s, first_s = ticks.gap()
        figures[f"unpause {arm}"].append((first_s - unpaused_s) * 1e3)
        note("pause", paused_s, bracket, last_s, figures)


def killing(cluster: Cluster, affected: Node, figures: Figures) -> None:
    """Kill: the fault, then the command line."""
    for kill in (lambda: Kill().inject(cluster, affected), docker("kill", affected)):
        ticks = Ticks(cluster, affected)
        called_s, bracket = time.time(), kill()
        last_s = ticks.all()[-1]
        note("kill", called_s, bracket, last_s, figures)
        cluster.runtime.start_again(affected.container)


def partitioning(cluster: Cluster, affected: Node, other: Node, figures: Figures) -> None:
    """Partition: the fault, one bare iptables, and the engine's way to take a node off."""
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
    leaving = ["docker", "network", "disconnect", cluster.network, affected.container]
    with subprocess.Popen(leaving) as command:
        while "eth0" in devices.read_text() and command.poll() is None:
            time.sleep(0.0002)
        figures["partition docker"].append((time.perf_counter() - began) * 1e3)
    joining = [
        "docker",
        "network",
        "connect",
        "--ip",
        affected.ip,
        cluster.network,
        affected.container,
    ]
    subprocess.run(joining, check=True)


def note(
    what: str, called_s: float, bracket: InjectionTimes | None, last_s: float, figures: Figures
) -> None:
    """One injection: a fault's by its bracket, which the target's last entry must not contradict;
    the command line's by that entry."""
    if bracket is None:
        figures[f"{what} docker"].append((last_s - called_s) * 1e3)
        return
    figures[f"{what} fault"].append(bracket.seen_ns / 1e6 - called_s * 1e3)
    figures[f"{what} bracket"].append((bracket.seen_ns - bracket.called_ns) / 1e6)
    if last_s * 1e9 > bracket.seen_ns:
        late_ms = last_s * 1e3 - bracket.seen_ns / 1e6
        raise RuntimeError(f"{what}: the target lived {late_ms:.3f} ms longer than its bracket")


def docker(verb: str, node: Node) -> Callable[[], None]:
    """The command line's own way."""

    def run() -> None:
        subprocess.run(["docker", verb, node.container], check=True, stdout=subprocess.DEVNULL)

    return run


class Ticks:
    """What the target writes from now on; readable after its end."""

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
        found = self._file.read()
        return [tick for (tick,) in struct.iter_unpack("d", found[: len(found) // 8 * 8])]

    def gap(self) -> tuple[float, float]:
        """The entries before and after the pause."""
        ticks = self.all()
        gaps = [(a, b) for a, b in itertools.pairwise(ticks) if b - a > GAP_S]
        if len(gaps) != 1:
            raise RuntimeError(f"{len(gaps)} gaps in the target's clock, and one pause")
        return gaps[0]


def report(figures: Figures) -> None:
    """Print each arm's median and worst, its ratio to the command line, and the brackets."""
    for what in ("kill", "pause", "unpause", "partition"):
        plain = statistics.median(figures[f"{what} docker"])
        for arm in ("fault", "iptables", "docker"):
            if taken := figures.get(f"{what} {arm}"):
                median = statistics.median(taken)
                goal = f", goal {GOALS_MS[what]:g}" if arm == "fault" and what in GOALS_MS else ""
                print(
                    f"{what:<10}{arm:<9}{median:7.2f} ms median, {max(taken):7.2f} worst of "
                    f"{len(taken)}, docker / this = {plain / median:5.1f}{goal}"
                )
        if widths := figures.get(f"{what} bracket"):
            p95 = sorted(widths)[math.ceil(0.95 * len(widths)) - 1]
            print(f"{what:<10}bracket  {p95:7.2f} ms wide at the 95th percentile, goal 5")
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")


@contextmanager
def two_nodes() -> Iterator[Cluster]:
    """Two bare nodes in a network, the first one ticking."""
    runtime, run_id = DockerRuntime(), f"bench-{os.getpid()}"
    cluster = Cluster(run_id=run_id, topology=TOPOLOGY, runtime=runtime, clock=SystemClock())
    marks = {labels.RUN: run_id, labels.OWNER: labels.owner_of_this_process()}
    try:
        subnet = runtime.create_network(cluster.network, marks)
        for number, spec in enumerate(TOPOLOGY.nodes(), start=10):
            ip = subnet.replace(".0/", f".{number}/").partition("/")[0]
            container = runtime.start(
                ContainerSpec(
                    name=cluster.container_name(spec.host),
                    image=recipe("toolbox").tag,
                    command=("perl", "-e", TICKING),
                    labels=marks,
                    network=cluster.network,
                    ip=ip,
                )
            )
            cluster.nodes[spec.name] = Node(spec=spec, container=container, ip=ip, host_ports={})
        yield cluster
    finally:
        remove_cluster(runtime, run_id)


if __name__ == "__main__":
    main()

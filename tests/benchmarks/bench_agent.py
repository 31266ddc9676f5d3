"""The cost of the rule agent: at a JVM's start, and idle in a running JVM.

    python -m tests.benchmarks.bench_agent

Start: CPU seconds of a broker's JVM until it is ready, and the share of its classes loaded from
the image's class archive; with the images unchanged (they contain the agent's jar, but do not load
it), and with the agent on the command line. Idle: steps of a small program per CPU second, never
attached to, with the agent loaded and no rule, and after a rule was installed and removed again.
The arms of each measurement are interleaved.
"""

from __future__ import annotations

import os
import re
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from streamquake.cluster.images.build import ensure
from streamquake.cluster.images.recipes import recipe
from streamquake.cluster.jvm_agent import JAR, JvmAgent
from streamquake.cluster.runtime.docker.images import DockerImages
from streamquake.cluster.runtime.docker.runtime import DockerRuntime
from streamquake.cluster.runtime.runtime import ContainerRuntime, ContainerSpec

T = TypeVar("T")
ROUNDS = 5
WARM_UP_S, MEASURED_S = 3.0, 4.0
AGENT_FLAG = f"-javaagent:{JAR}=listener:true,address:127.0.0.1,port:9091"
LOADED_CLASSES = "-Xlog:class+load:file=/tmp/classes.log"
WORK = """
public class Work {
  static class Totals {
    final java.util.Map<String, Long> totals = new java.util.HashMap<>();
    long add(long n) { return totals.merge("key-" + n % 64, n, Long::sum); }
  }
  public static void main(String[] arguments) {
    var clock = java.lang.management.ManagementFactory.getThreadMXBean();
    Totals totals = new Totals();
    for (long n = 0, last = clock.getCurrentThreadCpuTime(), lastN = 0; ; n++) {
      totals.add(n);
      if (n % 100000 == 0 && clock.getCurrentThreadCpuTime() - last > 100_000_000L) {
        long now = clock.getCurrentThreadCpuTime();
        System.out.println("rate " + (n - lastN) * 1_000_000_000L / (now - last));
        last = now; lastN = n;
      }
    }
  }
}
"""
RULE = """RULE nothing
CLASS Work$Totals
METHOD add
AT ENTRY
IF FALSE
DO delay(1)
ENDRULE
"""


def main() -> None:
    ensure([recipe("kafka")], DockerImages(), print)
    runtime = DockerRuntime()
    starts = interleaved(
        {
            "unchanged images": lambda: start(runtime, LOADED_CLASSES),
            "on the command line": lambda: start(runtime, f"{LOADED_CLASSES} {AGENT_FLAG}"),
        }
    )
    for name, samples in starts.items():
        cpu, archived = (statistics.median(column) for column in zip(*samples, strict=True))
        print(
            f"start, {name:20} {cpu:5.2f} s CPU, {archived:4.0%} of the classes archived; all: "
            + ", ".join(f"{seconds:.2f}" for seconds, _ in samples)
        )
    rates = interleaved(
        {
            "never attached": lambda: work(runtime, lambda agent: None),
            "loaded, no rule": lambda: work(runtime, JvmAgent.load),
            "a rule, removed": lambda: work(runtime, install_and_remove),
        }
    )
    for name, samples_per_s in rates.items():
        median = statistics.median(samples_per_s) / 1e6
        print(
            f"idle, {name:16} {median:6.2f} million steps per CPU second; all: "
            + ", ".join(f"{rate / 1e6:.2f}" for rate in samples_per_s)
        )
    print(f"load average {os.getloadavg()[0]:.1f}, {ROUNDS} rounds, medians")


def interleaved(arms: dict[str, Callable[[], T]]) -> dict[str, list[T]]:
    """Measure every arm once per round."""
    samples: dict[str, list[T]] = {name: [] for name in arms}
    for _ in range(ROUNDS):
        for name, measure in arms.items():
            samples[name].append(measure())
    return samples


def start(runtime: ContainerRuntime, flags: str) -> tuple[float, float]:
    """CPU seconds until the broker is ready, and the archived share of the classes it loaded."""
    spec = ContainerSpec(
        name=f"bench-agent-{os.getpid()}",
        image=recipe("kafka").tag,
        command=("broker",),
        env={"JAVA_OPTS_EXTRA": flags},
    )
    with running_container(runtime, spec) as container:
        wait_for_log(runtime, container, "Kafka Server started")
        stat = runtime.exec(container, ["cat", "/proc/1/stat"]).output.split()
        count = "grep -c 'shared objects file' /tmp/classes.log; wc -l < /tmp/classes.log"
        archived, loaded = runtime.exec(container, ["sh", "-c", count]).output.split()
    return (int(stat[13]) + int(stat[14])) / os.sysconf("SC_CLK_TCK"), int(archived) / int(loaded)


def work(runtime: ContainerRuntime, prepare: Callable[[JvmAgent], None]) -> float:
    """Steps per CPU second of the small program, after `prepare` has changed its JVM."""
    spec = ContainerSpec(
        name=f"bench-agent-{os.getpid()}",
        image=recipe("kafka").tag,
        command=("java", "-XX:+UseSerialGC", "/opt/Work.java"),
        files={"/opt/Work.java": WORK},
    )
    with running_container(runtime, spec) as container:
        wait_for_log(runtime, container, "rate")
        prepare(JvmAgent(runtime, container))
        time.sleep(WARM_UP_S)
        before = len(rates_of(runtime, container))
        time.sleep(MEASURED_S)
        return statistics.median(rates_of(runtime, container)[before:])


def install_and_remove(agent: JvmAgent) -> None:
    """Install a rule in the program's own loop, and remove it again."""
    agent.install(RULE)
    time.sleep(1)
    agent.remove(["nothing"])


def rates_of(runtime: ContainerRuntime, container: str) -> list[int]:
    return [int(rate) for rate in re.findall(r"^rate (\d+)$", runtime.logs(container), re.M)]


def wait_for_log(runtime: ContainerRuntime, container: str, text: str) -> None:
    """Wait until the container's log contains the text. Raises RuntimeError after 90 s."""
    limit = time.monotonic() + 90
    while text not in runtime.logs(container):
        if time.monotonic() > limit:
            raise RuntimeError(f"{container} did not log {text!r}: {runtime.logs(container, 15)}")
        time.sleep(0.1)


@contextmanager
def running_container(runtime: ContainerRuntime, spec: ContainerSpec) -> Iterator[str]:
    container = runtime.start(spec)
    try:
        yield container
    finally:
        runtime.remove(container)


if __name__ == "__main__":
    main()

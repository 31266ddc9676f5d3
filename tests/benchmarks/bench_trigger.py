"""How long after its trigger a fault takes effect: median and maximum of 20 injections.

    python -m tests.benchmarks.bench_trigger            the loop's own part, without containers
    python -m tests.benchmarks.bench_trigger --real     one run of 20 steps on containers
    python -m tests.benchmarks.bench_trigger RUN...     the faults of recorded runs

The loop's own part is from the moment a watcher passes on an event to the effect, on a fake runtime
with a real clock: queue, target, intent on disk, injection, first check. On containers the trigger
is the engine's own time stamp of the event, so the figure includes the watcher's polling.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from streamquake.cluster.runtime.clock import SystemClock
from streamquake.cluster.runtime.docker.runtime import DockerRuntime
from streamquake.faults.injection.intents import IntentLog
from streamquake.faults.schedule.step import Step, TriggerSpec
from streamquake.harness.experiment.loader import experiment_of
from streamquake.harness.run import runner
from streamquake.harness.run.event_loop import EventLoop
from streamquake.harness.run.fault_scheduler import FaultScheduler
from streamquake.harness.run.progress_views import open_view
from streamquake.reports.record.event import Action
from streamquake.reports.record.history import HistoryWriter
from streamquake.reports.record.metrics import Metrics
from streamquake.topologies.yaml_document import parse_document
from tests.fakes import fake_cluster

INJECTIONS = 20
EVERY_S = 0.05
REAL = """\
name: trigger-latency
topology: flink-kafka-hdfs
job: {{sql: copy.sql, parallelism: 3}}
workload: {{numbered: {{records: 90000, rate_per_s: 1000, keys: 64}}}}
faults:
{steps}
limits: {{trigger_s: 120}}
seed: 1
"""
STEP = (
    "  - {{pause: {{}}, target: flink/taskmanager-{node}, for_s: 0.3, "
    "when: {{event: checkpoint triggered, nth: {nth}}}}}"
)


def loop_latencies() -> list[float]:
    """Milliseconds from an event to the effect of the step that waited for it."""
    steps = [
        Step(
            fault="pause",
            target=f"flink/taskmanager-{1 + number % 3}",
            for_s=EVERY_S / 2,
            when=TriggerSpec(event="checkpoint triggered", nth=number + 1),
        )
        for number in range(INJECTIONS)
    ]
    clock = SystemClock()
    cluster = fake_cluster(clock=clock)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        writer = HistoryWriter(folder / "history.jsonl")
        loop = EventLoop(writer, Metrics(folder / "metrics"), clock, lambda: None)
        scheduler = FaultScheduler(
            steps,
            cluster=cluster,
            loop=loop,
            intents=IntentLog(folder / "intents.jsonl"),
            seed=1,
            effect_s=1,
            trigger_s=60,
        )
        next_s = time.monotonic()
        checkpoint = 0
        while scheduler.pending() is not None:
            if checkpoint < INJECTIONS and time.monotonic() >= next_s:
                checkpoint, next_s = checkpoint + 1, next_s + EVERY_S
                loop.record(Action.CHECKPOINT_TRIGGERED, checkpoint=checkpoint)
            loop.tick()
        scheduler.heal_all()
        loop.tick()
        effects = loop.history().of(Action.FAULT_IN_EFFECT)
    return [event.value["lateness_ms"] for event in effects]


def run_on_containers(out: Path) -> Path:
    """Execute one run of 20 pauses, each at a checkpoint. Returns the run folder."""
    steps = "\n".join(STEP.format(node=1 + n % 3, nth=n + 1) for n in range(INJECTIONS))
    document = parse_document(REAL.format(steps=steps), "trigger-latency.yaml")
    experiment = experiment_of(document, beside=Path())
    clock = SystemClock()
    with open_view(plain=True) as view:
        results = runner.run(
            experiment,
            out=out,
            argv=sys.argv,
            keep=False,
            view=view,
            runtime=DockerRuntime(clock),
            clock=clock,
        )
    print(f"{results.ended} {results.outcome} {results.reason}")
    return out / results.run_id


def recorded_latencies(run: Path) -> list[float]:
    """Milliseconds from trigger to effect, of every fault that took effect in a recorded run."""
    results = json.loads((run / "results.json").read_text(encoding="utf-8"))
    latencies = (fault.get("lateness_ms") for fault in results["faults"])
    return [latency for latency in latencies if latency is not None]


def report(what: str, latencies_ms: list[float]) -> None:
    if not latencies_ms:
        print(f"{what}: no fault took effect")
        return
    print(
        f"{what}: median {statistics.median(latencies_ms):.1f} ms, "
        f"maximum {max(latencies_ms):.1f} ms over {len(latencies_ms)} injections"
    )


def main() -> None:
    if sys.argv[1:] == ["--real"]:
        report("on containers", recorded_latencies(run_on_containers(Path("runs"))))
    elif sys.argv[1:]:
        report("recorded", [ms for run in sys.argv[1:] for ms in recorded_latencies(Path(run))])
    else:
        report("the loop's own part", loop_latencies())
    print(f"load average {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()

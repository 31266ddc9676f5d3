"""No run leaves containers or networks behind, whether Ctrl-C, SIGTERM or SIGKILL ends it, in
several phases."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from streamquake.cluster.runtime import labels
from streamquake.cluster.runtime.clock import SystemClock
from streamquake.cluster.runtime.docker.runtime import DockerRuntime
from tests.pace import wait_until
from tests.tiers import others_nightly

pytestmark = pytest.mark.container

RUN = (sys.executable, "-m", "streamquake", "run", "kafka-kill-broker", "--plain", "--seed", "3")
REMOVED_WITHIN_S = 60.0
"""`test_reaper.py` tests how fast the reaper is. Here the engine must end JVMs on a busy machine,
which takes longer."""


class RunProcess:
    """A run in a separate process, and its containers and networks in the engine."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.log = (out / "output.txt").open("w+")
        self.process = subprocess.Popen(
            [*RUN, "--out", str(out)], stdout=self.log, stderr=subprocess.STDOUT
        )
        self.runtime = DockerRuntime()
        self._clock = SystemClock()

    @property
    def folder(self) -> Path:
        return (self.out / "latest").resolve()

    def text(self) -> str:
        return (self.out / "output.txt").read_text()

    def await_phase(self, phase: str) -> None:
        """Wait until the history records that a phase began."""

        def pending() -> str | None:
            assert self.process.poll() is None, self.text()
            history = self.folder / "history.jsonl"
            message = history.read_text() if history.exists() else ""
            return None if f'"phase": "{phase}"' in message else f"no phase {phase} yet"

        wait_until(pending, what=f"phase {phase}", limit_s=240, clock=self._clock)

    def await_fault(self) -> None:
        def pending() -> str | None:
            assert self.process.poll() is None, self.text()
            message = (self.folder / "history.jsonl").read_text()
            return None if '"fault in effect"' in message else "no fault yet"

        self.await_phase("disturb")
        wait_until(pending, what="a fault in effect", limit_s=120, clock=self._clock)

    def left(self) -> str | None:
        marks = {labels.RUN: self.folder.name}
        found = (*self.runtime.find(marks), *self.runtime.find_networks(marks))
        return ", ".join(thing.name for thing in found) or None

    def await_removed(self) -> None:
        wait_until(
            self.left, what="everything removed", limit_s=REMOVED_WITHIN_S, clock=self._clock
        )


@pytest.fixture
def running(tmp_path: Path) -> Iterator[RunProcess]:
    run = RunProcess(tmp_path)
    yield run
    run.process.kill()
    run.process.wait()
    run.log.close()


MOMENTS: dict[str, Callable[[RunProcess], None]] = {
    "while deploying": lambda run: run.await_phase("deploy"),
    "in steady state": lambda run: run.await_phase("steady"),
    "with a fault in effect": lambda run: run.await_fault(),
}


@pytest.mark.parametrize("moment", others_nightly(MOMENTS, ["with a fault in effect"]))
def test_a_killed_harness_leaves_no_containers(moment: str, running: RunProcess) -> None:
    MOMENTS[moment](running)
    running.process.kill()
    running.process.wait()
    running.await_removed()
    lines = (running.folder / "history.jsonl").read_text().split("\n")[:-1]
    assert all(json.loads(line) for line in lines), "the history must stay readable"


@pytest.mark.parametrize("number", others_nightly([signal.SIGINT, signal.SIGTERM], [signal.SIGINT]))
def test_an_interrupted_run_heals_records_and_removes(
    number: signal.Signals, running: RunProcess
) -> None:
    running.await_fault()
    running.process.send_signal(number)
    assert running.process.wait(timeout=240) == 130, running.text()
    assert running.left() is None
    results = json.loads((running.folder / "results.json").read_text())
    assert results["ended"] == "interrupted"
    assert results["outcome"] in ("undecided", "violated")
    assert results["faults"][0]["healed"]
    assert (running.folder / "logs" / "kafka-broker-1" / "log.txt").stat().st_size > 0
    assert "Traceback" not in running.text()


def test_a_container_that_ends_while_starting_is_reported_with_its_log(tmp_path: Path) -> None:
    broken = tmp_path / "broken.yaml"
    broken.write_text(
        "name: broken\n"
        "services:\n"
        "  kafka: {engine: kafka, nodes: {broker: 1}, config: {log.segment.bytes: nonsense}}\n"
    )
    done = subprocess.run(
        [*RUN, "--out", str(tmp_path), "--set", f"topology={broken}"],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    message = done.stdout + done.stderr
    assert done.returncode == 3, message
    assert "kafka/broker-1 ended with exit code" in message
    assert "log.segment.bytes" in message
    assert "Traceback" not in message

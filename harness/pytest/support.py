"""Runs the experiment of a marker, or starts the cluster of its topology."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.runtime import labels
from streamquake.cluster.runtime.clock import Clock, FakeClock, SystemClock
from streamquake.cluster.runtime.docker.runtime import DockerRuntime
from streamquake.cluster.runtime.fake_runtime import FakeRuntime
from streamquake.cluster.runtime.runtime import ContainerRuntime
from streamquake.harness.experiment.loader import experiment_of, find_experiment, topology_for_use
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.interactive.session import remove, start_session
from streamquake.harness.run import runner
from streamquake.harness.run.image_preparation import ensure_images
from streamquake.harness.run.progress_views import PlainView
from streamquake.reports.record.outcome import Outcome
from streamquake.reports.record.results import Results
from streamquake.reports.record.run_folder import RunFolder
from streamquake.reports.render import run_sentences
from streamquake.reports.render.terminal import escaped
from streamquake.reports.run.text import plain_summary
from streamquake.topologies.model import Topology
from streamquake.topologies.problems import BadInput
from streamquake.topologies.yaml_document import Document, Place, frozen, read_document

PARTS = {
    "topology": "topology",
    "job": "job",
    "workload": "workload",
    "schedule": "faults",
    "checks": "checks",
}
"""Keyword of the marker -> key of an experiment."""
DEFAULTS: Mapping[str, Any] = {
    "workload": {"numbered": {"records": 20_000, "rate_per_s": 2_000}},
    "checks": ["exactly_once"],
}
"""Default parts of an experiment that the marker's keywords define."""


@dataclass(frozen=True)
class ChaosRun:
    """The run of a test: its experiment, its results, and its folder with the record."""

    experiment: Experiment
    results: Results
    folder: RunFolder

    @property
    def as_expected(self) -> bool:
        return self.results.as_expected

    @property
    def undecided(self) -> bool:
        return self.results.outcome == Outcome.UNDECIDED and not self.as_expected

    @property
    def verdict(self) -> str:
        """The outcome and its reason."""
        message = f"{run_sentences.headline(self.results)}: {run_sentences.why(self.results)}"
        return escaped(f"{message}\nrun folder: {self.folder.path}\nreplay: {self.results.replay}")

    @property
    def summary(self) -> str:
        """Summary, first findings, run folder and replay command."""
        return plain_summary(self.results, self.folder)


def run_experiment(
    marker: pytest.Mark, *, beside: Path, seed: int, out: Path, keep: bool, runtime_name: str
) -> ChaosRun:
    """Run the experiment of the marker. Bad input fails the test with one line for each problem."""
    experiment = _experiment(marker, beside, seed)
    runtime, clock = _runtime(runtime_name)
    results = runner.run(
        experiment,
        out=out,
        argv=["pytest"],
        keep=keep,
        view=PlainView(_print, clock),
        runtime=runtime,
        clock=clock,
        master="local[*]",
    )
    return ChaosRun(experiment, results, RunFolder.open(out, results.run_id))


@contextmanager
def deploy_cluster(
    marker: pytest.Mark, *, beside: Path, seed: int, out: Path, keep: bool, runtime_name: str
) -> Iterator[Cluster]:
    """A cluster of the marker's topology, removed at the end of the block unless `keep`."""
    topology = _topology(marker, beside, seed)
    runtime, clock = _runtime(runtime_name)
    runtime.check()
    ensure_images(topology, runtime.images(), _print)
    owner = "" if keep else labels.owner_of_this_process()
    session = start_session(
        topology,
        out=out,
        runtime=runtime,
        clock=clock,
        limit_s=240,
        show_message=_print,
        owner=owner,
    )
    if keep:
        yield session.cluster
        return
    with runtime.guard(session.cluster.run_id):
        try:
            yield session.cluster
        finally:
            failures = remove(session)
    if failures:
        pytest.fail("not removed: " + "; ".join(failures), pytrace=False)


def _print(line: str) -> None:
    print(escaped(line))


def _topology(marker: pytest.Mark, beside: Path, seed: int) -> Topology:
    name = marker.kwargs.get("topology")
    if not isinstance(name, str):
        return _experiment(marker, beside, seed).topology
    with _fail_on_bad_input():
        return topology_for_use(name, beside)


def _experiment(marker: pytest.Mark, beside: Path, seed: int) -> Experiment:
    keywords = dict(marker.kwargs)
    name = marker.args[0] if marker.args else keywords.pop("experiment", None)
    parts = {PARTS[key]: keywords.pop(key) for key in PARTS if key in keywords}
    sets = [f"{key.replace('__', '.')}={json.dumps(value)}" for key, value in keywords.items()]
    with _fail_on_bad_input():
        document = _document(name, beside, parts)
        return experiment_of(document, beside=beside, sets=sets, seed=seed)


def _document(name: str | None, beside: Path, parts: Mapping[str, Any]) -> Document:
    """The document of the marked experiment, with its parts replaced by those of the marker."""
    if name is None:
        data = {"name": _slug(f"chaos-{parts.get('topology', '')}"), **DEFAULTS, **parts}
        return Document(file="chaos marker", data=frozen(data))
    document = read_document(find_experiment(name, beside))
    origins: dict[Place, str] = {(key,): f"chaos marker, {key}" for key in parts}
    return Document(
        file=document.file,
        data={**document.data, **frozen(parts)},
        lines=document.lines,
        origins=origins,
    )


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9-]+", "-", text.lower()).strip("-")


def _runtime(name: str) -> tuple[ContainerRuntime, Clock]:
    if name == "fake":
        fake = FakeClock()
        return FakeRuntime(fake), fake
    clock = SystemClock()
    return DockerRuntime(clock), clock


@contextmanager
def _fail_on_bad_input() -> Iterator[None]:
    """Fail the test on bad input: one line for each problem, and no traceback."""
    try:
        yield
    except BadInput as error:
        pytest.fail(escaped(str(error)), pytrace=False)

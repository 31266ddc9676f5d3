"""Runs the experiment of a marker, or starts the cluster of its topology."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from streamquake.faults.schedule.step import Step
from streamquake.harness.experiment.loader import (
    experiment_of,
    find_experiment,
    given_seed,
    topology_for_use,
)
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.interactive.topology_container import NotRemoved, TopologyContainer
from streamquake.harness.pytest.session import ChaosSession
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
    "other_jobs": "other_jobs",
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


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """What determines the experiment of a test beside its marker."""

    beside: Path
    """The folder of the test's file."""
    session_seed: int
    seed_wins: bool
    """Whether the session's seed wins over those of the marker and the document."""
    repeat: int = 0
    """Added to the seed."""


def run_experiment(marker: pytest.Mark, session: ChaosSession, settings: RunSettings) -> ChaosRun:
    """Run the experiment of the marker. Bad input fails the test with one line for each problem."""
    return _run(session, _experiment(marker, settings))


def _run(session: ChaosSession, experiment: Experiment) -> ChaosRun:
    results = session.run(experiment)
    return ChaosRun(experiment, results, RunFolder.open(session.out, results.run_id))


@dataclass(frozen=True)
class ChaosRunner:
    """Runs an experiment with a schedule."""

    session: ChaosSession

    def __call__(self, experiment: Experiment, schedule: Sequence[Step] | None = None) -> ChaosRun:
        """The judged run of an experiment, with this schedule in place of its own if one is given.
        A run that is not as expected fails the test. An undecided one proves nothing: Hypothesis
        takes another example in its place."""
        if schedule is not None:
            experiment = experiment.model_copy(update={"faults": tuple(schedule)})
        run = _run(self.session, experiment)
        if run.undecided:
            _try_another_example()
        if run.undecided or not run.as_expected:
            pytest.fail(f"{run.verdict}\n{run.summary}", pytrace=False)
        return run


def _try_another_example() -> None:
    """Have Hypothesis try another example, if it runs the test."""
    hypothesis = sys.modules.get("hypothesis")
    if hypothesis is not None and hypothesis.currently_in_test_context():
        hypothesis.reject()


@contextmanager
def deploy_cluster(
    marker: pytest.Mark, session: ChaosSession, settings: RunSettings
) -> Iterator[TopologyContainer]:
    """A cluster of the marker's topology, removed at the end of the block unless `session.keep`."""
    topology = _topology(marker, settings)
    session.release_cluster()
    deployed = TopologyContainer(
        topology,
        out=session.out,
        seed=settings.session_seed,
        keep=session.keep,
        runtime=session.runtime,
        clock=session.clock,
        show_message=show_message,
    )
    try:
        with deployed:
            yield deployed
    except NotRemoved as error:
        pytest.fail(str(error), pytrace=False)


def fail_on_leftovers(failures: Sequence[str]) -> None:
    """Fail with the names of the resources that could not be removed."""
    pytest.fail("not removed: " + "; ".join(failures), pytrace=False)


def show_message(line: str) -> None:
    """Print a line of a run's progress."""
    print(escaped(line))


def _topology(marker: pytest.Mark, settings: RunSettings) -> Topology:
    name = marker.kwargs.get("topology")
    if not isinstance(name, str):
        return _experiment(marker, settings).topology
    with _fail_on_bad_input():
        return topology_for_use(name, settings.beside)


def _experiment(marker: pytest.Mark, settings: RunSettings) -> Experiment:
    keywords = dict(marker.kwargs)
    name = marker.args[0] if marker.args else keywords.pop("experiment", None)
    parts = {PARTS[key]: keywords.pop(key) for key in PARTS if key in keywords}
    sets = [f"{key.replace('__', '.')}={json.dumps(value)}" for key, value in keywords.items()]
    with _fail_on_bad_input():
        document = _document(name, settings.beside, parts)
        seed = settings.session_seed
        if not settings.seed_wins:
            seed = given_seed(document, beside=settings.beside, sets=sets, otherwise=seed)
        return experiment_of(
            document, beside=settings.beside, sets=sets, seed=seed + settings.repeat
        )


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


@contextmanager
def _fail_on_bad_input() -> Iterator[None]:
    """Fail the test on bad input: one line for each problem, and no traceback."""
    try:
        yield
    except BadInput as error:
        pytest.fail(escaped(str(error)), pytrace=False)

"""Suites on the fakes: experiments on a fake service that stores which runs wrote records."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

import pytest

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.engines.engine import Contents, engines
from streamquake.cluster.runtime import labels
from streamquake.cluster.runtime.clock import FakeClock
from streamquake.cluster.runtime.fake_runtime import FakeRuntime
from streamquake.harness.campaign import shared_resources
from streamquake.harness.campaign.suite.loader import Row, Suite
from streamquake.harness.campaign.suite.model import RowSource
from streamquake.harness.campaign.suite.plan import PlannedRun, RunPurpose, SuitePlan
from streamquake.harness.campaign.suite.suite_progress import CompactView
from streamquake.harness.campaign.suite.suite_runner import SuiteResources, conduct
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.run import runner
from streamquake.harness.run.event_loop import EventLoop
from streamquake.harness.verdict.judge import judge
from streamquake.reports.record.event import Action
from streamquake.reports.record.outcome import CheckResult, Outcome
from streamquake.reports.record.results import Results
from streamquake.reports.record.run_folder import RunFolder
from streamquake.reports.suite.suite_results import Role, SuiteFolder, SuiteResults
from tests.echo import Echo
from tests.harness.run.test_runner import Load, NoSpark, listening, read_everything, send_rest

ROLES: tuple[Role, ...] = ("claim", "control")
PAUSE = {"fault": "pause", "target": "echo/server-1", "when": {"after_s": 1.0}, "for_s": 1.0}
KILL = {**PAUSE, "fault": "kill"}


class StatefulEcho(Echo):
    """Echo that stores which runs wrote records, and can remove the records of a run."""

    name: ClassVar[str] = "test-stateful-echo"
    written: ClassVar[dict[str, list[str]]] = defaultdict(list)
    """Cluster -> the runs whose records it has."""
    fails: ClassVar[bool] = False

    def contents(self, cluster: Cluster, service: str) -> Contents:
        return {"records": frozenset(self.written[cluster.run_id])}

    def clean(self, cluster: Cluster, service: str, kept: Contents) -> None:
        if self.fails:
            raise RuntimeError("the topics are still there")
        self.written[cluster.run_id] = [*kept["records"]]


def topology(name: str = "echo", engine: str = StatefulEcho.name) -> dict[str, Any]:
    nodes = {"server": 2, "client": 1}
    return {"name": name, "services": {"echo": {"engine": engine, "nodes": nodes}}}


def experiment(name: str, on: str = "echo", **fields: Any) -> Experiment:
    """An experiment on the fakes. Its fault ends no process."""
    document = {"name": name, "topology": topology(on), "faults": (PAUSE,), **fields}
    return Experiment.model_validate(
        {**document, "workload": {"numbered": {"records": 1000, "rate_per_s": 500}}}
    )


class SuiteTestbed:
    """The fakes on which a suite is run.

    `on_load_start` has, by experiment, what happens when the load of a run begins; `runs_before`
    the runs whose records the cluster had when a run began; `counts` the figures of a check called
    `measure`, `outcomes` its outcome, `outcomes_of_attempts` those of the next attempts.
    """

    def __init__(self, out: Path) -> None:
        self.out = out
        self.clock = FakeClock()
        self.runtime = FakeRuntime(self.clock)
        self.runtime.on_network_tool.append(listening)
        self.messages: list[str] = []
        self.on_load_start: dict[str, Callable[[EventLoop], None]] = {}
        self.runs_before: dict[str, list[str]] = {}
        self.clusters: list[str] = []
        self.counts: dict[str, list[float]] = {}
        self.outcomes: dict[str, Outcome] = {}
        self.outcomes_of_attempts: dict[str, list[Outcome]] = {}
        self.spark = NoSpark(lambda: "")

    def run_suite(
        self,
        plan: SuitePlan,
        *,
        resume: bool = False,
        max_age: timedelta = timedelta(days=1),
        **options: Any,
    ) -> tuple[SuiteResults, SuiteFolder]:
        view = CompactView(self.messages.append)
        resources = SuiteResources(
            out=self.out,
            argv=["streamquake"],
            again="streamquake suite x",
            runtime=self.runtime,
            clock=self.clock,
            view=view,
            show_message=self.messages.append,
            resume_since=datetime.now(UTC) - max_age if resume else None,
            **options,
        )
        return conduct(plan, resources)

    def leftover_count(self) -> int:
        marks = {labels.RUN: ""}
        return len(self.runtime.find(marks)) + len(self.runtime.find_networks(marks))

    @contextmanager
    def start_load(
        self, current: Experiment, cluster: Cluster, loop: EventLoop, group: str
    ) -> Iterator[Load]:
        self.clusters.append(cluster.run_id)
        self.runs_before[group] = list(StatefulEcho.written[cluster.run_id])
        StatefulEcho.written[cluster.run_id].append(group)
        assert cluster.run.run_id == group
        for node in cluster.nodes.values():
            self.runtime.write_log(node.container, f"serving {group}")
        loop.record(Action.SENT, first=0, last=499, count=500, status="acknowledged")
        loop.record(Action.OUTPUT_SEEN, output="input", end=500, grown=500)
        loop.listen(lambda event: send_rest(loop, event))
        if current.name in self.on_load_start:
            self.on_load_start[current.name](loop)
        yield Load()

    def with_measurement(self, results: Results) -> Results:
        """The results with the figures and the outcome that the test sets."""
        name = results.experiment
        outcome = self.outcomes.get(name, results.outcome)
        if of_attempts := self.outcomes_of_attempts.get(name):
            outcome = of_attempts.pop(0)
        if results.ended != "completed":
            outcome = max(outcome, results.outcome)
        values = self.counts.get(name)
        counts = {"took_ms": values.pop(0)} if values else {}
        check = CheckResult(check="measure", outcome=outcome, summary="measured", counts=counts)
        return replace(results, outcome=outcome, checks=(*results.checks, check))


@pytest.fixture
def testbed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SuiteTestbed:
    new_testbed = SuiteTestbed(tmp_path)
    monkeypatch.setitem(engines._members, StatefulEcho.name, StatefulEcho)
    monkeypatch.setitem(engines._members, Echo.name, Echo)
    monkeypatch.setattr(StatefulEcho, "written", defaultdict(list))
    monkeypatch.setattr(runner, "start_load", new_testbed.start_load)
    monkeypatch.setattr(runner, "prepare_job", lambda *args: None)
    monkeypatch.setattr(runner, "collect_outputs", read_everything)
    # The page takes half of the time of a run, and no suite reads it.
    monkeypatch.setattr(runner, "render_report", lambda folder: folder.report.write_text("page"))
    monkeypatch.setattr(shared_resources, "SparkInBackground", new_testbed.spark.session_of)
    monkeypatch.setattr(
        runner,
        "judge",
        lambda *args, **options: new_testbed.with_measurement(judge(*args, **options)),
    )
    return new_testbed


def plan_of(*rows: tuple[RowSource, Sequence[Experiment]], repeats: int = 1) -> SuitePlan:
    """A plan of rows, each with its experiment and its control. The runs are in the order of the
    rows."""
    suite = Suite(
        name="sample",
        description="",
        rows=tuple(
            Row(
                source=source,
                experiment=Path(both[0].name),
                control=Path(both[1].name) if both[1:] else None,
                names=tuple(each.name for each in both),
            )
            for source, both in rows
        ),
    )
    runs = [
        PlannedRun(
            parts=(RunPurpose(row=number, role=role),),
            repeat=repeat,
            experiment=each.model_copy(update={"seed": repeat}),
        )
        for number, (_, both) in enumerate(rows)
        for repeat in range(repeats)
        for each, role in zip(both, ROLES, strict=False)
    ]
    return SuitePlan(suite=suite, seed=0, runs=tuple(runs))


def plan_without_claims(*experiments: Experiment) -> SuitePlan:
    """A plan of rows without claims."""
    return plan_of(*((RowSource(experiment=each.name), [each]) for each in experiments))


def claim(name: str, control: str | None = None, **fields: Any) -> RowSource:
    words = {"claim": "it is so", "article": "the article", "setting": "on", **fields}
    return RowSource.model_validate({"experiment": name, "control": control, **words})


def runs_of(testbed: SuiteTestbed, results: SuiteResults) -> list[RunFolder]:
    return [RunFolder(testbed.out / str(run.run)) for row in results.rows for run in row.runs]

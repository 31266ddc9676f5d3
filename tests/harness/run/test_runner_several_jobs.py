"""A whole run with several jobs: their start, one that does not run again, and their drain."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from streamquake.cluster.cluster import Cluster
from streamquake.harness.experiment.model import JOB, Experiment
from streamquake.harness.run import runner
from streamquake.harness.run.event_loop import EventLoop
from streamquake.reports.record.event import Action, Event, Kind
from streamquake.reports.record.history import History, read_history
from streamquake.reports.record.outcome import Outcome
from tests.harness.run.test_runner import (
    PHASES,
    PROMISE,
    Query,
    Stage,
    load,
    query,
    record_steady,
    stage,
)

pytestmark = pytest.mark.slow

__all__ = ["load", "query", "stage"]  # fixtures

JOBS: dict[str, Any] = {
    "other_jobs": {"enrich": {"jar": "enrich.jar"}},
    "job": {"jar": "job.jar", "promise": PROMISE},
}


class Chain:
    """The other job of a run, and the drain of both; it keeps what is asked of them."""

    name, service = "enrich", "echo"

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.reason: str | None = None
        self.waits: dict[str, str] = {}
        """What is awaited -> why it is never met."""
        self.jobs: tuple[Any, ...] = ()

    def submit(self, cluster: Cluster) -> Chain:
        self.asked.append("submit")
        return self

    def pending(self) -> str | None:
        return self.reason

    def drain_of(self, experiment: Experiment, cluster: Cluster, jobs: tuple[Any, ...]) -> Chain:
        self.jobs = jobs
        return self

    def in_order(self) -> Iterator[Any]:
        return iter(self.jobs)

    def read_pending(self, job: Any) -> str | None:
        return self._asked(f"{name_of(job)} read")

    def commit_pending(self, job: Any) -> Callable[[], str | None]:
        return lambda: self._asked(f"{name_of(job)} committed")

    def end_pending(self) -> str | None:
        return self._asked("ends")

    def _asked(self, what: str) -> str | None:
        if self.asked[-1:] != [what]:
            self.asked.append(what)
        return self.waits.get(what)


def name_of(job: Any) -> str:
    return str(getattr(job, "name", JOB))


@pytest.fixture
def chain(stage: Stage, query: Query, monkeypatch: pytest.MonkeyPatch) -> Chain:
    found = Chain()
    monkeypatch.setattr(runner, "prepare_other_jobs", lambda *given: (found,))
    monkeypatch.setattr(runner, "JobsDrain", found.drain_of)
    return found


def history_of(stage: Stage) -> History:
    return read_history(stage.folder.history)


def reasons(stage: Stage, action: Action) -> list[str]:
    return [event.value["reason"] for event in history_of(stage).of(action)]


def test_all_jobs_are_drained_in_their_order(stage: Stage, chain: Chain) -> None:
    stage.run(**JOBS)
    assert stage.phases() == [*PHASES[:2], "submit", *PHASES[2:]]
    drained = ["enrich read", "enrich committed", "job read", "job committed", "ends"]
    assert chain.asked == ["submit", *drained]
    assert history_of(stage).of(Action.DRAINED)
    seen = history_of(stage).of(Action.OTHER_JOBS_SEEN)
    assert [event.value["after"] for event in seen] == ["recovery", "drain"]
    assert all(event.value["jobs"] == {"enrich": None} for event in seen)


@pytest.mark.parametrize(
    ("what", "action"),
    [
        ("enrich read", Action.INPUT_NOT_READ),
        ("enrich committed", Action.OUTPUTS_NOT_COMMITTED),
        ("job read", Action.INPUT_NOT_READ),
        ("ends", Action.OUTPUTS_NOT_COMMITTED),
    ],
)
def test_no_later_job_is_drained_than_one_that_is_not(
    stage: Stage, chain: Chain, what: str, action: Action
) -> None:
    chain.waits = {what: "enrich: something is left"}
    stage.run(**JOBS, limits={"drain_s": 5, "recover_s": 5})
    (reason,) = reasons(stage, action)
    assert reason.endswith("not within 5 s: enrich: something is left")
    assert chain.asked[-1] == what
    assert not history_of(stage).of(Action.DRAINED)


def test_one_job_that_declares_what_it_reads_is_drained_by_it(
    stage: Stage, chain: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "prepare_other_jobs", lambda *given: ())
    stage.run(job={**JOBS["job"], "reads": ("input",)})
    assert chain.asked == ["job read", "job committed", "ends"]
    assert not history_of(stage).of(Action.OTHER_JOBS_SEEN)


def test_another_job_that_never_runs_fails_the_run(stage: Stage, chain: Chain) -> None:
    chain.reason = "no slot"
    results = stage.run(**JOBS, limits={"ready_s": 4})
    assert results.ended == "failed_to_run"
    assert results.reason == "job enrich running: not within 4 s: no slot"


def test_another_job_that_does_not_run_again_has_not_recovered(stage: Stage, chain: Chain) -> None:
    def on_load(loop: EventLoop) -> None:
        record_steady(loop)
        loop.listen(end_job)

    def end_job(event: Event) -> None:
        if event.action == Action.FAULT_IN_EFFECT:
            chain.reason = "the job is FAILED: killed"

    stage.during_load = on_load
    results = stage.run(**JOBS, limits={"recover_s": 6})
    assert reasons(stage, Action.NOT_RECOVERED) == [
        "recovery: not within 6 s: enrich: the job is FAILED: killed"
    ]
    assert results.outcome != Outcome.HELD
    seen = history_of(stage).of(Action.OTHER_JOBS_SEEN)
    assert [event.kind for event in seen] == [Kind.FAIL, Kind.FAIL]
    assert seen[0].value["jobs"] == {"enrich": "the job is FAILED: killed"}
    assert not history_of(stage).of(Action.DRAINED)

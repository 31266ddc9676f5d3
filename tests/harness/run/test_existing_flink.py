"""An existing Flink: its job is found and followed through its REST interface."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import pytest

from streamquake.cluster.cluster import Cluster, all_nodes
from streamquake.cluster.engines.flink.engine import FlinkEngine
from streamquake.cluster.engines.flink.rest import FlinkRest, FlinkUnreachable, jobmanager
from streamquake.cluster.engines.kafka import admin as kafka_admin
from streamquake.cluster.runtime.clock import FakeClock
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.run.job_preparation import existing_job
from streamquake.harness.run.load import RunLoad
from tests.harness.run.test_existing import GOOD, load, problems_of
from tests.harness.run.test_load import PROMISE, Reader, Topic, WatchTestbed, topic

__all__ = ["topic"]

FLINK = GOOD.replace("topology: existing", "topology: existing-flink").replace(
    "{group: copier, quiet_s: 5}", "{job: copier}"
)
RUNNING = {"jid": "b0b", "name": "copier", "end-time": -1}
OTHER = {"jid": "a11ce", "name": "other", "end-time": -1}
ENDED = {"jid": "01d", "name": "copier", "end-time": 7}


class JobManager:
    """The REST interface of a JobManager with these jobs."""

    def __init__(self, *jobs: Mapping[str, Any], reachable: bool = True) -> None:
        self.jobs, self.reachable = jobs, reachable

    def get(self, path: str) -> Any:
        if not self.reachable:
            raise FlinkUnreachable(f"GET {path}: ConnectionError")
        return {"/jobs/overview": {"jobs": self.jobs}, "/config": {}}[path]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass


def cluster(experiment: Experiment, answers: JobManager | None = None) -> Cluster:
    # No runtime: what runs already needs no container, so any call of one fails the test.
    found = Cluster(run_id="r", topology=experiment.topology, runtime=None, clock=FakeClock())  # type: ignore[arg-type]
    if answers is not None:
        found.clients["flink"] = answers
    return found


@pytest.mark.parametrize(
    ("jobs", "named"),
    [
        ((RUNNING,), "{}"),
        ((RUNNING, OTHER, ENDED), "{job: copier}"),
        ((RUNNING, OTHER), "{job: b0b}"),
    ],
)
def test_the_job_is_found_by_name_or_id_or_as_the_only_one(
    jobs: tuple[Mapping[str, Any], ...], named: str
) -> None:
    experiment = load(FLINK.replace("{job: copier}", named))
    existing = cluster(experiment, JobManager(*jobs))
    found = existing_job(experiment, existing)
    assert found is not None
    assert (found.id, found.service, found.writes_files) == ("b0b", "flink", False)
    assert existing.run.job is not None
    assert existing.run.job.spec is None
    assert experiment.checkpointed


@pytest.mark.parametrize(
    ("jobs", "named", "message"),
    [
        ((OTHER,), "{job: copier}", 'called "copier", got 0; running: other (a11ce)'),
        ((RUNNING, OTHER), "{}", "got 2; running: copier (b0b), other (a11ce)"),
        ((ENDED,), "{}", "got 0; running: none"),
        ((RUNNING, {**RUNNING, "jid": "c"}), "{job: copier}", 'called "copier", got 2'),
    ],
)
def test_no_or_several_jobs_are_an_error_that_names_the_running_ones(
    jobs: tuple[Mapping[str, Any], ...], named: str, message: str
) -> None:
    experiment = load(FLINK.replace("{job: copier}", named))
    with pytest.raises(LookupError) as error:
        existing_job(experiment, cluster(experiment, JobManager(*jobs)))
    assert message in str(error.value)


def test_a_flink_that_does_not_answer_is_not_ready() -> None:
    experiment = load(FLINK)
    silent = cluster(experiment, JobManager(reachable=False))
    assert FlinkEngine().pending(silent, "flink") == "GET /config: ConnectionError"
    assert FlinkEngine().pending(cluster(experiment, JobManager()), "flink") is None
    with pytest.raises(LookupError, match="the job of flink cannot be queried: GET /jobs/over"):
        existing_job(experiment, silent)


def test_nothing_is_deployed_or_built() -> None:
    topology = load(FLINK).topology
    assert all_nodes(topology) == ()
    assert FlinkEngine().images(topology, "flink") == ()


def test_without_a_flink_no_job_is_followed() -> None:
    experiment = load(GOOD)
    assert existing_job(experiment, cluster(experiment)) is None


@pytest.mark.parametrize(
    ("endpoint", "urls"),
    [
        ("localhost:8081", ["http://localhost:8081"]),
        ("jm-1:8081,jm-2:8081", ["http://jm-1:8081", "http://jm-2:8081"]),
        ("https://flink.example.com/proxy/", ["https://flink.example.com/proxy"]),
    ],
)
def test_the_endpoint_is_that_of_the_jobmanagers(endpoint: str, urls: list[str]) -> None:
    experiment = load(FLINK, [f'topology.services.flink.endpoint="{endpoint}"'])
    with jobmanager(cluster(experiment), "flink") as rest:
        assert isinstance(rest, FlinkRest)
        assert rest._urls == urls


@pytest.mark.parametrize(
    "endpoint",
    [
        *("nowhere", "a:1,", "ftp://a:1", "a:1 b:2", "a:٨", "http://a:b", "http://a:1?x=1"),
        "http://u:secret@a:1",
    ],
)
def test_other_endpoints_are_rejected(endpoint: str) -> None:
    text = (
        "topology:\n  name: t\n  services:\n    kafka: {engine: kafka, endpoint: 'a:1'}\n"
        f"    flink: {{engine: flink, endpoint: '{endpoint}'}}"
    )
    found = problems_of(FLINK.replace("topology: existing-flink", text))
    assert "expected the REST interface of the JobManagers" in found
    assert "secret" not in found


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("topology: existing-flink", "topology: existing", "no Flink is followed; give the topolo"),
        ("existing: {job: copier}", "sql: copy.sql", "no program is submitted to flink, which run"),
        (
            "topology: existing-flink",
            "topology:\n  name: t\n  services:\n    kafka: {engine: kafka, nodes: {broker: 1}}\n"
            '    flink: {engine: flink, endpoint: "a:1"}',
            "give kafka an `endpoint`",
        ),
        (
            "{skew: {hot_share: 0.5}, target: the workload, at_s: 2, for_s: 1.5}",
            "{kill: {}, target: one of worker, at_s: 2}",
            "kill needs a target that Streamquake has deployed",
        ),
    ],
)
def test_contradicting_settings_are_rejected(before: str, after: str, words: str) -> None:
    assert words in problems_of(FLINK.replace(before, after))


@pytest.mark.parametrize(
    "fault", ["rescale: {to: 3}", "savepoint: {}", "restart_job: {keeping: savepoint}"]
)
def test_the_job_is_not_disturbed_beside_a_deployed_service(fault: str) -> None:
    topology = (
        "topology:\n  name: t\n  services:\n    kafka: {engine: kafka, endpoint: 'a:1'}\n"
        "    flink: {engine: flink, endpoint: 'a:2'}\n"
        "    zookeeper: {engine: zookeeper, nodes: {server: 1}}"
    )
    text = FLINK.replace("topology: existing-flink", topology).replace(
        "{skew: {hot_share: 0.5}, target: the workload, at_s: 2, for_s: 1.5}",
        f"{{{fault}, target: the job, at_s: 2}}",
    )
    assert "needs a target that Streamquake has deployed" in problems_of(text)


def test_without_a_group_the_lag_is_by_the_positions_of_the_job(
    tmp_path: Path, topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    existing = WatchTestbed(
        tmp_path, job={"existing": {}, "promise": PROMISE}, begins={"totals-topic": {0: 10}}
    )
    monkeypatch.setattr(kafka_admin, "end_offsets", lambda *_, **__: {0: 7})
    reader: Any = Reader({0: 4})
    load = RunLoad(running=reader, seconds=1, watch=existing.watch)
    assert load.lag_pending(reader) == "the job has not read 3 records yet"
    assert load.lag_pending(Reader({0: 7})) is None  # type: ignore[arg-type]
    existing.poll_after(2)
    assert existing.samples("lag") == {}

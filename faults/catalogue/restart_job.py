"""Restart: the job is ended with its state retained, and resubmitted from that state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Annotated, Any, ClassVar
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.engines.engine import (
    JobStart,
    JobUnreachable,
    RestartsFromState,
    RetainedState,
    engine,
)
from streamquake.cluster.job import CurrentJob, JobSpec
from streamquake.cluster.runtime.runtime import InjectionTimes
from streamquake.cluster.runtime.waiting import NotReadyInTime, wait_until
from streamquake.faults.fault import Evidence, JobChange, JobFault, JobTarget, faults
from streamquake.faults.mechanisms.injection_times import nothing_done, until_now
from streamquake.faults.requirement import Requirements, one_of, other_than, some, unmet
from streamquake.faults.schedule.target import find_job
from streamquake.topologies.limits import Limit
from streamquake.topologies.model import Scalar, Topology
from streamquake.topologies.named_files import JOBS, find_file, is_shipped_job, named_text
from streamquake.topologies.templates import render


@faults.register
class RestartJob(JobFault):
    """End the job with its state retained, and resubmit it from that state with the requested
    changes; the run continues with the new job.

    From a `checkpoint` the job is cancelled and its newest completed checkpoint is restored, which
    the job must retain (`execution.checkpointing.externalized-checkpoint-retention:
    RETAIN_ON_CANCELLATION` in its `config`). From a `savepoint` it is stopped with one in the state
    backend's own format, from a `canonical` one with one that any backend reads. There is nothing
    to undo; `for_s` is the time until another restart may follow.
    """

    name: ClassVar[str] = "restart_job"
    touches: ClassVar[str] = "job"
    lasts: ClassVar[bool] = False
    drawn: ClassVar[bool] = False
    statement_files: ClassVar[tuple[str, ...]] = ("sql",)
    example: ClassVar[Mapping[str, Any]] = {"from": "savepoint"}

    from_: Annotated[RetainedState, Field(alias="from")] = "checkpoint"
    """The state from which the new job is restored."""
    parallelism: Annotated[int, Field(ge=1, le=1024)] | None = None
    """Parallel subtasks of the new job; as many as before unless given."""
    config: Mapping[str, Scalar] = {}
    """Settings of the new job, in addition to those of the old one; they take precedence."""
    sql: str | None = None
    """Another statement file, shipped or by path, with the placeholders of the job's own; or, if it
    has several lines, the statements themselves, as in a recorded plan."""
    claim: bool = False
    """Whether the restored state belongs to the new job, which removes it when it no longer needs
    it; otherwise the new job's first checkpoint shares no file with it."""
    ready_s: Limit = 60.0
    """The longest time until every task of the new job runs, seconds."""

    @field_validator("sql")
    @classmethod
    def _file_exists(cls, name: str | None) -> str | None:
        if name is not None and "\n" not in name:
            _text(name)
        return name

    @classmethod
    def role_problem(cls, topology: Topology, role: str) -> str | None:
        service = role.partition("/")[0]
        runs = engine(topology.services[service].engine)
        if not isinstance(runs, RestartsFromState):
            return f"{runs.name} restarts no job from its state"
        return runs.restart_problem(topology, service)

    def statements(self) -> str | None:
        """The text of the new statements; None where the old ones are kept."""
        return self.sql if self.sql is None or "\n" in self.sql else _text(self.sql)

    def statement_texts(self) -> Mapping[str, str]:
        text = self.statements()
        return {} if self.sql is None or text is None or is_shipped_job(self.sql) else {"sql": text}

    @property
    def source(self) -> str:
        """The source of the new statements, for messages."""
        return "restart_job.sql" if self.sql is None or "\n" in self.sql else self.sql

    @property
    def job_change(self) -> JobChange:
        return JobChange(
            keeping=self.from_,
            parallelism=self.parallelism,
            config=self.config,
            statements=self.statements(),
            source=self.source,
        )

    def baseline(self, cluster: Cluster, target: JobTarget) -> Mapping[str, Any]:
        """The job that is replaced."""
        return {"job": target.job.id}

    def inject(self, cluster: Cluster, target: JobTarget) -> InjectionTimes:
        """Raises ValueError for a job whose submission is not known."""
        job, called_ns = target.job, cluster.clock.epoch_ns()
        spec, runs = self._new_spec(job), _engine_of(cluster, job)
        path = runs.end_and_retain_state(cluster, job.service, job.id, self.from_)
        job_id = runs.resume(cluster, job.service, spec, path, self.claim)
        cluster.run.job = replace(job, id=job_id, spec=spec, restored_from=path)
        # The evidence decides whether it started.
        with suppress(NotReadyInTime):
            self._await_start(cluster, cluster.run.job)
        return until_now(cluster, called_ns, "another job")

    def evidence(
        self, cluster: Cluster, target: JobTarget, baseline: Mapping[str, Any]
    ) -> Evidence:
        """In effect when another job runs completely, with the requested parallelism, and reports
        that it was restored from the state of the former one; also when it has failed permanently,
        with the engine's `reason`. Always healed: there is nothing to undo."""
        try:
            job = find_job(cluster).job
            start = _engine_of(cluster, job).start_of(cluster, job.service, job.id)
        except (LookupError, JobUnreachable) as error:
            return Evidence(in_effect=False, healed=True, observations={"job": str(error)})
        replaced = job.id != baseline.get("job", job.id)
        return Evidence(
            in_effect=replaced and (start.state == "failed" or self._is_restored(job, start)),
            healed=True,
            observations={
                "job": job.id,
                "state": start.state,
                "parallelism": start.parallelism,
                "given": job.restored_from,
                "restored_from": start.restored_from,
                "reason": start.reason,
            },
        )

    def effect_requires(self, before: Mapping[str, Any]) -> Requirements:
        return {"job": other_than(before.get("job")), "state": one_of("running", "failed")}

    def contradicted_effect(
        self, observations: Mapping[str, Any], before: Mapping[str, Any]
    ) -> Iterator[str]:
        yield from super().contradicted_effect(observations, before)
        if observations.get("state") == "failed":
            yield from unmet(observations, {"reason": some()})
        else:
            width = {} if self.parallelism is None else {"parallelism": one_of(self.parallelism)}
            yield from unmet(observations, {**width, "restored_from": some()})

    def heal(
        self, cluster: Cluster, target: JobTarget, baseline: Mapping[str, Any]
    ) -> InjectionTimes:
        return nothing_done(cluster, "nothing to undo")

    def _new_spec(self, job: CurrentJob) -> JobSpec:
        """The submission of the former job, with all requested changes."""
        if job.spec is None:
            raise ValueError(
                "only the run that submitted the job knows how to submit it; restart it in an "
                "experiment"
            )
        text = self.statements()
        return replace(
            job.spec,
            sql=job.spec.sql if text is None else render(text, job.values, self.source),
            parallelism=self.parallelism or job.spec.parallelism,
            config={**job.spec.config, **self.config},
        )

    def _is_restored(self, job: CurrentJob, start: JobStart) -> bool:
        requested = job.restored_from or start.restored_from
        same_width = self.parallelism in (None, start.parallelism)
        same = bool(requested) and urlsplit(requested).path == urlsplit(start.restored_from).path
        return start.state == "running" and same_width and same

    def _await_start(self, cluster: Cluster, job: CurrentJob) -> None:
        def pending() -> str | None:
            try:
                start = _engine_of(cluster, job).start_of(cluster, job.service, job.id)
            except JobUnreachable as error:
                return str(error)
            return start.reason if start.state == "coming" else None

        wait_until(pending, what="the new job runs", limit_s=self.ready_s, clock=cluster.clock)


def _text(name: str) -> str:
    """The text of a statement file, by its name. Raises ValueError."""
    try:
        path = find_file("job", name, shipped=JOBS, suffix=".sql", beside=None)
    except LookupError as error:
        raise ValueError(str(error)) from error
    return named_text(path)


def _engine_of(cluster: Cluster, job: CurrentJob) -> RestartsFromState:
    runs = engine(cluster.topology.services[job.service].engine)
    assert isinstance(runs, RestartsFromState), "rejected by `role_problem` before anything starts"
    return runs

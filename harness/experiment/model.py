"""The experiment: topology + job + workload + schedule + checks + limits + seed, as a value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainSerializer, model_validator

from streamquake.cluster.engines.engine import job_runner
from streamquake.cluster.images.maven_jars import COORDINATES
from streamquake.faults.schedule.step import Step
from streamquake.harness.experiment.check import Check, CheckCommand, CheckProbe, checks
from streamquake.harness.experiment.named_part import part_document, part_of
from streamquake.harness.experiment.outputs import JobPromise
from streamquake.harness.experiment.workload import Workload, workloads
from streamquake.reports.record.expected_outcome import ExpectedOutcome
from streamquake.topologies.limits import LONGEST_S, Limit, Seed
from streamquake.topologies.model import Model, Name, Scalar, Title, Topic, Topology
from streamquake.topologies.parsing import value_text

Expectation = (
    Literal["held", "undecided", "violated"]
    | Annotated[Mapping[str, str | tuple[str, ...]], Field(min_length=1)]
)
"""The expected outcome of a run, or the expected findings of each named check
(`reports/record/expected_outcome.py`)."""
NamedWorkload = Annotated[
    Workload, BeforeValidator(partial(part_of, workloads)), PlainSerializer(part_document)
]
"""A workload; documents name it with its parameters: {numbered: {...}}."""
NamedCheck = Annotated[
    Check, BeforeValidator(partial(part_of, checks)), PlainSerializer(part_document)
]
"""A check; documents name it with its parameters: {recovery: {...}}."""

JOB = "job"
"""The key of the job that is judged, and its name beside those of the other jobs."""
OTHER_JOBS = "other_jobs"
JAR = re.compile(rf"\.jar$|^{COORDINATES.pattern}$")


def _named_jar(name: Any) -> Any:
    """The name of a jar, with words for one that the pattern does not match."""
    if isinstance(name, str) and not JAR.search(name):
        raise ValueError(
            "expected the path of a jar, which ends with .jar, or GROUP:ARTIFACT:VERSION with one "
            f"version and no classifier, got {value_text(name)}"
        )
    return name


Jar = Annotated[str, BeforeValidator(_named_jar), Field(pattern=JAR.pattern)]
"""A file that ends with `.jar`, or the Maven coordinates of a jar."""
ModuleName = Annotated[str, Field(pattern=r"^[a-z_][a-z0-9_]*$", max_length=60)]
"""The name by which a program imports a module."""


class ExistingJob(Model):
    """A job that runs already. On any system: then only its input and its output are known. Or on a
    Flink whose REST interface the topology names as `endpoint`: then it is followed as others are.
    """

    job: Annotated[str, Field(min_length=1)] | None = None
    """The name or id of the job on that Flink; its only running job when left out."""

    group: str | None = None
    """The consumer group of its reader, if it commits offsets: the end of a run then waits until
    the group has read every sent record."""
    quiet_s: Limit = 30
    """At the end of a run its output is complete when no record arrived for this long. Choose it
    longer than the time between two checkpoints and the time of a recovery. On a Flink that is
    followed, checkpoints decide instead."""


class Job(Model):
    """The job on the engine: SQL, a jar or a PySpark program (texts once loaded). Both SQL and
    PySpark may be given: each topology takes what its engine runs. Or a job that runs already."""

    existing: ExistingJob | None = None
    """A job that runs already, in place of a program."""
    sql: str | None = None
    """A file of Flink SQL, by name of a shipped one or by path."""
    pyspark: str | None = None
    """A PySpark program, by name of a shipped one or by path."""
    jar: str | None = None
    """The path of a jar for Flink."""
    jars: tuple[Jar, ...] = ()
    """Jars for the class path of an SQL or a PySpark program: its connectors, formats and
    functions. Each is a path, or `GROUP:ARTIFACT:VERSION`, which Maven fetches by the settings of
    this machine, without its dependencies. SQL names a function of them with `CREATE TEMPORARY
    FUNCTION`."""
    modules: Mapping[ModuleName, str] = {}
    """Name -> the path of a Python module that the PySpark program imports by that name (its text
    once loaded)."""
    entry_class: str | None = None
    """The class in the jar to start; the one that its manifest names when left out."""
    args: tuple[str, ...] = ()
    """Arguments of the program."""
    reads: tuple[Topic, ...] | None = None
    """The topics that it reads: those of the load, and outputs of other jobs. All topics of the
    load when left out. `${input}` in the program is its only topic, `${input.TOPIC}` each one."""
    parallelism: Annotated[int, Field(ge=1)] = 1
    """Subtasks of each operator; of a query on Spark the shuffle partitions."""
    config: Mapping[str, Scalar] = {}
    """The engine's settings for this job; they win over those of the service."""
    sink: Literal["exactly-once", "at-least-once", "none"] = "exactly-once"
    """Delivery guarantee of the Kafka sinks; `${sink.guarantee}` in the program."""
    transaction_timeout_s: Annotated[int, Field(ge=1, le=int(LONGEST_S))] = 900
    """Seconds after which a coordinator aborts a transaction of the Kafka sinks that is still open;
    in milliseconds `${sink.transaction-timeout-ms}` in the program. The default of 15 minutes is
    the default maximum of brokers (`transaction.max.timeout.ms`)."""
    promise: JobPromise = JobPromise()
    """What the job must write; from the head of its program when not given here."""

    @model_validator(mode="after")
    def _one_program(self) -> Job:
        program = self.sql is not None or self.pyspark is not None
        if [self.existing is not None, self.jar is not None, program].count(True) != 1:
            raise ValueError(
                "a job is either `jar: FILE`, or `sql: FILE`, `pyspark: FILE` or both of these, or "
                "one that runs already: `existing: {}`"
            )
        return self

    @model_validator(mode="after")
    def _own_classes_and_modules(self) -> Job:
        if self.jars and self.sql is None and self.pyspark is None:
            raise ValueError("`jars` are for `sql` and `pyspark`; a jar brings its own classes")
        if self.modules and self.pyspark is None:
            raise ValueError("`modules` are for `pyspark`")
        return self

    def programs(self) -> Mapping[str, str]:
        """The programs that were given, by kind."""
        given = {"sql": self.sql, "pyspark": self.pyspark, "jar": self.jar}
        return {kind: program for kind, program in given.items() if program is not None}


class Limits(Model):
    """How long each part of a run may take, in seconds."""

    ready_s: Limit = 240
    """Until every service is ready, and again until the job runs."""
    steady_s: Limit = 90
    """Until records flow in and out and a checkpoint has completed."""
    effect_s: Limit = 10
    """From an injection until its effect is observed."""
    trigger_s: Limit = 120
    """How long a fault waits for its trigger after steady state."""
    recover_s: Limit = 120
    """From the last heal until cluster and job have recovered."""
    drain_s: Limit = 180
    """From the end of the load until everything is read and committed."""


class Experiment(Model):
    """One complete experiment: all names are resolved, and all files are read."""

    name: Title
    description: str = ""
    topology: Topology
    job: Job | None = None
    other_jobs: Mapping[Name, Job] = {}
    workload: NamedWorkload
    faults: tuple[Step, ...] = ()
    checks: tuple[NamedCheck, ...] = ()
    limits: Limits = Limits()
    seed: Seed = 0
    expect: Expectation = "held"

    @property
    def expected(self) -> ExpectedOutcome:
        """The expected outcome of the run."""
        return ExpectedOutcome.of(self.expect)

    @property
    def commands(self) -> Mapping[str, CheckCommand]:
        """Title of a check -> the program that a run starts for it on this machine."""
        commands = {check.title: check.command() for check in self.checks}
        return {title: command for title, command in commands.items() if command is not None}

    @property
    def probes(self) -> Mapping[str, CheckProbe]:
        """Title of a check -> what a run asks for it."""
        probes = {check.title: check.probe() for check in self.checks}
        return {title: probe for title, probe in probes.items() if probe is not None}

    @property
    def jobs(self) -> Mapping[str, Job]:
        """Name -> job, in the order of their submission; `job` is the last one, called `JOB`."""
        return {**self.other_jobs, **({} if self.job is None else {JOB: self.job})}

    @property
    def checkpointed(self) -> bool:
        """Whether the job is to take checkpoints, by its own settings or its engine's."""
        found = job_runner(self.topology)
        if self.job is None or found is None:
            return False
        service, runner = found
        return runner.checkpointed(self.topology, service, self.job.config)

    @property
    def follows_job(self) -> bool:
        """Whether the job's engine is asked about it: the run submits it, or it runs on an engine
        whose endpoint the topology names."""
        found = job_runner(self.topology)
        if self.job is None or found is None:
            return False
        return self.job.existing is None or self.topology.services[found[0]].endpoint is not None

    @property
    def only_files(self) -> bool:
        """Whether the job writes files and no topic. Files are not watched during the run."""
        return self.job is not None and self.job.promise.only_files

    @property
    def promise(self) -> JobPromise:
        """What the outputs must hold; without a job, the input topic must hold what was sent."""
        return self.workload.input_promise() if self.job is None else self.job.promise

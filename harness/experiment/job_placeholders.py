"""The job's placeholders on a topology: addresses, topics and folders that its text names.

`topologies/jobs/README.md` has the table of the placeholders that are filled in here.
"""

from __future__ import annotations

from collections.abc import Mapping

from streamquake.cluster.engines.engine import RunsJobs, addresses_of, engine, engines, job_runner
from streamquake.cluster.engines.hdfs import engine as hdfs
from streamquake.cluster.engines.kafka import engine as kafka
from streamquake.harness.experiment.job_chain import group_of, topics_read
from streamquake.harness.experiment.model import JOB, Experiment
from streamquake.harness.experiment.outputs import Output
from streamquake.topologies.model import Topology


def job_service(topology: Topology) -> str | None:
    """The service that runs jobs, or None."""
    found = job_runner(topology)
    return None if found is None else found[0]


def runs_jobs(name: str) -> bool:
    """Whether an engine of this name is known and runs jobs."""
    return name in engines and isinstance(engine(name), RunsJobs)


def placeholders(experiment: Experiment, run: str, name: str = JOB) -> Mapping[str, str]:
    """Placeholder of a job -> its value on this topology."""
    topology, job = experiment.topology, experiment.jobs.get(name)
    group = group_of(run, name)
    topics = list(experiment.workload.topics() if job is None else topics_read(experiment, job))
    values = {"run": group, **{f"input.{topic}": topic for topic in topics}}
    if len(topics) == 1:
        values["input"] = topics[0]
    if job is not None:
        values["sink.guarantee"] = job.sink
        values["sink.transaction-timeout-ms"] = str(job.transaction_timeout_s * 1000)
    if (broker := topology.service_of("kafka")) is not None:
        values["source.bootstrap"] = kafka.addresses(topology, broker, "input")
        values["sink.bootstrap"] = kafka.addresses(topology, broker, "output")
    if (store := topology.service_of("hdfs")) is not None:
        values["hdfs"] = hdfs.uri(topology, store)
        values["checkpoint"] = f"{values['hdfs']}/checkpoints/{group}"
    for service_name, service in topology.services.items():
        for port in service.ports:
            values[f"{service_name}.{port}"] = addresses_of(topology, service_name, port)
    promise = experiment.promise if job is None else job.promise
    for output_name, output in promise.outputs.items():
        values[f"output.{output_name}"] = _name_of(output, values)
    return values


def _name_of(output: Output, values: Mapping[str, str]) -> str:
    """What a program calls an output: the topic, the URI of the folder or of the objects, or the
    table."""
    if output.hdfs is not None:
        return f"{values.get('hdfs', '')}{output.hdfs}"
    if output.address is not None:
        return output.address.name
    return output.place

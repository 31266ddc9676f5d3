"""Copies the outputs of a run into its folder, so that it can be judged without the cluster."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path
from threading import Thread

from pyspark.sql import SparkSession

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.engines.hdfs import engine as hdfs
from streamquake.cluster.engines.kafka import admin as kafka_admin
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.experiment.outputs import INPUT_FOLDER, Output
from streamquake.harness.reconcile.parallel_jobs import in_parallel
from streamquake.harness.reconcile.reading.database_table import read_table
from streamquake.harness.reconcile.reading.files import read_files
from streamquake.harness.reconcile.reading.format import Format
from streamquake.harness.reconcile.reading.objects import copy_objects
from streamquake.harness.reconcile.reading.stored_output import StoredOutput
from streamquake.harness.reconcile.reading.stored_topic import TopicRead
from streamquake.harness.run import output_objects, output_tables
from streamquake.reports.record.history import read_history
from streamquake.reports.record.run_events import RecordsSent
from streamquake.reports.record.run_folder import RunFolder


class EarlyReads:
    """The topics of a run's outputs, read while the job commits its last records.

    The read after the run then begins where this one ended. A topic that could not be read is read
    from its beginning then.
    """

    def __init__(self, cluster: Cluster, experiment: Experiment, folder: RunFolder) -> None:
        """Begin to read, up to the last stable offsets of this moment. Values of a declared format
        are read by Spark, and only after the run."""
        self._cluster = cluster
        self._experiment = experiment
        self._folder = folder
        self._reads: dict[str, TopicRead] = {}
        self._thread = Thread(target=self._read_all, name="early reads", daemon=True)
        self._thread.start()

    def of(self, output: str) -> TopicRead | None:
        """The read of an output, when its first part has ended; None where nothing was read."""
        self._thread.join()
        return self._reads.get(output)

    def _read_all(self) -> None:
        for name, output in self._experiment.promise.outputs.items():
            with suppress(Exception):  # the read after the run fails with the same error
                if output.kafka is not None and output.to_format(name) is None:
                    self._read(name, output, output.kafka)

    def _read(self, name: str, output: Output, topic: str) -> None:
        into = StoredOutput(path=self._folder.data / name)
        read = _topic_read(self._cluster, self._experiment, output, into)
        service = _service(self._experiment, "kafka")
        ends = kafka_admin.end_offsets(self._cluster, service, topic)
        read.read_until(None, ends, ends)
        self._reads[name] = read


def collect_outputs(
    cluster: Cluster,
    experiment: Experiment,
    spark: SparkSession,
    folder: RunFolder,
    early: EarlyReads | None = None,
) -> None:
    """Read every output of the job's promise into `folder.data/<output>/`.

    If the outcome of a send is unknown, the input topic is read too: it shows whether the record
    arrived. Raises KafkaUnreachable, HdfsShellError, DatabaseUnreadable,
    ObjectsUnreadable, BadInput for records of an unknown schema, or pyspark's errors; the other
    outputs are read nevertheless.
    """
    outputs = experiment.promise.outputs

    def read(name: str) -> None:
        output, into = outputs[name], StoredOutput(path=folder.data / name)
        if output.kafka is not None:
            begun = early.of(name) if early else None
            topic_read = begun or _topic_read(cluster, experiment, output, into)
            _finish(topic_read, cluster, experiment, spark, output.kafka)
        elif output.address is not None:
            address = output_tables.reachable(cluster, output.address)
            read_table(spark, address, into=into, source=output.place)
        else:
            declared_format = output.to_format(f"outputs.{name}.schema")
            _read_folder(cluster, experiment, spark, output, into, declared_format)

    in_parallel(read, outputs, lambda: spark)
    if _settles_sends(experiment) and _has_unknown_sends(folder):
        (topic,) = experiment.workload.topics()
        into = StoredOutput(path=folder.data / INPUT_FOLDER)
        topic_read = _topic_read(cluster, experiment, Output(kafka=topic), into)
        _finish(topic_read, cluster, experiment, spark, topic)


def _topic_read(
    cluster: Cluster, experiment: Experiment, output: Output, into: StoredOutput
) -> TopicRead:
    topic = str(output.kafka)
    return TopicRead(
        kafka_admin.connection(cluster, _service(experiment, "kafka")),
        topic,
        into=into,
        starts=cluster.run.begins.get(topic, {}),
        declared_format=output.to_format(f"outputs.{into.path.name}.schema"),
    )


def _finish(
    read: TopicRead, cluster: Cluster, experiment: Experiment, spark: SparkSession, topic: str
) -> None:
    """Read the rest of a topic, up to its ends of this moment."""
    service = _service(experiment, "kafka")
    read.read_until(
        spark,
        kafka_admin.end_offsets(cluster, service, topic),
        kafka_admin.end_offsets(cluster, service, topic, committed=False),
    )
    read.finish(began_ms=cluster.clock.epoch_ms() - cluster.clock.now_ns() // 1_000_000)


def _read_folder(
    cluster: Cluster,
    experiment: Experiment,
    spark: SparkSession,
    output: Output,
    into: StoredOutput,
    declared_format: Format | None,
) -> None:
    with tempfile.TemporaryDirectory(prefix="streamquake-") as copied:
        fetched = Path(copied)
        if output.objects is not None:
            copy_objects(output_objects.reachable(cluster, output.objects), fetched)
        else:
            service = _service(experiment, "hdfs")
            fetched = hdfs.fetch(cluster, service, output.place, fetched)
        read_files(spark, fetched, into=into, source=output.place, declared_format=declared_format)


def _service(experiment: Experiment, engine: str) -> str:
    service = experiment.topology.service_of(engine)
    if service is None:
        raise LookupError(f"topology {experiment.topology.name} has no {engine} to read from")
    return service


def _settles_sends(experiment: Experiment) -> bool:
    """Whether the records in the input topic show which sends arrived."""
    return experiment.job is not None and experiment.workload.generated


def _has_unknown_sends(folder: RunFolder) -> bool:
    sends = read_history(folder.history).of(RecordsSent)
    return any(event.status == "unknown" for event in sends)

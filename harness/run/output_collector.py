"""Copies the outputs of a run into its folder, so that it can be judged without the cluster."""

from __future__ import annotations

import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.engines.hdfs import engine as hdfs
from streamquake.cluster.engines.kafka import admin as kafka_admin
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.experiment.outputs import INPUT_FOLDER
from streamquake.harness.reconcile.parallel_jobs import in_parallel
from streamquake.harness.reconcile.reading.files import read_files
from streamquake.harness.reconcile.reading.format import Format
from streamquake.harness.reconcile.reading.stored_output import StoredOutput
from streamquake.harness.reconcile.reading.stored_topic import read_topic
from streamquake.reports.record.history import read_history
from streamquake.reports.record.run_events import RecordsSent
from streamquake.reports.record.run_folder import RunFolder


def collect_outputs(
    cluster: Cluster, experiment: Experiment, spark: SparkSession, folder: RunFolder
) -> None:
    """Read every output of the job's promise into `folder.data/<output>/`.

    If the outcome of a send is unknown, the input topic is read too: it shows whether the record
    arrived. Raises KafkaUnreachable, HdfsShellError, BadInput for records of an unknown schema, or
    pyspark's errors; the other outputs are read nevertheless.
    """
    outputs = experiment.promise.outputs

    def read(name: str) -> None:
        output, into = outputs[name], StoredOutput(path=folder.data / name)
        declared_format = output.to_format(f"outputs.{name}.schema")
        if output.kafka is not None:
            _read_topic(cluster, experiment, spark, output.kafka, into, declared_format)
        else:
            _read_folder(cluster, experiment, spark, str(output.hdfs), into, declared_format)

    in_parallel(read, outputs, lambda: spark)
    if experiment.job is not None and _has_unknown_sends(folder):
        (topic,) = experiment.workload.topics()
        into = StoredOutput(path=folder.data / INPUT_FOLDER)
        _read_topic(cluster, experiment, spark, topic, into)


def _read_topic(
    cluster: Cluster,
    experiment: Experiment,
    spark: SparkSession,
    topic: str,
    into: StoredOutput,
    declared_format: Format | None = None,
) -> None:
    service = _service(experiment, "kafka")
    read_topic(
        spark,
        kafka_admin.bootstrap(cluster, service),
        topic,
        stable_ends=kafka_admin.end_offsets(cluster, service, topic),
        ends=kafka_admin.end_offsets(cluster, service, topic, committed=False),
        into=into,
        starts=cluster.run.begins.get(topic, {}),
        began_ms=cluster.clock.epoch_ms() - cluster.clock.now_ns() // 1_000_000,
        declared_format=declared_format,
    )


def _read_folder(
    cluster: Cluster,
    experiment: Experiment,
    spark: SparkSession,
    path: str,
    into: StoredOutput,
    declared_format: Format | None,
) -> None:
    with tempfile.TemporaryDirectory(prefix="streamquake-") as copied:
        fetched = hdfs.fetch(cluster, _service(experiment, "hdfs"), path, Path(copied))
        read_files(spark, fetched, into=into, source=path, declared_format=declared_format)


def _service(experiment: Experiment, engine: str) -> str:
    service = experiment.topology.service_of(engine)
    if service is None:
        raise LookupError(f"topology {experiment.topology.name} has no {engine} to read from")
    return service


def _has_unknown_sends(folder: RunFolder) -> bool:
    sends = read_history(folder.history).of(RecordsSent)
    return any(event.status == "unknown" for event in sends)

"""How many records of a topic a job has not read."""

from __future__ import annotations

from collections.abc import Mapping

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.engines.engine import KeepsOffsets, engine
from streamquake.cluster.engines.kafka import admin as kafka_admin
from streamquake.harness.run.job_preparation import RunningJob


def topic_lag(
    cluster: Cluster,
    service: str,
    topic: str,
    ends: Mapping[int, int],
    *,
    group: str,
    job: RunningJob | None = None,
) -> int:
    """How many offsets before the ends of a topic's partitions a job has not read, by the positions
    it reports, or else by the offsets that its consumer group, or its engine, has committed. Raises
    KafkaUnreachable."""
    committed = _committed(cluster, service, topic, group)
    read = {} if job is None else job.positions(topic)
    return sum(
        max(0, end - read.get(partition, committed.get(partition, 0)))
        for partition, end in ends.items()
    )


def _committed(cluster: Cluster, service: str, topic: str, group: str) -> Mapping[int, int]:
    """Partition -> the read offset committed by a consumer group, or by the engine of the run's job
    if it stores offsets elsewhere."""
    job = cluster.run.job
    if job is not None:
        job_engine = engine(cluster.topology.services[job.service].engine)
        if isinstance(job_engine, KeepsOffsets):
            return job_engine.committed(cluster, job.service, topic)
    if not group:
        return {}  # an existing job whose group is not known
    return kafka_admin.group_offsets(cluster, service, topic, group)

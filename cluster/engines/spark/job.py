"""The state of one running query: whether it runs completely, its offsets, whether it has committed
everything."""

from __future__ import annotations

from collections.abc import Mapping

from streamquake.cluster.engines.spark.batches import figures
from streamquake.cluster.engines.spark.driver_listener import DriverState, DriverUnreachable, driver
from streamquake.cluster.live_cluster import LiveCluster

SETTLE_MS = 1_000
"""A query that reports to be idle, or begins a batch, this long after the last record has polled
the source since then."""


def pending(cluster: LiveCluster, service: str) -> str | None:
    """Why the query does not run completely, or None when it runs with an executor on each
    worker."""
    try:
        now = driver(cluster, service).now()
    except DriverUnreachable as error:
        return str(error)
    if (reason := not_running(now)) is not None:
        return reason
    workers = {node.spec.host for node in cluster.of_role(f"{service}/worker")}
    missing = sorted(workers - set(now.executors))
    if missing:
        return f"no executor on {', '.join(missing)}"
    at_work = now.latest("query started", "task started", "progress", "idle")
    if at_work is None or at_work["what"] == "query started":
        return "the query has started no task yet"
    return None


def drain_pending(cluster: LiveCluster, service: str, since_ms: int) -> str | None:
    """Why output up to a moment (epoch ms) is not committed yet, or None when it is.

    A query is idle when it has committed all records that it found, and the batch without records
    that closes windows. A query in real-time mode is never idle, since batches run without pause;
    it has committed everything when a batch that began since then has found no records.
    """
    try:
        now = driver(cluster, service).now()
    except DriverUnreachable as error:
        return str(error)
    if (reason := not_running(now)) is not None:
        return reason
    settled_ms = since_ms + SETTLE_MS
    last = now.latest("offset written", "job", "commit written", "progress", "idle")
    if last is not None and last["what"] == "idle" and last["ms"] >= settled_ms:
        return None
    if (entry := now.last.get("progress")) is None:
        return "no batch of the query has ended yet"
    batch = figures(entry["progress"])
    # Without state a batch runs only because of records, or in real-time mode.
    is_empty = not batch["input_rows"] and not batch["state_operators"]
    if is_empty and batch["began_ms"] >= settled_ms:
        return None
    took_s = batch["durations_ms"]["triggerExecution"] / 1000
    return (
        "the query has not been idle since then, and no batch that began since then has ended "
        f"without records; its last batch took {took_s:.1f} s"
    )


def committed(cluster: LiveCluster, service: str, topic: str) -> Mapping[int, int]:
    """Partition -> the next offset to be read, after the last batch that is known to be committed.
    The offsets of a run stay known while the driver is unreachable or restarts."""
    known: dict[int, int] = cluster.run.committed.setdefault(topic, {})
    try:
        entry = driver(cluster, service).now().last.get("progress")
    except DriverUnreachable:
        return known
    for source in entry["progress"]["sources"] if entry is not None else ():
        end = source.get("endOffset")
        if isinstance(end, Mapping):
            known |= {int(number): int(offset) for number, offset in end.get(topic, {}).items()}
    return known


def not_running(now: DriverState) -> str | None:
    """Why no query runs in a driver that answers, or None when one does."""
    last = now.latest("query started", "query ended")
    if last is None:
        return "the query has not started"
    if last["what"] == "query ended":
        return f"the query has ended: {root_cause(str(last['reason'])) or 'no reason given'}"
    return None


def root_cause(reason: str) -> str:
    """The innermost cause of a Java stack trace, on one line."""
    lines = [line.strip() for line in reason.splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    return (causes[-1] if causes else lines[0] if lines else "")[:400]

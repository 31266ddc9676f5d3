"""Lose the unflushed log: a broker's machine loses power, and all log data that is not on disk is
lost."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.engines.kafka import log as kafka_log
from streamquake.cluster.node import Node
from streamquake.cluster.runtime.command_retry import run_again_on_failure
from streamquake.cluster.runtime.runtime import ContainerError, ContainerStatus, InjectionTimes
from streamquake.faults.fault import Evidence, NodeFault, faults
from streamquake.faults.mechanisms.processes import KILLED
from streamquake.faults.mechanisms.resources import run_inside
from streamquake.faults.requirement import Requirements, each, more_than, one_of

LOG = kafka_log.FOLDER
MARK = f"{kafka_log.DATA}/streamquake-unflushed"
"""A file in the node that lists what was truncated, for evidence and heal in another process."""

LIST = """
n=0
while grep -h '^State:' /proc/1/task/*/status 2>/dev/null | grep -qv T; do
  n=$((n + 1)); [ $n -lt 200 ] || { echo 'the broker could not be stopped'; exit 3; }
  sleep 0.01
done
cd "$1" && cat "$2" && echo --- && find . -name '*.log' -path './*/*' -exec stat -c '%n %s' {} +
"""
"""Wait until no thread of the broker runs; then print its recovery points and its segments."""

TRUNCATE = """
cd "$1" && printf '%s\\n' "$3" > "$2" || exit 3
mark=$2; shift 3
while [ $# -gt 0 ]; do
  if [ "$1" = delete ]; then rm -f "${2%.log}".*; else truncate -s "$1" "$2" || exit 3; fi
  printf '%s %s\\n' "$2" "$(stat -c %s "$2" 2>/dev/null || echo 0)" >> "$mark"
  shift 2
done
"""
"""Write the mark, truncate, and append to the mark the new size of each file."""


@faults.register
class LoseUnflushedLog(NodeFault):
    """Kill a broker and truncate its log to its last flush, before heal starts it again: the page
    cache is lost, and with it acknowledged records, unless other brokers have copies."""

    name: ClassVar[str] = "lose_unflushed_log"
    touches: ClassVar[str] = "process"
    shows_in_place: ClassVar[bool] = True
    ends_process: ClassVar[bool] = True
    engines: ClassVar[tuple[str, ...]] = ("kafka",)
    drawn: ClassVar[bool] = False
    usual: ClassVar[str] = "kafka/broker-3"

    def inject(self, cluster: Cluster, target: Node) -> InjectionTimes:
        """Stop the broker with SIGSTOP, so that it writes nothing while its files are truncated;
        then kill it, even if the truncation fails."""
        called_ns = cluster.runtime.kill(target.container, "STOP").called_ns
        try:
            _truncate(cluster, target)
        finally:
            killed = cluster.runtime.kill(target.container)
        return InjectionTimes(called_ns=called_ns, seen_ns=killed.seen_ns, how=killed.how)

    def evidence(self, cluster: Cluster, target: Node, baseline: Mapping[str, Any]) -> Evidence:
        """In effect while the broker is down and bytes are missing from its files."""
        state = cluster.state(target)
        lost = _bytes_lost(cluster, target) if state.status == ContainerStatus.EXITED else {}
        return Evidence(
            in_effect=state.status == ContainerStatus.EXITED and bool(lost),
            healed=state.status == ContainerStatus.RUNNING and not _is_marked(cluster, target),
            in_place=state.status == ContainerStatus.EXITED,
            observations={
                "status": str(state.status),
                "exit_code": state.exit_code,
                "bytes_lost": sum(lost.values()),
                "segments": lost,
            },
        )

    def effect_requires(self, before: Mapping[str, Any]) -> Requirements:
        return {
            "status": one_of(str(ContainerStatus.EXITED)),
            "exit_code": one_of(KILLED),
            "bytes_lost": more_than(0),
            "segments": each(more_than(0)),
        }

    def contradicted_effect(
        self, observations: Mapping[str, Any], before: Mapping[str, Any]
    ) -> Iterator[str]:
        yield from super().contradicted_effect(observations, before)
        lost, segments = observations.get("bytes_lost"), observations.get("segments")
        sizes = list(segments.values()) if isinstance(segments, Mapping) else []
        if each(more_than(0)).is_met(sizes) and lost != sum(sizes):
            yield f"bytes_lost: expected {sum(sizes)}, as of its segments, got {lost}"

    def heal_requires(self, before: Mapping[str, Any]) -> Requirements:
        return {"status": one_of(str(ContainerStatus.RUNNING)), "bytes_lost": one_of(0)}

    def heal(self, cluster: Cluster, target: Node, baseline: Mapping[str, Any]) -> InjectionTimes:
        """Restart it. A broker that is stopped in the middle of a truncation must not continue: it
        is killed first."""
        if cluster.state(target).status == ContainerStatus.RUNNING:
            if not _is_marked(cluster, target):
                return cluster.runtime.kill(target.container, "CONT")
            if _marked_at(cluster, target) == cluster.state(target).started_at:
                cluster.runtime.kill(target.container)
        bracket = cluster.start_again(target)
        run_again_on_failure(cluster.runtime, target.container, ["rm", "-f", MARK])
        return bracket


def _truncate(cluster: Cluster, node: Node) -> None:
    listed = _in_node(cluster, node, LIST, LOG, kafka_log.CHECKPOINT)
    checkpoint, _, listing = listed.partition("---\n")

    def read(path: str) -> bytes:
        return _file(cluster, node, f"{LOG}/{path}")

    found = kafka_log.segments(listing)
    cuts = kafka_log.truncations(found, kafka_log.recovery_points(checkpoint), read)
    mark = {
        "started_at": cluster.state(node).started_at,
        "before": {cut.path: cut.size for cut in cuts},
    }
    steps = [w for c in cuts for w in ("delete" if c.new_size is None else str(c.new_size), c.path)]
    _in_node(cluster, node, TRUNCATE, LOG, MARK, json.dumps(mark), *steps)


def _bytes_lost(cluster: Cluster, node: Node) -> dict[str, int]:
    """Segment -> bytes that were truncated since the container's last start."""
    mark, after = _mark(cluster, node)
    if mark.get("started_at") != cluster.state(node).started_at:
        return {}
    lost = {path: size - after.get(path, size) for path, size in mark["before"].items()}
    return {path: size for path, size in lost.items() if size > 0}


def _marked_at(cluster: Cluster, node: Node) -> str | None:
    """The time stamp of the container's start in which the log was truncated."""
    mark, _ = _mark(cluster, node)
    return mark.get("started_at")


def _mark(cluster: Cluster, node: Node) -> tuple[Mapping[str, Any], Mapping[str, int]]:
    """The content of the mark: the state before the truncation, and segment -> size after it; empty
    without a mark."""
    try:
        head, *lines = _file(cluster, node, MARK).decode().splitlines()
    except ContainerError:
        return {}, {}
    sizes = (line.rpartition(" ") for line in lines)
    return json.loads(head), {path: int(size) for path, _, size in sizes}


def _is_marked(cluster: Cluster, node: Node) -> bool:
    return run_inside(cluster, node, ["test", "-e", MARK]).exit_code == 0


def _in_node(cluster: Cluster, node: Node, script: str, *words: str) -> str:
    done = cluster.runtime.exec(node.container, ["sh", "-c", script, "sh", *words])
    if done.exit_code != 0:
        raise ContainerError(f"{node.name}: the log could not be truncated: {done.output.strip()}")
    return done.output


def _file(cluster: Cluster, node: Node, path: str) -> bytes:
    """The content of a file of the node, which may have ended. Raises ContainerError when the file
    does not exist."""
    with tempfile.TemporaryDirectory() as folder:
        cluster.runtime.copy_out(node.container, path, Path(folder))
        return (Path(folder) / Path(path).name).read_bytes()

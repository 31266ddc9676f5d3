"""The bed of a run: its cluster, its guard, and the threads that watch it, opened and closed.

Everything opened here is closed in the reverse order, each step tried, whatever else fails.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager

from streamquake.cluster import labels
from streamquake.cluster.clock import on_run_clock_ns
from streamquake.cluster.cluster import Cluster, remove_cluster, start_cluster
from streamquake.harness.jobs import RunningJob
from streamquake.harness.loop import Loop
from streamquake.reports.event import Action, Kind, Note
from streamquake.reports.run_folder import RunFolder

EVENTS = {
    "die": Action.CONTAINER_DIED,
    "oom": Action.CONTAINER_OOM,
    "start": Action.CONTAINER_STARTED,
}


@contextmanager
def deployed(
    cluster: Cluster, loop: Loop, folder: RunFolder, *, limit_s: float, keep: bool,
    say: Callable[[str], None], warn: Callable[[str], None],
) -> Iterator[Cluster]:  # fmt: skip
    """The cluster of a run, ready; its logs are saved and it is removed at the end.

    With `keep` it stays, without an owner, as if `up` had started it.
    """
    owner = "" if keep else labels.owner_of_this_process()
    tags = {labels.OWNER: owner, labels.FOLDER: str(folder.path.resolve())}
    with ExitStack() as stack:
        if not keep:
            stack.enter_context(cluster.runtime.guard(cluster.run_id))
            stack.callback(_remove, cluster, warn)
        stack.callback(_save_logs, cluster, folder, warn)
        start_cluster(cluster, tags=tags, limit_s=limit_s, say=say)
        stack.enter_context(_container_events(cluster, loop))
        yield cluster


@contextmanager
def followed(loop: Loop, job: RunningJob) -> Iterator[None]:
    """Watch a job from a thread of its own until the end of the block."""
    stop = threading.Event()

    def follow() -> None:
        job.follow(loop.emit, loop.measure, stop)

    with worker(follow, loop, f"follow-{job.service}", stop.set):
        yield


@contextmanager
def worker(
    work: Callable[[], None], loop: Loop, name: str, stop: Callable[[], None]
) -> Iterator[None]:
    """Run something in a thread; what it raises goes into the history, and the run goes on."""

    def guarded() -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - a failed watcher is said, never hidden
            said = f"{type(error).__name__}: {error}"
            loop.say(Action.HARNESS_ERROR, part=name, error_text=said, error=said)

    thread = threading.Thread(target=guarded, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop()
        thread.join(timeout=10)


@contextmanager
def _container_events(cluster: Cluster, loop: Loop) -> Iterator[None]:
    def follow() -> None:
        for event in cluster.runtime.events({labels.RUN: cluster.run_id, labels.NODE: ""}):
            value: Mapping[str, object] = {
                "node": event.labels.get(labels.NODE, ""),
                "exit_code": event.exit_code,
            }
            loop.emit(
                Note(
                    at_ns=on_run_clock_ns(loop.clock, event.epoch_ms * 1_000_000),
                    process="containers",
                    kind=Kind.INFO,
                    action=EVENTS[event.action],
                    value=value,
                )
            )

    with worker(follow, loop, "container-events", cluster.runtime.close_events):
        yield


def _save_logs(cluster: Cluster, folder: RunFolder, warn: Callable[[str], None]) -> None:
    try:
        cluster.save_logs(folder.logs)
    except Exception as error:  # noqa: BLE001 - a failing step of the tear-down stops no other
        warn(str(error))


def _remove(cluster: Cluster, warn: Callable[[str], None]) -> None:
    try:
        for failure in remove_cluster(cluster.runtime, cluster.run_id):
            warn(f"not removed: {failure}")
    except Exception as error:  # noqa: BLE001 - a failing tear-down never hides a verdict
        warn(f"tear-down: {error}")

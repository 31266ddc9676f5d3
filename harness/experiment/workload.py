"""What a workload is: the load of a run, and the record of what it sent.

A workload is one member of `harness/workloads/`: a frozen model whose fields are its YAML
parameters, and three methods. It stores no sent records: the history has the index ranges of the
sends. Every record is a pure function of (seed, index) and of how faults of the data steered the
load (`workload steered` in the history). So Spark can generate the expected input at any size.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar, Protocol

from streamquake.cluster.engines.engine import RecordEvent, RecordSample
from streamquake.cluster.runtime.clock import Clock
from streamquake.cluster.steering import SteerableLoad
from streamquake.reports.record.history import History
from streamquake.topologies.errors import ErrorKind, StreamquakeError
from streamquake.topologies.model import Model
from streamquake.topologies.registry import Registry

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class WorkloadFinished(StreamquakeError):
    """There is nothing left to send, so nothing can be disturbed."""

    kind = ErrorKind.UNDECIDED


class RunningWorkload(Protocol):
    """A workload that sends, in threads of its own."""

    @property
    def sent(self) -> int:
        """Records acknowledged so far."""
        ...

    @property
    def done(self) -> bool:
        """Whether it ended (all sent, stopped or failed) and its last events are recorded."""
        ...

    @property
    def failure(self) -> str | None:
        """Why the sender itself failed, or None; the failure of single records does not count."""
        ...

    @property
    def steering(self) -> SteerableLoad | None:
        """How faults of the data disturb it; None for a load that cannot be disturbed."""
        ...

    def stop(self) -> None:
        """Stop sending, settle the sends in flight, record the last events. May be called twice."""
        ...


class Workload(Model):
    """The base of every workload."""

    name: ClassVar[str]

    @property
    def seconds(self) -> float:
        """How long it takes to send by its own rate."""
        raise NotImplementedError

    @property
    def planned(self) -> int | None:
        """How many records it will send; None if that is not known in advance."""
        return None

    def topics(self) -> Mapping[str, int]:
        """The topics it writes to -> how many partitions each must have."""
        raise NotImplementedError

    def start(
        self,
        bootstrap: str,
        seed: int,
        clock: Clock,
        record_event: RecordEvent,
        measure: RecordSample,
    ) -> RunningWorkload:
        """Start sending. Events (`records sent`, `workload finished`) go to `record_event`, samples
        of the rate (`sent_per_s`) to `measure`."""
        raise NotImplementedError

    def send_problems(self, history: History) -> Iterator[str]:
        """The problems of the recorded sends, such as records that no event reports."""
        return iter(())

    def sent_frame(self, spark: SparkSession, history: History, seed: int) -> DataFrame:
        """One row per record that was sent, with its columns and `status`: acknowledged, failed,
        unknown. Generated inside Spark from the ranges in the history."""
        raise NotImplementedError


workloads: Registry[Workload] = Registry("workload", "streamquake.harness.workloads")

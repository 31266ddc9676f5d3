"""What a workload is: the load of a run, and the record of what it sent.

A workload is one member of `harness/workloads/`: a frozen model whose fields are its YAML
parameters, and a few methods. The history has the index ranges of the sends. A generated record is
a pure function of (seed, index) and of how faults of the data steered the load (`workload steered`
in the history), so that Spark can generate the expected input at any size. Other records are stored
with the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol, Self

from streamquake.cluster.engines.engine import RecordEvent, RecordSample
from streamquake.cluster.engines.kafka.connection import KafkaConnection
from streamquake.cluster.runtime.clock import Clock
from streamquake.cluster.steering import SteerableLoad
from streamquake.harness.experiment.outputs import JobPromise
from streamquake.reports.record.history import History
from streamquake.topologies.errors import ErrorKind, StreamquakeError
from streamquake.topologies.model import Model
from streamquake.topologies.registry import Registry
from streamquake.topologies.yaml_document import Place

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
    generated: ClassVar[bool] = True
    """Whether the records are generated: then faults of the data can change them, and the value of
    each has its `index`."""

    files: ClassVar[tuple[str, ...]] = ()
    """The parameters that name files of the document."""
    describing: ClassVar[tuple[str, ...]] = ()
    """The parameters that say what the records are: a job reads no others, so that a smaller
    experiment keeps them."""

    def loads(self) -> Mapping[Place, Workload]:
        """The loads that it consists of, each with its place in the parameters."""
        return {(): self}

    def with_loads(self, loads: Mapping[Place, Workload]) -> Workload:
        """The same with other loads at the places of `loads`."""
        return loads[()]

    def with_files(self, find: Callable[[str], Path]) -> Self:
        """The workload with what its files hold; `find` looks up a path beside the document. Raises
        LookupError for a missing file, ValueError for one that cannot be sent."""
        return self

    def file_places(self) -> Mapping[Place, str]:
        """The files that its loads name, each at its place in the document."""
        return {
            ("workload", self.name, *below, name): getattr(load, name)
            for below, load in self.loads().items()
            for name in load.files
        }

    def with_stored(self, data: Path) -> Self:
        """The workload of a recorded run, to be sent again: with the files that `store` wrote.
        Raises ValueError."""
        return self

    def written_beside(self, folder: Path) -> Self:
        """The workload for a document in this folder; the files that it names are written there.
        Raises OSError, ValueError."""
        return self

    def store(self, data: Path, seed: int) -> None:
        """Write what the verdict needs beside the history into the folder `data` of a run. Raises
        OSError, ValueError."""

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
        brokers: KafkaConnection,
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

    def sent_frame(self, spark: SparkSession, history: History, seed: int, data: Path) -> DataFrame:
        """One row per record that was sent, with its columns, `index` and `status`: acknowledged,
        failed, unknown. From the ranges in the history, and from what `store` wrote into `data`."""
        raise NotImplementedError

    @property
    def input_problem(self) -> str | None:
        """Why the input topic cannot be judged where no job runs; None where it can."""
        return None

    def input_promise(self) -> JobPromise:
        """What the input topic must hold, which is judged where no job runs."""
        raise NotImplementedError


workloads: Registry[Workload] = Registry("workload", "streamquake.harness.workloads", base=Workload)

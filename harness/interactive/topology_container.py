"""A topology in a Python test, in the way of the package testcontainers.

    with TopologyContainer("kafka-only") as kafka:
        brokers = kafka.get_bootstrap_server()
        with kafka.fault("kill", "one of kafka/broker"):
            produce(brokers, "sent.jsonl", topic="orders")
        found = kafka.check(expected="sent.jsonl", actual=f"kafka://{brokers}/orders", key="id")
    assert found.outcome == "held"

Other containers join its network, as in `DockerContainer("app:1").with_network(kafka.network)`.
https://testcontainers-python.readthedocs.io
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.engines.engine import ports_of
from streamquake.cluster.engines.kafka.admin import bootstrap
from streamquake.cluster.runtime import labels
from streamquake.cluster.runtime.clock import Clock, SystemClock
from streamquake.cluster.runtime.docker.runtime import DockerRuntime
from streamquake.cluster.runtime.runtime import ContainerRuntime
from streamquake.cluster.runtime.waiting import wait_until
from streamquake.faults.injection.injection import undo
from streamquake.harness.experiment.loader import topology_for_use
from streamquake.harness.interactive.injection import InteractiveInjection, inject_now
from streamquake.harness.interactive.session import ClusterSession, remove, start_session
from streamquake.harness.reconcile.comparison import ComparisonRequest, DataComparison, Side
from streamquake.harness.reconcile.two_sources import compare_sources
from streamquake.harness.run.image_preparation import ensure_images
from streamquake.topologies.errors import ErrorKind, StreamquakeError
from streamquake.topologies.model import Topology
from streamquake.topologies.problems import did_you_mean

READY_LIMIT_S = 240.0
EFFECT_LIMIT_S = 30.0
"""How long an effect, or its heal, may take to be verified."""
SPARK_MASTER = "local[*]"


class NotInEffect(StreamquakeError):
    """The effect of a fault was not verified; the fault is healed."""

    kind = ErrorKind.UNDECIDED


class NotHealed(StreamquakeError):
    """The heal of a fault was not verified."""

    kind = ErrorKind.CLUSTER_FAILED


class NotStarted(StreamquakeError):
    """The cluster is used before its start, or after its stop."""

    kind = ErrorKind.BAD_INPUT


class NotRemoved(StreamquakeError):
    """Parts of the cluster are left after its stop; the message lists them."""

    kind = ErrorKind.CLUSTER_FAILED


@dataclass(frozen=True)
class JoinedNetwork:
    """The network of a cluster; testcontainers needs its name."""

    name: str


class TopologyContainer:
    """A cluster of a topology, from `start` to `stop`, or for a `with` block.

    The cluster is removed at the end of the block, also after an error or Ctrl-C, and by the reaper
    when this process is killed. With `keep` it stays, for `streamquake status` and `down`.
    """

    def __init__(
        self,
        topology: str | Topology,
        *,
        beside: Path | None = None,
        out: Path = Path("runs"),
        limit_s: float = READY_LIMIT_S,
        seed: int | None = None,
        keep: bool = False,
        runtime: ContainerRuntime | None = None,
        clock: Clock | None = None,
        show_message: Callable[[str], None] = lambda line: None,
    ) -> None:
        """`topology` is a shipped one by name, a file, or the topology itself; `beside` is the
        folder in which names are looked up first. `out` gets a folder with the logs. `limit_s` is
        the time until ready in seconds; `seed` decides the choice among several nodes.

        Raises BadInput with every problem of the topology.
        """
        self.topology = (
            topology if isinstance(topology, Topology) else topology_for_use(topology, beside)
        )
        self._out, self._limit_s, self._keep = out, limit_s, keep
        self._clock = clock or SystemClock()
        self._runtime = runtime
        self._show_message = show_message
        self._rng = random.Random(seed)
        self._stack = ExitStack()
        self._session: ClusterSession | None = None

    def start(self) -> Self:
        """Build or fetch the images, start the cluster and wait until it is ready; does nothing
        where it is up. Returns itself.

        Raises ImageBuildFailed, ImageMissing, NotReadyInTime, NodeDied, ContainerError.
        """
        if self._session is not None:
            return self
        runtime = self._runtime = self._runtime or DockerRuntime(self._clock)
        runtime.check()
        ensure_images(self.topology, runtime.images(), self._show_message)
        self._session = start_session(
            self.topology,
            out=self._out,
            runtime=runtime,
            clock=self._clock,
            limit_s=self._limit_s,
            show_message=self._show_message,
            owner="" if self._keep else labels.owner_of_this_process(),
        )
        if not self._keep:
            try:
                self._stack.enter_context(runtime.guard(self._session.cluster.run_id))
            except BaseException:
                self.stop()
                raise
        return self

    def stop(self) -> None:
        """Save the logs and remove the cluster; does nothing where it has none. Raises
        NotRemoved."""
        stack, self._stack = self._stack, ExitStack()
        with stack:
            failures = [] if self._session is None or self._keep else remove(self._session)
            self._session = None
        if failures:
            raise NotRemoved("not removed: " + "; ".join(failures))

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.stop()
        except NotRemoved as left:
            if error is None:
                raise
            error.add_note(str(left))

    @property
    def cluster(self) -> Cluster:
        """The nodes, their containers and addresses. Raises NotStarted."""
        return self._started().cluster

    @property
    def folder(self) -> Path:
        """The folder of its logs and open faults. Raises NotStarted."""
        return self._started().folder.path

    @property
    def network(self) -> JoinedNetwork:
        """The network in which other containers reach the nodes by their host names, such as
        `kafka-broker-1`. They must leave it before the cluster is stopped."""
        return JoinedNetwork(self.cluster.network)

    @property
    def proxy_url(self) -> str | None:
        """Where Toxiproxy's interface answers on this machine; None without links."""
        proxy = self.cluster.links.proxy
        return None if proxy is None else proxy.url

    def get_container_host_ip(self) -> str:
        """The address under which this machine reaches the published ports."""
        return "127.0.0.1"

    def get_exposed_port(self, node: str, port: str | int) -> int:
        """The port of this machine that leads to a port of a node (`kafka/broker-1`), which is
        given by name or number. Raises LookupError for a node or port that there is not."""
        found = self.cluster.nodes.get(node)
        if found is None:
            hint = did_you_mean(node, self.cluster.nodes)
            raise LookupError(f'no node is called "{node}"{hint}')
        names = ports_of(self.topology, found.spec.service)
        number = names.get(port, 0) if isinstance(port, str) else port
        if number not in found.host_ports:
            known = {name for name, at in names.items() if at in found.host_ports}
            hint = did_you_mean(str(port), known)
            raise LookupError(f"{node} publishes no port {port}{hint}")
        return found.host_ports[number]

    def get_bootstrap_server(self, service: str | None = None) -> str:
        """The addresses of a Kafka for clients on this machine, between commas; of the first one
        where no service is named. Raises LookupError where there is none."""
        service = service or self.topology.service_of("kafka") or ""
        found = self.topology.services.get(service)
        if found is None or found.engine != "kafka":
            raise LookupError(f"{self.topology.name} has no such service of the engine kafka")
        return bootstrap(self.cluster, service)

    def wait_until_ready(self, limit_s: float | None = None) -> None:
        """Wait until every service is ready, as after a fault; as long as `start` may take unless a
        limit is given, in seconds. Raises NotReadyInTime, NodeDied."""
        wait_until(
            self.cluster.pending,
            what="cluster ready",
            limit_s=limit_s or self._limit_s,
            clock=self.cluster.clock,
        )

    @contextmanager
    def fault(
        self, name: str, target: str, /, *, limit_s: float = EFFECT_LIMIT_S, **parameters: object
    ) -> Iterator[InteractiveInjection]:
        """Inject a fault for the length of a block, and heal it after it.

        The block begins when the effect is verified; `result.evidence` of the value has what was
        seen. Targets are written as in experiments: `one of kafka/broker`, `link source`. A killed
        node is started again by the heal; `wait_until_ready` waits until it serves.

        Raises BadInput for an unknown fault, parameter or target, NotInEffect before the block, and
        NotHealed after it.
        """
        session = self._started()
        words = [
            f"{key}={json.dumps(value, ensure_ascii=False, default=str)}"
            for key, value in parameters.items()
        ]
        injected = inject_now(session, name, target, words, rng=self._rng, limit_s=limit_s)
        what = f"{name} on {', '.join(injected.intent.names)}"
        if not injected.result.done:
            raise NotInEffect(f"{what}: effect not verified: {injected.result.reason}")
        try:
            yield injected
        except BaseException as error:
            if reason := _not_healed(session, injected, limit_s):
                error.add_note(f"{what}: not healed: {reason}")
            raise
        if reason := _not_healed(session, injected, limit_s):
            raise NotHealed(f"{what}: not healed: {reason}")

    def check(
        self,
        *,
        expected: str | Sequence[str],
        actual: str | Sequence[str],
        key: str,
        sequence: str | None = None,
        compare: str | None = None,
        order: str | None = None,
        upsert: bool = False,
        also: Sequence[str] = (),
    ) -> DataComparison:
        """Compare what was expected with what is there, as `streamquake reconcile` does: files,
        folders, `kafka://SERVERS/TOPIC`, `hdfs://…`, `postgresql://SERVER/DATABASE/TABLE`; `key`,
        `sequence`, `compare` and `order` are Spark SQL over the columns of a side.

        Returns outcome, counts by class, and examples. Raises BadInput for a wrong expression or a
        source that is not there, OSError for one that cannot be read.
        """
        sides = [
            Side(name=name, uris=_uris(given), key=key, sequence=sequence, compare=compare)
            for name, given in (("expected", expected), ("actual", actual))
        ]
        request = ComparisonRequest(
            expected=sides[0], actual=sides[1], order=order, upsert=upsert, also=tuple(also)
        )
        return compare_sources(
            request, master=SPARK_MASTER, settings={}, show_message=self._show_message
        )

    def _started(self) -> ClusterSession:
        if self._session is None:
            raise NotStarted("the cluster is not up; use it in a `with` block, or call `start`")
        return self._session


def _not_healed(session: ClusterSession, injected: InteractiveInjection, limit_s: float) -> str:
    """Heal a fault unless another process has healed it; returns why it is not healed, or an empty
    text."""
    try:
        if injected.intent not in session.intents.open_intents():
            return ""
        healed = undo(injected.intent, session.cluster, session.intents, limit_s=limit_s)
    except Exception as error:  # noqa: BLE001 - the error of the block must stay visible
        return f"{type(error).__name__}: {error}"
    return "" if healed.done else healed.reason or "its removal was not verified"


def _uris(given: str | Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)

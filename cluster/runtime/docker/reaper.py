"""The reaper: removes the resources of a run whose process was killed without cleanup.

It is a small server in a container. The harness sends it the run's label over a TCP connection, in
the protocol of testcontainers' Ryuk (https://github.com/testcontainers/moby-ryuk). When the
connection breaks and is not opened again, the reaper removes everything with the label and ends. It
has access to the engine's socket, and every user of this machine can connect to its port. So it
accepts only a client that sends its random secret first, and removes only resources with the label
of a run. Its own container has another label, so that it does not remove itself too early; `sweep`
finds that label too.
"""

from __future__ import annotations

import secrets
import socket
from collections.abc import Mapping
from types import TracebackType

from streamquake.cluster.images.recipes import recipe
from streamquake.cluster.runtime import labels
from streamquake.cluster.runtime.clock import SystemClock
from streamquake.cluster.runtime.free_ports import free_port
from streamquake.cluster.runtime.runtime import (
    ContainerError,
    ContainerRuntime,
    ContainerSpec,
    PortTaken,
)
from streamquake.cluster.runtime.waiting import NotReadyInTime, wait_until

PORT = 8080
ANSWERS_WITHIN_S = 30.0
TRIES = 5
PROTOCOL = "streamquake-reaper/2"
SECRET_BYTES = 32
ENV: Mapping[str, str] = {
    "RYUK_PORT": str(PORT),
    "RYUK_CONNECTION_TIMEOUT": "60s",
    "RYUK_RECONNECTION_TIMEOUT": "2s",
}
"""The harness never reconnects, so the reaper need not wait for that. In the two seconds the engine
finishes the last requests of the dead process."""


class Reaper:
    """The reaper of one run, from `start` to `stop`.

    `stop` ends the reaper before the connection, so that a normal end of the run removes nothing:
    the remaining resources are kept on purpose (`--keep`).
    """

    def __init__(self, runtime: ContainerRuntime, run_id: str) -> None:
        self._runtime = runtime
        self._run_id = run_id
        self._secret = secrets.token_hex(SECRET_BYTES)
        self._container: str | None = None
        self._connection: socket.socket | None = None

    def __enter__(self) -> None:
        self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start the reaper and send it the run's label. Raises ContainerError when it does not
        answer."""
        port = self._start_container()
        try:
            wait_until(
                lambda: self._register(port),
                what="the reaper",
                limit_s=ANSWERS_WITHIN_S,
                clock=SystemClock(),
            )
        except NotReadyInTime as error:
            self.stop()
            raise ContainerError(str(error)) from error
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End the reaper without removing anything; may be called twice."""
        if self._container is not None:
            self._runtime.remove(self._container)
            self._container = None
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _start_container(self) -> int:
        for _ in range(TRIES):
            port = free_port()
            try:
                self._container = self._runtime.start(self._spec(port))
            except PortTaken:
                continue
            return port
        raise PortTaken(f"the reaper of run {self._run_id}: {TRIES} ports were taken meanwhile")

    def _spec(self, port: int) -> ContainerSpec:
        return ContainerSpec(
            name=f"streamquake-{self._run_id}-reaper",
            image=recipe("toolbox").tag,
            command=("reaper",),
            env={**ENV, "REAPER_SECRET": self._secret},
            labels={labels.REAPER: self._run_id, labels.OWNER: labels.owner_of_this_process()},
            ports={PORT: port},
            socket=True,
            auto_remove=True,
        )

    def _register(self, port: int) -> str | None:
        """Send secret and label, and read the answers. A published port accepts connections before
        the reaper listens."""
        try:
            connection = socket.create_connection(("127.0.0.1", port), timeout=5)
        except OSError as error:
            return str(error)
        filters = f"label={labels.RUN}={self._run_id}"
        try:
            for line in (f"{PROTOCOL} {self._secret}", filters):
                connection.sendall(f"{line}\n".encode())
                answer = connection.recv(64)
                if not answer.startswith(b"ACK"):
                    connection.close()
                    return f"it answered {answer!r} instead of ACK"
        except OSError as error:
            connection.close()
            return str(error)
        self._connection = connection
        return None

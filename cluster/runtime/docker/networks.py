"""Networks whose addresses the harness may assign.

The engine assigns fixed addresses only in a network with an explicit subnet, and only the engine
knows the free subnets (from the host's routes and its other networks). So it creates a network with
a subnet of its choice, and the network is created again with that subnet. If another run takes the
subnet in between, the engine chooses again.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

import docker
from docker.errors import APIError, NotFound
from docker.types import IPAMConfig, IPAMPool

from streamquake.cluster.runtime.clock import Clock
from streamquake.cluster.runtime.docker.connection import translate_errors
from streamquake.cluster.runtime.runtime import ContainerError
from streamquake.cluster.runtime.waiting import NotReadyInTime, wait_until

TRIES = 20
REMOVED_WITHIN_S = 20.0


class Networks:
    """The bridge networks of one engine."""

    def __init__(self, client: docker.APIClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock

    def create(self, name: str, labels: Mapping[str, str]) -> str:
        """Create a labelled bridge network; returns its subnet in CIDR form."""
        with translate_errors(f"network {name}"):
            for _ in range(TRIES):
                subnet = self._free_subnet(name, labels)
                if self._create_with(name, labels, subnet):
                    return subnet
                # A random time, so that two runs do not collide again.
                self._clock.sleep(random.uniform(0.05, 0.5))
        raise ContainerError(
            f"network {name}: other networks took its subnet {TRIES} times; "
            "start fewer runs at once, or remove old networks with `streamquake sweep`"
        )

    def remove(self, network: str) -> None:
        """Remove a network; does nothing if it does not exist. Containers still in it are
        disconnected first."""

        def pending() -> str | None:
            try:
                self._disconnect_all(network)
                self._client.remove_network(network)
            except NotFound:
                return None
            except APIError as error:
                return str(error.explanation)
            return None

        with translate_errors(f"network {network}"):
            try:
                wait_until(
                    pending,
                    what=f"network {network} removed",
                    limit_s=REMOVED_WITHIN_S,
                    clock=self._clock,
                )
            except NotReadyInTime as error:
                raise ContainerError(str(error)) from error

    def _free_subnet(self, name: str, labels: Mapping[str, str]) -> str:
        """A subnet of the engine's choice, free at this moment."""
        created = self._client.create_network(
            name, driver="bridge", labels=dict(labels), check_duplicate=True
        )
        try:
            configs = self._client.inspect_network(created["Id"])["IPAM"]["Config"]
            return str(next(c["Subnet"] for c in configs if ":" not in c["Subnet"]))
        finally:
            self._client.remove_network(created["Id"])

    def _create_with(self, name: str, labels: Mapping[str, str], subnet: str) -> bool:
        """Whether the network was created; False when its subnet was taken meanwhile."""
        ipam = IPAMConfig(driver="default", pool_configs=[IPAMPool(subnet=subnet)])
        try:
            self._client.create_network(
                name, driver="bridge", ipam=ipam, labels=dict(labels), check_duplicate=True
            )
        except APIError as error:
            if "overlap" in str(error.explanation):
                return False
            raise
        return True

    def _disconnect_all(self, network: str) -> None:
        for container in self._client.inspect_network(network)["Containers"] or ():
            self._client.disconnect_container_from_network(container, network, force=True)

"""Create a container from a spec, as a request to the engine."""

from __future__ import annotations

import sys
from typing import Any

import docker
from docker.types import DriverConfig, Mount

from streamquake.cluster.runtime.docker.cgroups import PERIOD_US, quota_us
from streamquake.cluster.runtime.runtime import CONTROL_GROUPS, ContainerSpec

SOCKET = "/var/run/docker.sock"
MEMORY_UNIT = 1024 * 1024
LOG = {"type": "json-file", "config": {"max-size": "64m", "max-file": "2"}}
"""A log driver with readable and bounded logs, whatever the engine's default is."""
DISK_KEEPER = {
    "cap_add": ["SYS_ADMIN"],
    "security_opt": ["apparmor=unconfined", "seccomp=unconfined", "label=disable"],
    "devices": ["/dev/loop-control:/dev/loop-control:rwm"],
    "device_cgroup_rules": ["b 7:* rwm"],
    "binds": [f"/sys/fs/cgroup:{CONTROL_GROUPS}"],
}
"""The settings to create loop devices (block major 7) and mount them, without `privileged`."""


def create(client: docker.APIClient, spec: ContainerSpec) -> str:
    """Create a container, not started yet; returns its id."""
    created = client.create_container(
        spec.image,
        name=spec.name,
        command=list(spec.command) or None,
        environment=dict(spec.env),
        labels=dict(spec.labels),
        hostname=spec.hostname,
        ports=list(spec.ports),
        volumes=list(spec.volumes),
        host_config=_host_config(client, spec),
        networking_config=_networking(client, spec),
    )
    return str(created["Id"])


def _host_config(client: docker.APIClient, spec: ContainerSpec) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "restart_policy": {"Name": "no"},
        "log_config": LOG,
        "port_bindings": {inside: ("127.0.0.1", host) for inside, host in spec.ports.items()},
        "tmpfs": dict(spec.tmpfs),
        "auto_remove": spec.auto_remove,
    }
    if spec.memory_mb is not None:
        limit = spec.memory_mb * MEMORY_UNIT
        # Without swap a node runs out of memory instead of becoming slow.
        settings |= {"mem_limit": limit, "memswap_limit": limit}
    if spec.cpus is not None:
        settings |= {"cpu_period": PERIOD_US, "cpu_quota": quota_us(spec.cpus)}
    if spec.socket:
        settings |= {
            "binds": [f"{_socket_path(client)}:{SOCKET}"],
            "security_opt": ["label=disable"],  # SELinux forbids the socket to containers
        }
    if spec.volumes_from is not None:
        settings["volumes_from"] = [spec.volumes_from]
    elif spec.disks:
        settings["mounts"] = [_disk(path, device) for path, device in spec.disks.items()]
    if spec.keeps_disks:
        settings |= DISK_KEEPER
    if spec.network is not None:
        settings["network_mode"] = spec.network
    if spec.beside is not None:
        settings["network_mode"] = f"container:{spec.beside}"
    if spec.changes_network:
        settings["cap_add"] = ["NET_ADMIN"]
    return dict(client.create_host_config(**settings))


def _disk(path: str, device: str) -> Mount:
    """An anonymous volume on a block device, which the engine mounts and removes."""
    options = {"type": "ext4", "device": device}
    return Mount(path, None, type="volume", driver_config=DriverConfig("local", options))


def _networking(client: docker.APIClient, spec: ContainerSpec) -> Any:
    if spec.network is None:
        return None
    endpoint = client.create_endpoint_config(
        ipv4_address=spec.ip, aliases=list(spec.aliases) or None
    )
    return {"EndpointsConfig": {spec.network: endpoint}}


def _socket_path(client: docker.APIClient) -> str:
    """The path of the engine's socket on the engine's machine. On a Linux host it is the path that
    this client uses (a rootless engine has an unusual one), in Docker Desktop's machine always the
    usual one."""
    adapter = client.get_adapter(client.base_url)
    path = getattr(adapter, "socket_path", None)
    inside_desktop = "Docker Desktop" in client.info().get("OperatingSystem", "")
    return path if path and sys.platform == "linux" and not inside_desktop else SOCKET

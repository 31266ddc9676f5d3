"""Control groups, v1 and v2: a container's limits, its use of resources, and its throttling.

If containers are processes of this host, the group's files are read and written directly, in a
fraction of a millisecond. Elsewhere they are read inside the container, where its own group is
mounted, and the engine writes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from streamquake.cluster.runtime.runtime import ContainerError, Usage

ROOT = Path("/sys/fs/cgroup")
PERIOD_US = 100_000
"""The kernel's usual scheduling period, over which a processor limit is counted."""
NO_LIMIT_US = -1
HUGE_BYTES = 1 << 60
"""v1 reports a missing limit as a number near 2**63; a limit above this one is none."""
READ = {
    "cpu": ("cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.stat", "cpu.max"),
    "memory": (
        "memory.limit_in_bytes",
        "memory.usage_in_bytes",
        "memory.stat",
        "memory.max",
        "memory.current",
    ),
}
"""Controller -> its files in both versions; the files of the other version do not exist."""
READ_INSIDE = (
    "cd /sys/fs/cgroup && for file in "
    + " ".join(f"{group}/{file} {file}" for group, files in READ.items() for file in files)
    + '; do if [ -r "$file" ]; then echo "== ${file##*/}"; cat "$file"; fi; done'
)
"""For a shell in the container, where the container's group is mounted at the usual path."""


def quota_us(cpus: float | None) -> int:
    """A processor limit as microseconds per period."""
    return NO_LIMIT_US if cpus is None else int(cpus * PERIOD_US)


def usage_on_host(container: str, pid: int) -> Usage | None:
    """The usage from the container's group files; None if they are not accessible."""
    found: dict[str, str] = {}
    for controller, files in READ.items():
        folder = _folder(controller, container, pid)
        if folder is None:
            return None
        found |= {file: _text(folder / file) for file in files if (folder / file).is_file()}
    return usage_of(found)


def usage_inside(output: str) -> Usage:
    """The usage from the output of `READ_INSIDE`."""
    parts = (part.partition("\n") for part in output.split("== ")[1:])
    return usage_of({name: text for name, _, text in parts})


def limit_cpus_on_host(container: str, pid: int, cpus: float | None) -> bool:
    """Write a processor limit; False if the files are not accessible."""
    folder = _folder("cpu", container, pid)
    quota = quota_us(cpus)
    in_v2 = f"{'max' if cpus is None else quota} {PERIOD_US}"
    return folder is not None and (
        _write(folder / "cpu.cfs_quota_us", str(quota)) or _write(folder / "cpu.max", in_v2)
    )


def limit_memory_on_host(container: str, pid: int, limit_bytes: int) -> bool:
    """Write a memory limit; False if the files are not accessible.

    In v1 the limit of memory and swap together must not be below the limit of memory. Raises
    ContainerError when more memory is in use than can be reclaimed.
    """
    folder = _folder("memory", container, pid)
    if folder is None:
        return False
    alone, together = folder / "memory.limit_in_bytes", folder / "memory.memsw.limit_in_bytes"
    try:
        if not alone.is_file():
            return _write(folder / "memory.max", str(limit_bytes))
        raised = limit_bytes > int(_text(alone))
        for file in (together, alone) if raised else (alone, together):
            _write(file, str(limit_bytes))
        return int(_text(alone)) >> 20 == limit_bytes >> 20
    except OSError as error:
        raise ContainerError(
            f"{container}: memory cannot be limited to {limit_bytes >> 20} MB, more is in use "
            f"that cannot be reclaimed ({error.strerror}); give it a higher limit"
        ) from error


def usage_of(files: Mapping[str, str]) -> Usage:
    """The usage from the files of a group, of either version: name -> text."""
    stat = {**_numbers(files.get("cpu.stat", "")), **_numbers(files.get("memory.stat", ""))}
    used = int(files.get("memory.usage_in_bytes") or files.get("memory.current") or 0)
    droppable = stat.get("total_inactive_file", stat.get("inactive_file", 0))
    throttled_ms = stat.get("throttled_time", 0) / 1e6 + stat.get("throttled_usec", 0) / 1e3
    return Usage(
        cpus=_cpus(files),
        throttled=stat.get("nr_throttled", 0),
        throttled_ms=round(throttled_ms, 1),
        memory_limit_bytes=_memory_limit(files),
        memory_bytes=used,
        working_bytes=max(0, used - droppable),
    )


def _cpus(files: Mapping[str, str]) -> float | None:
    pair = files.get("cpu.max") or " ".join(
        files.get(name, "") for name in ("cpu.cfs_quota_us", "cpu.cfs_period_us")
    )
    quota, _, period = " ".join(pair.split()).partition(" ")
    if quota in ("", "max") or int(quota) <= 0:
        return None
    return int(quota) / int(period)


def _memory_limit(files: Mapping[str, str]) -> int | None:
    text = (files.get("memory.limit_in_bytes") or files.get("memory.max") or "max").strip()
    return None if text == "max" or int(text) > HUGE_BYTES else int(text)


def _numbers(text: str) -> dict[str, int]:
    pairs = (line.split() for line in text.splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2}


def _folder(controller: str, container: str, pid: int) -> Path | None:
    """The path of the control group of a container's main process; None for a process of another
    machine."""
    try:
        lines = Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    for line in lines:
        number, controllers, path = line.split(":", 2)
        in_v2 = number == "0" and not controllers
        if container in path and (in_v2 or controller in controllers.split(",")):
            folder = ROOT / ("" if in_v2 else controller) / path.lstrip("/")
            if any((folder / file).is_file() for file in READ[controller]):
                return folder
    return None


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _write(path: Path, text: str) -> bool:
    """Write a file of a group; False if it does not exist or may not be written."""
    try:
        path.write_text(text, encoding="utf-8")
    except (FileNotFoundError, PermissionError):
        return False
    return True

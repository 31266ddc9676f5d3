"""Checks whether this machine can run experiments: each requirement, its state, and what to do.

The checks are independent, so one call reports every problem of the machine.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from streamquake.cluster.images.clients import BUILD_TOOLS, INSTALL_HINTS, tools_not_here
from streamquake.cluster.images.recipes import ImageRecipe, all_recipes
from streamquake.cluster.images.store import ImageStore
from streamquake.cluster.runtime.runtime import (
    ContainerError,
    ContainerRuntime,
    EngineFacts,
    RuntimeUnavailable,
)
from streamquake.cluster.runtime.sweep import leftovers
from streamquake.topologies.errors import ErrorKind

MachineVerdict = Literal["ok", "note", "problem"]
DISK_GIB = 10
"""Images take about 4 GiB and a run with its logs and volumes a few more."""
DISK_FULL_GIB = 2
"""With less than this a run would fill the disk before its end."""
MEMORY_GIB = 6
"""The default topology is allowed 5.5 GiB in all, and Spark takes up to 2 more at the end."""
JAVA = 17
ENGINE = "container engine"
GIB = 2**30


@dataclass(frozen=True, kw_only=True)
class MachineCheck:
    """One checked requirement; `next` is what to do about a problem."""

    what: str
    verdict: MachineVerdict
    finding: str
    next: str = ""


def examine(runtime: ContainerRuntime) -> tuple[MachineCheck, ...]:
    """Run every check. Queries the container engine; changes nothing."""
    engine, facts = _examined_engine(runtime)
    found = [engine, _python(), _java(), _pyspark(), _disk(facts), _memory(facts), _netem()]
    if facts is not None:
        images = runtime.images()
        found += [_images(images), _build_tools(images), _leftovers(runtime)]
    return tuple(found)


def hindrances(runtime: ContainerRuntime | None) -> tuple[MachineCheck, ...]:
    """The problems that would certainly end a run, found before the run starts. `runtime` is None
    for a run that deploys nothing."""
    found = [_java(), _pyspark(), _disk(None, DISK_FULL_GIB)]
    if runtime is not None:
        try:
            runtime.check()
        except (RuntimeUnavailable, ContainerError) as error:
            found = [_engine_problem(error), *found]
    return tuple(check for check in found if check.verdict == "problem")


def kind_of_problems(found: Sequence[MachineCheck]) -> ErrorKind:
    """The kind of error that these problems would end a run with."""
    missing = any(check.what == ENGINE for check in found)
    return ErrorKind.ENGINE_MISSING if missing else ErrorKind.MACHINE_UNSUITABLE


def _examined_engine(runtime: ContainerRuntime) -> tuple[MachineCheck, EngineFacts | None]:
    """The check of the engine, and what it says of itself if it can be used."""
    try:
        runtime.check()
        facts = runtime.facts()
    except (RuntimeUnavailable, ContainerError) as error:
        return _engine_problem(error), None
    found = f"{facts.name} on {facts.system}"
    return MachineCheck(what=ENGINE, verdict="ok", finding=found), facts


def _engine_problem(error: Exception) -> MachineCheck:
    message, _, advice = str(error).partition("; ")
    return MachineCheck(what=ENGINE, verdict="problem", finding=message, next=advice)


def _python() -> MachineCheck:
    return MachineCheck(what="Python", verdict="ok", finding=platform.python_version())


def _java() -> MachineCheck:
    advice = f"install Java {JAVA} or newer, or point JAVA_HOME at one; `make setup` does on Debian"
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin" if home else None)
    if java is None:
        return MachineCheck(what="Java", verdict="problem", finding="not found", next=advice)
    try:
        message = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=30, check=False
        ).stderr
    except (OSError, subprocess.TimeoutExpired) as error:
        return MachineCheck(what="Java", verdict="problem", finding=f"{java}: {error}", next=advice)
    found = re.search(r'version "((?:1\.)?(\d+)[^"]*)"', message)
    if found is None or int(found[2]) < JAVA:
        old = found[1] if found else message.strip() or "it prints no version"
        return MachineCheck(what="Java", verdict="problem", finding=f"{java}: {old}", next=advice)
    return MachineCheck(what="Java", verdict="ok", finding=f"{found[2]} ({java})")


def _pyspark() -> MachineCheck:
    try:
        importlib.import_module("pyspark")
    except ImportError as error:
        advice = "install the package with its dependencies: `make setup`"
        return MachineCheck(what="PySpark", verdict="problem", finding=str(error), next=advice)
    return MachineCheck(what="PySpark", verdict="ok", finding=importlib.metadata.version("pyspark"))


def _disk(facts: EngineFacts | None, needed: int = DISK_GIB) -> MachineCheck:
    """The engine's own folder may be in a virtual machine, where its space cannot be seen."""
    folder = Path("/var/lib/docker") if facts is None else facts.folder
    places = [Path.cwd(), *(p for p in (folder,) if p.is_dir())]
    free = {place: shutil.disk_usage(place).free / GIB for place in places}
    place = min(free, key=lambda path: free[path])
    message = f"{free[place]:.0f} GiB free at {place}"
    if free[place] < needed:
        advice = f"{needed} GiB are needed; `streamquake sweep` and `docker image prune` free some"
        return MachineCheck(what="disk", verdict="problem", finding=message, next=advice)
    return MachineCheck(what="disk", verdict="ok", finding=message)


def _memory(facts: EngineFacts | None) -> MachineCheck:
    own = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    total = min(own, facts.memory_bytes if facts else own) / GIB
    message = f"{total:.0f} GiB" + (" for containers" if facts else "")
    if total < MEMORY_GIB:
        advice = "use a smaller topology, or lower `memory_mb` of its nodes"
        return MachineCheck(what="memory", verdict="problem", finding=message, next=advice)
    return MachineCheck(what="memory", verdict="ok", finding=message)


def _netem() -> MachineCheck:
    """Latency comes from a proxy, so a kernel without netem is a note, not a problem."""
    what = "kernel netem"
    if not sys.platform.startswith("linux"):
        return MachineCheck(
            what=what, verdict="note", finding="not checked: the engine has its own kernel"
        )
    if any(_netem_modules()):
        return MachineCheck(what=what, verdict="ok", finding="available")
    message = "not available; not needed: latency comes from Toxiproxy"
    return MachineCheck(what=what, verdict="note", finding=message)


def _netem_modules() -> Iterator[Path]:
    modules = Path("/lib/modules") / platform.release()
    yield from modules.glob("kernel/net/sched/sch_netem*")
    builtin = modules / "modules.builtin"
    if builtin.is_file() and "sch_netem" in builtin.read_text(encoding="utf-8"):
        yield builtin


def _images(images: ImageStore) -> MachineCheck:
    missing: list[ImageRecipe] = [r for r in all_recipes() if not images.exists(r.tag)]
    if not missing:
        return MachineCheck(what="images", verdict="ok", finding="all built")
    message = "not built: " + ", ".join(f"{recipe.kind} {recipe.version}" for recipe in missing)
    advice = "`streamquake images build` builds them, and so does the first run that needs them"
    return MachineCheck(what="images", verdict="note", finding=message, next=advice)


def _build_tools(images: ImageStore) -> MachineCheck:
    """A missing one is a note: images that are built need none, and where a container registry
    answers the engine runs Maven and Go in their own images, on Debian's."""
    what = "tools for builds"
    missing = tools_not_here(images)
    if not missing:
        return MachineCheck(what=what, verdict="ok", finding=", ".join(BUILD_TOOLS))
    hints = "; ".join(INSTALL_HINTS[program] for program in missing)
    return MachineCheck(
        what=what,
        verdict="note",
        finding=f"not found: {', '.join(missing)}",
        next=f"builds then need a container registry; without one: {hints}",
    )


def _leftovers(runtime: ContainerRuntime) -> MachineCheck:
    left = leftovers(runtime)
    if not left:
        return MachineCheck(what="leftovers", verdict="ok", finding="none")
    message = f"of {len(left)} dead runs: {', '.join(run.run_id for run in left)}"
    return MachineCheck(
        what="leftovers", verdict="problem", finding=message, next="`streamquake sweep`"
    )

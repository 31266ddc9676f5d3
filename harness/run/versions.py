"""The versions in a run's manifest: of the program, the releases and the images."""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import streamquake
from streamquake.cluster.images.store import ImageStore
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.experiment.recorded_plugins import plugins_of
from streamquake.harness.run.image_preparation import images_of, not_verified, recipes_of
from streamquake.topologies.plugins import plugins

PACKAGE = Path(streamquake.__file__).parent
DIGITS = 16
_SHOWING = (
    "harness/campaign",
    "harness/cli",
    "harness/project",
    "harness/pytest",
    "harness/reference",
    "harness/selftest",
    "reports/comparison",
    "reports/junit.py",
    "reports/render",
    "reports/run",
    "reports/shrink",
    "reports/store",
    "reports/suite",
    "reports/trend",
)
AFTER_A_RUN = ("harness/reconcile", "harness/verdict/checks", "harness/verdict/judge.py", *_SHOWING)
"""What a run does not execute before it is judged. `harness/verdict/evidence` has modules that
listen during a run."""
NEVER_JUDGING = ("cluster", "harness/interactive", "harness/run", "harness/workloads", *_SHOWING)
"""What judges no run."""


def version_manifest(experiment: Experiment) -> dict[str, Any]:
    """`versions` of the program, of Python, of plugins and of the software in the images; `plugins`
    with their members in the experiment; `images` by role, with a hash of their inputs in the tags;
    `not_verified` releases without pinned checksums. `program` is without the modules that only
    judge or show runs (`judge_digest`)."""
    topology = experiment.topology
    taking_part = plugins_of(experiment)
    return {
        "versions": {
            "streamquake": streamquake.__version__,
            "program": program_digest(),
            "python": sys.version.split()[0],
            **{image.kind: image.release for image in recipes_of(topology)},
            **{f"plugin {each.name}": each.text for each in taking_part},
        },
        "plugins": [each.model_dump(mode="json") for each in taking_part],
        "images": images_of(topology),
        "not_verified": list(not_verified(topology)),
    }


def image_ids(images: Mapping[str, str], store: ImageStore) -> dict[str, str]:
    """Image -> the id that the container engine gave it: a tag may later name another image."""
    found = ((image, store.image_id(image)) for image in dict.fromkeys(images.values()))
    return {image: image_id for image, image_id in found if image_id is not None}


def machine_manifest() -> dict[str, Any]:
    """The machine of a run: its processors, memory in bytes, operating system, and the load average
    of the last minute."""
    return {
        "cpus": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": platform.platform(),
        "load_1m": round(os.getloadavg()[0], 2),
    }


def program_files() -> list[Path]:
    """The package's own modules. Its folders may be symbolic links, which `rglob` does not
    follow."""
    folders = (path for path in PACKAGE.iterdir() if path.is_dir())
    return sorted(
        [*PACKAGE.glob("*.py"), *(file for folder in folders for file in folder.rglob("*.py"))]
    )


@cache
def program_digest() -> str:
    """A hash of the modules that a run executes before it is judged: two checkouts of one version
    may differ."""
    return _digest(path for path in program_files() if not _is_below(path, AFTER_A_RUN))


def judge_digest() -> str:
    """A hash of the modules that judge a run, and of the plugins: a run that another judge judged
    may have another verdict today."""
    digests = sorted(plugin.digest for plugin in plugins.loaded())
    own = _own_judge_digest()
    return (
        hashlib.sha256(" ".join([own, *digests]).encode()).hexdigest()[:DIGITS] if digests else own
    )


@cache
def _own_judge_digest() -> str:
    return _digest(path for path in program_files() if not _is_below(path, NEVER_JUDGING))


def _is_below(path: Path, places: Collection[str]) -> bool:
    place = path.relative_to(PACKAGE).as_posix()
    return any(place == each or place.startswith(f"{each}/") for each in places)


def _digest(paths: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        digest.update(f"{path.relative_to(PACKAGE).as_posix()}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:DIGITS]

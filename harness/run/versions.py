"""The versions in a run's manifest: of the program, the releases and the images."""

from __future__ import annotations

import hashlib
import sys
from functools import cache
from pathlib import Path
from typing import Any

import streamquake
from streamquake.harness.run.image_preparation import images_of, not_verified, recipes_of
from streamquake.topologies.model import Topology

PACKAGE = Path(streamquake.__file__).parent
DIGITS = 16


def version_manifest(topology: Topology) -> dict[str, Any]:
    """`versions` of the program, of Python and of the software in the images; `images` by role,
    with a hash of their inputs in the tags; `not_verified` releases without pinned checksums."""
    return {
        "versions": {
            "streamquake": streamquake.__version__,
            "program": program_digest(),
            "python": sys.version.split()[0],
            **{image.kind: image.release for image in recipes_of(topology)},
        },
        "images": images_of(topology),
        "not_verified": list(not_verified(topology)),
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
    """A hash of the package's own modules: two checkouts of one version may judge differently."""
    digest = hashlib.sha256()
    for path in program_files():
        digest.update(f"{path.relative_to(PACKAGE).as_posix()}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:DIGITS]

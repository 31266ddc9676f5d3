"""What a run is made with, as its manifest keeps it: the program, the releases, the images."""

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
    """`versions` of the program, of Python and of what the images hold; `images` by role, whose
    tags hold a hash of what goes in; `not_verified` releases without pinned checksums."""
    return {
        "versions": {
            "streamquake": streamquake.__version__,
            "program": program_digest(),
            "python": sys.version.split()[0],
            **{made.kind: made.release for made in recipes_of(topology)},
        },
        "images": images_of(topology),
        "not_verified": list(not_verified(topology)),
    }


def program_files() -> list[Path]:
    """The package's own modules. Its folders may be links, which `rglob` does not follow."""
    folders = (path for path in PACKAGE.iterdir() if path.is_dir())
    return sorted(
        [*PACKAGE.glob("*.py"), *(file for each in folders for file in each.rglob("*.py"))]
    )


@cache
def program_digest() -> str:
    """A hash of the package's own modules: two checkouts of one version may judge otherwise."""
    digest = hashlib.sha256()
    for path in program_files():
        digest.update(f"{path.relative_to(PACKAGE).as_posix()}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:DIGITS]

"""Record the checksums of a newly pinned release: `python -m streamquake.cluster.images.pin`."""

from __future__ import annotations

import sys
from pathlib import Path

from streamquake.cluster.images import contexts, fetch
from streamquake.cluster.images.clients import Clients
from streamquake.cluster.images.recipes import (
    SPARK_SETS,
    ImageRecipe,
    jar_set,
    recipe,
)
from streamquake.cluster.images.store import StepFailed
from streamquake.cluster.images.versions import UnknownImage

HOST_SETS = ("tools", *SPARK_SETS)


def write_checksums(pinned: ImageRecipe) -> Path:
    """Fetch the recipe's jars and write their checksums beside its pom."""
    folder = contexts.jars(pinned, Clients(print))
    lines = [f"{fetch.sha256_of(jar)}  {jar.name}\n" for jar in sorted(folder.glob("*.jar"))]
    pinned.checksums.write_text("".join(lines), encoding="utf-8")
    return pinned.checksums


def main(arguments: list[str]) -> int:
    """KIND [VERSION [CONNECTOR=VERSION]]."""
    kind, version = arguments[0] if arguments else "", arguments[1] if arguments[1:] else None
    apart = dict(named.partition("=")[::2] for named in arguments[2:])
    if not kind or not all(apart.values()):
        print(f"usage: python -m streamquake.cluster.images.pin {main.__doc__}", file=sys.stderr)
        return 2
    try:
        chosen = jar_set(kind) if kind in HOST_SETS else recipe(kind, version, apart)
        print(write_checksums(chosen))
    except UnknownImage as unknown:
        print(unknown, file=sys.stderr)
        return 2
    except StepFailed as failed:
        print(f"{failed} failed\n{failed.log}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

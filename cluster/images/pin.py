"""Record the checksums of a newly pinned release: `python -m streamquake.cluster.images.pin`."""

from __future__ import annotations

import sys
from pathlib import Path

from streamquake.cluster.images import contexts, fetch
from streamquake.cluster.images.clients import Clients
from streamquake.cluster.images.recipes import (
    SPARK_SETS,
    ImageRecipe,
    UnknownImage,
    jar_set,
    recipe,
)

HOST_SETS = ("tools", *SPARK_SETS)


def write_checksums(pinned: ImageRecipe) -> Path:
    """Fetch the recipe's jars and write their checksums beside its pom."""
    folder = contexts.jars(pinned, Clients(print))
    lines = [f"{fetch.sha256_of(jar)}  {jar.name}\n" for jar in sorted(folder.glob("*.jar"))]
    pinned.checksums.write_text("".join(lines), encoding="utf-8")
    return pinned.checksums


def main(arguments: list[str]) -> int:
    """KIND [VERSION]."""
    if not arguments:
        print("usage: python -m streamquake.cluster.images.pin KIND [VERSION]", file=sys.stderr)
        return 2
    try:
        kind = arguments[0]
        chosen = jar_set(kind) if kind in HOST_SETS else recipe(*arguments[:2])
    except UnknownImage as unknown:
        print(unknown, file=sys.stderr)
        return 2
    print(write_checksums(chosen))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Write the list of the options of a release of Flink, which `options.py` reads."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from streamquake.cluster.engines.flink.options import FOLDER
from streamquake.cluster.images.clients import Clients, run_here
from streamquake.cluster.images.contexts import compiler, flink_distribution
from streamquake.cluster.images.launcher import compile_jar
from streamquake.cluster.images.recipes import recipe
from streamquake.cluster.images.versions import UnknownImage

HEAD = "# key\tdefault\tolder names of the same option\n"


def write_list(release: str) -> Path:
    """Fetch a listed release and write the options that its jars declare. Raises UnknownImage,
    StepFailed."""
    jars = sorted((flink_distribution(recipe("flink", release), print) / "lib").glob("*.jar"))
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "list-options.jar"
        compile_jar(compiler(Clients(print)), FOLDER / "java", jars, program)
        path = ":".join(str(jar) for jar in (program, *jars))
        command = ["java", "-cp", path, "streamquake.ListOptions", *map(str, jars)]
        lines = run_here(f"listing the options of Flink {release}", command, Path(folder))
    rows = [line for line in lines.splitlines(keepends=True) if line.count("\t") == 2]
    listed = FOLDER / f"flink-{release}.tsv"
    listed.write_text(HEAD + "".join(rows), encoding="utf-8")
    return listed


def main(arguments: list[str]) -> int:
    """RELEASE."""
    if len(arguments) != 1:
        print("usage: python -m streamquake.cluster.engines.flink.option_list RELEASE")
        return 2
    try:
        print(write_list(arguments[0]))
    except UnknownImage as unknown:
        print(unknown, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

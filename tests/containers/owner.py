"""A process that owns a small run with a reaper, and prints a line when the run is up. The reaper
tests kill it.

Usage: python owner.py RUN_ID
"""

import sys
import time

from streamquake.cluster.images.recipes import recipe
from streamquake.cluster.runtime import labels
from streamquake.cluster.runtime.docker.runtime import DockerRuntime
from streamquake.cluster.runtime.runtime import ContainerSpec


def own(run_id: str) -> None:
    """Start a network with three containers, one of them paused, and a reaper for them; then
    wait."""
    runtime = DockerRuntime()
    marks = {labels.RUN: run_id, labels.OWNER: labels.owner_of_this_process()}
    with runtime.guard(run_id):
        runtime.create_network(run_id, marks)
        names = [f"{run_id}-{number}" for number in range(3)]
        started = [
            runtime.start(
                ContainerSpec(
                    name=name,
                    image=recipe("toolbox").tag,
                    command=("sleep", "600"),
                    labels=marks,
                    network=run_id,
                    volumes=("/data",),
                )
            )
            for name in names
        ]
        runtime.pause(started[0])
        print("ready", flush=True)
        time.sleep(600)


if __name__ == "__main__":
    own(sys.argv[1])

"""The objects that a run's job writes: where they are, and that there are none before the run."""

from __future__ import annotations

from dataclasses import replace

from streamquake.cluster.cluster import Cluster
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.reconcile.reading.object_folder import ObjectFolder
from streamquake.harness.reconcile.reading.objects import list_objects
from streamquake.harness.run.published_ports import on_this_machine
from streamquake.topologies.errors import ErrorKind, StreamquakeError


class ObjectsThere(StreamquakeError):
    """A folder of an object store has objects before the run."""

    kind = ErrorKind.CLUSTER_FAILED


def reject_filled_folders(experiment: Experiment, cluster: Cluster) -> None:
    """Raises ObjectsThere for a folder with objects: they would count as the run's. Raises
    ObjectsUnreadable for one that cannot be read."""
    for name, output in experiment.promise.outputs.items():
        if output.objects is None:
            continue
        if found := list_objects(reachable(cluster, output.objects)).sizes:
            raise ObjectsThere(
                f"{output.objects.uri} of the output {name} has {len(found):,} objects before the "
                "run, which are not of this run; remove them, or name another folder"
            )


def reachable(cluster: Cluster, folder: ObjectFolder) -> ObjectFolder:
    """The folder with the published port of the service that its endpoint names, if it names
    one."""
    if folder.endpoint is None:
        return folder
    return replace(folder, endpoint=on_this_machine(cluster, folder.endpoint))

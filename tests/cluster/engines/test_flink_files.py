"""The files of a checkpoint: its own folder, and the folder shared by several checkpoints."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from streamquake.cluster.engines.flink.files import CheckpointFiles
from streamquake.cluster.engines.hdfs.namenode import NameNodeUnreachable
from streamquake.reports.record.event import Action
from tests.fakes import TOPOLOGY, WIDE, fake_cluster

FOLDER = "/flink/checkpoints/job"
COMPLETED = {"checkpoint": 7, "path": f"hdfs://hdfs-namenode-1:8020{FOLDER}/chk-7"}


class Folders:
    """A NameNode that knows some folders, or does not answer."""

    def __init__(self, **folders: Mapping[str, int]) -> None:
        self.folders = {f"{FOLDER}/{name}": files for name, files in folders.items()}
        self.answers = True

    def files(self, folder: str) -> Mapping[str, int]:
        if not self.answers:
            raise NameNodeUnreachable(folder)
        return self.folders.get(folder, {})


def checkpoint_files(folders: Folders) -> CheckpointFiles:
    cluster = fake_cluster(WIDE)
    cluster.clients["hdfs"] = folders
    return CheckpointFiles(cluster, "job")


OWN = {"_metadata": 10}


@pytest.mark.parametrize("shared", [{}, {"a": 200, "b": 300}])
def test_a_listing_contains_the_own_and_the_shared_files_of_a_checkpoint(
    shared: Mapping[str, int],
) -> None:
    files = checkpoint_files(Folders(**{"chk-7": OWN, "shared": shared}))
    files.await_listing(COMPLETED)

    (observation,) = files.poll()
    assert observation.action == Action.CHECKPOINT_FILES
    assert observation.value == {
        "job": "job",
        "checkpoint": 7,
        "path": f"{FOLDER}/chk-7",
        "files": OWN,
        "shared": shared,
    }
    assert list(files.poll()) == [], "a checkpoint is listed once"


def test_no_files_are_reported_for_a_removed_or_unreadable_folder() -> None:
    folders = Folders(shared={"a": 200})
    files = checkpoint_files(folders)
    files.await_listing(COMPLETED)
    assert list(files.poll()) == []

    folders.answers = False
    files.await_listing(COMPLETED)
    assert list(files.poll()) == []


def test_checkpoints_outside_hdfs_are_not_listed() -> None:
    files = checkpoint_files(Folders(**{"chk-7": OWN}))
    files.await_listing({"checkpoint": 7, "path": "file:///tmp/chk-7"})
    files.await_listing({"checkpoint": 8})
    assert list(files.poll()) == []
    without_hdfs = CheckpointFiles(fake_cluster(TOPOLOGY), "job")
    without_hdfs.await_listing(COMPLETED)
    assert list(without_hdfs.poll()) == []

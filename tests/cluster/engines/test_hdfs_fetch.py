"""Copying a folder out of HDFS, on the fake runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from streamquake.cluster.engines.hdfs import engine as hdfs
from streamquake.cluster.engines.hdfs.download import NotDownloaded
from streamquake.cluster.engines.hdfs.namenode import NameNodeUnreachable, OpenRejected
from streamquake.cluster.runtime.fake_runtime import FakeRuntime
from streamquake.cluster.runtime.runtime import ContainerSpec, ExecResult, ResponseLost
from tests.fakes import WIDE, fake_cluster


@pytest.mark.parametrize("lost", [(), (0,), (1,), (0, 2)])
def test_a_folder_is_copied_although_the_engine_loses_an_output(
    lost: tuple[int, ...], tmp_path: Path
) -> None:
    """The outputs of both commands of the shell may be lost: of the copy to the container's disk,
    and of its removal."""
    cluster = fake_cluster(WIDE)
    runtime = cluster.runtime
    assert isinstance(runtime, FakeRuntime)
    container = cluster.node("hdfs/namenode-1").container
    commands: list[str] = []

    def answer(spec: ContainerSpec, argv: Sequence[str]) -> ExecResult | None:
        commands.append(argv[0])
        if argv[0] == "sh":
            runtime._existing(container).files[f"{argv[4]}/totals/part-0"] = "{}"
        if len(commands) - 1 in lost:
            raise ResponseLost("the engine closed its output")
        return ExecResult(exit_code=0, output="")

    runtime.on_exec.insert(0, answer)
    folder = hdfs.fetch(cluster, "hdfs", "/output/totals", tmp_path)
    assert (folder / "part-0").read_text("utf-8") == "{}"
    assert commands == [*["sh"] * (1 + (0 in lost)), *["rm"] * (1 + bool({1, 2} & {*lost}))]


@pytest.mark.parametrize("error", [None, NotDownloaded, NameNodeUnreachable, OpenRejected])
def test_the_shell_copies_a_folder_that_cannot_be_downloaded(
    error: type[Exception] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was downloaded before the error is not kept."""
    cluster, by_shell = fake_cluster(WIDE), list[str]()

    def downloads(
        namenode: object, datanodes: Mapping[str, str], folder: str, target: Path
    ) -> None:
        assert folder == "/output/totals"
        assert all(address.startswith("127.0.0.1:") for address in datanodes.values())
        target.mkdir()
        (target / "part-0").write_text("downloaded", "utf-8")
        if error is not None:
            raise error("no")

    def copy(cluster: object, service: str, path: str, target: Path) -> None:
        by_shell.append(path)
        (target / "totals").mkdir()

    monkeypatch.setattr(hdfs, "download", downloads)
    monkeypatch.setattr(hdfs, "_copy_by_shell", copy)
    folder = hdfs.fetch(cluster, "hdfs", "/output/totals/", tmp_path)
    assert folder == tmp_path / "totals"
    assert (folder / "part-0").exists() == (error is None)
    assert len(by_shell) == (error is not None)

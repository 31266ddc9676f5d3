"""The cluster of the fixture `chaos_cluster`: deployed for a test, and removed after it."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamquake.cluster.runtime import labels
from streamquake.cluster.runtime.fake_runtime import FakeRuntime
from streamquake.cluster.runtime.runtime import ContainerError, ExecResult
from streamquake.harness.pytest.session import ChaosSession
from streamquake.harness.pytest.support import RunSettings, deploy_cluster

pytestmark = pytest.mark.usefixtures("echo_engine")
MARKER = pytest.mark.chaos(topology="echo").mark


@pytest.fixture
def settings(tmp_path: Path) -> RunSettings:
    text = "name: echo\nservices: {echo: {engine: test-echo, nodes: {server: 1}}}\n"
    (tmp_path / "echo.yaml").write_text(text)
    return RunSettings(beside=tmp_path, session_seed=1, seed_wins=False)


def session(tmp_path: Path, *, keep: bool) -> ChaosSession:
    """A session on the fake runtime, in which every server listens."""
    made = ChaosSession(
        runtime_name="fake",
        out=tmp_path / "runs",
        keep=keep,
        own_clusters=False,
        shared=None,
        show_message=lambda line: None,
    )
    runtime_of(made).on_network_tool.append(
        lambda spec, argv: ExecResult(exit_code=0, output=":7000")
    )
    return made


def runtime_of(made: ChaosSession) -> FakeRuntime:
    assert isinstance(made.runtime, FakeRuntime)
    return made.runtime


@pytest.mark.parametrize("keep", [False, True])
def test_a_cluster_is_removed_after_its_test_unless_it_is_kept(
    settings: RunSettings, tmp_path: Path, keep: bool
) -> None:
    made = session(tmp_path, keep=keep)

    with deploy_cluster(MARKER, made, settings) as deployed:
        assert list(deployed.cluster.nodes) == ["echo/server-1"]
        with deployed.fault("pause", "echo/server-1") as paused:
            assert paused.result.done

    assert bool(made.runtime.find({labels.RUN: ""})) == keep


def test_a_cluster_that_is_not_removed_fails_the_test(
    settings: RunSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = session(tmp_path, keep=False)

    def busy(name: str) -> None:
        raise ContainerError("is busy")

    def use() -> None:
        with deploy_cluster(MARKER, made, settings):
            monkeypatch.setattr(made.runtime, "remove", busy)

    with pytest.raises(pytest.fail.Exception, match=r"not removed: .*is busy"):
        use()

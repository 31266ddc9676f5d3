"""`images build`: the images matter, the archive of Spark's classes only saves time."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from streamquake.cluster.runtime.clock import FakeClock
from streamquake.cluster.runtime.fake_runtime import FakeRuntime
from streamquake.harness.cli import machine
from streamquake.harness.reconcile.class_archive import ArchiveNotWritten
from streamquake.harness.reconcile.spark_session import JavaMissing


@pytest.mark.parametrize(
    "error",
    [
        JavaMissing("no Java"),
        ArchiveNotWritten("Java wrote none"),
        PermissionError("the cache can only be read"),
        OSError("another process has just written it"),
    ],
)
def test_the_images_are_built_also_where_no_archive_can_be_written(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(show_message: object) -> None:
        raise error

    monkeypatch.setattr(machine, "DockerRuntime", lambda: FakeRuntime(FakeClock()))
    for name in ("ensure", "host_jars"):
        monkeypatch.setattr(machine, name, lambda *arguments: None)
    monkeypatch.setattr(machine, "write_class_archive", fail)

    done = CliRunner().invoke(machine.images_command, ["build"], catch_exceptions=False)

    assert f"no archive of its classes was written: {error}" in done.output
    assert "images: all built" in done.output

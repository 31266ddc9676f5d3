"""The build context of a Flink with plugins: one folder for each, and nothing of Flink itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamquake.cluster.images import contexts
from streamquake.cluster.images.clients import Clients
from streamquake.cluster.images.recipes import recipe

PLUGINS = ("a.b:files:1.0", "a.b:metrics:2.0")


def test_each_plugin_has_a_folder_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fetch(coordinates: str, clients: Clients) -> Path:
        _, name, version = coordinates.split(":")
        jar = tmp_path / f"{name}-{version}.jar"
        jar.write_text(coordinates)
        return jar

    monkeypatch.setattr(contexts, "fetch_jar", fetch)
    context = tmp_path / "context"
    context.mkdir()

    contexts.lay_out(recipe("flink", plugins=PLUGINS), context, "amd64", Clients(print))

    files = {str(p.relative_to(context)): p for p in context.rglob("*") if p.is_file()}
    assert set(files) == {
        "Dockerfile",
        "plugins/a.b+files+1.0/files-1.0.jar",
        "plugins/a.b+metrics+2.0/metrics-2.0.jar",
    }
    assert files["plugins/a.b+files+1.0/files-1.0.jar"].read_text() == PLUGINS[0]

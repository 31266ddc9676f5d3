"""Which releases are verified against pinned checksums."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streamquake.cluster.images import recipes
from streamquake.harness.run import image_preparation
from streamquake.harness.run.image_preparation import ensure_images, not_verified
from streamquake.topologies.loader import load_topology

TOPOLOGY = load_topology("flink-kafka-hdfs")


def test_pinned_releases_are_verified_without_a_warning() -> None:
    assert not_verified(TOPOLOGY) == ()


def test_a_release_without_pinned_checksums_is_warned_of_each_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    real_checksums = vars(recipes.ImageRecipe)["checksums"].fget

    def without_kafka(self: recipes.ImageRecipe) -> Path:
        return tmp_path / "none" if self.kind == "kafka" else Path(real_checksums(self))

    monkeypatch.setattr(recipes.ImageRecipe, "checksums", property(without_kafka))
    monkeypatch.setattr(image_preparation, "ensure", lambda *args: None)
    messages: list[str] = []
    store: Any = None

    ensure_images(TOPOLOGY, store, messages.append)

    release = recipes.recipe("kafka").release
    assert not_verified(TOPOLOGY) == (f"kafka {release}",)
    assert messages[0].startswith(f"warning: kafka {release} is not verified")

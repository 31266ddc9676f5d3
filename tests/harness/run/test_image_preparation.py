"""Which releases are verified against pinned checksums."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamquake.cluster.images import recipes
from streamquake.cluster.runtime.fake_runtime import CompleteImageStore
from streamquake.harness.run import image_preparation
from streamquake.harness.run.image_preparation import ImageMissing, ensure_images, not_verified
from streamquake.topologies.loader import load_topology
from streamquake.topologies.model import Topology

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

    ensure_images(TOPOLOGY, CompleteImageStore(), messages.append)

    release = recipes.recipe("kafka").release
    assert not_verified(TOPOLOGY) == (f"kafka {release}",)
    assert messages[0].startswith(f"warning: kafka {release} is not verified")


class StoreOf(CompleteImageStore):
    """Has every image that is built here, those in `here`, and fetches those in `elsewhere`."""

    def __init__(self, here: tuple[str, ...] = (), elsewhere: tuple[str, ...] = ()) -> None:
        self.here, self.elsewhere = set(here), elsewhere

    def exists(self, tag: str) -> bool:
        return tag in self.here or tag in {image.tag for image in recipes.all_recipes()}

    def pull(self, ref: str, timeout_s: float) -> bool:
        self.here |= {ref} & set(self.elsewhere)
        return ref in self.here


def with_image(image: str) -> Topology:
    service = {"engine": "container", "image": image, "nodes": {"server": 1}}
    return Topology.model_validate({"name": "t", "services": {"db": service}})


def test_an_image_of_the_topology_is_fetched_once() -> None:
    messages: list[str] = []
    store = StoreOf(elsewhere=("postgres:17",))

    for _ in range(2):
        ensure_images(with_image("postgres:17"), store, messages.append)
    ensure_images(with_image("mine:1"), StoreOf(here=("mine:1",)), messages.append)

    assert messages == ["fetching the image postgres:17"]


@pytest.mark.parametrize(
    ("image", "reason"),
    [
        ("mine:1", "mine:1 is not on this machine, and the container engine cannot fetch it"),
        (
            "streamquake/kafka:1-0123456789ab",
            "streamquake/kafka:1-0123456789ab is no image of this version of Streamquake",
        ),
    ],
)
def test_a_missing_image_is_named_with_the_next_step(image: str, reason: str) -> None:
    with pytest.raises(ImageMissing, match=rf"^the image {reason}; build it \(`docker build"):
        ensure_images(with_image(image), StoreOf(), lambda line: None)

"""Images that a topology names for the nodes of a shipped engine."""

from __future__ import annotations

from typing import Any

import pytest

from streamquake.cluster.images.recipes import recipe
from streamquake.cluster.runtime.fake_runtime import CompleteImageStore
from streamquake.harness.run.foreign_images import foreign_image_problems
from streamquake.harness.run.image_preparation import ImageMissing, ensure_images
from streamquake.topologies.model import Topology


class Store(CompleteImageStore):
    """Has images with and without the label of those that are built here."""

    def __init__(self, **built_here: bool) -> None:
        self.built_here = built_here

    def is_built_here(self, tag: str) -> bool | None:
        return self.built_here.get(tag)


def of_kafka(engine: str = "kafka", **service: Any) -> Topology:
    given = {"engine": engine, "nodes": {"broker": 1}, **service}
    return Topology.model_validate({"name": "t", "services": {"log": given}})


@pytest.mark.parametrize(
    ("image", "store", "is_foreign"),
    [
        ("mine", Store(mine=True), False),
        ("mine", Store(mine=False), True),
        ("mine", Store(), False),  # it is fetched, and then known
        ("mine", None, False),
        ("apache/kafka:4.1.0", None, True),
        ("apache/kafka:4.1.0", Store(), True),
        ("localhost:5000/apache/kafka", None, True),
        ("registry.example/apache/kafka@sha256:" + 64 * "0", None, True),
        ("registry.example/team/kafka", None, False),
        ("library/zookeeper:3.9", None, True),
        # One that was built here may have the name of one of theirs.
        ("flink", Store(flink=True), False),
    ],
)
def test_an_image_must_be_built_on_one_of_ours(
    image: str, store: Store | None, is_foreign: bool
) -> None:
    for topology, place in (
        (of_kafka(image=image), ("services", "log", "image")),
        (
            of_kafka(nodes={"broker": {"image": image}}),
            ("services", "log", "nodes", "broker", "image"),
        ),
    ):
        found = list(foreign_image_problems(topology, lambda: store))
        assert [at for at, _ in found] == ([place] if is_foreign else [])
        assert all(recipe("kafka").tag in message for _, message in found)


def test_a_container_may_have_any_image() -> None:
    db = of_kafka("container", image="flink:2.2", nodes={"server": 1})
    assert list(foreign_image_problems(db, lambda: Store())) == []


def test_a_cluster_that_runs_already_has_its_own_images() -> None:
    there = of_kafka(endpoint="broker:9092", nodes={}, image="apache/kafka")
    assert list(foreign_image_problems(there, lambda: Store())) == []


def test_without_named_images_no_engine_is_asked() -> None:
    def ask() -> None:
        pytest.fail("asked")

    assert list(foreign_image_problems(of_kafka(), ask)) == []


def test_a_run_refuses_such_an_image_before_its_containers_start() -> None:
    store = Store(mine=False)
    with pytest.raises(ImageMissing, match=r"^services.log.image: the image mine is not built on"):
        ensure_images(of_kafka(image="mine"), store, lambda message: None)

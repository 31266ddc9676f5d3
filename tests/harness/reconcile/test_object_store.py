"""Objects of a real store: they are read as they were written, and its errors are named."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyarrow import fs
from pyspark.sql import SparkSession

from streamquake.cluster.runtime.docker.runtime import DockerRuntime
from streamquake.harness.interactive.topology_container import TopologyContainer
from streamquake.harness.reconcile.reading.object_folder import (
    ACCESS_KEY,
    ENDPOINTS,
    SECRET_KEY,
    object_folder,
)
from streamquake.harness.reconcile.reading.objects import (
    ObjectsUnreadable,
    copy_objects,
    list_objects,
)
from streamquake.reports.record.outcome import Outcome
from streamquake.topologies.model import Topology
from tests.harness.reconcile.data_sets import comparison_of

pytestmark = [pytest.mark.container, pytest.mark.spark, pytest.mark.nightly]

SECRET = "s3cr3t-of-the-store"
STORE = {
    "engine": "container",
    "image": "streamquake/versitygw",
    "ports": {"api": 7070},
    "volumes": ("/data",),
    "ready": {"http": {"port": "api", "path": "/health"}},
}
OPEN = {"S3_BUCKETS": "results others"}
CLOSED = {"S3_BUCKETS": "results", "ROOT_ACCESS_KEY": "me", "ROOT_SECRET_KEY": SECRET}
PART = 6 << 20
"""Bytes of more than one part of an upload."""


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TopologyContainer]:
    services = {
        name: {**STORE, "nodes": {"server": {"env": env}}}
        for name, env in (("open", OPEN), ("closed", CLOSED))
    }
    topology = Topology.model_validate({"name": "stores", "services": services})
    out = tmp_path_factory.mktemp("runs")
    with TopologyContainer(topology, out=out, runtime=DockerRuntime()) as started:
        yield started


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*ENDPOINTS, ACCESS_KEY, SECRET_KEY):
        monkeypatch.delenv(name, raising=False)


def url_of(stores: TopologyContainer, name: str) -> str:
    return f"http://127.0.0.1:{stores.get_exposed_port(f'{name}/server-1', 'api')}"


def put(stores: TopologyContainer, name: str, key: str, content: bytes) -> None:
    """Write an object, in several parts where it is large."""
    keys = ("streamquake", "streamquake") if name == "open" else ("me", SECRET)
    client = fs.S3FileSystem(
        access_key=keys[0], secret_key=keys[1], endpoint_override=url_of(stores, name)
    )
    with client.open_output_stream(key, compression=None) as stream:
        stream.write(content)


def lines(first: int, last: int) -> bytes:
    return "".join(json.dumps({"id": n, "v": n * n}) + "\n" for n in range(first, last)).encode()


def test_objects_are_compared_with_other_data(
    stores: TopologyContainer,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(ENDPOINTS[0], url_of(stores, "open"))
    sent = tmp_path / "sent.jsonl"
    sent.write_bytes(lines(0, 1000))
    put(stores, "open", "results/out/part-0", lines(0, 500))
    put(stores, "open", "results/out/day/part-1.json.gz", gzip.compress(lines(500, 1000)))
    put(stores, "open", "results/out/_part-2_tmp_1", lines(0, 500))
    put(stores, "open", "results/out-2/part-0", lines(0, 500))

    found = comparison_of(spark, sent, "s3://results/out", compare="v")
    assert (found.outcome, found.counts["actual"]) == (Outcome.HELD, 1000)

    put(stores, "open", "results/out/part-3", lines(7, 8) + b'{"id": 1000, "v": 0}\n')
    found = comparison_of(spark, sent, "s3://results/out", compare="v")
    assert found.outcome == Outcome.VIOLATED
    assert (found.counts["duplicated"], found.counts["phantom"]) == (1, 1)
    assert any("s3://results/out/part-3" in finding.where for finding in found.findings)


def test_an_upload_in_parts_is_copied_whole_and_an_open_one_is_not_seen(
    stores: TopologyContainer, tmp_path: Path
) -> None:
    folder = object_folder("s3://others/large", url_of(stores, "open"))
    content = bytes(range(256)) * (2 * PART // 256)
    put(stores, "open", "others/large/a", content)
    client = fs.S3FileSystem(
        access_key="streamquake",
        secret_key="streamquake",
        endpoint_override=url_of(stores, "open"),
    )
    with client.open_output_stream("others/large/b", compression=None) as stream:
        stream.write(content)
        stream.flush()
        assert dict(list_objects(folder).sizes) == {"a": len(content)}

    assert set(list_objects(folder).sizes) == {"a", "b"}
    copied = copy_objects(folder, tmp_path)
    assert (copied / "a").read_bytes() == (copied / "b").read_bytes() == content
    alone = object_folder("s3://others/large/a", url_of(stores, "open"))
    assert dict(list_objects(alone).sizes) == {"a": len(content)}
    assert not list_objects(object_folder("s3://others/none", url_of(stores, "open"))).sizes


@pytest.mark.parametrize(
    ("keys", "uri", "message"),
    [
        (("me", SECRET), "s3://nowhere/out", "NO_SUCH_BUCKET"),
        (("me", "wrong"), "s3://results/out", "DOES_NOT_MATCH.*; the keys are AWS_ACCESS_KEY_ID"),
        (("other", SECRET), "s3://results/out", "No user exists.*; the keys are AWS_ACCESS_KEY_ID"),
        (None, "s3://results/out", "ACCESS_DENIED.*; the keys are AWS_ACCESS_KEY_ID and"),
    ],
)
def test_a_store_that_rejects_a_reader_is_named_with_its_words(
    stores: TopologyContainer,
    monkeypatch: pytest.MonkeyPatch,
    keys: tuple[str, str] | None,
    uri: str,
    message: str,
) -> None:
    url = url_of(stores, "closed")
    put(stores, "closed", "results/out/part-0", lines(0, 1))
    if keys is not None:
        monkeypatch.setenv(ACCESS_KEY, keys[0])
        monkeypatch.setenv(SECRET_KEY, keys[1])

    with pytest.raises(ObjectsUnreadable, match=message) as error:
        list_objects(object_folder(uri, url))

    assert str(error.value).startswith(f"{uri} at {url} cannot be read: ")
    assert SECRET not in str(error.value)


def test_a_reader_signs_with_the_keys_of_the_environment(
    stores: TopologyContainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(stores, "closed", "results/out/part-0", lines(0, 1))
    monkeypatch.setenv(ACCESS_KEY, "me")
    monkeypatch.setenv(SECRET_KEY, SECRET)
    folder = object_folder("s3://results/out", url_of(stores, "closed"))
    assert list(list_objects(folder).sizes) == ["part-0"]

"""The address of a folder of an object store, and how the environment reaches the store."""

from __future__ import annotations

import pytest

from streamquake.harness.reconcile.reading.object_folder import (
    client_settings,
    object_folder,
    store_url,
)

SECRET = "s3cr3t"


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ENDPOINT_URL", "ENDPOINT_URL_S3", "REGION", "DEFAULT_REGION"):
        monkeypatch.delenv(f"AWS_{name}", raising=False)
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN", "CA_BUNDLE"):
        monkeypatch.delenv(f"AWS_{name}", raising=False)


@pytest.mark.parametrize(
    ("uri", "bucket", "path"),
    [
        ("s3://results/totals/day=1/", "results", "totals/day=1"),
        ("s3://my.bucket-1", "my.bucket-1", ""),
        ("s3://results/odd name #1?%20", "results", "odd name #1?%20"),
    ],
)
def test_a_uri_names_a_bucket_and_a_path_as_it_stands(uri: str, bucket: str, path: str) -> None:
    folder = object_folder(uri)
    assert (folder.bucket, folder.path) == (bucket, path)
    assert folder.uri == uri.rstrip("/")


@pytest.mark.parametrize("uri", ["s3://", "s3:///totals", "s3://a/x", "s3://-a-/x", "s3://abc/\n"])
def test_a_uri_without_a_bucket_is_rejected(uri: str) -> None:
    with pytest.raises(ValueError, match="expected s3://bucket/path, got"):
        object_folder(uri)


def test_keys_have_no_place_in_a_uri_and_are_not_repeated() -> None:
    with pytest.raises(ValueError, match="takes no keys; set AWS_ACCESS_KEY_ID and") as error:
        object_folder(f"s3://me:{SECRET}@results/totals")
    assert SECRET not in str(error.value)


@pytest.mark.parametrize("url", ["http://${store.api}", "https://s3.example.com:9000/", "http://x"])
def test_the_url_of_a_store_is_a_host_or_the_port_of_a_service(url: str) -> None:
    assert store_url(url) == url


@pytest.mark.parametrize("url", ["store:7070", "ftp://x", "http://x/path", f"http://u:{SECRET}@x"])
def test_another_url_of_a_store_is_rejected(url: str) -> None:
    with pytest.raises(ValueError, match=r"expected a URL such as http://\$\{store.api\}") as error:
        store_url(url)
    assert SECRET not in str(error.value)


def test_without_keys_requests_are_not_signed() -> None:
    assert client_settings(None) == {"region": "us-east-1", "anonymous": True}


def test_the_environment_has_store_region_and_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://store:1")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "me")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    assert client_settings(None) == {
        "endpoint_override": "http://store:1",
        "region": "eu-west-1",
        "access_key": "me",
        "secret_key": SECRET,
    }

    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://store:2")
    monkeypatch.setenv("AWS_REGION", "eu-west-2")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "t")
    found = client_settings(None)
    assert (found["endpoint_override"], found["region"]) == ("http://store:2", "eu-west-2")
    assert found["session_token"] == "t"
    assert client_settings("http://own:3")["endpoint_override"] == "http://own:3"


@pytest.mark.parametrize(
    ("given", "missing"),
    [
        ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
        ("AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID"),
    ],
)
def test_one_key_without_the_other_is_rejected(
    monkeypatch: pytest.MonkeyPatch, given: str, missing: str
) -> None:
    monkeypatch.setenv(given, SECRET)
    with pytest.raises(ValueError, match=f"^{missing} is not set") as error:
        client_settings(None)
    assert SECRET not in str(error.value)

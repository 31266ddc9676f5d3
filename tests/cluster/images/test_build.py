"""Missing images are built, parents first; the error of a failure has image, step and log."""

from __future__ import annotations

import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock

from streamquake.cluster.images import build, contexts, fetch
from streamquake.cluster.images.clients import Clients
from streamquake.cluster.images.recipes import ImageRecipe, jar_set, recipe
from streamquake.cluster.images.store import ImageBuild, ImageBuildFailed, StepFailed, ToolCall


class FakeStore:
    """An image store with a set of tags."""

    def __init__(self, *, registry: bool = True) -> None:
        self.tags: set[str] = set()
        self.builds: list[ImageBuild] = []
        self.calls: list[ToolCall] = []
        self.registry = registry
        self.error = ""

    def is_built_here(self, tag: str) -> bool | None:
        return self.exists(tag) or None

    def image_id(self, tag: str) -> str | None:
        return f"sha256:{tag}" if self.exists(tag) else None

    def exists(self, tag: str) -> bool:
        return tag in self.tags

    def pull(self, ref: str, timeout_s: float) -> bool:
        if self.registry:
            self.tags.add(ref)
        return self.registry

    def import_tar(self, path: Path, tag: str) -> None:
        self.tags.add(tag)

    def build(self, build: ImageBuild, log: Callable[[str], None]) -> None:
        log("Step 1/1")
        if self.error:
            raise StepFailed("the engine's build", self.error)
        self.builds.append(build)
        self.tags.add(build.tag)

    def run(self, call: ToolCall) -> str:
        self.calls.append(call)
        return "done"


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing is fetched, and the cache is a temporary folder."""

    def fill(recipe: ImageRecipe, context: Path, arch: str, clients: Clients) -> None:
        (context / "Dockerfile").write_text("FROM scratch\n")

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(contexts, "lay_out", fill)


def test_parents_are_built_first_and_once() -> None:
    store = FakeStore()
    build.ensure([recipe("kafka"), recipe("hdfs")], store, lambda line: None)
    kinds = [image.tag.split("/")[1].split(":")[0] for image in store.builds]
    assert kinds == ["base", "kafka", "hdfs"]
    assert store.builds[1].args == {"PARENT": recipe("base").tag}


def test_a_second_call_builds_and_prints_nothing() -> None:
    store = FakeStore()
    build.ensure([recipe("kafka")], store, lambda line: None)
    store.builds.clear()
    messages: list[str] = []
    build.ensure([recipe("kafka")], store, messages.append)
    assert (store.builds, messages) == ([], [])


def test_debians_image_is_the_base_when_a_registry_answers() -> None:
    store = FakeStore(registry=True)
    build.ensure([recipe("base")], store, lambda line: None)
    assert store.builds[0].args["ROOTFS"] == recipe("base").pins["debian.image"]
    assert "openjdk" in store.builds[0].args["PACKAGES"]


def test_without_a_registry_the_base_is_built_from_packages(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def rootfs(suite: str, packages: str, key: str) -> Path:
        (tmp_path / key).mkdir()
        return tmp_path / key / "rootfs.tar"

    monkeypatch.setattr(fetch, "debian_rootfs", rootfs)
    store = FakeStore(registry=False)
    build.ensure([recipe("base")], store, lambda line: None)
    assert store.builds[0].args["ROOTFS"].startswith("streamquake/rootfs:base-")
    assert "PACKAGES" not in store.builds[0].args


def test_a_failure_names_image_step_and_log() -> None:
    store = FakeStore()
    store.error = "no space left on device"
    with pytest.raises(ImageBuildFailed) as failed:
        build.ensure([recipe("base")], store, lambda line: None)
    message = str(failed.value)
    assert recipe("base").tag in message
    assert "the engine's build failed" in message
    assert "no space left on device" in message
    assert "Step 1/1" in failed.value.log_path.read_text()


def test_a_wrong_checksum_is_an_error(tmp_path: Path) -> None:
    jars = tmp_path / "jars"
    jars.mkdir()
    (jars / "a.jar").write_bytes(b"changed")
    pinned = tmp_path / "1.0.sha256"
    pinned.write_text(f"{'0' * 64}  a.jar\n{'1' * 64}  b.jar\n")
    with pytest.raises(StepFailed, match=r"1\.0\.sha256") as failed:
        fetch.verify(jars, pinned, lambda line: None)
    assert "a.jar: pinned 0000" in failed.value.log
    assert "b.jar: pinned 1111" in failed.value.log


def test_correct_checksums_give_no_message(tmp_path: Path) -> None:
    jars = tmp_path / "jars"
    jars.mkdir()
    (jars / "a.jar").write_bytes(b"as pinned")
    pinned = tmp_path / "1.0.sha256"
    pinned.write_text(f"{fetch.sha256_of(jars / 'a.jar')}  a.jar\n")
    messages: list[str] = []
    fetch.verify(jars, pinned, messages.append)
    assert messages == []


def test_a_folder_that_another_process_fills_meanwhile_is_used() -> None:
    def fill(folder: Path) -> None:
        (folder / "mine").touch()
        fetch.cached("shared", lambda other: (other / "theirs").touch())

    folder = fetch.cached("shared", fill)

    assert [path.name for path in folder.iterdir()] == ["theirs"]
    assert [path.name for path in folder.parent.iterdir() if path != folder] == []


def test_a_failed_fill_is_not_cached() -> None:
    def fail(folder: Path) -> None:
        (folder / "half").touch()
        raise StepFailed("filling", "")

    with pytest.raises(StepFailed):
        fetch.cached("key", fail)
    assert list((fetch.cache_root() / "sets").iterdir()) == []
    assert fetch.cached("key", lambda folder: (folder / "whole").touch()).name == "key"


def test_jars_that_are_there_need_not_wait_for_a_build() -> None:
    folder = contexts.jars_folder(jar_set("tools"))
    folder.mkdir(parents=True)
    (folder / "b.jar").touch()
    (folder / "a.jar").touch()
    with FileLock(fetch.cache_root() / "build.lock"):
        assert build.host_jars("tools") == [folder / "a.jar", folder / "b.jar"]


def test_only_the_wanted_folders_of_an_archive_are_unpacked(tmp_path: Path) -> None:
    source = tmp_path / "package-1"
    for name in ("deps/lib/a.jar", "deps/opt/b.jar", "deps/bin/c.jar"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(name)
    with tarfile.open(tmp_path / "package.tar.gz", "w:gz") as tar:
        tar.add(source, "package-1")
    into = tmp_path / "out"
    into.mkdir()
    fetch._unpack(tmp_path / "package.tar.gz", ("/deps/lib", "/deps/bin"), into)
    found = sorted(path.relative_to(into).as_posix() for path in into.rglob("*.jar"))
    assert found == ["bin/c.jar", "lib/a.jar"]


@pytest.fixture
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder of PATH: Maven and Go are not installed."""
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def test_a_missing_client_runs_in_its_image(bare_machine: Path) -> None:
    store = FakeStore(registry=True)
    Clients(lambda line: None, store).run("fetching", ["mvn", "-v"], bare_machine)
    (call,) = store.calls
    assert call.image.startswith("maven:")
    assert call.folder == bare_machine


def test_without_a_registry_the_error_has_an_install_hint(bare_machine: Path) -> None:
    with pytest.raises(StepFailed) as failed:
        Clients(lambda line: None, FakeStore(registry=False)).run("f", ["mvn"], bare_machine)
    assert "mvn is not installed: install Maven" in failed.value.log


def test_a_go_that_is_too_old_is_not_used(bare_machine: Path) -> None:
    go = bare_machine / "go"
    go.write_text("#!/bin/sh\necho go version go1.19.8 linux/amd64\n")
    go.chmod(0o755)
    store = FakeStore(registry=True)
    Clients(lambda line: None, store).run("building", ["go", "build"], bare_machine)
    assert store.calls[0].image.startswith("golang:")

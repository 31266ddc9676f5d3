"""Fetch the files of images with the usual package clients, into a cache with keys by content.

Every client's own configuration sets the registry; no host is named here.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from streamquake.cluster.images.clients import Clients, run_here
from streamquake.cluster.images.store import StepFailed

WHEEL_PLATFORMS = ("manylinux_2_28", "manylinux_2_27", "manylinux_2_17", "manylinux2014")
"""The Linux platforms of wheels (PEP 600); a wheel runs on its platform and on newer ones."""


def cache_root() -> Path:
    """The folder of fetched artefacts and logs."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "streamquake"


def cached(key: str, fill: Callable[[Path], None]) -> Path:
    """The folder for `key`, filled once; after a failed or killed fill it does not exist."""
    folder = cache_root() / "sets" / key
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=".part-", dir=folder.parent))
    try:
        fill(part)
        part.chmod(0o755)
        try:
            part.rename(folder)
        except OSError:
            if not folder.is_dir():
                raise
            shutil.rmtree(part)  # another process has filled it meanwhile
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    return folder


def maven_jars(
    clients: Clients,
    pom: Path,
    properties: Mapping[str, str],
    key: str,
    check: Callable[[Path], None],
) -> Path:
    """The jars of a pom's dependencies, stored only if the check passes."""
    defines = [f"-D{name}={value}" for name, value in sorted(properties.items())]

    def fill(folder: Path) -> None:
        command = ["mvn", "-B", "-ntp", "-q", "-f", str(pom), "dependency:copy-dependencies"]
        command += [f"-DoutputDirectory={folder}", *defines]
        clients.run("fetching jars with Maven", command, folder, mounts=[pom.parent])
        check(folder)

    return cached(key, fill)


def python_archive(requirement: str, sha256: str, wanted: Iterable[str], key: str) -> Path:
    """Files from a source package of Python's registry, selected by the ends of their folders."""
    folders = tuple(wanted)

    def fill(folder: Path) -> None:
        with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
            archive = _download(requirement, sha256, Path(temporary))
            _unpack(archive, folders, folder)

    return cached(key, fill)


def _download(requirement: str, sha256: str, into: Path) -> Path:
    listed = into / "requirements.txt"
    listed.write_text(f"{requirement} --hash=sha256:{sha256}\n" if sha256 else requirement)
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", ":all:"]
    run_here(
        f"fetching {requirement} with pip", [*command, "-q", "-r", str(listed), "-d", "."], into
    )
    return next(into.glob("*.tar.gz"))


def _unpack(archive: Path, folders: tuple[str, ...], into: Path) -> None:
    with tarfile.open(archive) as tar:
        for member in tar:
            path = Path(member.name)
            content = tar.extractfile(member) if member.isfile() else None
            if content is not None and str(path.parent).endswith(folders):
                target = into / path.parent.name / path.name
                target.parent.mkdir(exist_ok=True)
                with target.open("wb") as out:
                    shutil.copyfileobj(content, out)
                os.utime(target, (member.mtime, member.mtime))


def python_packages(requirements: Path, python: str, machine: str, key: str) -> Path:
    """Packages of Python's registry, unpacked, for Linux and a given Python version.

    `requirements` names every package with its checksums; dependencies are not added.
    """
    tags = (f"{tag}_{machine}" for tag in WHEEL_PLATFORMS)

    def fill(folder: Path) -> None:
        command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-compile"]
        command += ["--require-hashes", "--only-binary=:all:", "--python-version", python]
        command += [part for tag in tags for part in ("--platform", tag)]
        command += ["--target", str(folder), "-r", str(requirements)]
        run_here(f"fetching the packages of {requirements.parent.name} with pip", command, folder)

    return cached(key, fill)


def go_binaries(
    clients: Clients, module: Path, packages: Mapping[str, str], arch: str, key: str
) -> Path:
    """Static Linux binaries, by name, of packages of a Go module; go.sum pins the dependencies."""

    def fill(folder: Path) -> None:
        for name, package in packages.items():
            command = ["go", "build", "-mod=readonly", "-trimpath", "-ldflags=-s -w"]
            target = {"CGO_ENABLED": "0", "GOOS": "linux", "GOARCH": arch, "GOFLAGS": ""}
            output = ["-o", str(folder / name), package]
            step = f"building {name} with Go"
            clients.run(step, [*command, *output], module, target, mounts=[folder])

    return cached(key, fill)


def debian_rootfs(suite: str, packages: str, key: str) -> Path:
    """A root file system of Debian's packages, as a tar file."""

    def fill(folder: Path) -> None:
        command = [
            "mmdebstrap",
            "--variant=minbase",
            f"--include={packages.replace(' ', ',')}",
            "--customize-hook=rm -rf $1/usr/share/doc/* $1/usr/share/locale/*",
            "--customize-hook=find $1/usr/share/man -type f -delete",
            suite,
            "rootfs.tar",
        ]
        sources = _own_sources(suite)
        run_here("creating a root file system from Debian's packages", [*command, *sources], folder)

    return cached(key, fill) / "rootfs.tar"


def _own_sources(suite: str) -> list[str]:
    """The host's package sources if it runs the same suite; otherwise none, for mmdebstrap's
    default."""
    release = Path("/etc/os-release")
    if not release.exists() or f"VERSION_CODENAME={suite}" not in release.read_text():
        return []
    candidates = [Path("/etc/apt/sources.list"), Path("/etc/apt/sources.list.d/debian.sources")]
    return [str(path) for path in candidates if path.exists() and suite in path.read_text()]


def verify(folder: Path, checksums: Path, show_message: Callable[[str], None]) -> None:
    """Compare a folder of jars with its pinned checksums; show a message if none are pinned. Raises
    StepFailed."""
    if not checksums.exists():
        show_message(f"no pinned checksums ({checksums.name}): only the client verified the files")
        return
    pinned = dict(line.split()[::-1] for line in checksums.read_text().splitlines() if line)
    actual = {path.name: sha256_of(path) for path in sorted(folder.iterdir())}
    wrong = sorted(
        name for name in pinned.keys() | actual.keys() if pinned.get(name) != actual.get(name)
    )
    if wrong:
        lines = [
            f"{name}: pinned {pinned.get(name, 'nothing')}, got {actual.get(name, 'nothing')}"
            for name in wrong
        ]
        raise StepFailed(f"checking jars against {checksums.name}", "\n".join(lines))


def sha256_of(path: Path) -> str:
    """The checksum of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

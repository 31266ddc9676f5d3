"""Files into and out of containers: packing, and unpacking of harmful archives."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from streamquake.cluster.runtime.docker.files import packed, unpack


def test_scripts_are_executable_and_texts_readable_by_all() -> None:
    contents: dict[str, str | bytes] = {
        "/etc/a.conf": "grüß\n",
        "/run.sh": "#!/bin/sh\n",
        "/a.jar": b"\xff\x00",
    }
    archive = packed(contents, now_s=7.9)

    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        members = {m.name: (m.mode, m.mtime, m.size) for m in tar.getmembers()}
        text = tar.extractfile("etc/a.conf")
        assert text is not None
        assert text.read().decode() == "grüß\n"
        jar = tar.extractfile("a.jar")
        assert jar is not None
        assert jar.read() == b"\xff\x00"
    modes = {"etc/a.conf": (0o644, 7, 7), "run.sh": (0o755, 7, 10), "a.jar": (0o644, 7, 2)}
    assert members == modes


def _archive(*members: tarfile.TarInfo) -> list[bytes]:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for member in members:
            tar.addfile(member, io.BytesIO(b"x" * member.size))
    content = buffer.getvalue()
    return [content[:700], content[700:]]


def _member(name: str, size: int = 3, **settings: object) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size = size
    for key, value in settings.items():
        setattr(member, key, value)
    return member


@pytest.mark.parametrize(
    "harmful",
    [
        _member("../outside"),
        _member("log/link", size=0, type=tarfile.SYMTYPE, linkname="/dev/stdout"),
        _member("log/device", size=0, type=tarfile.CHRTYPE),
    ],
    ids=lambda member: member.name,
)
def test_harmful_members_are_not_unpacked(tmp_path: Path, harmful: tarfile.TarInfo) -> None:
    unpack(_archive(harmful, _member("log/a.txt")), tmp_path / "in")

    found = {p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if not p.is_dir()}
    assert found == {"in/log/a.txt"}

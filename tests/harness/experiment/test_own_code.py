"""The code that a job brings: the class of a jar that is started, and the packages that a module of
a user must not hide."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import pytest

from streamquake.harness.experiment.own_code import INSTALLED, MANIFEST, entry_problem

REQUIREMENTS = Path("cluster/images/spark/requirements.txt")
IMPORTED_AS = {"python-dateutil": "dateutil", "protobuf": "google"}
"""The packages whose modules have another name than they have."""


def test_the_packages_of_the_image_are_known() -> None:
    names = re.findall(r"^([\w-]+)==", REQUIREMENTS.read_text("utf-8"), re.MULTILINE)
    modules = {IMPORTED_AS.get(name, name.replace("-", "_")) for name in names}
    assert {*INSTALLED} == modules | {"pyspark", "py4j"}


def jar_of(path: Path, manifest: str | None, *classes: str) -> Path:
    with zipfile.ZipFile(path, "w") as jar:
        for name in classes:
            jar.writestr(f"{name.replace('.', '/')}.class", "")
        if manifest is not None:
            jar.writestr(MANIFEST, manifest)
    return path


@pytest.mark.parametrize(
    ("manifest", "entry_class", "problem"),
    [
        (None, "com.shop.Orders", None),
        (None, None, "names no class to start; name it with `entry_class`"),
        ("Manifest-Version: 1.0\n", None, "names no class to start; name it with `entry_class`"),
        ("Manifest-Version: 1.0\r\nMain-Class: com.shop.Orders\r\n", None, None),
        ("main-class: com.shop.Orders\n", None, None),
        ("Main-Class: com.sho\r\n p.Orders\r\n", None, None),
        # Flink looks for its own attribute first.
        ("Main-Class: com.shop.Orders\nprogram-class: com.Orders\n", None, "no class com.Orders"),
        ("Main-Class: nowhere.Orders\n", "com.shop.Orders", None),
        ("Main-Class: com.shop.Order\n", None, "no class com.shop.Order (did you mean com.shop.Or"),
        (None, "com.shop.Odrers", "(did you mean com.shop.Orders?)"),
        (None, "Orders", "has no class Orders (did you mean com.shop.Orders?)"),
        # It may be in the class path of the engine.
        (None, "org.apache.flink.Example", None),
    ],
)
def test_the_class_of_a_jar_that_is_started(
    manifest: str | None, entry_class: str | None, problem: str | None, tmp_path: Path
) -> None:
    jar = jar_of(tmp_path / "job.jar", manifest, "com.shop.Orders", "com.shop.Orders$Total")

    found = entry_problem(jar, entry_class)

    assert (found is None) if problem is None else (found is not None and problem in found)


def test_a_manifest_that_is_damaged_is_a_problem(tmp_path: Path) -> None:
    jar = jar_of(tmp_path / "job.jar", "Main-Class: com.shop.Orders\n", "com.shop.Orders")
    jar.write_bytes(jar.read_bytes().replace(b"Main-Class", b"Main-Clash", 1))

    assert "cannot be read" in (entry_problem(jar, None) or "")

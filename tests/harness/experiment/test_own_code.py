"""The packages that a module of a user must not hide."""

from __future__ import annotations

import re
from pathlib import Path

from streamquake.harness.experiment.own_code import INSTALLED

REQUIREMENTS = Path("cluster/images/spark/requirements.txt")
IMPORTED_AS = {"python-dateutil": "dateutil", "protobuf": "google"}
"""The packages whose modules have another name than they have."""


def test_the_packages_of_the_image_are_known() -> None:
    names = re.findall(r"^([\w-]+)==", REQUIREMENTS.read_text("utf-8"), re.MULTILINE)
    modules = {IMPORTED_AS.get(name, name.replace("-", "_")) for name in names}
    assert {*INSTALLED} == modules | {"pyspark", "py4j"}

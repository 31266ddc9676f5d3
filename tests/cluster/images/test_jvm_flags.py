"""The shell functions with which the images choose the flags of their JVMs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from streamquake.cluster.images import recipes

pytestmark = pytest.mark.process

JVM = Path(recipes.__file__).parent / "base" / "jvm.sh"


@pytest.mark.parametrize(
    ("processors", "expected"),
    [(2, "-XX:TieredStopAtLevel=1"), (7, "-XX:TieredStopAtLevel=1"), (8, "")],
)
def test_the_second_compiler_needs_eight_processors(processors: int, expected: str) -> None:
    script = f"nproc() {{ echo {processors}; }}; . {JVM}; compiler_flag"

    printed = subprocess.run(
        ["bash", "-euc", script], capture_output=True, text=True, check=True, timeout=30
    )

    assert printed.stdout.strip() == expected

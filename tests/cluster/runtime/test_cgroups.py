"""The usage in the files of a control group, in both versions."""

from __future__ import annotations

import pytest

from streamquake.cluster.runtime.docker.cgroups import usage_inside, usage_of
from streamquake.cluster.runtime.runtime import Usage

V1 = {
    "cpu.cfs_quota_us": "20000\n",
    "cpu.cfs_period_us": "100000\n",
    "cpu.stat": "nr_periods 90\nnr_throttled 7\nthrottled_time 1500000000\n",
    "memory.limit_in_bytes": "104857600\n",
    "memory.usage_in_bytes": "5000\n",
    "memory.stat": "cache 4000\ntotal_inactive_file 1000\n",
}
V2 = {
    "cpu.max": "20000 100000\n",
    "cpu.stat": "usage_usec 9\nnr_throttled 7\nthrottled_usec 1500000\n",
    "memory.max": "104857600\n",
    "memory.current": "5000\n",
    "memory.stat": "anon 1\ninactive_file 1000\n",
}
USAGE = Usage(
    cpus=0.2,
    throttled=7,
    throttled_ms=1500.0,
    memory_limit_bytes=104857600,
    memory_bytes=5000,
    working_bytes=4000,
)


@pytest.mark.parametrize("files", [V1, V2])
def test_both_versions_report_the_same(files: dict[str, str]) -> None:
    assert usage_of(files) == USAGE
    assert usage_inside("".join(f"== {name}\n{text}" for name, text in files.items())) == USAGE


@pytest.mark.parametrize(
    "files",
    [
        {
            "cpu.cfs_quota_us": "-1",
            "cpu.cfs_period_us": "100000",
            "memory.limit_in_bytes": "9223372036854771712",
        },
        {"cpu.max": "max 100000", "memory.max": "max"},
        {},
    ],
)
def test_no_limit_is_none(files: dict[str, str]) -> None:
    assert usage_of(files) == Usage()

"""The configuration file of an image for a release of Flink before 1.19."""

from __future__ import annotations

from pathlib import Path

from streamquake.cluster.images.flink_lines import write_lines
from streamquake.cluster.images.recipes import HERE


def test_the_sample_configuration_becomes_lines_with_whole_keys(tmp_path: Path) -> None:
    nested, flat = tmp_path / "config.yaml", tmp_path / "flink-conf.yaml"
    nested.write_bytes((HERE / "flink" / "conf" / "config.yaml").read_bytes())

    write_lines(nested, flat)

    assert not nested.exists()
    options = dict(line.split(": ", 1) for line in flat.read_text().splitlines())
    assert options["jobmanager.rpc.address"] == "localhost"
    assert options["taskmanager.memory.process.size"] == "1024m"
    assert options["sql-gateway.endpoint.rest.address"] == "localhost"
    assert "sun.net.util" in options["env.java.default-opts.all"]

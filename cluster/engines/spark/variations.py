"""What an exploration varies in queries on Spark: settings, and the phases to inject faults in."""

from __future__ import annotations

from streamquake.cluster.engines.engine import JobVariations

VARIATIONS = JobVariations(
    options={
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
        ),
        "spark.sql.adaptive.enabled": (True, False),
        "spark.task.maxFailures": (2, 4),
    },
    windows=(
        ("offset written", "batch running"),
        ("batch running", "sink written"),
        ("sink written", "commit written"),
    ),
    reactions=("executor lost", "executor added"),
)

"""A comparison of two data sets, from their sources to the verdict, in a session of Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from streamquake.cluster.images.build import spark_jars
from streamquake.harness.reconcile.comparison import ComparisonRequest, DataComparison
from streamquake.harness.reconcile.reading.source import Source, source_of
from streamquake.harness.reconcile.spark_session import spark_session, stop_spark

SMALL_BYTES = 100_000_000
"""Up to this size the small session is faster, start included; for larger data, or data of unknown
size, it is not (see `spark_session`: two million records are some 70 MB of Parquet)."""


def compare_sources(
    request: ComparisonRequest,
    *,
    master: str,
    settings: Mapping[str, str],
    show_message: Callable[[str], None],
) -> DataComparison:
    """Compare the two sides of a request in a session of Spark of its own, which ends with it.

    Raises BadInput for a wrong request, OSError for a source that could not be read.
    """
    # pyspark takes a third of a second to import; wrong input is reported before.
    expected = source_of(request.expected.uris, "--expected", request.expected.properties)
    actual = source_of(request.actual.uris, "--actual", request.actual.properties)
    sides = (expected, actual)
    sizes = [side.inspect() for side in sides]
    small = None not in sizes and sum(size or 0 for size in sizes) < SMALL_BYTES
    show_message(f"starting Spark ({master})")
    spark = spark_session(master, _jars(sides, show_message), small=small, settings=settings)
    try:
        from streamquake.harness.reconcile.compare import compare

        return compare(spark, request, expected, actual, show_message)
    finally:
        stop_spark(spark)


def _jars(sides: Sequence[Source], show_message: Callable[[str], None]) -> Sequence[Path]:
    return spark_jars(show_message) if any(side.needs_jars for side in sides) else ()

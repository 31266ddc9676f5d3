"""`reconcile`: any two data sets against each other, record by record."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from streamquake.cluster.images.build import spark_jars
from streamquake.harness.cli.guard import STATUSES
from streamquake.harness.cli.options import conf_option, json_file_option, master_option
from streamquake.harness.reconcile.comparison import Comparison, Request, Side
from streamquake.harness.reconcile.format import formats
from streamquake.harness.reconcile.report import print_comparison
from streamquake.harness.reconcile.source import Source, source_of
from streamquake.harness.spark import spark_session, stop_spark
from streamquake.reports import atomic
from streamquake.topologies.problems import bad_input

SMALL_BYTES = 100_000_000
"""Up to this size the quick session is quicker, start included; of what is larger, or of a size
nobody knows yet, it is not (see `spark_session`: two million records are some 70 MB of Parquet)."""
format_choice = click.Choice(sorted(formats))


@click.command("reconcile")
@click.option(
    "--expected",
    multiple=True,
    required=True,
    metavar="URI",
    help="What should be there: file://, hdfs://, kafka:// or a path; may be repeated.",
)
@click.option("--actual", multiple=True, required=True, metavar="URI", help="What is there.")
@click.option(
    "--key", required=True, metavar="EXPR,...", help="Spark SQL that tells records apart."
)
@click.option("--sequence", metavar="EXPR", help="The record's turn within its key.")
@click.option("--compare", metavar="EXPR,...", help="Values that must agree.")
@click.option("--actual-key", metavar="EXPR,...", help="Where the actual side calls it otherwise.")
@click.option("--actual-sequence", metavar="EXPR", help="Likewise.")
@click.option("--actual-compare", metavar="EXPR,...", help="Likewise.")
@click.option("--order", metavar="EXPR,...", help="In which order the actual records came.")
@click.option("--ack", metavar="EXPR", help="What the sender was told: ok, fail, unknown.")
@click.option("--expected-format", type=format_choice, help="Instead of what is found.")
@click.option("--actual-format", type=format_choice, help="Likewise.")
@master_option
@conf_option
@json_file_option("Write the outcome, counts and examples there too.")
def reconcile_command(
    expected: Sequence[str], actual: Sequence[str], key: str, sequence: str | None,
    compare: str | None, actual_key: str | None, actual_sequence: str | None,
    actual_compare: str | None, order: str | None, ack: str | None,
    expected_format: str | None, actual_format: str | None, master: str, confs: dict[str, str],
    json_file: Path | None,
) -> int:  # fmt: skip
    """Compare any two data sets: what was lost, duplicated, changed, reordered or never sent.

    EXPR is Spark SQL over a side's own columns. See docs/reconcile.md.
    """
    request = Request(
        expected=Side(
            name="expected", uris=tuple(expected), key=key, sequence=sequence, compare=compare,
            format=expected_format,
        ),
        actual=Side(
            name="actual", uris=tuple(actual), format=actual_format, key=actual_key or key,
            sequence=_other("sequence", sequence, actual_sequence),
            compare=_other("compare", compare, actual_compare),
        ),
        order=order, ack=ack,
    )  # fmt: skip
    found = _compared(request, master, confs)
    if json_file is not None:
        atomic.write_text(json_file, json.dumps(found.to_json(), indent=2, default=str) + "\n")
    print_comparison(found, json_file, shlex.join(["streamquake", *sys.argv[1:]]))
    return STATUSES[found.outcome]


def _other(name: str, expected: str | None, actual: str | None) -> str | None:
    if actual is not None and expected is None:
        raise bad_input(
            f"--actual-{name}", f"it says how the actual side differs from --{name}; give that"
        )
    return actual or expected


def _compared(request: Request, master: str, confs: dict[str, str]) -> Comparison:
    # pyspark takes a third of a second to import; wrong input is told before.
    expected = source_of(request.expected.uris, "--expected")
    actual = source_of(request.actual.uris, "--actual")
    sides = (expected, actual)
    sizes = [side.look() for side in sides]
    small = None not in sizes and sum(size or 0 for size in sizes) < SMALL_BYTES
    _say(f"starting Spark ({master})")
    spark = spark_session(master, _jars(sides), small=small, settings=confs)
    try:
        from streamquake.harness.reconcile.compare import compare

        return compare(spark, request, expected, actual, _say)
    finally:
        stop_spark(spark)


def _jars(sides: Sequence[Source]) -> Sequence[Path]:
    return spark_jars(_say) if any(side.needs_jars for side in sides) else ()


def _say(line: str) -> None:
    click.echo(line, err=True)

"""`reconcile`: any two data sets against each other, record by record."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from streamquake.cluster.images.build import spark_jars
from streamquake.harness.cli.guard import status_of_outcome
from streamquake.harness.cli.options import conf_option, json_file_option, master_option
from streamquake.harness.cli.output import echo
from streamquake.harness.reconcile.anomaly import anomalies, unknown_class
from streamquake.harness.reconcile.comparison import ComparisonRequest, DataComparison, Side
from streamquake.harness.reconcile.mapping import (
    UPSERT,
    GivenText,
    MappingDocument,
    SideName,
    read_mapping,
)
from streamquake.harness.reconcile.reading.format import Schema, formats
from streamquake.harness.reconcile.reading.source import Source, source_of
from streamquake.harness.reconcile.report import print_comparison
from streamquake.harness.reconcile.spark_session import spark_session, stop_spark
from streamquake.reports.record import atomic_files
from streamquake.topologies.problems import BadInput, bad_input

SMALL_BYTES = 100_000_000
"""Up to this size the quick session is quicker, start included; of what is larger, or of a size
nobody knows yet, it is not (see `spark_session`: two million records are some 70 MB of Parquet)."""
yaml_file = click.Path(path_type=Path, dir_okay=False)
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
@click.option("--key", metavar="EXPR,...", help="Spark SQL that tells records apart.")
@click.option("--sequence", metavar="EXPR", help="The record's turn within its key.")
@click.option("--compare", metavar="EXPR,...", help="Values that must agree.")
@click.option("--actual-key", metavar="EXPR,...", help="Where the actual side calls it otherwise.")
@click.option("--actual-sequence", metavar="EXPR", help="Likewise.")
@click.option("--actual-compare", metavar="EXPR,...", help="Likewise.")
@click.option("--order", metavar="EXPR,...", help="In which order the actual records came.")
@click.option("--retracts", metavar="EXPR", help="Which actual records take others back.")
@click.option("--upsert", is_flag=True, help="Of actual records with one key the last counts.")
@click.option("--ack", metavar="EXPR", help="What the sender was told: ok, fail, unknown.")
@click.option("--also", metavar="CLASS,...", help=f"Judge these too: {', '.join(anomalies)}.")
@click.option("--expected-format", type=format_choice, help="Instead of what is found.")
@click.option("--actual-format", type=format_choice, help="Likewise.")
@click.option(
    "--expected-map", type=yaml_file, metavar="FILE", help="YAML that says these of a side."
)
@click.option("--actual-map", type=yaml_file, metavar="FILE", help="Likewise.")
@master_option
@conf_option
@json_file_option("Write the outcome, counts and examples there too.")
def reconcile_command(
    expected: Sequence[str],
    actual: Sequence[str],
    key: str | None,
    sequence: str | None,
    compare: str | None,
    actual_key: str | None,
    actual_sequence: str | None,
    actual_compare: str | None,
    order: str | None,
    retracts: str | None,
    upsert: bool,
    ack: str | None,
    also: str | None,
    expected_format: str | None,
    actual_format: str | None,
    expected_map: Path | None,
    actual_map: Path | None,
    master: str,
    confs: dict[str, str],
    json_file: Path | None,
) -> int:
    """Compare any two data sets: what was lost, duplicated, changed, reordered or never sent.

    EXPR is Spark SQL over a side's own columns. See docs/reconcile.md.
    """
    maps = (_mapped(expected_map, "expected"), _mapped(actual_map, "actual"))
    one = _message(
        maps[0],
        {
            "key": ("--key", key),
            "sequence": ("--sequence", sequence),
            "value": ("--compare", compare),
            "ack": ("--ack", ack),
            "format": ("--expected-format", expected_format),
        },
    )
    other = _message(
        maps[1],
        {
            "key": ("--actual-key", actual_key),
            "sequence": ("--actual-sequence", actual_sequence),
            "value": ("--actual-compare", actual_compare),
            "order": ("--order", order),
            "retracts": ("--retracts", retracts),
            "upsert": ("--upsert", UPSERT if upsert else None),
            "format": ("--actual-format", actual_format),
        },
    )
    for name, option in (("key", "--key"), ("sequence", "--sequence"), ("value", "--compare")):
        if name not in one and (name in other or name == "key"):
            raise _needed(option, name, other.get(name))
    request = ComparisonRequest(
        expected=_side("expected", expected, one, maps[0].schema),
        actual=_side("actual", actual, {**_alike(one), **other}, maps[1].schema),
        order=_text(other, "order"),
        retracts=_text(other, "retracts"),
        ack=_text(one, "ack"),
        also=_classes(also),
        upsert="upsert" in other,
    )
    found = _compared(request, master, confs)
    if json_file is not None:
        atomic_files.write_text(
            json_file, json.dumps(found.to_json(), indent=2, default=str) + "\n"
        )
    print_comparison(found, json_file, shlex.join(["streamquake", *sys.argv[1:]]))
    return status_of_outcome(found.outcome)


def _classes(also: str | None) -> tuple[str, ...]:
    names = tuple(name.strip() for name in also.split(",")) if also else ()
    if wrong := unknown_class(names):
        raise bad_input("--also", wrong)
    return names


def _mapped(file: Path | None, side: SideName) -> MappingDocument:
    return MappingDocument(texts={}) if file is None else read_mapping(file, side)


def _message(
    of_file: MappingDocument, options: Mapping[str, tuple[str, str | None]]
) -> dict[str, GivenText]:
    """What the options and the mapping file say of a side, by the names of the file."""
    wording = {
        name: GivenText(text=text, place=option) for name, (option, text) in options.items() if text
    }
    if twice := sorted(wording.keys() & of_file.texts.keys()):
        name = twice[0]
        message = f"{wording[name].place} says that too; give one of the two"
        raise bad_input(of_file.texts[name].place, message)
    return {**of_file.texts, **wording}


def _needed(option: str, name: str, actual: GivenText | None) -> BadInput:
    if actual is None:
        message = "expected what tells records apart; give it, or `key` in the file of"
        return bad_input(option, f"{message} --expected-map")
    message = f"it says how the actual side differs from {option}; give that"
    return bad_input(actual.place, f"{message}, or `{name}` in the file of --expected-map")


def _alike(message: Mapping[str, GivenText]) -> dict[str, GivenText]:
    """What the actual side has of the expected one where nothing else is said."""
    return {name: message[name] for name in ("key", "sequence", "value") if name in message}


def _side(
    name: str, uris: Sequence[str], message: Mapping[str, GivenText], schema: Schema | None
) -> Side:
    places = {"compare" if key == "value" else key: each.place for key, each in message.items()}
    return Side(
        name=name,
        uris=tuple(uris),
        key=message["key"].text,
        sequence=_text(message, "sequence"),
        compare=_text(message, "value"),
        format=_text(message, "format"),
        schema=schema,
        places=places,
    )


def _text(message: Mapping[str, GivenText], name: str) -> str | None:
    return message[name].text if name in message else None


def _compared(request: ComparisonRequest, master: str, confs: dict[str, str]) -> DataComparison:
    # pyspark takes a third of a second to import; wrong input is told before.
    expected = source_of(request.expected.uris, "--expected")
    actual = source_of(request.actual.uris, "--actual")
    sides = (expected, actual)
    sizes = [side.inspect() for side in sides]
    small = None not in sizes and sum(size or 0 for size in sizes) < SMALL_BYTES
    _record(f"starting Spark ({master})")
    spark = spark_session(master, _jars(sides), small=small, settings=confs)
    try:
        from streamquake.harness.reconcile.compare import compare

        return compare(spark, request, expected, actual, _record)
    finally:
        stop_spark(spark)


def _jars(sides: Sequence[Source]) -> Sequence[Path]:
    return spark_jars(_record) if any(side.needs_jars for side in sides) else ()


def _record(line: str) -> None:
    echo(line, err=True)

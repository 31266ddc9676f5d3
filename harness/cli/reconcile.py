"""`reconcile`: compares any two data sets, record by record."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from streamquake.harness.cli.guard import status_of_outcome
from streamquake.harness.cli.options import conf_option, json_file_option, master_option
from streamquake.harness.cli.output import echo
from streamquake.harness.reconcile.anomaly import anomalies, unknown_class
from streamquake.harness.reconcile.comparison import ComparisonRequest, Side
from streamquake.harness.reconcile.mapping import (
    UPSERT,
    GivenText,
    MappingDocument,
    SideName,
    read_mapping,
)
from streamquake.harness.reconcile.reading.format import formats
from streamquake.harness.reconcile.report import print_comparison
from streamquake.harness.reconcile.two_sources import compare_sources
from streamquake.reports.record import atomic_files
from streamquake.topologies.problems import BadInput, bad_input

yaml_file = click.Path(path_type=Path, dir_okay=False)
format_choice = click.Choice(sorted(formats))


@click.command("reconcile")
@click.option(
    "--expected",
    multiple=True,
    required=True,
    metavar="URI",
    help="The expected data: file://, hdfs://, kafka://, postgresql://, s3:// or a path; may be "
    "repeated.",
)
@click.option("--actual", multiple=True, required=True, metavar="URI", help="The data to judge.")
@click.option("--key", metavar="EXPR,...", help="Spark SQL that identifies a record.")
@click.option("--sequence", metavar="EXPR", help="The record's position within its key.")
@click.option("--compare", metavar="EXPR,...", help="Values that must agree.")
@click.option("--actual-key", metavar="EXPR,...", help="The key of the actual side, if it differs.")
@click.option("--actual-sequence", metavar="EXPR", help="Likewise.")
@click.option("--actual-compare", metavar="EXPR,...", help="Likewise.")
@click.option("--order", metavar="EXPR,...", help="The order in which the actual records arrived.")
@click.option("--retracts", metavar="EXPR", help="Which actual records retract others.")
@click.option("--upsert", is_flag=True, help="Only the last actual record of a key counts.")
@click.option(
    "--ack", metavar="EXPR", help="The acknowledgement that the sender received: ok, fail, unknown."
)
@click.option("--also", metavar="CLASS,...", help=f"Judge these too: {', '.join(anomalies)}.")
@click.option("--expected-format", type=format_choice, help="Instead of the detected format.")
@click.option("--actual-format", type=format_choice, help="Likewise.")
@click.option(
    "--expected-map", type=yaml_file, metavar="FILE", help="YAML with these settings of a side."
)
@click.option("--actual-map", type=yaml_file, metavar="FILE", help="Likewise.")
@master_option
@conf_option
@json_file_option("Write the outcome, counts and examples to FILE too.")
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
    maps = (_mapping_document(expected_map, "expected"), _mapping_document(actual_map, "actual"))
    one = _side_settings(
        maps[0],
        {
            "key": ("--key", key),
            "sequence": ("--sequence", sequence),
            "value": ("--compare", compare),
            "ack": ("--ack", ack),
            "format": ("--expected-format", expected_format),
        },
    )
    other = _side_settings(
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
            raise _missing_setting(option, name, other.get(name))
    request = ComparisonRequest(
        expected=_side("expected", expected, one, maps[0]),
        actual=_side("actual", actual, {**_shared_settings(one), **other}, maps[1]),
        order=_text(other, "order"),
        retracts=_text(other, "retracts"),
        ack=_text(one, "ack"),
        also=_classes(also),
        upsert="upsert" in other,
    )
    found = compare_sources(request, master=master, settings=confs, show_message=_print_progress)
    if json_file is not None:
        atomic_files.write_text(
            json_file, json.dumps(found.to_json(), indent=2, default=str) + "\n"
        )
    print_comparison(found, json_file, shlex.join(["streamquake", *sys.argv[1:]]))
    return status_of_outcome(found.outcome)


def _classes(also: str | None) -> tuple[str, ...]:
    names = tuple(name.strip() for name in also.split(",")) if also is not None else ()
    if wrong := unknown_class(names):
        raise bad_input("--also", wrong)
    return names


def _mapping_document(file: Path | None, side: SideName) -> MappingDocument:
    return MappingDocument(texts={}) if file is None else read_mapping(file, side)


def _side_settings(
    of_file: MappingDocument, options: Mapping[str, tuple[str, str | None]]
) -> dict[str, GivenText]:
    """The settings of a side from the options and the mapping file, by the names of the file.
    Raises BadInput for a setting that both give, and for an empty one, such as from a variable of a
    script that is not set."""
    of_options = {
        name: GivenText(text=text, place=option)
        for name, (option, text) in options.items()
        if text is not None
    }
    if empty := next((given for given in of_options.values() if not given.text.strip()), None):
        raise bad_input(empty.place, "expected an expression, got an empty text")
    if twice := sorted(of_options.keys() & of_file.texts.keys()):
        name = twice[0]
        message = f"{of_options[name].place} gives that too; remove one of the two"
        raise bad_input(of_file.texts[name].place, message)
    return {**of_file.texts, **of_options}


def _missing_setting(option: str, name: str, actual: GivenText | None) -> BadInput:
    if actual is None:
        message = "expected the key that identifies a record; give it, or `key` in the file of"
        return bad_input(option, f"{message} --expected-map")
    message = f"it replaces {option} on the actual side; give that"
    return bad_input(actual.place, f"{message}, or `{name}` in the file of --expected-map")


def _shared_settings(settings: Mapping[str, GivenText]) -> dict[str, GivenText]:
    """The settings that the actual side takes from the expected side by default."""
    return {name: settings[name] for name in ("key", "sequence", "value") if name in settings}


def _side(
    name: str, uris: Sequence[str], settings: Mapping[str, GivenText], of_file: MappingDocument
) -> Side:
    places = {
        "compare" if key == "value" else key: setting.place for key, setting in settings.items()
    }
    return Side(
        name=name,
        uris=tuple(uris),
        key=settings["key"].text,
        sequence=_text(settings, "sequence"),
        compare=_text(settings, "value"),
        format=_text(settings, "format"),
        schema=of_file.schema,
        properties=of_file.properties,
        places=places,
    )


def _text(settings: Mapping[str, GivenText], name: str) -> str | None:
    return settings[name].text if name in settings else None


def _print_progress(line: str) -> None:
    echo(line, err=True)

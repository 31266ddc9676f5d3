"""Records by a template: their values, their types, and the templates that are rejected."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from streamquake.harness.experiment.check import JudgedRun
from streamquake.harness.experiment.loader import load_experiment
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.verdict.expected_output import possible_input
from streamquake.harness.workloads.data_sets.column_types import fits
from streamquake.harness.workloads.data_sets.json_line import json_text
from streamquake.harness.workloads.template import Template
from streamquake.harness.workloads.template.sizes import longest_object
from streamquake.reports.record.event import Action
from streamquake.topologies.problems import BadInput
from tests.harness.histories import Story

FIRST_DAY, LAST_DAY = "0001-01-01T00:00:00", "9999-12-31T23:59:59"
EARLY = {"start": f"{FIRST_DAY}Z", "form": "sql"}


def template(fields: Mapping[str, Any], records: int = 2000, **more: Any) -> Template:
    return Template.model_validate(
        {"records": records, "rate_per_s": 1000, "fields": fields, **more}
    )


def records_of(load: Template, seed: int = 1) -> list[dict[str, Any]]:
    return [json.loads(line, parse_float=Decimal) for line in load.data_set(seed).lines]


def values(generator: Mapping[str, Any], records: int = 2000) -> list[Any]:
    return [record["it"] for record in records_of(template({"it": generator}, records))]


def test_a_sequence_has_even_distances() -> None:
    assert values({"sequence": {}}, 3) == [0, 1, 2]
    assert values({"sequence": {"start": 10, "step": -5}}, 4) == [10, 5, 0, -5]


def test_records_are_numbered_within_the_values_of_another_field() -> None:
    load = template({"who": {"choice": {"of": ["a", "b"]}}, "nth": {"number_of": {"field": "who"}}})
    counts: Counter[str] = Counter()
    for record in records_of(load):
        counts[record["who"]] += 1
        assert record["nth"] == counts[record["who"]]
    assert len(counts) == 2


def test_choices_follow_their_weights() -> None:
    counts = Counter(values({"choice": {"of": [7, 8], "weights": [1, 3]}}))
    assert set(counts) == {7, 8}
    assert 1350 < counts[8] < 1650
    assert 850 < Counter(values({"choice": {"of": [True, False]}}))[True] < 1150


def test_zipf_prefers_the_first_values() -> None:
    counts = Counter(values({"zipf": {"values": 100, "exponent": 1, "prefix": "c-"}}, 5000))
    # The weight of the first is 1 of 5.19, that of the second half of it.
    assert 800 < counts["c-0"] < 1130
    assert 380 < counts["c-1"] < 580
    assert set(counts) <= {f"c-{n}" for n in range(100)}
    assert set(values({"zipf": {"values": 1}}, 50)) == {"v-0"}


def test_numbers_are_within_their_bounds() -> None:
    assert set(values({"integer": {"least": -1, "most": 1}})) == {-1, 0, 1}
    fractions = values({"fraction": {"least": 0, "most": 1, "digits": 1}})
    assert set(fractions) == {Decimal(n) / 10 for n in range(11)}
    assert {f.as_tuple().exponent for f in fractions} == {-1}


def test_the_first_and_the_last_times_of_the_calendar_have_texts() -> None:
    late = {"start": "9999-12-31T23:59:59.997Z", "form": "iso"}
    assert values({"timestamp": late}, 3)[-1] == "9999-12-31T23:59:59.999Z"
    assert values({"timestamp": EARLY}, 1) == ["0001-01-01 00:00:00.000"]
    assert values({"timestamp": {"start": f"{FIRST_DAY}+01:00"}}, 1) == [-62135600400000]


def test_times_grow_and_may_be_disordered() -> None:
    start = "2026-03-01T01:00:00+01:00"
    assert values({"timestamp": {"start": start, "step_ms": 250}}, 3) == [
        1772323200000,
        1772323200250,
        1772323200500,
    ]
    late = values({"timestamp": {"step_ms": 10, "disorder_ms": 100}}, 1000)
    delays = [1767225600000 + 10 * n - at for n, at in enumerate(late)]
    assert (min(delays), max(delays)) == (0, 100)
    for form, text in (("sql", "2026-03-01 00:00:00.000"), ("iso", "2026-03-01T00:00:00.000Z")):
        assert values({"timestamp": {"start": start, "form": form}}, 1) == [text]


def test_texts_objects_and_lists() -> None:
    assert {len(text) for text in values({"text": {"length": 7}}, 50)} == {7}
    nested = {"fields": {"a": {"sequence": {}}, "n": {"number_of": {"field": "a"}}}}
    assert values(nested, 2) == [{"a": 0, "n": 1}, {"a": 1, "n": 1}]
    lists = values({"list": {"of": {"integer": {"most": 1}}, "least": 1, "most": 2}})
    assert {tuple(each) for each in lists} == {(0,), (1,), (0, 0), (0, 1), (1, 0), (1, 1)}


def test_fields_may_be_null_or_missing() -> None:
    field = {"integer": {"least": 1}, "null_share": 0.25, "missing_share": 0.5}
    records = records_of(template({"id": {"sequence": {}}, "it": field}))
    kinds = Counter("missing" if "it" not in r else r["it"] is None for r in records)
    assert 900 < kinds["missing"] < 1100
    assert 400 < kinds[True] < 600
    assert all(record["id"] == n for n, record in enumerate(records))


def test_records_are_a_function_of_the_seed() -> None:
    load = template({"a": {"text": {}}, "b": {"integer": {}}})
    assert records_of(load, 1) == records_of(load, 1)
    assert records_of(load, 1) != records_of(load, 2)
    fewer = template({"a": {"text": {}}, "b": {"integer": {}}}, records=10)
    assert records_of(fewer, 1) == records_of(load, 1)[:10]


SCALARS = [
    {"sequence": {"start": -5, "step": 3}},
    {"choice": {"of": ["x", "y"]}},
    {"choice": {"of": [1, 2]}},
    {"choice": {"of": [True]}},
    {"zipf": {"values": 5}},
    {"integer": {"least": -(2**53), "most": 2**53}},
    {"fraction": {"least": -(10**9), "most": 10**9, "digits": 9}},
    {"timestamp": {}},
    {"timestamp": {"form": "iso"}},
    {"text": {}},
    {"fields": {"a": {"text": {}}}},
    {"list": {"of": {"fraction": {}}}},
]


@settings(max_examples=50)
@given(
    fields=st.lists(st.sampled_from(SCALARS), min_size=1, max_size=6),
    null_share=st.sampled_from([0, 0.3]),
    seed=st.integers(0, 2**31),
)
def test_every_value_fits_the_type_of_its_column(
    fields: list[dict[str, Any]], null_share: float, seed: int
) -> None:
    named = {f"f{n}": {**field, "null_share": null_share} for n, field in enumerate(fields)}
    load = template(named, records=20)
    for record in records_of(load, seed):
        for name, value in record.items():
            assert fits(load.types[name], value), (name, value)
        assert len(json_text(record)) <= longest_object(load.fields)


@pytest.mark.parametrize(
    ("field", "longest"),
    [
        ({"text": {"length": 50}}, 52),
        ({"choice": {"of": ["ä", "abc"]}}, 5),
        ({"choice": {"of": [True, False]}}, 5),
        ({"choice": {"of": [1]}}, 4),
        ({"zipf": {"values": 100, "prefix": "v"}}, 6),
        ({"list": {"of": {"text": {"length": 8}}, "most": 3}}, 2 + 3 * 11),
        ({"fields": {"b": {"text": {"length": 8}}}}, 2 + 3 + 2 + 10),
        ({"integer": {}}, 32),
    ],
)
def test_the_largest_size_of_a_value_is_known(field: dict[str, Any], longest: int) -> None:
    assert longest_object(template({"a": field}).fields) == 2 + 3 + 2 + longest


@pytest.mark.parametrize(
    ("length", "records", "message"),
    [
        (899_991, 1, ""),
        (899_992, 1, "fields: a record may have 900,001 bytes; records of up to 900,000 are sent"),
        (91, 10_000_000, ""),
        (99, 10_000_000, "records: 10,000,000 of up to 108 bytes may need 1,080,000,000 bytes"),
    ],
)
def test_a_load_that_is_too_large_is_rejected(length: int, records: int, message: str) -> None:
    fields = {"a": {"text": {"length": length}}}
    if not message:
        assert template(fields, records=records).planned == records
        return
    with pytest.raises(ValueError, match=message):
        template(fields, records=records)


def test_lists_of_lists_are_counted_whole() -> None:
    field: dict[str, Any] = {"integer": {}}
    for _ in range(3):
        field = {"list": {"of": field, "most": 1000}}
    with pytest.raises(ValueError, match="a record may have 33,"):
        template({"a": field})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "at least 1 item"),
        ({"a": {}}, "expected one of sequence, number_of, .*; got none"),
        ({"a": {"text": {}, "integer": {}}}, "; got integer and text"),
        ({"a": {"choice": {"of": []}}}, "at least 1 item"),
        ({"a": {"choice": {"of": ["x", 1]}}}, "values of one kind"),
        ({"a": {"choice": {"of": [1, 2], "weights": [1]}}}, "expected 2 weights, got 1"),
        ({"a": {"choice": {"of": [1], "weights": [0]}}}, "greater than 0"),
        ({"a": {"integer": {"least": 2, "most": 1}}}, r"least \(2\) no more than most \(1\)"),
        ({"a": {"fraction": {"least": 2, "most": 1}}}, r"least \(2\) no more than most \(1\)"),
        ({"a": {"list": {"of": {"text": {}}, "least": 5}}}, "no more than most"),
        ({"a": {"text": {}, "null_share": 0.6, "missing_share": 0.6}}, "more than all records"),
        ({"n": {"number_of": {"field": "b"}}, "b": {"text": {}}}, "n: number_of names b; .*: none"),
        ({"o": {"fields": {"n": {"number_of": {"field": "o"}}}}}, r"o\.n: number_of names o"),
        ({"l": {"list": {"of": {"number_of": {"field": "l"}}}}}, r"l\.of: number_of names l"),
        ({"index": {"text": {}}}, "reserved name"),
        ({"a": {"text": {}}, "A": {"text": {}}}, "differ in case only"),
        ({"a": {"timestamp": {"start": "2026-01-01T00:00:00"}}}, "should have timezone"),
        ({"a": {"choice": {"of": [1, 2], "weights": [1, float("inf")]}}}, "less than or equal"),
        ({"a": {"timestamp": {"start": f"{LAST_DAY}Z", "form": "sql"}}}, "a: expected times from"),
        ({"a": {"timestamp": {"start": f"{FIRST_DAY}+01:00", "form": "iso"}}}, "a: expected times"),
        (
            {"l": {"list": {"of": {"timestamp": {**EARLY, "disorder_ms": 1}}}}},
            r"l\.of: expected times from the year 1 to 9999",
        ),
    ],
)
def test_wrong_templates_are_rejected(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        template(fields)


@pytest.mark.parametrize("key", ["none", "o", "l", "f", "b"])
def test_a_key_must_be_text_or_a_whole_number(key: str) -> None:
    fields = {
        "o": {"fields": {"a": {"text": {}}}},
        "l": {"list": {"of": {"text": {}}}},
        "f": {"fraction": {}},
        "b": {"choice": {"of": [True, False]}},
        "t": {"text": {}},
        "i": {"integer": {}},
    }
    for right in ("t", "i"):
        assert template(fields, key=right).data_set(1).outgoing(right, 2)
    with pytest.raises(ValueError, match="expected a field that is text or a whole number"):
        template(fields, key=key)


DOCUMENT = """\
name: orders
topology: flink-kafka-hdfs
job: {sql: copy.sql}
workload:
  template:
    records: 50
    rate_per_s: 1000
    key: customer
    fields:
      customer: {zipf: {values: 10, prefix: c-}}
      nth: {number_of: {field: customer}}
      price: {fraction: {most: 99}}
      at: {timestamp: {form: sql, disorder_ms: 500}}
      paid: {choice: {of: [true, false]}, null_share: 0.1}
      items: {list: {of: {fields: {sku: {text: {length: 5}}, count: {integer: {least: 1}}}}}}
"""


def experiment_in(folder: Path, document: str = DOCUMENT) -> Experiment:
    path = folder / "orders.yaml"
    path.write_text(document)
    return load_experiment(str(path), seed=3)


def test_a_wrong_template_is_reported_at_its_place(tmp_path: Path) -> None:
    with pytest.raises(BadInput) as rejected:
        experiment_in(tmp_path, DOCUMENT.replace("most: 99", "most: many"))
    (problem,) = rejected.value.problems
    assert problem.path == "workload.template.fields.price.fraction.most"


def test_the_records_sent_are_those_of_the_template(spark: SparkSession, tmp_path: Path) -> None:
    experiment = experiment_in(tmp_path)
    experiment.workload.store(tmp_path, experiment.seed)
    done = Story().sent(1, 50).at(2, Action.WORKLOAD_DONE, acknowledged=50, failed=0, unknown=0)
    case = JudgedRun(
        experiment=experiment,
        history=done.history(),
        data=tmp_path,
        metrics=tmp_path / "none",
        spark=lambda: spark,
    )
    assert isinstance(experiment.workload, Template)
    sent = records_of(experiment.workload, experiment.seed)
    rows = possible_input(case).orderBy("index").collect()
    assert [row["index"] for row in rows] == list(range(50))
    for record, row in zip(sent, rows, strict=True):
        found = row.asDict()
        assert json.loads(found.pop("items"), parse_float=Decimal) == record.pop("items")
        assert found == {**record, "index": row["index"], "status": "acknowledged"}

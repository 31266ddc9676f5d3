"""Edge cases through both ways of reading, that of a run and that of the `reconcile` command, must
have one verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from streamquake.harness.experiment.outputs import Output
from streamquake.harness.reconcile import compare, examples
from streamquake.harness.reconcile.identity_join import quote_name
from streamquake.harness.reconcile.json.json_quick import MIN_SAMPLE
from streamquake.harness.reconcile.reading.files import read_files
from streamquake.harness.reconcile.reading.promised_columns import FIELDS_BY_NAME
from streamquake.harness.reconcile.reading.stored_output import StoredOutput
from streamquake.harness.reconcile.result import ReconciliationResult
from streamquake.harness.verdict.expected_output import reconciled_output
from streamquake.reports.record.outcome import Finding
from streamquake.topologies.problems import BadInput
from tests.harness.reconcile.data_sets import comparison_of, write_rows
from tests.harness.reconcile.odd_values import MALFORMED_TAILS, VALID_TAILS, VALUES
from tests.harness.verdict.checks.test_exactly_once import Testbed

KINDS = tuple(dict.fromkeys(case.kind for case in VALUES))
DIFFERING = {at for at, case in enumerate(VALUES) if not case.equal} | {
    len(VALUES) + at for at in range(len(MALFORMED_TAILS))
}
ALL_KINDS = tuple(f"v{at}" for at in range(len(KINDS)))
ALL = len(VALUES) + len(MALFORMED_TAILS) + len(VALID_TAILS)


def lines(first: str | None) -> bytes:
    """A record for each value, after enough plain records, each with the value `first`, that types
    are guessed; between them lines of white space."""
    records = [
        f'{{"n":{at}' + (f',"v{KINDS.index(case.kind)}":{case.actual}}}' if case.actual else "}")
        for at, case in enumerate(VALUES)
    ]
    records += [
        f'{{"n":{at}{rest}' for at, rest in enumerate([*MALFORMED_TAILS, *VALID_TAILS], len(VALUES))
    ]
    plain = [f'{{"n":{-at},"v0":{first}}}' for at in range(1, MIN_SAMPLE + 100)] if first else []
    return "\n \t\n".join([*plain, *records, " ", ""]).encode(errors="surrogateescape")


def write_promised(spark: SparkSession, path: Path) -> Path:
    """Write the promised values, with a column for each type."""
    rows = [
        ", ".join(
            [
                str(at),
                *(
                    f"CAST({case.promised if case.kind == kind else 'NULL'} AS {kind})"
                    for kind in KINDS
                ),
            ]
        )
        for at, case in enumerate(VALUES)
    ]
    rows += [", ".join([str(at), *["NULL"] * len(KINDS)]) for at in range(len(VALUES), ALL)]
    names = ", ".join(["n", *(f"v{at}" for at in range(len(KINDS)))])
    table = ", ".join(f"({row})" for row in rows)
    frame = spark.sql(f"SELECT * FROM VALUES {table} AS t({names})")
    frame.selectExpr("CAST(n AS BIGINT) n", "* EXCEPT (n)").coalesce(1).write.parquet(str(path))
    return path


def differing_ids(findings: tuple[Finding, ...]) -> set[int]:
    return {finding.detail["n"] for finding in findings if finding.what in ("lost", "changed")}


@pytest.fixture(autouse=True)
def all_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examples, "MAX_EXAMPLES", 2 * ALL)
    monkeypatch.setattr(compare, "MAX_EXAMPLES", 2 * ALL)


@pytest.mark.nightly
@pytest.mark.parametrize("first", [pytest.param(None, marks=pytest.mark.nightly), "1"])
def test_both_ways_find_exactly_the_different_values(
    spark: SparkSession, tmp_path: Path, first: str | None
) -> None:
    promised = write_promised(spark, tmp_path / "promised.parquet")

    command, run = differences_both_ways(spark, tmp_path, promised, lines(first), "json", ALL_KINDS)

    assert len(DIFFERING) > 300
    assert command == DIFFERING
    assert run == DIFFERING


@pytest.mark.nightly
def test_both_ways_accept_promised_values_in_parquet(spark: SparkSession, tmp_path: Path) -> None:
    promised = write_promised(spark, tmp_path / "promised.parquet")
    whole = spark.read.parquet(str(promised)).withColumn(
        "bytes", F.repeat(F.lit("a"), F.col("n").cast("int")).cast("binary")
    )
    whole.coalesce(1).write.parquet(str(tmp_path / "whole.parquet"))
    (part,) = (tmp_path / "whole.parquet").glob("part-*.parquet")

    command, run = differences_both_ways(
        spark, tmp_path, part, part.read_bytes(), "parquet", (*ALL_KINDS, "bytes")
    )

    assert command == set()
    assert run == set()


@dataclass(frozen=True, kw_only=True)
class ColumnCase:
    """The promised and the actual value of one column of Parquet, in Spark SQL; whether a run
    counts them as equal, and whether the command can compare the two types."""

    promised: str
    actual: str
    equal: bool
    comparable: bool = True


COLUMNS = (
    ColumnCase(promised="0.1D", actual="CAST(0.1 AS FLOAT)", equal=False),
    ColumnCase(promised="0.5D", actual="CAST(0.5 AS FLOAT)", equal=True),
    ColumnCase(promised="CAST(0.1 AS FLOAT)", actual="0.1D", equal=False),
    ColumnCase(promised="CAST(0.1 AS FLOAT)", actual="0.10000000149011612D", equal=True),
    ColumnCase(promised="CAST('NaN' AS DOUBLE)", actual="CAST('NaN' AS FLOAT)", equal=True),
    ColumnCase(
        promised="CAST('-Infinity' AS DOUBLE)", actual="CAST('-Infinity' AS DOUBLE)", equal=True
    ),
    ColumnCase(
        promised="CAST('Infinity' AS DOUBLE)", actual="1.7976931348623157E308D", equal=False
    ),
    ColumnCase(
        promised="1e23D", actual="CAST('99999999999999991611392' AS DECIMAL(38,0))", equal=False
    ),
    ColumnCase(
        promised="1e23D", actual="CAST('100000000000000000000000' AS DECIMAL(38,0))", equal=True
    ),
    ColumnCase(promised="-0.0D", actual="0D", equal=True),
    ColumnCase(promised="7L", actual="CAST(7 AS TINYINT)", equal=True),
    ColumnCase(promised="7L", actual="7.00BD", equal=True),
    ColumnCase(promised="7L", actual="7.01BD", equal=False),
    ColumnCase(promised="7L", actual="7.5D", equal=False),
    ColumnCase(promised="7L", actual="7D", equal=True),
    ColumnCase(promised="CAST(44 AS TINYINT)", actual="300", equal=False),
    ColumnCase(promised="CAST(NULL AS TINYINT)", actual="300", equal=False),
    ColumnCase(promised="CAST(7 AS DECIMAL(10,2))", actual="7", equal=True),
    ColumnCase(promised="CAST(7 AS DECIMAL(10,2))", actual="7.004BD", equal=False),
    ColumnCase(promised="'a'", actual="'a '", equal=False),
    ColumnCase(promised="true", actual="false", equal=False),
    ColumnCase(promised="X'00FF'", actual="X'00FF'", equal=True),
    ColumnCase(promised="X'00FF'", actual="X'00FE'", equal=False),
    ColumnCase(
        promised="TIMESTAMP'2026-01-02 03:04:05Z'", actual="'2026-01-02T03:04:05Z'", equal=True
    ),
    ColumnCase(
        promised="TIMESTAMP'2026-01-02 03:04:05Z'", actual="'2026-01-02T04:04:05'", equal=False
    ),
    ColumnCase(promised="TIMESTAMP'2026-01-02 03:04:05Z'", actual="'today'", equal=False),
    ColumnCase(
        promised="TIMESTAMP'2026-01-02 03:04:05Z'",
        actual="TIMESTAMP_NTZ'2026-01-02 03:04:05'",
        equal=True,
    ),
    ColumnCase(
        promised="TIMESTAMP_NTZ'2026-01-02 03:04:05.000001'",
        actual="TIMESTAMP'2026-01-02 03:04:05.000002Z'",
        equal=False,
    ),
    ColumnCase(
        promised="TIMESTAMP'+294247-01-10 04:00:54.775807Z'",
        actual="TIMESTAMP'+294247-01-10 04:00:54.775807Z'",
        equal=True,
    ),
    ColumnCase(
        promised="TIMESTAMP'+294247-01-10 04:00:54.775807Z'",
        actual="TIMESTAMP'+294247-01-10 04:00:54.775806Z'",
        equal=False,
    ),
    ColumnCase(
        promised="TIMESTAMP_NTZ'2026-01-02 03:04:05'",
        actual="'2026-01-02T04:04:05+01:00'",
        equal=True,
    ),
    ColumnCase(
        promised="TIMESTAMP_NTZ'2026-01-02 04:04:05'",
        actual="'2026-01-02T04:04:05+01:00'",
        equal=False,
    ),
    ColumnCase(promised="DATE'+10000-01-01'", actual="DATE'+10000-01-01'", equal=True),
    ColumnCase(promised="DATE'2026-01-02'", actual="'2026-01-02'", equal=True),
    ColumnCase(promised="DATE'2026-01-02'", actual="'2026-01-02T00:00:00'", equal=False),
    ColumnCase(promised="DATE'2026-01-02'", actual="CAST(NULL AS DATE)", equal=False),
    ColumnCase(promised="CAST(NULL AS DATE)", actual="DATE'2026-01-02'", equal=False),
    ColumnCase(promised="'2026-01-02'", actual="DATE'2026-01-02'", equal=True),
    ColumnCase(promised="'2026-01-02'", actual="DATE'2026-01-03'", equal=False),
    ColumnCase(promised="'2026-1-02'", actual="DATE'2026-01-02'", equal=False),
    ColumnCase(promised="array(1L, NULL)", actual="array(1, NULL)", equal=True),
    ColumnCase(promised="array(1L, NULL)", actual="array(1)", equal=False),
    ColumnCase(promised="named_struct('a', 1L)", actual="named_struct('a', 1.0BD)", equal=True),
    ColumnCase(promised="named_struct('a', 1L)", actual="named_struct('a', '1')", equal=False),
    ColumnCase(
        promised="array(TIMESTAMP'2026-01-02 03:04:05.123Z')",
        actual="array(TIMESTAMP'2026-01-02 03:04:05.123Z')",
        equal=True,
    ),
    ColumnCase(promised="map('a', X'00')", actual="map('a', X'00')", equal=True),
    ColumnCase(promised="map('a', X'00')", actual="map('a', X'01')", equal=False),
    ColumnCase(
        promised="named_struct('a', X'61')", actual="named_struct('a', 'YQ==')", equal=False
    ),
    ColumnCase(promised="array(DATE'2026-01-02')", actual="array('2026-01-02')", equal=False),
    ColumnCase(
        promised="array(TIMESTAMP'2026-01-02 03:04:05Z')",
        actual="array('2026-01-02T03:04:05.000000Z')",
        equal=False,
    ),
    ColumnCase(
        promised="array(TIMESTAMP'2026-01-02 03:04:05Z')",
        actual="array(TIMESTAMP_NTZ'2026-01-02 03:04:05')",
        equal=True,
    ),
    ColumnCase(promised="map(1L, 'a')", actual="map('1', 'a')", equal=False),
    ColumnCase(promised="map(1L, 'a')", actual="map(1, 'a')", equal=True),
    ColumnCase(promised="map(1L, 'a', 15L, 'b')", actual="map(15D, 'b', 1D, 'a')", equal=True),
    ColumnCase(promised="map(2D, 'a', 10D, 'b')", actual="map(10BD, 'b', 2BD, 'a')", equal=True),
    ColumnCase(
        promised="map(1e7D, 'a', 15D, 'b')", actual="map(15L, 'b', 10000000L, 'a')", equal=True
    ),
    ColumnCase(promised="map(X'61', 1L)", actual="map(X'61', 1L)", equal=True),
    ColumnCase(promised="map(X'61', 1L)", actual="map(X'62', 1L)", equal=False),
    ColumnCase(
        promised="map(named_struct('x', 1L, 'y', 'a'), 1L)",
        actual="map(named_struct('x', 1L, 'y', 'b'), 1L)",
        equal=False,
    ),
    ColumnCase(promised="array(CAST('NaN' AS DOUBLE))", actual="array('NaN')", equal=False),
    ColumnCase(
        promised="array(CAST('NaN' AS DOUBLE))", actual="array(CAST('NaN' AS DOUBLE))", equal=True
    ),
    ColumnCase(promised="array(0.1D)", actual="array(CAST(0.1 AS FLOAT))", equal=False),
    ColumnCase(promised="array(0.5D)", actual="array(CAST(0.5 AS FLOAT))", equal=True),
    ColumnCase(
        promised="map('a', named_struct('b', 0.10000000149011612D, 'c', CAST(0.1 AS FLOAT)))",
        actual="named_struct('a', named_struct('c', CAST(0.1 AS FLOAT), 'b', CAST(0.1 AS FLOAT)))",
        equal=True,
    ),
    ColumnCase(promised="map('a', 0.1D)", actual="map('a', CAST(0.1 AS FLOAT))", equal=False),
    ColumnCase(promised="map(0.5D, 'a')", actual="map(CAST(0.5 AS FLOAT), 'a')", equal=True),
    ColumnCase(promised="array(CAST(0.1 AS FLOAT))", actual="array(0.1D)", equal=False),
    ColumnCase(
        promised="array(CAST(0.1 AS FLOAT), NULL)",
        actual="array(0.10000000149011612D, NULL)",
        equal=True,
    ),
    ColumnCase(promised="array(CAST(0.1 AS FLOAT))", actual="array(0.1BD)", equal=True),
    ColumnCase(promised="array(1e-8BD)", actual="array(0.00000001BD)", equal=True),
    ColumnCase(
        promised="array(0.12345678901234567890123456789BD/1e7BD)",
        actual="array(1.2345678901234567D/1e8D)",
        equal=False,
    ),
    ColumnCase(
        promised="array(CAST(X'61FF' AS STRING))",
        actual="array(CAST(X'61FE' AS STRING))",
        equal=False,
    ),
    ColumnCase(promised="'7'", actual="7L", equal=False, comparable=False),
    ColumnCase(promised="7L", actual="'7'", equal=False, comparable=False),
    ColumnCase(promised="CAST(NULL AS BIGINT)", actual="'7'", equal=False, comparable=False),
    ColumnCase(promised="X'61'", actual="'YQ=='", equal=False, comparable=False),
    ColumnCase(promised="'YQ=='", actual="X'61'", equal=False, comparable=False),
    ColumnCase(promised="true", actual="'true'", equal=False, comparable=False),
    ColumnCase(promised="1L", actual="true", equal=False, comparable=False),
    ColumnCase(
        promised="TIMESTAMP'2026-01-02 00:00:00Z'",
        actual="DATE'2026-01-02'",
        equal=False,
        comparable=False,
    ),
    ColumnCase(promised="array(1L)", actual="'[1]'", equal=False, comparable=False),
    ColumnCase(promised="7L", actual="array(7L)", equal=False, comparable=False),
)


def write_columns(
    spark: SparkSession, folder: Path, columns: Sequence[ColumnCase]
) -> tuple[Path, bytes]:
    """Write the promised and the actual values: one record for each column, null in all other
    columns. Returns the promised folder and the bytes of the actual file."""
    for name, values in (
        ("promised", [column.promised for column in columns]),
        ("actual", [column.actual for column in columns]),
    ):
        cells = (f"CASE WHEN n = {at} THEN {value} END AS v{at}" for at, value in enumerate(values))
        frame = spark.range(len(columns)).withColumnRenamed("id", "n").selectExpr("n", *cells)
        frame.coalesce(1).write.parquet(str(folder / name))
    (part,) = (folder / "actual").glob("part-*.parquet")
    return folder / "promised", part.read_bytes()


@pytest.mark.nightly
def test_both_ways_agree_on_typed_columns(spark: SparkSession, tmp_path: Path) -> None:
    columns = [column for column in COLUMNS if column.comparable]
    names = [f"v{at}" for at in range(len(columns))]

    command, run = differences_both_ways(
        spark, tmp_path, *write_columns(spark, tmp_path, columns), "parquet", names
    )

    differing = {at for at, column in enumerate(columns) if not column.equal}
    assert len(differing) > 15
    assert command == differing
    assert run == differing


@pytest.mark.nightly
def test_a_run_rejects_values_of_types_that_the_command_cannot_compare(
    spark: SparkSession, tmp_path: Path
) -> None:
    columns = [column for column in COLUMNS if not column.comparable]
    promised, actual_bytes = write_columns(spark, tmp_path, columns)

    for name in (f"v{at}" for at in range(len(columns))):
        with pytest.raises(BadInput, match=f"`{name}` cannot be compared"):
            comparison_of(spark, promised, tmp_path / "actual", "n", compare=name)
    (tmp_path / "copied").mkdir()
    (tmp_path / "copied" / "part-0").write_bytes(actual_bytes)
    names = [f"v{at}" for at in range(len(columns))]
    assert differences_in_run(spark, tmp_path, promised, names) == set(range(len(columns)))


@pytest.mark.nightly
def test_a_promised_text_is_not_equal_to_a_timestamp_in_a_run(
    spark: SparkSession, tmp_path: Path
) -> None:
    text, moment = "'2026-01-02 03:04:05'", "TIMESTAMP'2026-01-02 03:04:05Z'"
    columns = [ColumnCase(promised=text, actual=moment, equal=True)]

    command, run = differences_both_ways(
        spark, tmp_path, *write_columns(spark, tmp_path, columns), "parquet", ("v0",)
    )

    assert (command, run) == (set(), {0})


@pytest.mark.nightly
def test_both_ways_read_files_of_another_writer(spark: SparkSession, tmp_path: Path) -> None:
    """Fields with the names of places, times as pandas writes them, and fields within a list."""
    moment = datetime(2026, 1, 2, 3, 4, 5, 123_456)
    table = pyarrow.table(
        {
            "n": [1],
            "file": ["x"],
            "Position": [7],
            "nested": [{"at": moment}],
            "nanos": pyarrow.array([moment], pyarrow.timestamp("ns")),
            "items": [[{"b": 1}]],
            "kv": pyarrow.array([[("a", 8)]], pyarrow.map_(pyarrow.string(), pyarrow.int64())),
        }
    )
    pyarrow.parquet.write_table(table, tmp_path / "actual")
    at = "TIMESTAMP'2026-01-02 03:04:05.123456Z'"
    promised = spark.sql(
        f"SELECT 1L n, 'x' file, 7L Position, named_struct('at', {at}) nested, {at} nanos, "
        "array(1L) bs, array(1L) some, 8L AS of_map"
    )
    promised.write.parquet(str(tmp_path / "promised"))

    command, run = differences_both_ways(
        spark,
        tmp_path,
        tmp_path / "promised",
        (tmp_path / "actual").read_bytes(),
        "parquet",
        ("file", "Position", "nested", "nanos", "bs", "some", "of_map"),
        column_expressions={"bs": "items.b", "some": "array_compact(items.b)", "of_map": "kv.a"},
    )

    assert command == set()
    assert run == set()


@pytest.mark.nightly_after(1)
@pytest.mark.parametrize("name", ["nested", "v", "real"])
def test_a_map_that_has_a_key_twice_is_no_map_that_has_it_once(
    name: str, spark: SparkSession, tmp_path: Path
) -> None:
    """Spark makes no such map, but reads those of other writers."""
    maps = [
        [("a", 1), ("b", 2)],
        [("a", 1), ("a", 1)],
        [("a", 2), ("a", 1)],
        [("a", 1), ("a", 2), ("a", 3)],
    ]
    kinds = {"v": pyarrow.map_(pyarrow.string(), pyarrow.int64())}
    kinds["nested"] = pyarrow.map_(pyarrow.int64(), kinds["v"])
    kinds["real"] = pyarrow.map_(pyarrow.float32(), pyarrow.int64())
    columns = {
        "v": maps,
        "nested": [[(7, items)] for items in maps],
        "real": [[(0.0 if name == "a" else 1.0, item) for name, item in each] for each in maps],
    }
    arrays = {name: pyarrow.array(values, kinds[name]) for name, values in columns.items()}
    table = pyarrow.table({"n": range(len(maps)), **arrays})
    pyarrow.parquet.write_table(table, tmp_path / "actual")
    once = "map('a', 1L, 'b', 2L)", "map('a', 1L)", "map('a', 1L)", "map('a', 3L)"
    rows = ", ".join(f"({n}L, {value})" for n, value in enumerate(once))
    promised = spark.sql(
        "SELECT *, map(7L, v) nested, transform_keys(v, (name, _) -> "
        f"IF(name = 'a', 0F, 1F)) `real` FROM VALUES {rows} t(n, v)"
    )
    promised.write.parquet(str(tmp_path / "promised"))

    (tmp_path / "data").mkdir()
    content = (tmp_path / "actual").read_bytes()
    command, run = differences_both_ways(
        spark, tmp_path / "data", tmp_path / "promised", content, "parquet", (name,)
    )
    assert command == {1, 2, 3}
    assert run == {1, 2, 3}


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("actual", "differs"),
    [
        ('[{"b":1},{"b":null}]', False),
        ('[{"b":1e0,"c":2},{"c":3}]', False),
        ('[{"b":2}]', True),
        ('[{"b":1}]', True),
        ("null", True),
        ("[]", True),
        ('{"b":[1,null]}', False),
        ('[[{"b":1}],[{"b":null}]]', True),
        ("[1,null]", True),
    ],
)
def test_both_ways_read_a_path_through_a_list_as_a_list(
    spark: SparkSession, tmp_path: Path, actual: str, *, differs: bool
) -> None:
    promised = tmp_path / "promised"
    spark.sql("SELECT 1L n, array(1L, NULL) bs").write.parquet(str(promised))
    # The other record has an object instead of a list, so that no common type is inferred.
    lines = f'{{"n":1,"items":{actual}}}\n{{"n":2,"items":{{"b":"x"}}}}\n'

    command, run = differences_both_ways(
        spark,
        tmp_path,
        promised,
        lines.encode(),
        "json",
        ("bs",),
        column_expressions={"bs": "items.b"},
    )

    assert command == run == ({1} if differs else set())


@pytest.mark.nightly
def test_both_ways_agree_on_floating_point_in_json(spark: SparkSession, tmp_path: Path) -> None:
    """All values of the field are floating-point numbers in JSON."""
    promised = tmp_path / "promised"
    rows = "(1L, 0.1), (2L, 1.4E-45), (3L, 0.1), (4L, 3.4028235E38)"
    frame = spark.sql(f"SELECT n, CAST(x AS FLOAT) v FROM VALUES {rows} t(n, x)")
    frame.write.parquet(str(promised))
    numerals = ("0.1", "1e-45", "0.10000000149011612", "3.4028235e38")
    lines = "".join(f'{{"n":{n},"v":{value}}}\n' for n, value in enumerate(numerals, 1))

    command, run = differences_both_ways(spark, tmp_path, promised, lines.encode(), "json", ("v",))

    assert command == run == {3}


@pytest.mark.nightly
@pytest.mark.parametrize("actual", ['{"n":null,"v":null}', '{"v":null}', "{}", '{"x":1}'])
def test_both_ways_accept_a_record_of_nulls(
    spark: SparkSession, tmp_path: Path, actual: str
) -> None:
    promised = tmp_path / "promised"
    rows = "(CAST(NULL AS BIGINT), CAST(NULL AS STRING)), (2L, 'x')"
    spark.sql(f"SELECT * FROM VALUES {rows} t(n, v)").write.parquet(str(promised))
    lines = f'{actual}\n{{"n":2,"v":"x"}}\n'

    command, run = findings_of_both(spark, tmp_path, promised, lines.encode(), "json", ("v",))

    assert command == run == ()


def test_both_ways_distinguish_a_malformed_line_from_a_record_of_nulls(
    spark: SparkSession, tmp_path: Path
) -> None:
    promised = tmp_path / "promised"
    rows = "(CAST(NULL AS BIGINT), CAST(NULL AS STRING)), (2L, 'x')"
    spark.sql(f"SELECT * FROM VALUES {rows} t(n, v)").write.parquet(str(promised))

    both = findings_of_both(spark, tmp_path, promised, b'{"n":\n{"n":2,"v":"x"}\n', "json", ("v",))

    assert [{finding.what for finding in findings} for findings in both] == [
        {"lost", "malformed"},
        {"lost", "phantom"},
    ]


@pytest.mark.nightly
def test_both_ways_show_a_column_with_a_dot_in_its_name(
    spark: SparkSession, tmp_path: Path
) -> None:
    promised = tmp_path / "promised"
    spark.sql("SELECT 1L n, 1L `a.b`").write.parquet(str(promised))

    command, run = differences_both_ways(
        spark,
        tmp_path,
        promised,
        b'{"n":1,"a.b":2}\n',
        "json",
        ("a.b",),
        column_expressions={"a.b": "`a.b`"},
    )

    assert command == run == {1}


def test_both_ways_distinguish_names_by_their_case(spark: SparkSession, tmp_path: Path) -> None:
    """One file has `v`, the other `V`, so `v` is null in the record of the other."""
    write_rows(tmp_path / "copied" / "part-0.parquet", [{"n": 1, "v": "x"}])
    write_rows(tmp_path / "copied" / "part-1.parquet", [{"n": 2, "V": "y"}])
    promised = write_rows(tmp_path / "promised.parquet", [{"n": 1, "v": "x"}, {"n": 2, "v": "y"}])

    command = comparison_of(spark, promised, tmp_path / "copied", "n", compare="v")

    assert differing_ids(command.findings) == {2}
    with pytest.raises(AnalysisException, match="COLUMN_ALREADY_EXISTS"):
        differences_in_run(spark, tmp_path, promised, ["v"])


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("texts", "reordered", "gap"),
    [
        (("10", "9"), 1, 0),
        pytest.param(("9", "10", "5e1"), 0, 39, marks=pytest.mark.nightly),
        pytest.param(
            ("2026-01-02T01:00:00+01:00", "2026-01-02T00:30:00Z"),
            0,
            None,
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_both_ways_order_text_by_its_number_or_time(
    spark: SparkSession, tmp_path: Path, texts: Sequence[str], reordered: int, gap: int | None
) -> None:
    records = [{"key": "x", "seq": text} for text in texts]
    write_rows(tmp_path / "copied" / "part-0.json", records)
    promised = write_rows(tmp_path / "promised.parquet", records)
    output = Output(hdfs="/nasty", identity=("key", "seq"), order="seq", also=("gap",))

    command = comparison_of(
        spark,
        promised,
        tmp_path / "copied",
        "key",
        sequence="seq",
        order="_position",
        also=("gap",),
    )
    run = result_of_run(spark, tmp_path, promised, output)

    for counts in (command.counts, run.counts):
        assert (counts["reordered"], counts["gap"]) == (reordered, gap)


def differences_both_ways(
    spark: SparkSession,
    folder: Path,
    promised: Path,
    actual: bytes,
    kind: str,
    values: Sequence[str],
    column_expressions: Mapping[str, str] = FIELDS_BY_NAME,
) -> tuple[set[int], set[int]]:
    """The numbers of the records whose values differ from the promised ones, by the command and by
    a run."""
    command, run = findings_of_both(
        spark, folder, promised, actual, kind, values, column_expressions
    )
    return differing_ids(command), differing_ids(run)


def findings_of_both(
    spark: SparkSession,
    folder: Path,
    promised: Path,
    actual: bytes,
    kind: str,
    values: Sequence[str],
    column_expressions: Mapping[str, str] = FIELDS_BY_NAME,
) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    copied = folder / "copied"
    copied.mkdir()
    (copied / f"part-0.{kind}").write_bytes(actual)
    command = comparison_of(
        spark,
        promised,
        copied / f"part-0.{kind}",
        "n",
        compare=", ".join(map(quote_name, values)),
        actual_compare=", ".join(column_expressions.get(name, quote_name(name)) for name in values),
    )
    return command.findings, findings_of_run(spark, folder, promised, values, column_expressions)


def differences_in_run(
    spark: SparkSession,
    folder: Path,
    promised: Path,
    values: Sequence[str],
    column_expressions: Mapping[str, str] = FIELDS_BY_NAME,
) -> set[int]:
    """The numbers of the records whose values differ from the promised ones, by a run alone."""
    return differing_ids(findings_of_run(spark, folder, promised, values, column_expressions))


def findings_of_run(
    spark: SparkSession,
    folder: Path,
    promised: Path,
    values: Sequence[str],
    column_expressions: Mapping[str, str],
) -> tuple[Finding, ...]:
    output = Output(hdfs="/nasty", identity=("n",), compare=tuple(values), map=column_expressions)
    return result_of_run(spark, folder, promised, output).findings


def result_of_run(
    spark: SparkSession, folder: Path, promised: Path, output: Output
) -> ReconciliationResult:
    dataset = Testbed(spark, folder / "data")
    read_files(
        spark, folder / "copied", into=StoredOutput(path=dataset.data / "nasty"), source="/nasty"
    )
    expected = spark.read.parquet(str(promised))
    with reconciled_output(dataset.case(), "nasty", output, expected) as result:
        return result

"""Odd inputs through both ways of reading, a run's and the `reconcile` command's: one verdict."""

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
from streamquake.harness.verdict.expected_output import reconciled
from streamquake.reports.record.outcome import Finding
from streamquake.topologies.problems import BadInput
from tests.harness.reconcile.data_sets import compared, write
from tests.harness.reconcile.odd_values import RECORDS, SOUND, VALUES
from tests.harness.verdict.checks.test_exactly_once import Testbed

KINDS = tuple(dict.fromkeys(odd.kind for odd in VALUES))
WRONG = {at for at, odd in enumerate(VALUES) if not odd.same} | {
    len(VALUES) + at for at in range(len(RECORDS))
}
ALL_KINDS = tuple(f"v{at}" for at in range(len(KINDS)))
ALL = len(VALUES) + len(RECORDS) + len(SOUND)


def lines(first: str | None) -> bytes:
    """A record for each, behind as many plain records as a guess at the types takes, with a `first`
    value each; between them lines of white space."""
    message = [
        f'{{"n":{at}' + (f',"v{KINDS.index(odd.kind)}":{odd.seen}}}' if odd.seen else "}")
        for at, odd in enumerate(VALUES)
    ]
    message += [f'{{"n":{at}{rest}' for at, rest in enumerate([*RECORDS, *SOUND], len(VALUES))]
    plain = [f'{{"n":{-at},"v0":{first}}}' for at in range(1, MIN_SAMPLE + 100)] if first else []
    return "\n \t\n".join([*plain, *message, " ", ""]).encode(errors="surrogateescape")


def promise(spark: SparkSession, path: Path) -> Path:
    """What is promised, with a column for each type."""
    rows = [
        ", ".join(
            [
                str(at),
                *(
                    f"CAST({odd.promised if odd.kind == kind else 'NULL'} AS {kind})"
                    for kind in KINDS
                ),
            ]
        )
        for at, odd in enumerate(VALUES)
    ]
    rows += [", ".join([str(at), *["NULL"] * len(KINDS)]) for at in range(len(VALUES), ALL)]
    names = ", ".join(["n", *(f"v{at}" for at in range(len(KINDS)))])
    table = ", ".join(f"({row})" for row in rows)
    frame = spark.sql(f"SELECT * FROM VALUES {table} AS t({names})")
    frame.selectExpr("CAST(n AS BIGINT) n", "* EXCEPT (n)").coalesce(1).write.parquet(str(path))
    return path


def wrong(findings: tuple[Finding, ...]) -> set[int]:
    return {each.detail["n"] for each in findings if each.what in ("lost", "changed")}


@pytest.fixture(autouse=True)
def all_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examples, "MAX_EXAMPLES", 2 * ALL)
    monkeypatch.setattr(compare, "MAX_EXAMPLES", 2 * ALL)


@pytest.mark.parametrize("first", [None, "1"])
def test_both_ways_find_exactly_what_differs(
    spark: SparkSession, tmp_path: Path, first: str | None
) -> None:
    recorded = promise(spark, tmp_path / "promised.parquet")

    command, run = both_ways(spark, tmp_path, recorded, lines(first), "json", ALL_KINDS)

    assert len(WRONG) > 300
    assert command == WRONG
    assert run == WRONG


def test_both_ways_hold_promised_values_in_parquet(spark: SparkSession, tmp_path: Path) -> None:
    recorded = promise(spark, tmp_path / "promised.parquet")
    whole = spark.read.parquet(str(recorded)).withColumn(
        "bytes", F.repeat(F.lit("a"), F.col("n").cast("int")).cast("binary")
    )
    whole.coalesce(1).write.parquet(str(tmp_path / "whole.parquet"))
    (part,) = (tmp_path / "whole.parquet").glob("part-*.parquet")

    command, run = both_ways(
        spark, tmp_path, part, part.read_bytes(), "parquet", (*ALL_KINDS, "bytes")
    )

    assert command == set()
    assert run == set()


@dataclass(frozen=True, kw_only=True)
class Column:
    """What is promised and what came of one column of Parquet, in Spark SQL; whether a reader of
    the promise takes the one for the other, and whether the command compares the two types."""

    promised: str
    came: str
    same: bool
    compared: bool = True


COLUMNS = (
    Column(promised="0.1D", came="CAST(0.1 AS FLOAT)", same=False),
    Column(promised="0.5D", came="CAST(0.5 AS FLOAT)", same=True),
    Column(promised="CAST(0.1 AS FLOAT)", came="0.1D", same=False),
    Column(promised="CAST(0.1 AS FLOAT)", came="0.10000000149011612D", same=True),
    Column(promised="CAST('NaN' AS DOUBLE)", came="CAST('NaN' AS FLOAT)", same=True),
    Column(promised="CAST('-Infinity' AS DOUBLE)", came="CAST('-Infinity' AS DOUBLE)", same=True),
    Column(promised="CAST('Infinity' AS DOUBLE)", came="1.7976931348623157E308D", same=False),
    Column(promised="1e23D", came="CAST('99999999999999991611392' AS DECIMAL(38,0))", same=False),
    Column(promised="1e23D", came="CAST('100000000000000000000000' AS DECIMAL(38,0))", same=True),
    Column(promised="-0.0D", came="0D", same=True),
    Column(promised="7L", came="CAST(7 AS TINYINT)", same=True),
    Column(promised="7L", came="7.00BD", same=True),
    Column(promised="7L", came="7.01BD", same=False),
    Column(promised="7L", came="7.5D", same=False),
    Column(promised="7L", came="7D", same=True),
    Column(promised="CAST(44 AS TINYINT)", came="300", same=False),
    Column(promised="CAST(7 AS DECIMAL(10,2))", came="7", same=True),
    Column(promised="CAST(7 AS DECIMAL(10,2))", came="7.004BD", same=False),
    Column(promised="'a'", came="'a '", same=False),
    Column(promised="true", came="false", same=False),
    Column(promised="X'00FF'", came="X'00FF'", same=True),
    Column(promised="X'00FF'", came="X'00FE'", same=False),
    Column(promised="TIMESTAMP'2026-01-02 03:04:05Z'", came="'2026-01-02T03:04:05Z'", same=True),
    Column(promised="TIMESTAMP'2026-01-02 03:04:05Z'", came="'2026-01-02T04:04:05'", same=False),
    Column(promised="TIMESTAMP'2026-01-02 03:04:05Z'", came="'today'", same=False),
    Column(
        promised="TIMESTAMP'2026-01-02 03:04:05Z'",
        came="TIMESTAMP_NTZ'2026-01-02 03:04:05'",
        same=True,
    ),
    Column(
        promised="TIMESTAMP_NTZ'2026-01-02 03:04:05.000001'",
        came="TIMESTAMP'2026-01-02 03:04:05.000002Z'",
        same=False,
    ),
    Column(
        promised="TIMESTAMP'+294247-01-10 04:00:54.775807Z'",
        came="TIMESTAMP'+294247-01-10 04:00:54.775807Z'",
        same=True,
    ),
    Column(
        promised="TIMESTAMP'+294247-01-10 04:00:54.775807Z'",
        came="TIMESTAMP'+294247-01-10 04:00:54.775806Z'",
        same=False,
    ),
    Column(
        promised="TIMESTAMP_NTZ'2026-01-02 03:04:05'", came="'2026-01-02T04:04:05+01:00'", same=True
    ),
    Column(
        promised="TIMESTAMP_NTZ'2026-01-02 04:04:05'",
        came="'2026-01-02T04:04:05+01:00'",
        same=False,
    ),
    Column(promised="DATE'+10000-01-01'", came="DATE'+10000-01-01'", same=True),
    Column(promised="DATE'2026-01-02'", came="'2026-01-02'", same=True),
    Column(promised="DATE'2026-01-02'", came="'2026-01-02T00:00:00'", same=False),
    Column(promised="DATE'2026-01-02'", came="CAST(NULL AS DATE)", same=False),
    Column(promised="CAST(NULL AS DATE)", came="DATE'2026-01-02'", same=False),
    Column(promised="'2026-01-02'", came="DATE'2026-01-02'", same=True),
    Column(promised="'2026-01-02'", came="DATE'2026-01-03'", same=False),
    Column(promised="'2026-1-02'", came="DATE'2026-01-02'", same=False),
    Column(promised="array(1L, NULL)", came="array(1, NULL)", same=True),
    Column(promised="array(1L, NULL)", came="array(1)", same=False),
    Column(promised="named_struct('a', 1L)", came="named_struct('a', 1.0BD)", same=True),
    Column(promised="named_struct('a', 1L)", came="named_struct('a', '1')", same=False),
    Column(
        promised="array(TIMESTAMP'2026-01-02 03:04:05.123Z')",
        came="array(TIMESTAMP'2026-01-02 03:04:05.123Z')",
        same=True,
    ),
    Column(promised="map('a', X'00')", came="map('a', X'00')", same=True),
    Column(promised="map('a', X'00')", came="map('a', X'01')", same=False),
    Column(promised="named_struct('a', X'61')", came="named_struct('a', 'YQ==')", same=False),
    Column(promised="array(DATE'2026-01-02')", came="array('2026-01-02')", same=False),
    Column(
        promised="array(TIMESTAMP'2026-01-02 03:04:05Z')",
        came="array('2026-01-02T03:04:05.000000Z')",
        same=False,
    ),
    Column(
        promised="array(TIMESTAMP'2026-01-02 03:04:05Z')",
        came="array(TIMESTAMP_NTZ'2026-01-02 03:04:05')",
        same=True,
    ),
    Column(promised="map(1L, 'a')", came="map('1', 'a')", same=False),
    Column(promised="map(1L, 'a')", came="map(1, 'a')", same=True),
    Column(promised="map(X'61', 1L)", came="map(X'61', 1L)", same=True),
    Column(promised="map(X'61', 1L)", came="map(X'62', 1L)", same=False),
    Column(
        promised="map(named_struct('x', 1L, 'y', 'a'), 1L)",
        came="map(named_struct('x', 1L, 'y', 'b'), 1L)",
        same=False,
    ),
    Column(promised="array(CAST('NaN' AS DOUBLE))", came="array('NaN')", same=False),
    Column(promised="array(CAST('NaN' AS DOUBLE))", came="array(CAST('NaN' AS DOUBLE))", same=True),
    Column(promised="array(1e-8BD)", came="array(0.00000001BD)", same=True),
    Column(
        promised="array(0.12345678901234567890123456789BD/1e7BD)",
        came="array(1.2345678901234567D/1e8D)",
        same=False,
    ),
    Column(
        promised="array(CAST(X'61FF' AS STRING))", came="array(CAST(X'61FE' AS STRING))", same=False
    ),
    Column(promised="'7'", came="7L", same=False, compared=False),
    Column(promised="7L", came="'7'", same=False, compared=False),
    Column(promised="CAST(NULL AS BIGINT)", came="'7'", same=False, compared=False),
    Column(promised="X'61'", came="'YQ=='", same=False, compared=False),
    Column(promised="'YQ=='", came="X'61'", same=False, compared=False),
    Column(promised="true", came="'true'", same=False, compared=False),
    Column(promised="1L", came="true", same=False, compared=False),
    Column(
        promised="TIMESTAMP'2026-01-02 00:00:00Z'",
        came="DATE'2026-01-02'",
        same=False,
        compared=False,
    ),
    Column(promised="array(1L)", came="'[1]'", same=False, compared=False),
    Column(promised="7L", came="array(7L)", same=False, compared=False),
)


def typed(spark: SparkSession, folder: Path, columns: Sequence[Column]) -> tuple[Path, bytes]:
    """What is promised, and the file that came: a record for each column, which alone has it."""
    for name, values in (
        ("promised", [column.promised for column in columns]),
        ("came", [column.came for column in columns]),
    ):
        cells = (f"CASE WHEN n = {at} THEN {value} END AS v{at}" for at, value in enumerate(values))
        frame = spark.range(len(columns)).withColumnRenamed("id", "n").selectExpr("n", *cells)
        frame.coalesce(1).write.parquet(str(folder / name))
    (part,) = (folder / "came").glob("part-*.parquet")
    return folder / "promised", part.read_bytes()


def test_both_ways_take_typed_columns_alike(spark: SparkSession, tmp_path: Path) -> None:
    columns = [column for column in COLUMNS if column.compared]
    names = [f"v{at}" for at in range(len(columns))]

    command, run = both_ways(spark, tmp_path, *typed(spark, tmp_path, columns), "parquet", names)

    differ = {at for at, column in enumerate(columns) if not column.same}
    assert len(differ) > 15
    assert command == differ
    assert run == differ


def test_a_run_takes_no_value_of_a_type_that_the_command_does_not_compare(
    spark: SparkSession, tmp_path: Path
) -> None:
    columns = [column for column in COLUMNS if not column.compared]
    recorded, arrived = typed(spark, tmp_path, columns)

    for name in (f"v{at}" for at in range(len(columns))):
        with pytest.raises(BadInput, match=f"`{name}` cannot be compared"):
            compared(spark, recorded, tmp_path / "came", "n", compare=name)
    (tmp_path / "copied").mkdir()
    (tmp_path / "copied" / "part-0").write_bytes(arrived)
    names = [f"v{at}" for at in range(len(columns))]
    assert run_alone(spark, tmp_path, recorded, names) == set(range(len(columns)))


def test_a_text_that_a_run_promises_is_no_timestamp(spark: SparkSession, tmp_path: Path) -> None:
    text, moment = "'2026-01-02 03:04:05'", "TIMESTAMP'2026-01-02 03:04:05Z'"
    columns = [Column(promised=text, came=moment, same=True)]

    command, run = both_ways(spark, tmp_path, *typed(spark, tmp_path, columns), "parquet", ("v0",))

    assert (command, run) == (set(), {0})


def test_both_ways_read_what_a_file_of_another_writer_holds(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Fields that are called like places, times as pandas writes them, the parts of a list."""
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
    pyarrow.parquet.write_table(table, tmp_path / "came")
    at = "TIMESTAMP'2026-01-02 03:04:05.123456Z'"
    recorded = spark.sql(
        f"SELECT 1L n, 'x' file, 7L Position, named_struct('at', {at}) nested, {at} nanos, "
        "array(1L) bs, array(1L) some, 8L AS of_map"
    )
    recorded.write.parquet(str(tmp_path / "promised"))

    command, run = both_ways(
        spark,
        tmp_path,
        tmp_path / "promised",
        (tmp_path / "came").read_bytes(),
        "parquet",
        ("file", "Position", "nested", "nanos", "bs", "some", "of_map"),
        how={"bs": "items.b", "some": "array_compact(items.b)", "of_map": "kv.a"},
    )

    assert command == set()
    assert run == set()


@pytest.mark.parametrize(
    ("came", "differs"),
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
def test_both_ways_take_a_path_through_a_list_for_the_list_of_parts(
    spark: SparkSession, tmp_path: Path, came: str, *, differs: bool
) -> None:
    recorded = tmp_path / "promised"
    spark.sql("SELECT 1L n, array(1L, NULL) bs").write.parquet(str(recorded))
    # Another record has no list there, so that no type is told of all of them.
    lines = f'{{"n":1,"items":{came}}}\n{{"n":2,"items":{{"b":"x"}}}}\n'

    command, run = both_ways(
        spark, tmp_path, recorded, lines.encode(), "json", ("bs",), how={"bs": "items.b"}
    )

    assert command == run == ({1} if differs else set())


def test_both_ways_take_floating_point_beside_json_alike(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Where all values of the field are floating point to JSON."""
    recorded = tmp_path / "promised"
    rows = "(1L, 0.1), (2L, 1.4E-45), (3L, 0.1), (4L, 3.4028235E38)"
    frame = spark.sql(f"SELECT n, CAST(x AS FLOAT) v FROM VALUES {rows} t(n, x)")
    frame.write.parquet(str(recorded))
    arrived = ("0.1", "1e-45", "0.10000000149011612", "3.4028235e38")
    lines = "".join(f'{{"n":{n},"v":{value}}}\n' for n, value in enumerate(arrived, 1))

    command, run = both_ways(spark, tmp_path, recorded, lines.encode(), "json", ("v",))

    assert command == run == {3}


@pytest.mark.parametrize("came", ['{"n":null,"v":null}', '{"v":null}', "{}", '{"x":1}'])
def test_both_ways_take_a_record_of_nulls_alone_for_one(
    spark: SparkSession, tmp_path: Path, came: str
) -> None:
    recorded = tmp_path / "promised"
    rows = "(CAST(NULL AS BIGINT), CAST(NULL AS STRING)), (2L, 'x')"
    spark.sql(f"SELECT * FROM VALUES {rows} t(n, v)").write.parquet(str(recorded))
    lines = f'{came}\n{{"n":2,"v":"x"}}\n'

    command, run = findings_of_both(spark, tmp_path, recorded, lines.encode(), "json", ("v",))

    assert command == run == ()


def test_both_ways_take_a_line_that_is_no_record_for_no_record_of_nulls(
    spark: SparkSession, tmp_path: Path
) -> None:
    recorded = tmp_path / "promised"
    rows = "(CAST(NULL AS BIGINT), CAST(NULL AS STRING)), (2L, 'x')"
    spark.sql(f"SELECT * FROM VALUES {rows} t(n, v)").write.parquet(str(recorded))

    found = findings_of_both(spark, tmp_path, recorded, b'{"n":\n{"n":2,"v":"x"}\n', "json", ("v",))

    assert [{each.what for each in findings} for findings in found] == [
        {"lost", "malformed"},
        {"lost", "phantom"},
    ]


def test_both_ways_show_a_column_with_a_dot_in_its_name(
    spark: SparkSession, tmp_path: Path
) -> None:
    recorded = tmp_path / "promised"
    spark.sql("SELECT 1L n, 1L `a.b`").write.parquet(str(recorded))

    command, run = both_ways(
        spark, tmp_path, recorded, b'{"n":1,"a.b":2}\n', "json", ("a.b",), how={"a.b": "`a.b`"}
    )

    assert command == run == {1}


def test_both_ways_tell_names_apart_by_their_case(spark: SparkSession, tmp_path: Path) -> None:
    """One file has `v`, another `V`: of the latter's record `v` is null."""
    write(tmp_path / "copied" / "part-0.parquet", [{"n": 1, "v": "x"}])
    write(tmp_path / "copied" / "part-1.parquet", [{"n": 2, "V": "y"}])
    recorded = write(tmp_path / "promised.parquet", [{"n": 1, "v": "x"}, {"n": 2, "v": "y"}])

    command = compared(spark, recorded, tmp_path / "copied", "n", compare="v")

    assert wrong(command.findings) == {2}
    with pytest.raises(AnalysisException, match="COLUMN_ALREADY_EXISTS"):
        run_alone(spark, tmp_path, recorded, ["v"])


def both_ways(
    spark: SparkSession,
    folder: Path,
    reported: Path,
    came: bytes,
    kind: str,
    values: Sequence[str],
    how: Mapping[str, str] = FIELDS_BY_NAME,
) -> tuple[set[int], set[int]]:
    """What differs of the values that came in a file, as the command says it, and as a run does."""
    command, run = findings_of_both(spark, folder, reported, came, kind, values, how)
    return wrong(command), wrong(run)


def findings_of_both(
    spark: SparkSession,
    folder: Path,
    reported: Path,
    came: bytes,
    kind: str,
    values: Sequence[str],
    how: Mapping[str, str] = FIELDS_BY_NAME,
) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    copied = folder / "copied"
    copied.mkdir()
    (copied / f"part-0.{kind}").write_bytes(came)
    command = compared(
        spark,
        reported,
        copied / f"part-0.{kind}",
        "n",
        compare=", ".join(map(quote_name, values)),
        actual_compare=", ".join(how.get(name, quote_name(name)) for name in values),
    )
    return command.findings, findings_of_run(spark, folder, reported, values, how)


def run_alone(
    spark: SparkSession,
    folder: Path,
    reported: Path,
    values: Sequence[str],
    how: Mapping[str, str] = FIELDS_BY_NAME,
) -> set[int]:
    """What differs of what `both_ways` was given, as a run says it."""
    return wrong(findings_of_run(spark, folder, reported, values, how))


def findings_of_run(
    spark: SparkSession, folder: Path, reported: Path, values: Sequence[str], how: Mapping[str, str]
) -> tuple[Finding, ...]:
    dataset = Testbed(spark, folder / "data")
    read_files(
        spark, folder / "copied", into=StoredOutput(path=dataset.data / "nasty"), source="/nasty"
    )
    output = Output(hdfs="/nasty", identity=("n",), compare=tuple(values), map=how)
    return reconciled(dataset.case(), "nasty", output, spark.read.parquet(str(reported))).findings

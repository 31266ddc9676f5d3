"""SQL of documents and options computes values, and does nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streamquake.harness.experiment.loader import EXPERIMENTS, load_experiment
from streamquake.harness.reconcile.expressions import expressions, type_of
from streamquake.harness.reconcile.identity_join import same_values
from streamquake.harness.reconcile.reading.table import Table
from streamquake.harness.reconcile.sql.safe_lists import functions, parts_of_queries
from streamquake.harness.reconcile.sql.safe_sql import (
    reject_unsafe_query,
    relations_read,
    safe_expression,
    safe_query,
)
from streamquake.topologies.named_files import shipped_names
from streamquake.topologies.problems import BadInput

COMMANDS = (
    "INSERT OVERWRITE DIRECTORY '{place}' USING json SELECT 1 AS a",
    "INSERT OVERWRITE LOCAL DIRECTORY '{place}' USING csv SELECT * FROM sent",
    "CREATE TABLE t USING parquet LOCATION '{place}' AS SELECT 1 AS a",
    "CREATE TEMPORARY VIEW sent AS SELECT 1 AS key",
    "CREATE TEMPORARY FUNCTION f AS 'java.lang.Runtime'",
    "ADD JAR '{place}'",
    "ADD FILE '{place}'",
    "LIST JARS",
    "SET spark.sql.ansi.enabled=false",
    "SET",
    "RESET",
    "DROP VIEW sent",
    "TRUNCATE TABLE sent",
    "SHOW TABLES",
    "DESCRIBE sent",
    "EXPLAIN SELECT * FROM sent",
    "CACHE TABLE x AS SELECT * FROM sent",
    "REFRESH '{place}'",
    "USE DATABASE x",
    "DECLARE VARIABLE v INT DEFAULT 1",
    "EXECUTE IMMEDIATE 'SELECT 1'",
    "BEGIN SELECT 1; END",
    "FROM sent INSERT OVERWRITE DIRECTORY '{place}' USING json SELECT *",
    "WITH a AS (SELECT 1 AS k) INSERT OVERWRITE DIRECTORY '{place}' USING json SELECT * FROM a",
    "SELECT * FROM sent; DROP VIEW sent",
    "",
)
RELATIONS = (
    "SELECT * FROM parquet.`/etc`",
    "SELECT * FROM text.`/etc/passwd`",
    "SELECT * FROM json.`{place}`",
    "SELECT * FROM csv.`file:///etc/passwd`",
    "SELECT * FROM binaryFile.`/etc/passwd`",
    "SELECT * FROM read_files('/etc')",
    "SELECT * FROM default.sent",
    "SELECT * FROM spark_catalog.default.sent",
    "SELECT * FROM others",
    "TABLE others",
    "SELECT * FROM sent WHERE key IN (SELECT value FROM text.`/etc/passwd`)",
    "SELECT (SELECT max(value) FROM text.`/etc/passwd`) FROM sent",
    "SELECT * FROM sent WHERE EXISTS (SELECT 1 FROM text.`/etc/passwd`)",
    "WITH a AS (SELECT * FROM text.`/etc/passwd`) SELECT * FROM a",
    "SELECT * FROM (WITH a AS (SELECT * FROM text.`/etc/passwd`) SELECT * FROM a)",
    "SELECT * FROM sent UNION ALL SELECT * FROM text.`/etc/passwd`",
    "SELECT * FROM sent JOIN text.`/etc/passwd` ON true",
    "SELECT * FROM sent, LATERAL (SELECT * FROM text.`/etc/passwd`)",
    "SELECT * FROM IDENTIFIER('text.`/etc/passwd`')",
    "SELECT * FROM sent VERSION AS OF 1",
    "SELECT * FROM STREAM sent",
    "SELECT * FROM sent WITH ('path' = '{place}')",
    "SELECT * FROM sent TABLESAMPLE (1 PERCENT)",
    "SELECT TRANSFORM (key) USING 'touch {place}' FROM sent",
    "SELECT /*+ BROADCAST(sent) */ * FROM sent",
    "SELECT * FROM range(1000000000000)",
    "SELECT * FROM sql_keywords()",
    "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT * FROM t",
    "SELECT * FROM sent WHERE key = :parameter",
    # The name of an inner query is unknown outside of it, where it is the session's own relation.
    "SELECT * FROM (WITH others AS (SELECT 1 AS x) SELECT * FROM others), others",
    "WITH a AS (WITH Others AS (SELECT 1 AS x) SELECT * FROM others) SELECT * FROM others",
)
CALLS = (
    "reflect('java.lang.System', 'getenv', 'HOME')",
    "REFLECT('java.lang.System', 'getenv', 'HOME')",
    "`reflect`('java.lang.System', 'getenv', 'HOME')",
    "java_method('java.util.UUID', 'randomUUID')",
    "try_reflect('java.lang.System', 'exit', 1)",
    "system.builtin.reflect('java.lang.System', 'getenv', 'HOME')",
    "builtin.upper('a')",
    "spark_catalog.default.f(key)",
    "IDENTIFIER('reflect')('java.lang.System', 'getenv', 'HOME')",
    "transform(array(key), x -> reflect('java.lang.System', 'getenv', x))",
    "CASE WHEN key = 1 THEN java_method('java.lang.System', 'getenv', 'HOME') END",
    "coalesce(upper(lower(reflect('java.lang.System', 'getenv', 'HOME'))), 'x')",
    "named_struct('a', java_method('java.lang.System', 'getenv', 'HOME')).a",
    "from_protobuf(key, 'M', '/etc/passwd')",
    "from_avro(key, '{{}}', map('avroSchemaUrl', 'file:///etc/passwd'))",
    "from_xml(key, 'a INT', map('rowValidationXSDPath', '/etc/passwd'))",
    "xpath_string('<!DOCTYPE a [<!ENTITY e SYSTEM \"file:///etc/passwd\">]><a>&e;</a>', 'a')",
    "input_file_name()",
    "current_user()",
    "version()",
    "rand()",
    "uuid()",
    "current_timestamp()",
    "monotonically_increasing_id()",
    "raise_error('x')",
    "ai_query('model', key)",
    "sleep(1000)",
    "repeat('x', 2147483647)",
    "sequence(1, 1000000000000)",
    "array_repeat(1, 2147483647)",
    "space(2147483647)",
    "lpad('x', 2147483647, 'y')",
    "format_number(1, 2147483647)",
    "array_insert(array(1), -2147483647, 1)",
)
PRESENT_LITERALS = (
    "DATE 'today'",
    "date r'Yesterday'",
    "DATE 'to\\u0064ay'",
    'DATE /* \'2026 */ "today"',
    "TIMESTAMP 'now'",
    "TIMESTAMP_NTZ 'tomorrow'",
    "TIMESTAMP_LTZ 'NOW'",
    "TIMESTAMP '12:30:00'",
    "TIMESTAMP 'T12:30'",
    "CAST('now' AS TIMESTAMP)",
    "to_timestamp('now+01:00')",
    "try_cast('today Europe/Berlin' AS DATE)",
    "CAST('\u0001now' AS TIMESTAMP)",
    "CAST('now\u0001' AS TIMESTAMP)",
    "transform(array(1), x -> DATE 'today')",
)
COMPUTED_PRESENT = (
    "CAST('12:30' AS TIMESTAMP)",
    "to_timestamp('12:30')",
    "to_date('tod'||'ay')",
    "CAST(concat('to','day') AS DATE)",
    "CAST(reverse('won') AS TIMESTAMP)",
    "CAST(lpad('oday', 5, 't') AS DATE)",
    "date_format('T12:30', 'yyyy')",
    "variant_get(parse_json('\"12:30\"'), '$', 'timestamp')",
    "from_json('{\"a\":\"12:30\"}', 'a timestamp').a",
    "from_csv('12:30', 'a timestamp').a",
    "try_to_timestamp('1:2:3.4 CET')",
    "to_utc_timestamp('12:30', 'UTC')",
    "CAST(named_struct('a', '12:30') AS STRUCT<a: TIMESTAMP>)",
    "'12:30' > TIMESTAMP'2026-01-01'",
    "transform(array('12:30'), x -> CAST(x AS TIMESTAMP))",
    "TIMESTAMPADD(HOUR, 1, '12:30')",
    "CAST(element_at(split('x,12:30', ','), length(key)) AS TIMESTAMP)",
    "CAST(map_values(str_to_map('a=12:30', ';', '='))[length(key)] AS TIMESTAMP)",
    "CAST(IF(key = 'a', parse_json('\"12:30\"'), NULL) AS TIMESTAMP)",
    "CAST(array(parse_json('\"12:30\"'))[length(key)] AS TIMESTAMP)",
    "CAST('12:30+01:00' AS TIMESTAMP)",
    "CAST(upper(' t12:30\\u0000') AS TIMESTAMP)",
)
FIXED_TIMES = (
    "DATE '2026-01-01'",
    "TIMESTAMP '2026-01-01 12:30:00+01:00'",
    'TIMESTAMP_NTZ"2026-01-01"',
    "DATE 'epoch'",
    "CAST('nowhere' AS STRING)",
    "IF(CAST('7' AS INT) = 7, '12:30', '')",
    "CAST(element_at(split('2026-01-01 12:30', ','), length('a')) AS TIMESTAMP)",
    "IF(CAST(DATE '2026-01-01' AS TIMESTAMP) IS NULL, '12:30', '')",
    "CAST('2026-01-01 12:30' AS TIMESTAMP)",
    "to_timestamp('2026-01-01T12:30:00Z')",
    "to_timestamp('12:30', 'HH:mm')",
    "concat('12:', '30')",
    "COALESCE(TRY_CAST(payload AS TIMESTAMP), TIMESTAMP '2026-01-01')",
    "from_json(payload, 'a TIMESTAMP').a",
    "INTERVAL '1' DAY",
)
SUBQUERIES = (
    "(SELECT max(value) FROM text.`/etc/passwd`)",
    "(SELECT 1)",
    "EXISTS (SELECT 1 FROM sent)",
    "key IN (SELECT key FROM sent)",
)
NAMES = ("current_user", "user", "session_user", "current_date", "CURRENT_TIMESTAMP", "`user`")
ALLOWED_QUERIES = (
    "SELECT key, CAST(amount AS DECIMAL(10, 2)) AS amount FROM sent WHERE status = 'acknowledged'",
    "SELECT window(timestamp_millis(event_time_ms), '10 seconds').start AS s, COUNT(*) AS n "
    "FROM sent GROUP BY 1",
    "SELECT key, SUM(amount) OVER (PARTITION BY key ORDER BY seq "
    "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS total FROM sent",
    "WITH a AS (SELECT key, seq FROM sent), b AS (SELECT * FROM a) "
    "SELECT * FROM A JOIN b USING (key) WHERE key NOT LIKE 'x%' AND a.seq BETWEEN 1 AND 2",
    "SELECT * FROM sent WHERE seq = (SELECT MAX(seq) FROM sent) OR key IN (SELECT key FROM sent)",
    "SELECT key, one FROM sent LATERAL VIEW OUTER explode(array(1, 2)) AS one",
    "SELECT key, one FROM sent, LATERAL explode(sequence(1L, 3L)) AS t(one)",
    "SELECT s.key, n FROM sent AS s CROSS JOIN (VALUES (1), (2)) AS t(n)",
    "SELECT key FROM sent UNION SELECT key FROM sent EXCEPT SELECT key FROM sent "
    "ORDER BY key LIMIT 3 OFFSET 1",
    "SELECT key, COUNT(DISTINCT seq) AS n, COUNT(*) FILTER (WHERE seq > 1) AS more FROM sent "
    "GROUP BY GROUPING SETS ((key), ()) "
    "HAVING COUNT(*) > 1",
    "SELECT key, transform(array(1, 2), x -> x + 1) AS more, map('a', 1)['a'] AS one, "
    "named_struct('b', 2).b AS two, -amount AS less, seq % 2 AS odd, key || 'x' AS text, "
    "CASE seq WHEN 1 THEN 'a' ELSE 'b' END AS c, repeat(key, 3) AS again FROM sent",
    "SELECT FIRST(key) OVER (ORDER BY seq) AS k, DATE '2026-01-01' AS d FROM sent",
)


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    """A session with the sent records, and a view that is not given to any document."""
    own = spark.newSession()
    columns = "key, CAST(1 AS BIGINT) AS seq, CAST(7 AS BIGINT) AS amount"
    own.sql(
        f"SELECT {columns}, 0L AS event_time_ms, 'acknowledged' AS status, "
        "1L AS index, 1L AS copies, 'p' AS payload, 'c' AS checksum "
        "FROM VALUES ('k-1'), ('k-2') AS t(key)"
    ).createOrReplaceTempView("sent")
    own.sql("SELECT 1 AS secret").createOrReplaceTempView("others")
    return own


@pytest.mark.parametrize("text", [*COMMANDS, *RELATIONS])
def test_other_statements_are_rejected_and_not_executed(
    session: SparkSession, tmp_path: Path, text: str
) -> None:
    place = tmp_path / "written"

    with pytest.raises(BadInput) as rejected:
        safe_query(session, text.format(place=place), "run.json: expected")

    (problem,) = rejected.value.problems
    assert problem.file == "run.json: expected"
    assert not place.exists()
    assert session.catalog.tableExists("sent")
    assert {table.name for table in session.catalog.listTables()} == {"sent", "others"}


@pytest.mark.parametrize("call", CALLS)
def test_functions_that_do_more_than_compute_are_rejected(session: SparkSession, call: str) -> None:
    call = call.format()

    for text in (
        f"SELECT {call} FROM sent",
        f"SELECT 1 FROM sent WHERE {call} IS NULL",
        f"SELECT * FROM VALUES ({call})",
    ):
        with pytest.raises(BadInput, match=r"allowed|at most"):
            safe_query(session, text, "expected")
    with pytest.raises(BadInput, match=r"allowed|at most"):
        safe_expression(session, call, "--key")
    with pytest.raises(BadInput, match=r"allowed|at most"):
        expressions(session, f"key, {call}", "--key")


@pytest.mark.parametrize("text", PRESENT_LITERALS)
def test_a_literal_of_the_present_time_is_rejected(session: SparkSession, text: str) -> None:
    with pytest.raises(BadInput, match="depends on the time at which it is read"):
        safe_query(session, f"SELECT * FROM sent WHERE EXISTS (SELECT {text})", "expected")
    with pytest.raises(BadInput, match="depends on the time at which it is read"):
        expressions(session, f"key, {text}", "--key")


@pytest.mark.nightly_after(8)
@pytest.mark.parametrize("text", COMPUTED_PRESENT)
def test_a_constant_of_the_present_time_is_rejected(session: SparkSession, text: str) -> None:
    with pytest.raises(BadInput, match="depends on the time at which it is read"):
        safe_query(session, f"SELECT * FROM sent WHERE EXISTS (SELECT {text})", "expected")
    (expression,) = expressions(session, text, "--key")
    table = Table(frame=session.table("sent"), columns=("key",), place=())
    with pytest.raises(BadInput, match="depends on the time at which it is read"):
        type_of(expression, table, "actual")


def test_a_time_of_day_among_values_is_rejected(session: SparkSession) -> None:
    for query in (
        "SELECT CAST(x AS TIMESTAMP) AS t FROM sent, VALUES ('12:30') AS v(x)",
        "SELECT CAST(x[0] AS TIMESTAMP) AS t FROM sent, VALUES (split('12:30', ',')) AS v(x)",
        "SELECT CAST(x AS TIMESTAMP) AS t FROM (SELECT explode(split('1,12:30', ',')) AS x)",
        "SELECT CAST(x AS TIMESTAMP) AS t FROM (SELECT explode(map_values(str_to_map("
        "'a=12:30', ';', '='))) AS x)",
    ):
        with pytest.raises(BadInput, match="'12:30' depends on the time at which it is read"):
            safe_query(session, query, "expected")


def test_a_full_time_beside_a_list_and_a_window_is_allowed(session: SparkSession) -> None:
    query = (
        "SELECT CAST(x AS TIMESTAMP) AS t, sum(n) OVER (ORDER BY n) AS s "
        "FROM (SELECT explode(split('2026-01-01 12:30,2026-01-01', ',')) AS x, 1 AS n)"
    )
    assert safe_query(session, query, "expected").count() == 2


@pytest.mark.parametrize("text", FIXED_TIMES)
def test_a_time_that_does_not_depend_on_the_present_is_allowed(
    session: SparkSession, text: str
) -> None:
    (expression,) = expressions(session, text, "--key")
    type_of(
        expression, Table(frame=session.table("sent"), columns=("payload",), place=()), "actual"
    )
    assert safe_query(session, f"SELECT {text} AS t FROM sent", "expected").count() == 2
    assert len(expressions(session, f"key, {text}", "--key")) == 2


@pytest.mark.parametrize(
    "call",
    [
        *(
            f"repeat('x', {count})"
            for count in (
                "1000 * 1000000",
                "CAST(2000000 AS INT)",
                "int(2e6)",
                "-(-2000000)",
                "2000000 + 0",
                "'2000000'",
                "2e9D",
                "(SELECT 2000000)",
            )
        ),
        "sequence(-2000000, 5, 1)",
        "sequence(1, 2000000, seq)",
        "sequence(1 - 2000000, 5)",
        "sequence(0, 10, 1 / 1000000)",
        "stack(1000 * 1000000, 1)",
    ],
)
def test_a_constant_count_is_a_bounded_literal(session: SparkSession, call: str) -> None:
    with pytest.raises(BadInput, match="at most 1,000,000"):
        reject_unsafe_query(session, f"SELECT {call} AS x FROM sent", "expected")


@pytest.mark.parametrize(
    "call",
    [
        "repeat(key, 1000000)",
        "repeat(key, int(seq) + 1)",
        "rpad(key, CAST(seq AS INT), 'x')",
        "transform(array(3), n -> repeat(key, n))",
        "repeat(key, (SELECT int(max(seq)) FROM sent))",
        "sequence(1L, 10000000L, 1000L)",
        "sequence(seq, 5L)",
        "sequence(5, -5, -1)",
        "sequence(DATE '2026-01-01', DATE '2026-02-01', INTERVAL 1 DAY)",
        "sequence(DATE '2026-01-01', DATE '2026-02-01')",
        "array_insert(array(1), -1, 2)",
        "format_number(seq, '#,###.0')",
        "format_number(seq, 2)",
    ],
)
def test_a_small_count_and_one_of_a_column_are_allowed(session: SparkSession, call: str) -> None:
    assert safe_query(session, f"SELECT {call} AS x FROM sent", "expected").count() == 2


def test_generated_rows_are_bounded(session: SparkSession) -> None:
    for text in (
        "SELECT stack(2147483647, 1)",
        "SELECT * FROM stack(2147483647, 1)",
        "SELECT one FROM sent LATERAL VIEW Stack(2147483647, 1) AS one",
    ):
        with pytest.raises(BadInput, match="at most 1,000,000"):
            safe_query(session, text, "expected")


@pytest.mark.parametrize("text", SUBQUERIES)
def test_an_expression_reads_no_relation(session: SparkSession, text: str) -> None:
    with pytest.raises(BadInput, match="expected an expression over one record"):
        expressions(session, text, "--key")


@pytest.mark.parametrize(
    "text",
    ["*", "hash(*)", "concat_ws('|', * EXCEPT (_file))", "struct(amount.*).a", "key IN (*)"],
)
def test_an_expression_names_its_fields(session: SparkSession, text: str) -> None:
    with pytest.raises(BadInput, match=r"got one with `\*`; name each field"):
        expressions(session, f"key, {text}", "--compare")


@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_a_function_is_rejected_in_a_query_and_is_a_field_in_an_expression(
    session: SparkSession, name: str
) -> None:
    with pytest.raises(BadInput, match=r"Spark reads `.*` as a function"):
        safe_query(session, f"SELECT {name} AS who FROM sent", "expected")

    (field,) = expressions(session, name, "--key")
    assert field.path == (name.strip("`"),)


def test_environment_variables_are_not_substituted(session: SparkSession) -> None:
    rows = safe_query(session, "SELECT '${env:HOME}' AS a, '${spark.app.id}' AS b FROM sent", "e")

    assert tuple(rows.collect()[0]) == ("${env:HOME}", "${spark.app.id}")


@pytest.mark.nightly_after(2)
@pytest.mark.parametrize(
    "text",
    [
        "1 + " * 30_000 + "1",
        "(" * 5_000 + "1",
        "(" * 900 + "1" + ")" * 900,
        "NOT " * 6_000 + "true",
        "CASE WHEN true THEN " * 800 + "1" + " ELSE 1 END" * 800,
        "(" + "1," * 50_000,
    ],
    ids=["long", "open", "deep", "not", "case", "commas"],
)
def test_a_text_that_is_too_large_is_rejected(session: SparkSession, text: str) -> None:
    with pytest.raises(BadInput):
        safe_query(session, f"SELECT {text}", "expected")
    with pytest.raises(BadInput):
        expressions(session, text, "--key")


def test_sql_that_makes_spark_fail_is_rejected(session: SparkSession) -> None:
    with pytest.raises(BadInput, match="Spark cannot read this query"):
        safe_query(session, "SELECT key:a FROM sent", "expected")
    (odd,) = expressions(session, "x -> x", "--key")
    sent = session.table("sent")
    with pytest.raises(BadInput, match="cannot be used on the actual side"):
        type_of(odd, Table(frame=sent, columns=("key",), place=()), "actual")


def test_the_list_of_parts_holds_class_names_only() -> None:
    part_name = re.compile(
        r"(analysis|expressions|expressions\.aggregate|plans\.logical)\.[A-Z]\w+"
    )

    assert all(part_name.fullmatch(part) for part in parts_of_queries())


@pytest.mark.parametrize("text", ALLOWED_QUERIES)
def test_the_sql_of_expectations_is_allowed(session: SparkSession, text: str) -> None:
    safe_query(session, text, "expected").collect()


def test_every_shipped_expectation_is_allowed(session: SparkSession) -> None:
    queries = set()
    for name in shipped_names(EXPERIMENTS, ".yaml"):
        promise = load_experiment(name).promise
        queries |= {promise.expected, *(output.expected for output in promise.outputs.values())}

    for query in queries - {None}:
        assert query is not None
        reject_unsafe_query(session, query, "expected")
    assert len(queries) > 5


def test_every_function_of_spark_is_on_the_list(session: SparkSession) -> None:
    spark_functions = {row.function for row in session.sql("SHOW SYSTEM FUNCTIONS").collect()}

    assert functions().keys() == spark_functions


def test_column_names_are_not_parsed_as_sql(session: SparkSession) -> None:
    hostile_name = "a` OR reflect('java.lang.System', 'getenv', 'HOME') IS NOT NULL OR f.`a"
    frame = session.createDataFrame([(1,)], [hostile_name])

    joined = frame.alias("a").join(frame.alias("f"), same_values([hostile_name], "a", "f"))
    condition = joined._jdf.queryExecution().analyzed().condition().get()

    assert joined.count() == 1
    assert condition.getClass().getSimpleName() == "EqualNullSafe"


@pytest.mark.parametrize(
    ("query", "read"),
    [
        ("SELECT * FROM Sent", {"sent"}),
        ("SELECT * FROM sent WHERE key IN (SELECT key FROM `a-b` b)", {"sent", "a-b"}),
        ("WITH x AS (SELECT * FROM `A-B`) SELECT * FROM x", {"a-b"}),
        ("SELECT 1", set()),
    ],
)
def test_the_relations_that_a_query_reads(spark: SparkSession, query: str, read: set[str]) -> None:
    given = frozenset({"sent", "a-b", "other"})
    assert relations_read(spark, query, "here", given) == read


def test_a_common_table_expression_must_not_hide_a_relation(spark: SparkSession) -> None:
    query = "WITH Sent AS (SELECT 1 AS one) SELECT * FROM sent"
    with pytest.raises(BadInput, match="`sent` is a relation of the run; rename this common"):
        relations_read(spark, query, "here", frozenset({"sent", "other"}))

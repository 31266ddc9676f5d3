"""SQL whose result depends on the order of the rows is rejected, with what to write instead."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from streamquake.harness.reconcile.sql.safe_sql import reject_unsafe_query, safe_query
from streamquake.topologies.problems import BadInput

OF_TWO_ROWS = "CAST(NULL AS STRING) AS none, * FROM VALUES ('a', 1L), ('a', 2L) AS t(key, seq)"


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    own = spark.newSession()
    own.sql(f"SELECT {OF_TWO_ROWS}").createOrReplaceTempView("sent")
    return own


@pytest.mark.parametrize(
    ("call", "instead"),
    [
        ("first(seq)", r"`first` .* write `min_by\(amount, seq\)`, or an ORDER BY in its window"),
        ("FIRST(seq IGNORE NULLS)", "`first`"),
        ("first(seq, true)", "`first`"),
        ("first_value(seq)", "`first_value`|`first`"),
        ("last(seq)", "`last`"),
        ("last_value(seq) IGNORE NULLS", "`last_value`|`last`"),
        ("any_value(seq)", "`any_value`"),
        ("`first`(seq)", "`first`"),
        ("coalesce(max(seq), first(seq))", "`first`"),
        ("first(seq) FILTER (WHERE seq > 1)", "`first`"),
        ("first(seq) OVER (PARTITION BY key)", "`first`"),
        ("first(seq) OVER w", "`first`"),
        ("nth_value(seq, 2) OVER (PARTITION BY key)", "`nth_value`"),
        ("sum(first(seq)) OVER (ORDER BY key)", "`first`"),
        ("collect_list(seq)", r"`collect_list` .* write `array_sort\(collect_list\(...\)\)`"),
        ("collect_set(seq)", "`collect_set`"),
        ("array_agg(seq)", "`array_agg`"),
        ("array_sort(transform(collect_list(seq), x -> x + 1))", "`collect_list`"),
        ("array_distinct(collect_list(seq))", "`collect_list`"),
        ("listagg(key, ',')", r"`listagg` .* write `listagg\(...\) WITHIN GROUP \(ORDER BY ...\)`"),
        ("string_agg(DISTINCT key)", "`string_agg`"),
        ("listagg(key) WITHIN GROUP (ORDER BY 'x')", "`listagg` .* with columns"),
        ("first(max(seq)) OVER (ORDER BY NULL)", "`first` .* an ORDER BY in its window"),
        ("first(max(seq)) OVER (ORDER BY 1)", "`first`"),
        ("first(max(seq)) OVER (ORDER BY upper('x') DESC, (SELECT 1))", "`first`"),
        ("first(max(seq)) OVER v", "`first`"),
        ("row_number() OVER (ORDER BY NULL)", "`row_number` .* an ORDER BY of columns"),
        ("lag(max(seq)) OVER (ORDER BY 'x')", "`lag`"),
        ("min_by(seq, 1)", r"`min_by` .* write `min_by\(amount, seq\)`, with a column"),
        ("array_sort(collect_list(seq), (a, b) -> 0)", "`collect_list`"),
        ("array_contains(array(array(1L)), collect_list(seq))", "`collect_list`"),
        ("mode(seq)", r"`mode` .* write `mode\(\) WITHIN GROUP"),
        ("mode(seq, false)", "`mode`"),
        ("max_by(seq, (SELECT max(seq) FROM sent))", "`max_by`"),
        ("row_number() OVER (ORDER BY (SELECT max(seq) FROM sent))", "`row_number`"),
        ("row_number() OVER (ORDER BY count(*) OVER ())", "`row_number`"),
        ("row_number() OVER (ORDER BY max(max(seq)) OVER (PARTITION BY 1))", "`row_number`"),
        ("row_number() OVER (ORDER BY size(transform(array(1), y -> y)))", "`row_number`"),
        ("array_sort(collect_list(seq), (a, b) -> int(a) - 1)", "`collect_list`"),
    ],
)
def test_a_function_that_depends_on_the_order_is_rejected(
    session: SparkSession, call: str, instead: str
) -> None:
    text = f"SELECT key, {call} AS x FROM sent GROUP BY key"
    text += " WINDOW w AS (PARTITION BY key), v AS (PARTITION BY key ORDER BY 'x')"
    for query in (text, f"SELECT * FROM sent WHERE EXISTS ({text})", f"WITH a AS ({text}) TABLE a"):
        with pytest.raises(BadInput, match=instead) as rejected:
            reject_unsafe_query(session, query, "expected")
        assert "its value differs between evaluations" in str(rejected.value)


@pytest.mark.nightly_after(12)
@pytest.mark.parametrize(
    "text",
    [
        "SELECT key, min_by(seq, seq) AS x FROM sent GROUP BY key",
        "SELECT first(seq) OVER (PARTITION BY key ORDER BY seq) AS x FROM sent",
        "SELECT any_value(seq) OVER (ORDER BY seq) AS x FROM sent",
        "SELECT FIRST_VALUE(seq) IGNORE NULLS OVER (PARTITION BY key ORDER BY seq) AS x FROM sent",
        "SELECT last(seq) OVER w AS x FROM sent WINDOW w AS (PARTITION BY key ORDER BY seq)",
        "SELECT key, array_sort(collect_list(seq)) AS x FROM sent GROUP BY key",
        "SELECT array_sort(collect_list(seq) FILTER (WHERE seq > 1)) AS x FROM sent",
        "SELECT sort_array(array_agg(seq), false) AS x, size(collect_set(seq)) AS n FROM sent",
        "SELECT listagg(key, ',') WITHIN GROUP (ORDER BY key) AS x FROM sent",
        "SELECT sum(seq) OVER (PARTITION BY key) AS x FROM sent",
        "SELECT sum(seq) OVER (PARTITION BY key ROWS BETWEEN UNBOUNDED PRECEDING AND "
        "UNBOUNDED FOLLOWING) AS x FROM sent",
        "SELECT sum(seq) OVER (ORDER BY seq ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS x "
        "FROM sent",
        "SELECT key FROM sent ORDER BY seq LIMIT 1 OFFSET 1",
        "SELECT key FROM sent ORDER BY seq OFFSET 1",
        "(SELECT key FROM sent ORDER BY seq) LIMIT 1",
        "WITH a AS (SELECT key FROM sent ORDER BY seq LIMIT 1) SELECT * FROM a",
        "SELECT last(seq) OVER w AS x FROM sent WINDOW w AS (ORDER BY seq) ORDER BY seq LIMIT 1",
        "SELECT key FROM sent LIMIT 0",
        "SELECT key FROM sent ORDER BY 1 LIMIT 1",
        "SELECT key FROM sent GROUP BY key ORDER BY count(*), 'x' LIMIT 1",
        "SELECT array_sort(collect_list(seq), (a, b) -> int(B - a)) AS x FROM sent",
        "SELECT array_sort(collect_list(struct(seq)), (a, b) -> int(a.seq - b.seq)) AS x FROM sent",
        "SELECT row_number() OVER (ORDER BY 'x', seq) AS x FROM sent",
        "SELECT rank() OVER (ORDER BY 'x') AS x FROM sent",
        "SELECT mode() WITHIN GROUP (ORDER BY seq) AS x, mode(seq, true) AS y FROM sent",
        "SELECT row_number() OVER (ORDER BY count(*) OVER (PARTITION BY seq), seq) AS x FROM sent",
        "SELECT row_number() OVER (ORDER BY max(key) OVER (PARTITION BY seq)) AS x FROM sent",
        "SELECT row_number() OVER (ORDER BY exists(array(1L), y -> y = seq)) AS x FROM sent",
        "SELECT row_number() OVER (ORDER BY coalesce(seq IN (SELECT max(seq) FROM sent), false)) "
        "AS x FROM sent",
        "SELECT key, row_number() OVER (ORDER BY count(*)) AS x FROM sent GROUP BY key",
        "SELECT lead(seq) IGNORE NULLS OVER w AS x FROM sent WINDOW w AS (ORDER BY seq)",
        "SELECT key FROM sent ORDER BY array_max(transform(array(1), x -> x + seq)) LIMIT 1",
    ],
)
def test_an_order_that_is_given_or_does_not_matter_is_allowed(
    session: SparkSession, text: str
) -> None:
    safe_query(session, text, "expected").collect()


@pytest.mark.parametrize(
    "text",
    [
        "SELECT key FROM sent LIMIT 1",
        "SELECT key FROM sent OFFSET 1",
        "SELECT key FROM sent ORDER BY 'x' LIMIT 1",
        "SELECT key FROM sent ORDER BY (SELECT max(seq) FROM sent) LIMIT 1",
        "SELECT key FROM sent ORDER BY NULL, array('a')[0] OFFSET 1",
        "SELECT key FROM sent SORT BY seq LIMIT 1",
        "SELECT key FROM (SELECT key FROM sent ORDER BY seq) LIMIT 1",
        "SELECT (SELECT seq FROM sent LIMIT 1) AS x FROM sent ORDER BY x",
        "SELECT * FROM (SELECT key FROM sent LIMIT 1) ORDER BY key",
    ],
)
def test_a_limit_needs_an_order_in_the_same_query(session: SparkSession, text: str) -> None:
    with pytest.raises(BadInput, match="is not allowed here without ORDER BY in the same query"):
        reject_unsafe_query(session, text, "expected")


@pytest.mark.parametrize(
    "frame",
    [
        "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
        "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
        "ORDER BY 'x' ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
    ],
)
def test_a_frame_of_a_window_needs_an_order(session: SparkSession, frame: str) -> None:
    for text in (
        f"SELECT sum(seq) OVER (PARTITION BY key {frame}) AS x FROM sent",
        f"SELECT sum(seq) OVER w AS x FROM sent WINDOW w AS (PARTITION BY key {frame})",
    ):
        with pytest.raises(BadInput, match="a window with a frame is not allowed here without"):
            reject_unsafe_query(session, text, "expected")


@pytest.mark.parametrize("call", ["row_number()", "rank()", "lag(seq)", "ntile(2)"])
def test_spark_itself_requires_an_order_for_ranks(session: SparkSession, call: str) -> None:
    with pytest.raises(Exception, match="order"):
        safe_query(session, f"SELECT {call} OVER (PARTITION BY key) AS x FROM sent", "expected")


def test_a_window_of_an_inner_query_is_its_own(session: SparkSession) -> None:
    inner = "SELECT first(seq) OVER w AS seq FROM sent WINDOW w AS (PARTITION BY key)"
    text = f"SELECT sum(seq) OVER w AS x FROM ({inner}) WINDOW w AS (ORDER BY seq)"
    with pytest.raises(BadInput, match="`first`"):
        reject_unsafe_query(session, text, "expected")

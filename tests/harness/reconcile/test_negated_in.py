"""A negated IN with a query is rejected: a null in the query makes it true for no row."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from streamquake.harness.reconcile.sql.safe_sql import (
    MisleadingInput,
    reject_unsafe_query,
    safe_query,
)
from streamquake.topologies.problems import BadInput

GIVEN = frozenset({"sent", "copies"})
ARRIVED = "seq IN (SELECT seq FROM copies)"
NEGATED_VALUES = (
    "SELECT seq FROM (SELECT seq, {arrived} AS there FROM sent) WHERE NOT there",
    "WITH a AS (SELECT seq, {arrived} AS there FROM sent) SELECT seq FROM a WHERE NOT there",
    "SELECT seq FROM sent WHERE ({arrived}) = false",
    "SELECT seq FROM sent GROUP BY seq HAVING ({arrived}) = false",
    "SELECT seq FROM sent WHERE (seq = 0 OR {arrived}) = false",
    "SELECT seq FROM sent WHERE NOT CAST({arrived} AS BOOLEAN)",
    "SELECT seq FROM sent WHERE CAST({arrived} AS INT) = 0",
    "SELECT seq FROM sent WHERE CASE {arrived} WHEN false THEN true END",
    "SELECT seq FROM sent WHERE CASE WHEN {arrived} THEN false END",
    "SELECT seq FROM sent WHERE nullif({arrived}, true) = false",
    "SELECT s.seq FROM sent s JOIN sent t ON s.seq = t.seq AND (s.{arrived}) = false",
)
OTHER_VALUES = (
    "SELECT seq, {arrived} AS there FROM sent",
    "SELECT seq FROM sent WHERE ({arrived}) IS FALSE",
    "SELECT seq FROM sent WHERE NOT coalesce({arrived}, true)",
    "SELECT seq FROM sent WHERE NOT coalesce({arrived}, NULL, true)",
    "SELECT seq FROM sent WHERE NOT nvl(seq = 0, {arrived})",
    "SELECT seq FROM sent GROUP BY seq HAVING NOT bool_and({arrived})",
)


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    """Three records were sent, of which one is in the output, beside a null."""
    own = spark.newSession()
    own.sql(
        "SELECT * FROM VALUES (1L, 'a'), (2L, 'b'), (3L, 'c') AS t(seq, key)"
    ).createOrReplaceTempView("sent")
    own.sql("SELECT * FROM VALUES (1L, 'a'), (NULL, NULL) AS t(seq, key)").createOrReplaceTempView(
        "copies"
    )
    return own


@pytest.mark.parametrize(
    "condition",
    [
        "seq NOT IN (SELECT seq FROM copies)",
        "NOT seq IN (SELECT seq FROM copies)",
        "NOT (key = 'c' OR seq IN (SELECT seq FROM copies))",
        "NOT (seq > 0 AND (key = 'c' OR seq IN (SELECT seq FROM copies)))",
        "(seq, key) NOT IN (SELECT seq, key FROM copies)",
        "EXISTS (SELECT 1 FROM copies c WHERE c.seq NOT IN (SELECT seq FROM copies))",
    ],
)
def test_a_negated_in_with_a_query_is_rejected(session: SparkSession, condition: str) -> None:
    text = f"SELECT seq FROM sent WHERE {condition}"
    for query in (text, f"WITH a AS ({text}) SELECT * FROM a", f"SELECT * FROM ({text})"):
        with pytest.raises(BadInput, match=r"`NOT IN \(SELECT ...\)` is not allowed here") as found:
            reject_unsafe_query(session, query, "query", GIVEN)
        assert "write `NOT EXISTS (SELECT ...)` or `LEFT ANTI JOIN`" in str(found.value)
    assert session.sql(text).isEmpty(), "the rows that are missing are not found"


@pytest.mark.parametrize("text", [*NEGATED_VALUES, *OTHER_VALUES])
def test_an_in_with_a_query_as_a_value_is_rejected(session: SparkSession, text: str) -> None:
    query = text.format(arrived=ARRIVED)
    with pytest.raises(BadInput, match=r"`IN \(SELECT ...\)` as a value is not allowed") as found:
        reject_unsafe_query(session, query, "query", GIVEN)
    assert "`coalesce(x IN (SELECT ...), false)`" in str(found.value)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("seq NOT IN ((SELECT max(seq) FROM copies WHERE seq > 9), 1)", "NOT IN"),
        ("NOT (seq = 1 OR seq IN (1, (SELECT seq FROM copies WHERE seq > 9)))", "NOT IN"),
        ("seq NOT IN (1, 1 + abs((SELECT max(seq) FROM copies WHERE seq > 9)))", "NOT IN"),
        (
            "seq NOT IN (1, coalesce((SELECT max(seq) FROM copies WHERE seq > 9), NULL))",
            "NOT IN",
        ),
        ("(seq IN ((SELECT max(seq) FROM copies WHERE seq > 9), 1)) = false", "IN"),
        ("CASE WHEN seq IN ((SELECT max(seq) FROM copies WHERE seq > 9), 1) THEN false END", "IN"),
    ],
)
def test_a_list_with_the_value_of_a_query_is_rejected_like_a_query(
    session: SparkSession, text: str, what: str
) -> None:
    query = f"SELECT seq FROM sent WHERE {text}"
    with pytest.raises(BadInput, match=rf"`{what} \(..., \(SELECT ...\)\)` .*not allowed") as found:
        reject_unsafe_query(session, query, "query", GIVEN)
    assert "`coalesce((SELECT ...), VALUE)` in the list" in str(found.value)
    assert session.sql(query).isEmpty(), "the rows that are missing are not found"


def test_sql_that_acts_is_named_before_what_only_misleads(session: SparkSession) -> None:
    text = f"SELECT java_method('a', 'b') AS x FROM sent WHERE ({ARRIVED}) = false"
    with pytest.raises(BadInput, match="`java_method` is not allowed here") as found:
        reject_unsafe_query(session, text, "query", GIVEN)
    assert not isinstance(found.value, MisleadingInput)


@pytest.mark.parametrize("text", NEGATED_VALUES)
def test_spark_misses_rows_by_a_negated_value(session: SparkSession, text: str) -> None:
    assert session.sql(text.format(arrived=ARRIVED)).isEmpty()


@pytest.mark.parametrize(
    "text",
    [
        "SELECT s.seq FROM sent s WHERE NOT EXISTS (SELECT 1 FROM copies c WHERE c.seq = s.seq)",
        "SELECT s.seq FROM sent s LEFT ANTI JOIN copies c ON c.seq = s.seq",
        "SELECT seq FROM sent WHERE NOT coalesce(seq IN (SELECT seq FROM copies), false)",
        "SELECT seq FROM sent WHERE NOT NVL(seq IN (SELECT seq FROM copies) AND seq > 0, false)",
        "SELECT seq FROM (SELECT seq, coalesce(seq IN (SELECT seq FROM copies), false) AS there "
        "FROM sent) WHERE NOT there",
        "SELECT seq FROM sent WHERE (seq IN (SELECT seq FROM copies)) IS NOT TRUE",
        "SELECT seq FROM sent s WHERE NOT EXISTS (SELECT 1 FROM copies c WHERE c.seq = s.seq "
        "AND c.seq IN (SELECT seq FROM sent))",
        "SELECT seq FROM sent WHERE seq NOT IN (1)",
        "SELECT seq FROM sent WHERE seq NOT IN (coalesce((SELECT max(seq) FROM copies), 0), 0)",
        "SELECT seq FROM sent WHERE NOT coalesce(seq IN ((SELECT max(seq) FROM copies), 0), false)",
        "SELECT seq FROM sent WHERE (seq IN (0, (SELECT max(seq) FROM copies))) IS NOT TRUE",
        "SELECT seq FROM sent EXCEPT SELECT seq FROM copies",
    ],
)
def test_what_finds_the_missing_rows_is_allowed(session: SparkSession, text: str) -> None:
    rows = safe_query(session, text, "query", GIVEN).collect()
    assert sorted(row.seq for row in rows) == [2, 3]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT seq FROM sent WHERE {arrived}",
        "SELECT seq FROM sent WHERE seq < 3 AND (key = 'x' OR {arrived})",
        "SELECT seq FROM sent WHERE ({arrived}) IS TRUE",
        "SELECT seq FROM sent GROUP BY seq HAVING {arrived}",
        "SELECT s.seq FROM sent s JOIN sent t ON s.seq = t.seq AND s.{arrived}",
        "SELECT count(*) FILTER (WHERE {arrived}) AS seq FROM sent",
        "SELECT seq FROM sent WHERE seq IN (0, (SELECT max(seq) FROM copies))",
    ],
)
def test_an_in_with_a_query_that_selects_rows_is_allowed(session: SparkSession, text: str) -> None:
    query = text.format(arrived=ARRIVED)
    assert [row.seq for row in safe_query(session, query, "query", GIVEN).collect()] == [1]

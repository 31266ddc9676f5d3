"""A negated IN with a query is rejected: a null in the query makes it true for no row."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from streamquake.harness.reconcile.sql.safe_sql import reject_unsafe_query, safe_query
from streamquake.topologies.problems import BadInput

GIVEN = frozenset({"sent", "copies"})


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


@pytest.mark.parametrize(
    "text",
    [
        "SELECT s.seq FROM sent s WHERE NOT EXISTS (SELECT 1 FROM copies c WHERE c.seq = s.seq)",
        "SELECT s.seq FROM sent s LEFT ANTI JOIN copies c ON c.seq = s.seq",
        "SELECT seq FROM sent WHERE NOT coalesce(seq IN (SELECT seq FROM copies), false)",
        "SELECT seq FROM sent WHERE (seq IN (SELECT seq FROM copies)) IS NOT TRUE",
        "SELECT seq FROM sent s WHERE NOT EXISTS (SELECT 1 FROM copies c WHERE c.seq = s.seq "
        "AND c.seq IN (SELECT seq FROM sent))",
        "SELECT seq FROM sent WHERE seq NOT IN (1)",
        "SELECT seq FROM sent EXCEPT SELECT seq FROM copies",
    ],
)
def test_what_finds_the_missing_rows_is_allowed(session: SparkSession, text: str) -> None:
    rows = safe_query(session, text, "query", GIVEN).collect()
    assert sorted(row.seq for row in rows) == [2, 3]


def test_an_in_with_a_query_is_allowed(session: SparkSession) -> None:
    text = "SELECT seq FROM sent WHERE seq IN (SELECT seq FROM copies)"
    assert [row.seq for row in safe_query(session, text, "query", GIVEN).collect()] == [1]

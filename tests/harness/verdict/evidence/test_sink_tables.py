"""The tables through which a job in Flink SQL writes a topic."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamquake.harness.verdict.evidence.sink_tables import sinks_of, tables_of

JOBS = Path(__file__).parents[4] / "topologies" / "jobs"
FIXED = "'sink.partitioner' = 'fixed'"


def table(name: str, *options: str, connector: str = "kafka") -> str:
    given = ", ".join((f"'connector'='{connector}'", *options))
    return f"CREATE TABLE {name} (a INT) WITH ({given});"


def partitioners(sql: str) -> list[str | None]:
    return [options.get("sink.partitioner") for options in sinks_of(sql, "totals", "run-totals")]


TOTALS = "'topic' = '${output.totals}'"


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        (table("t", TOTALS, FIXED), ["fixed"]),
        (table("t", "'topic' = 'run-totals'", FIXED), ["fixed"]),
        (table("t", FIXED), ["fixed"]),
        (table("t", TOTALS, connector="upsert-kafka"), [None]),
        (table("t", connector="upsert-kafka"), [None]),
        (f"-- {FIXED}\n/* {FIXED} */" + table("t", TOTALS), [None]),
        (table("t", TOTALS, f"-- {FIXED}\n'a' = 'b'"), [None]),
        (table("a", "'topic' = 'other'", FIXED) + table("b", TOTALS), [None]),
        (table("a", "'topic' = 'other'") + table("b", TOTALS, FIXED), ["fixed"]),
        (table("a", FIXED) + table("b"), ["fixed", None]),
        (table("a", "'topic-pattern' = 'in.*'") + table("b", FIXED), ["fixed"]),
        (table("a", TOTALS) + table("b", TOTALS, FIXED), [None, "fixed"]),
        (table("t", TOTALS) + f"ALTER TABLE t SET ({FIXED})", ["fixed"]),
        (
            table("`base`", FIXED) + f"CREATE TEMPORARY TABLE t WITH ({TOTALS}) LIKE base",
            ["fixed"],
        ),
        (
            table("b", FIXED) + f"CREATE TABLE t WITH ({TOTALS}) LIKE b (EXCLUDING OPTIONS)",
            [None],
        ),
        (f"INSERT INTO t /*+ OPTIONS({FIXED}) */ SELECT 1;" + table("t", TOTALS), [None]),
        (f"CREATE TABLE IF NOT EXISTS c.`t t` WITH ({TOTALS}) AS SELECT 1", [None]),
        (table("t", "'path' = 'x'", connector="filesystem"), []),
        ("", []),
    ],
)
def test_the_options_of_the_sinks_of_an_output(sql: str, found: list[str | None]) -> None:
    assert partitioners(sql) == found


def test_names_and_values_are_those_of_the_statement() -> None:
    sql = "CREATE TABLE c.`my t` (a INT) WITH ('a.b' = 'it''s', 'c' = '; --')"
    assert tables_of(sql) == {"c.myt": {"a.b": "it's", "c": "; --"}}


def test_the_shipped_jobs_name_the_topic_of_their_sinks() -> None:
    fixed = (JOBS / "keyed-totals-fixed.sql").read_text(encoding="utf-8")
    assert [options["topic"] for options in sinks_of(fixed, "totals", "x")] == ["${output.totals}"]
    assert partitioners(fixed) == ["fixed"]
    assert partitioners((JOBS / "keyed-totals.sql").read_text(encoding="utf-8")) == [None]

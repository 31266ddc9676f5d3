"""The tables through which a job in Flink SQL writes a topic."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamquake.harness.verdict.evidence.sink_tables import SinkTable, sinks_of, tables_of

JOBS = Path(__file__).parents[4] / "topologies" / "jobs"
FIXED = "'sink.partitioner' = 'fixed'"


def table(name: str, *options: str, connector: str = "kafka") -> str:
    given = ", ".join((f"'connector'='{connector}'", *options))
    return f"CREATE TABLE {name} (a INT) WITH ({given});"


def partitioners(sql: str) -> list[str | None]:
    """Those of the sinks, "?" where a sink is not known."""
    return [
        sink.options.get("sink.partitioner") if sink.known else "?"
        for sink in sinks_of(sql, "totals", "run-totals")
    ]


TOTALS = "'topic' = '${output.totals}'"


def _with_comment(comment: str) -> str:
    return f"CREATE TABLE t (a INT COMMENT '{comment}') WITH ('connector' = 'kafka', {TOTALS});"


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
        (table("t", "'topic' = 'a; ${output.totals}'"), [None]),
        ("REPLACE " + table("t", TOTALS).removeprefix("CREATE "), [None]),
        (table("f", FIXED, "'topic' = 'x'") + _with_comment("looks LIKE f"), [None]),
        (_with_comment("''sink.partitioner'' = ''fixed''"), [None]),
        (
            table("f", FIXED, "'topic' = 'x'")
            + f"CREATE TABLE t WITH ({TOTALS}) AS SELECT a FROM b WHERE a LIKE f",
            [None],
        ),
        (
            table("t", TOTALS, FIXED) + "ALTER TABLE t ADD b INT; ALTER TABLE t DROP (b)",
            ["fixed"],
        ),
    ],
)
def test_the_options_of_the_sinks_of_an_output(sql: str, found: list[str | None]) -> None:
    assert partitioners(sql) == found


SINK = table("t", TOTALS, FIXED)
ROUND_ROBIN = "'sink.partitioner' = 'round-robin'"


@pytest.mark.parametrize(
    "sql",
    [
        SINK + "ALTER TABLE t RESET ('sink.partitioner')",
        SINK + "ALTER TABLE t RENAME TO u; ALTER TABLE u SET ('sink.partitioner' = 'round-robin')",
        SINK + "DROP TABLE t",
        SINK + f"REPLACE TABLE t WITH ({TOTALS}) AS SELECT 1",
        table("t", TOTALS) + SINK.replace("TABLE", "TABLE IF NOT EXISTS"),
        SINK + table("`other`.t", "'topic' = 'x'"),
        f"CREATE TABLE t WITH ({TOTALS}) LIKE unseen",
        SINK + f"ALTER TABLE t RESET ('a'); CREATE TABLE u WITH ({TOTALS}) LIKE t",
    ],
)
def test_a_table_is_not_known_where_something_else_may_have_changed_it(sql: str) -> None:
    found = partitioners(sql)
    assert found
    assert {*found} == {"?"}


@pytest.mark.parametrize("name", ["t", "default_catalog.default_database.t", "`db`.`t`"])
def test_a_table_is_changed_by_each_of_its_names(name: str) -> None:
    sql = SINK + f"ALTER TABLE IF EXISTS {name} SET ({ROUND_ROBIN})"
    assert partitioners(sql) == ["round-robin"]
    sql = SINK.replace("TABLE t", f"TABLE {name}") + f"ALTER TABLE t SET ({ROUND_ROBIN})"
    assert partitioners(sql) == ["round-robin"]


def test_names_and_values_are_those_of_the_statement() -> None:
    sql = "CREATE TABLE c.`my t` (a INT) WITH ('a.b' = 'it''s', 'c' = '; --')"
    assert tables_of(sql) == [SinkTable("my t", {"a.b": "it's", "c": "; --"})]


def test_the_shipped_jobs_name_the_topic_of_their_sinks() -> None:
    fixed = (JOBS / "keyed-totals-fixed.sql").read_text(encoding="utf-8")
    assert [s.options["topic"] for s in sinks_of(fixed, "totals", "x")] == ["${output.totals}"]
    assert partitioners(fixed) == ["fixed"]
    assert partitioners((JOBS / "keyed-totals.sql").read_text(encoding="utf-8")) == [None]

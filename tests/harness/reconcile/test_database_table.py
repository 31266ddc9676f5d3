"""Tables of a real PostgreSQL: rows are read exactly, and what transactions hold back is seen."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streamquake.cluster.runtime.docker.runtime import DockerRuntime
from streamquake.harness.interactive.topology_container import TopologyContainer
from streamquake.harness.reconcile.reading.database_address import table_address
from streamquake.harness.reconcile.reading.database_table import (
    DatabaseUnreadable,
    prepared_transactions,
    read_table,
)
from streamquake.harness.reconcile.reading.stored_output import StoredOutput
from streamquake.reports.record.outcome import Outcome
from streamquake.topologies.model import Topology
from streamquake.topologies.problems import BadInput
from tests.harness.reconcile.data_sets import comparison_of

pytestmark = [pytest.mark.container, pytest.mark.spark]

TABLES = r"""
CREATE SCHEMA "my shop";
CREATE TABLE "my shop"."t/1" (
  r int PRIMARY KEY, exact numeric, wide numeric(50, 30), double float8, single real, long bigint,
  text text, padded char(4), bytes bytea, at timestamp, instant timestamptz, day date,
  document jsonb, list int[], yes boolean
);
INSERT INTO "my shop"."t/1" VALUES (
  1, 12345678901234567890.12345678901234567890, 1.5, 0.1, 0.1, 9223372036854775807,
  'ä"\', 'x', '\xff00', '2026-01-31 12:00:00.5', '2026-01-31 12:00:00.123456+02', '2026-01-31',
  '{"a": 1.50}', '{1,null}', true
);
INSERT INTO "my shop"."t/1" (r, exact, double) VALUES (2, 'NaN', 'Infinity');
CREATE TABLE squares (id bigint, square numeric);
INSERT INTO squares SELECT n, n * n FROM generate_series(0, 999) n;
"""
FIRST = {
    "r": "1",
    "exact": "12345678901234567890.12345678901234567890",
    "wide": "1.500000000000000000000000000000",
    "double": "0.1",
    "single": "0.1",
    "long": "9223372036854775807",
    "text": 'ä"\\',
    "padded": "x   ",
    "bytes": "\\xff00",
    "at": "2026-01-31T12:00:00.5",
    "instant": "2026-01-31T10:00:00.123456+00:00",
    "day": "2026-01-31",
    "document": {"a": "1.50"},
    "list": ["1", None],
    "yes": True,
}
"""The first row as it is read, each number as its digits."""


def sql(database: TopologyContainer, statements: str) -> str:
    """The answer of the database's own client."""
    node = database.cluster.node("db/server-1")
    command = ["psql", "-U", "app", "-d", "shop", "-v", "ON_ERROR_STOP=1", "-c", statements]
    done = database.cluster.runtime.exec(node.container, command)
    assert done.exit_code == 0, done.output
    return done.output


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TopologyContainer]:
    db = {
        "engine": "container",
        "image": "streamquake/postgres",
        "ports": {"sql": 5432},
        "command": ("postgres", "-c", "max_prepared_transactions=8"),
        "volumes": ("/var/lib/postgresql/data",),
        "files": {"/docker-entrypoint-initdb.d/tables.sql": TABLES},
        "ready": {"command": ("pg_isready", "-U", "app", "-d", "shop")},
        "nodes": {"server": {"env": {"POSTGRES_USER": "app", "POSTGRES_DB": "shop"}}},
    }
    topology = Topology.model_validate({"name": "database", "services": {"db": db}})
    out = tmp_path_factory.mktemp("runs")
    with TopologyContainer(topology, out=out, runtime=DockerRuntime()) as started:
        yield started


@pytest.fixture
def server(database: TopologyContainer) -> str:
    return f"postgresql://app@127.0.0.1:{database.get_exposed_port('db/server-1', 'sql')}/shop"


def test_every_value_of_a_row_is_read_exactly(
    server: str, spark: SparkSession, tmp_path: Path
) -> None:
    into = StoredOutput(path=tmp_path / "read")

    address = table_address(f"{server}/my%20shop.t%2F1")
    read_table(spark, address, into=into, source="here")

    first, second = into.columns("table", "row", "value").to_pylist()
    assert (first["table"], first["row"], second["row"]) == ("my shop.t/1", 0, 1)
    parsed = json.loads(first["value"], parse_float=str, parse_int=str)
    assert parsed == FIRST
    others = json.loads(second["value"])
    assert (others["exact"], others["double"], others["long"]) == ("NaN", "Infinity", None)
    facts = into.facts()
    assert (facts["kind"], facts["records"], facts["prepared"]) == ("table", 2, 0)


def test_only_prepared_transactions_with_changes_of_the_table_are_counted(
    database: TopologyContainer, server: str, spark: SparkSession
) -> None:
    squares, odd = (table_address(f"{server}/{t}") for t in ("squares", "my%20shop.t%2F1"))
    sql(database, "CREATE TABLE other (id bigint)")
    for name, statement in {
        "writes": "INSERT INTO squares VALUES (-1, 1)",
        "reads": "SELECT count(*) FROM squares",
        "elsewhere": "INSERT INTO other VALUES (1)",
    }.items():
        sql(database, f"BEGIN; {statement}; PREPARE TRANSACTION '{name}'")

    counts = [prepared_transactions(spark, address) for address in (squares, odd)]
    for name in ("writes", "reads", "elsewhere"):
        sql(database, f"ROLLBACK PREPARED '{name}'")

    assert counts == [1, 0]
    assert prepared_transactions(spark, squares) == 0


def test_a_table_is_compared_with_other_data(
    database: TopologyContainer, server: str, spark: SparkSession, tmp_path: Path
) -> None:
    sent = tmp_path / "sent.jsonl"
    lines = [json.dumps({"id": n, "square": n * n}) for n in range(1000)]
    sent.write_text("\n".join(lines))
    table = f"{server}/squares"

    found = comparison_of(spark, sent, table, compare="square")
    assert (found.outcome, found.counts["actual"]) == (Outcome.HELD, 1000)

    lines[7] = json.dumps({"id": 7, "square": 50})
    sent.write_text("\n".join([*lines, json.dumps({"id": 1000, "square": 0})]))
    sql(database, "BEGIN; INSERT INTO squares VALUES (1000, 0); PREPARE TRANSACTION 'late'")
    found = comparison_of(spark, sent, table, compare="square")
    sql(database, "ROLLBACK PREPARED 'late'")

    assert found.outcome == Outcome.VIOLATED
    assert (found.counts["lost"], found.counts["changed"]) == (1, 1)
    assert any("1 prepared transactions with changes of it are not co" in n for n in found.notes)
    with pytest.raises(BadInput, match="one side is one table"):
        comparison_of(spark, sent, (table, table))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("shop/nothing", r'relation "nothing" does not exist$'),
        ("nothing/squares", r'database "nothing" does not exist$'),
    ],
)
def test_a_table_that_cannot_be_read_is_named_with_the_words_of_the_database(
    server: str, spark: SparkSession, table: str, message: str
) -> None:
    address = table_address(server.replace("/shop", f"/{table}"))
    with pytest.raises(DatabaseUnreadable, match=message) as error:
        prepared_transactions(spark, address)
    assert str(error.value).startswith(f"the table {address.name} of {address.database} at 127.0")

"""Tables of a real PostgreSQL: rows are read exactly, and what transactions hold back is seen."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from urllib.parse import quote

import pytest
from pyspark.sql import SparkSession

from streamquake.cluster.runtime.docker.runtime import DockerRuntime
from streamquake.harness.experiment.model import Job
from streamquake.harness.experiment.outputs import JobPromise, Output
from streamquake.harness.interactive.topology_container import TopologyContainer
from streamquake.harness.reconcile.reading import database_table
from streamquake.harness.reconcile.reading.database_address import PASSWORD, table_address
from streamquake.harness.reconcile.reading.database_table import (
    DatabaseUnreadable,
    is_empty,
    prepared_transactions,
    read_table,
)
from streamquake.harness.reconcile.reading.stored_output import StoredOutput
from streamquake.harness.run.output_tables import TableNotEmpty, reject_filled_tables
from streamquake.reports.record.outcome import Outcome
from streamquake.topologies.model import Topology
from streamquake.topologies.problems import BadInput
from tests.harness.histories import experiment
from tests.harness.reconcile.data_sets import comparison_of
from tests.pace import wait_until

USER = "my app"
PASSWORD_OF_USER = 'it\'s "secret"'
pytestmark = [pytest.mark.container, pytest.mark.spark]

TABLES = r"""
CREATE SCHEMA "my shop";
CREATE TABLE "my shop"."t/1'" (
  r int PRIMARY KEY, exact numeric, wide numeric(50, 30), double float8, single real, long bigint,
  text text, padded char(4), bytes bytea, at timestamp, instant timestamptz, day date,
  document jsonb, list int[], yes boolean
);
INSERT INTO "my shop"."t/1'" VALUES (
  1, 12345678901234567890.12345678901234567890, 1.5, 0.1, 0.1, 9223372036854775807,
  'ä"\', 'x', '\xff00', '2026-01-31 12:00:00.5', '2026-01-31 12:00:00.123456+02', '2026-01-31',
  '{"a": 1.50}', '{1,null}', true
);
INSERT INTO "my shop"."t/1'" (r, exact, double) VALUES (2, 'NaN', 'Infinity');
CREATE TABLE parts (id int) PARTITION BY LIST (id);
CREATE TABLE part_1 PARTITION OF parts FOR VALUES IN (1);
CREATE VIEW view_of_parts AS SELECT * FROM parts;
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


def sql(database: TopologyContainer, statements: str, user: str = USER) -> str:
    """The answer of the database's own client."""
    node = database.cluster.node("db/server-1")
    command = ["psql", "-U", user, "-d", "shop", "-v", "ON_ERROR_STOP=1", "-c", statements]
    done = database.cluster.runtime.exec(node.container, command)
    assert done.exit_code == 0, done.output
    return done.output


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TopologyContainer]:
    own = {"POSTGRES_USER": USER, "POSTGRES_DB": "shop", "POSTGRES_PASSWORD": PASSWORD_OF_USER}
    db = {
        "engine": "container",
        "image": "streamquake/postgres",
        "ports": {"sql": 5432},
        "command": ("-c", "max_prepared_transactions=8"),
        "volumes": ("/var/lib/postgresql/data",),
        "files": {"/docker-entrypoint-initdb.d/tables.sql": TABLES},
        "ready": {"command": ("pg_isready", "-U", USER, "-d", "shop")},
        "nodes": {"server": {"env": own}},
    }
    topology = Topology.model_validate({"name": "database", "services": {"db": db}})
    out = tmp_path_factory.mktemp("runs")
    with TopologyContainer(topology, out=out, runtime=DockerRuntime()) as started:
        yield started


@pytest.fixture(autouse=True)
def login(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PASSWORD, PASSWORD_OF_USER)


@pytest.fixture
def server(database: TopologyContainer) -> str:
    port = database.get_exposed_port("db/server-1", "sql")
    return f"postgresql://{quote(USER)}@127.0.0.1:{port}/shop"


@contextmanager
def prepared(database: TopologyContainer, *statements: str) -> Iterator[None]:
    """Transactions that are prepared during the block, one for each statement."""
    for number, statement in enumerate(statements):
        sql(database, f"BEGIN; {statement}; PREPARE TRANSACTION 't{number}'")
    try:
        yield
    finally:
        for number in range(len(statements)):
            sql(database, f"ROLLBACK PREPARED 't{number}'")


def test_every_value_of_a_row_is_read_exactly(
    database: TopologyContainer, server: str, spark: SparkSession, tmp_path: Path
) -> None:
    # Settings of a role, which change how values are written.
    for setting in (
        "extra_float_digits = -5",
        "bytea_output = escape",
        "TimeZone = 'Asia/Tokyo'",
        "IntervalStyle = iso_8601",
        "standard_conforming_strings = off",
    ):
        sql(database, f'ALTER ROLE "{USER}" SET {setting}')
    into = StoredOutput(path=tmp_path / "read")

    address = table_address(f"{server}/my%20shop.t%2F1'")
    read_table(spark, address, into=into, source="here")

    first, second = into.columns("table", "row", "value").to_pylist()
    assert (first["table"], first["row"], second["row"]) == ("my shop.t/1'", 0, 1)
    parsed = json.loads(first["value"], parse_float=str, parse_int=str)
    assert parsed == FIRST
    others = json.loads(second["value"])
    assert (others["exact"], others["double"], others["long"]) == ("NaN", "Infinity", None)
    facts = into.facts()
    assert (facts["kind"], facts["records"], facts["prepared"]) == ("table", 2, 0)


def test_prepared_transactions_are_counted_whichever_table_they_changed(
    database: TopologyContainer, server: str, spark: SparkSession, tmp_path: Path
) -> None:
    view = table_address(f"{server}/view_of_parts")
    writes = ("INSERT INTO part_1 VALUES (1)", "INSERT INTO squares VALUES (-1, 1)")

    with prepared(database, *writes, "SELECT count(*) FROM squares"):
        assert prepared_transactions(spark, view) == 2
        read_table(spark, view, into=StoredOutput(path=tmp_path), source="here")
        assert StoredOutput(path=tmp_path).facts()["prepared"] == 2

    assert prepared_transactions(spark, view) == 0


def test_a_transaction_that_only_goes_on_is_not_prepared(
    database: TopologyContainer, server: str, spark: SparkSession
) -> None:
    node = database.cluster.node("db/server-1")
    script = "BEGIN; INSERT INTO squares VALUES (-1, 1); SELECT 'begun'; SELECT pg_sleep(600)"
    # The statements of one `-c` are one transaction.
    command = ["timeout", "20", "psql", "-U", USER, "-d", "shop", "-c", script]
    writer = Thread(target=database.cluster.runtime.exec, args=(node.container, command))
    writer.start()
    writes = (
        "SELECT count(*) FROM pg_locks WHERE relation = 'squares'::regclass AND pid IS NOT NULL"
    )
    wait_until(
        lambda: None if "0\n(1 row)" not in sql(database, writes) else "it does not write",
        what="the writer",
        limit_s=20,
        clock=database.cluster.clock,
    )

    assert prepared_transactions(spark, table_address(f"{server}/squares")) == 0
    ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(6%'"
    sql(database, f"{ended} AND pid <> pg_backend_pid()")
    writer.join()


def test_rows_that_a_policy_hides_are_no_result(
    database: TopologyContainer,
    server: str,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sql(database, "CREATE ROLE clerk LOGIN PASSWORD 'clerk'; CREATE TABLE hidden (id int)")
    sql(database, "ALTER TABLE hidden ENABLE ROW LEVEL SECURITY; GRANT SELECT ON hidden TO clerk")
    address = table_address(f"{server}/hidden".replace(quote(USER), "clerk"))

    monkeypatch.setenv(PASSWORD, "clerk")
    with pytest.raises(DatabaseUnreadable, match="affected by row-level security policy"):
        read_table(spark, address, into=StoredOutput(path=tmp_path), source="here")


def test_a_table_is_empty_until_it_has_a_row(
    database: TopologyContainer, server: str, spark: SparkSession
) -> None:
    uri = f"{server}/parts"
    outputs = {"rows": Output(table=uri)}
    plan = experiment().model_copy(
        update={"job": Job(sql="SELECT 1", promise=JobPromise(outputs=outputs))}
    )
    reject_filled_tables(plan, database.cluster, spark)

    with (
        prepared(database, "INSERT INTO part_1 VALUES (1)"),
        pytest.raises(TableNotEmpty, match="output rows has 1 prepared transactions, which may"),
    ):
        reject_filled_tables(plan, database.cluster, spark)
    sql(database, "INSERT INTO part_1 VALUES (1)")
    with pytest.raises(TableNotEmpty, match="the table parts of the output rows has rows before"):
        reject_filled_tables(plan, database.cluster, spark)
    sql(database, "DELETE FROM parts")


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
    with prepared(database, "INSERT INTO squares VALUES (1000, 0)"):
        found = comparison_of(spark, sent, table, compare="square")

    assert found.outcome == Outcome.VIOLATED
    assert (found.counts["lost"], found.counts["changed"]) == (1, 1)
    assert any("1 prepared transactions that changed tables have not" in n for n in found.notes)
    with pytest.raises(BadInput, match="one side is one table"):
        comparison_of(spark, sent, (table, table))


@pytest.mark.parametrize(
    ("table", "password", "message"),
    [
        ("shop/my_password", PASSWORD_OF_USER, r'relation "my_password" does not exist$'),
        ("nothing/squares", PASSWORD_OF_USER, r'database "nothing" does not exist$'),
        (
            "shop/squares",
            "wrong",
            f"set {PASSWORD} in the environment to the password of the user$",
        ),
        ("shop/squares", "", f"no password was provided.*; set {PASSWORD} in the environment to"),
    ],
)
def test_a_table_that_cannot_be_read_is_named_with_the_words_of_the_database(
    server: str,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    table: str,
    password: str,
    message: str,
) -> None:
    address = table_address(server.replace("/shop", f"/{table}"))
    monkeypatch.setenv(PASSWORD, password)
    with pytest.raises(DatabaseUnreadable, match=message) as error:
        is_empty(spark, address)
    where = f"the table {address.name} of {address.database} at 127.0"
    assert str(error.value).startswith(where)


def test_a_reading_that_fails_at_its_end_is_not_complete(
    server: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = iter([0])

    def fails_the_second_time(*_: object) -> int:
        try:
            return next(looks)
        except StopIteration:
            raise DatabaseUnreadable("it is gone") from None

    monkeypatch.setattr(database_table, "prepared_transactions", fails_the_second_time)
    into = StoredOutput(path=tmp_path)

    with pytest.raises(DatabaseUnreadable, match="it is gone"):
        read_table(spark, table_address(f"{server}/squares"), into=into, source="here")
    assert not into.complete

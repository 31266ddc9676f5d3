"""`sql`: the rows of a query are violations, and without evidence it is never held."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from streamquake.harness.experiment.check import JudgedRun
from streamquake.harness.experiment.loader import experiment_of
from streamquake.harness.experiment.outputs import INPUT_FOLDER, JobPromise, Output
from streamquake.harness.reconcile.reading.stored_output import StoredOutput
from streamquake.harness.verdict.checks import sql
from streamquake.harness.verdict.checks.sql import Answer, Sql
from streamquake.harness.verdict.queried_relations import RelationSize
from streamquake.reports.record.event import Action
from streamquake.reports.record.outcome import CheckResult, Outcome
from streamquake.topologies.yaml_document import parse_document
from tests.harness.histories import Story, experiment
from tests.harness.verdict.checks.test_exactly_once import (
    CHANGELOG,
    COPY,
    RECORDS,
    Testbed,
    changes,
    story,
    values,
)

PROMISE = JobPromise(outputs={"copy": COPY, "dead-letters": Output(kafka="dead", compare=("why",))})
ANY_QUERY = "SELECT * FROM a"


class World:
    """A run whose query is answered by the test."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.answer = Answer(rows=0, first=(), sizes={"copy": RelationSize(rows=400)})
        self.read = {"copy"}
        self.error: Exception | None = None
        monkeypatch.setattr(sql, "relations_read", lambda *given: frozenset(self.read))
        monkeypatch.setattr(sql, "answer_of", self._answer_of)
        for name in PROMISE.outputs:
            StoredOutput(path=folder / name).part("x").mkdir(parents=True)
            StoredOutput(path=folder / name).finish({"kind": "kafka", "records": 0})

    def _answer_of(self, case: JudgedRun, query: str, read: frozenset[str]) -> Answer:
        assert query == ANY_QUERY
        assert read == frozenset(self.read)
        if self.error is not None:
            raise self.error
        return self.answer

    def judged(
        self, drained: bool = True, acknowledged: int = 400, unknown: int = 0, **params: Any
    ) -> CheckResult:
        session: Any = SimpleNamespace(newSession=lambda: None)
        plan = experiment()
        assert plan.job is not None
        case = JudgedRun(
            experiment=plan.model_copy(
                update={"job": plan.job.model_copy(update={"promise": PROMISE})}
            ),
            history=story(acknowledged, unknown, drained),
            data=self.folder,
            metrics=self.folder / "none",
            spark=lambda: session,
        )
        return Sql(query=ANY_QUERY, **params).check(case)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


def test_without_a_row_the_rule_is_held(world: World) -> None:
    world.answer = Answer(
        rows=0, first=(), sizes={"sent": RelationSize(rows=400), "copy": RelationSize(rows=399)}
    )

    result = world.judged(name="no-negative")

    assert (result.check, result.outcome) == ("no-negative", Outcome.HELD)
    assert result.summary == "no row breaks the rule (400 of sent, 399 of copy)"


def test_rows_are_violations_and_the_first_ones_are_findings(world: World) -> None:
    first = tuple({"key": f"k-{number}"} for number in range(10))
    world.answer = Answer(rows=1200, first=first, sizes={"copy": RelationSize(rows=1500)})

    result = world.judged()

    assert (result.check, result.outcome) == ("sql", Outcome.VIOLATED)
    assert result.summary == "1,200 rows break the rule"
    assert [finding.detail for finding in result.findings] == list(first)
    assert {finding.what for finding in result.findings} == set(Sql.classes)


def test_records_that_cannot_be_read_leave_it_undecided_but_hide_no_row(world: World) -> None:
    sizes = {"copy": RelationSize(rows=398, malformed=2)}
    world.answer = Answer(rows=0, first=(), sizes=sizes)
    result = world.judged()
    assert result.outcome == Outcome.UNDECIDED
    assert result.summary == "2 records of copy cannot be read"

    world.answer = Answer(rows=1, first=({"key": "k"},), sizes=sizes)
    result = world.judged()
    assert result.outcome == Outcome.VIOLATED
    assert result.summary == "1 row breaks the rule; 2 records of copy cannot be read"


def test_too_few_rows_prove_no_rule(world: World) -> None:
    sizes = {"sent": RelationSize(rows=400), "dead-letters": RelationSize(rows=0)}
    world.answer = Answer(rows=0, first=(), sizes=sizes)
    result = world.judged()
    assert result.outcome == Outcome.UNDECIDED
    assert result.summary == "dead-letters has 0 rows, and at least 1 are needed"

    assert world.judged(may_be_empty=("dead-letters",)).outcome == Outcome.HELD
    result = world.judged(may_be_empty=("dead-letters",), min_rows=401)
    assert result.summary == "sent has 400 rows, and at least 401 are needed"
    world.read = set()
    assert world.judged().summary == "the query reads no relation of the run"


def test_an_output_that_was_not_read_leaves_it_undecided(world: World) -> None:
    (world.folder / "copy" / "read.json").unlink()
    result = world.judged()
    assert (result.outcome, result.summary) == (Outcome.UNDECIDED, "copy was not read")

    world.read = {"dead-letters"}
    assert world.judged().outcome == Outcome.HELD


def test_a_damaged_output_leaves_it_undecided(world: World) -> None:
    stored = StoredOutput(path=world.folder / "copy")
    stored.finish({"kind": "kafka", "records": 400})
    result = world.judged()
    assert result.outcome == Outcome.UNDECIDED
    assert result.summary == "copy: 400 records were read, and the record holds 0 records"

    stored.part("x").joinpath("one.parquet").touch()
    stored.finish({"kind": "kafka"})
    stored.part("x").joinpath("one.parquet").unlink()
    result = world.judged()
    assert result.outcome == Outcome.UNDECIDED
    assert result.summary == "copy: 1 of 1 files are missing, such as x/one.parquet"


@pytest.mark.parametrize(
    ("topic", "offsets", "problem"),
    [
        ("copy", [0, 1, 2], ""),
        ("other", [0, 1, 2], "other was read, and the output is copy"),
        ("copy", [0, 1, 1], "1 records have the position of another record and were not read"),
        (
            "copy",
            [0, 1, 3],
            "a record is stored at offset 3 of partition 0, of which 0 to 3 were read",
        ),
    ],
    ids=["whole", "other topic", "copied row", "offset beyond the end"],
)
def test_records_that_were_not_read_from_the_output_leave_it_undecided(
    world: World, topic: str, offsets: list[int], problem: str
) -> None:
    """A rule over rows that are not those of the output is neither broken nor kept."""
    world.answer = Answer(rows=2, first=({"key": "k"},), sizes={"copy": RelationSize(rows=3)})
    stored = StoredOutput(path=world.folder / "copy")
    rows = {"partition": [0] * 3, "offset": offsets, "committed": [True] * 3}
    pq.write_table(pa.table(rows), str(stored.part("x") / "part-0.parquet"))
    stored.finish({"kind": "kafka", "topic": topic, "records": 3, "ends": {"0": 3}})

    result = world.judged()

    assert result.outcome == (Outcome.UNDECIDED if problem else Outcome.VIOLATED)
    assert result.summary == (f"copy: {problem}" if problem else "2 rows break the rule")


def test_outputs_that_may_still_change_leave_it_undecided(world: World) -> None:
    result = world.judged(drained=False)
    assert result.outcome == Outcome.UNDECIDED
    assert result.summary == ("the outputs may still change: the run ended before it was drained")

    world.read = {"history"}
    assert world.judged(drained=False).outcome == Outcome.HELD


def test_sends_of_unknown_result_leave_it_undecided_where_it_reads_what_was_sent(
    world: World,
) -> None:
    world.read = {"sent", "copy"}
    result = world.judged(unknown=3)
    assert result.outcome == Outcome.UNDECIDED
    assert "some sends have an unknown result" in result.summary

    world.read = {"copy"}
    assert world.judged(unknown=3).outcome == Outcome.HELD


def test_a_run_that_sent_nothing_proves_no_rule(world: World) -> None:
    result = world.judged(acknowledged=0)
    assert result.outcome == Outcome.UNDECIDED
    assert result.summary == "no record was acknowledged, so nothing is proven"


def test_a_query_that_fails_leaves_it_undecided(world: World) -> None:
    world.error = AnalysisException("no column")
    result = world.judged()
    assert result.outcome == Outcome.UNDECIDED
    assert result.summary.startswith("the query cannot be executed: AnalysisException: no column")


@pytest.fixture
def testbed(spark: SparkSession, tmp_path: Path) -> Testbed:
    return Testbed(spark, tmp_path)


def judged(testbed: Testbed, query: str, **fields: Any) -> CheckResult:
    promise = fields.pop("promise", None)
    history = fields.pop("history", None)
    return Sql(query=query, **fields).check(testbed.case(promise, history))


def test_a_query_over_what_was_sent_and_what_was_written(testbed: Testbed) -> None:
    testbed.topic("copy", list(values(RECORDS[:-2])), uncommitted=3)
    views = testbed.spark.catalog.listTables()
    query = (
        "SELECT s.key, s.seq FROM sent s LEFT ANTI JOIN copy c ON s.key = c.key AND s.seq = c.seq"
    )

    result = judged(testbed, query)

    assert (result.outcome, result.counts["rows"]) == (Outcome.VIOLATED, 2)
    assert result.counts["copy.rows"] == 398
    missing = sorted((record.key, record.seq) for record in RECORDS[-2:])
    assert sorted(tuple(f.detail.values()) for f in result.findings) == missing
    assert testbed.spark.catalog.listTables() == views


def test_a_query_without_rows_is_held_and_malformed_records_are_counted(testbed: Testbed) -> None:
    testbed.topic("copy", list(values(RECORDS)))
    query = "SELECT * FROM copy WHERE amount < 0 OR _partition > 0 OR _value IS NULL"
    assert judged(testbed, query).outcome == Outcome.HELD

    broken = Testbed(testbed.spark, testbed.data / "broken")
    result = judged(broken.topic("copy", [*values(RECORDS), "no json"]), query)
    assert (result.outcome, result.counts["copy.malformed"]) == (Outcome.UNDECIDED, 1)


@pytest.mark.nightly_after(1)
@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM copy WHERE false",
        "SELECT * FROM copy LIMIT 0",
        "SELECT * FROM copy WHERE amount < 0 AND amount > 0 AND 1 = 2",
        "SELECT index FROM history WHERE kind = 'ok' AND kind = 'fail'",
        "SELECT key FROM copy WHERE key = 'a' GROUP BY key HAVING key = 'b'",
    ],
)
def test_a_query_that_cannot_return_a_row_is_undecided(testbed: Testbed, query: str) -> None:
    testbed.topic("copy", list(values(RECORDS)))
    result = judged(testbed, query)
    assert result.outcome == Outcome.UNDECIDED
    assert "the query cannot return a row, whatever it reads" in result.summary


def test_findings_have_values_that_json_has(testbed: Testbed) -> None:
    testbed.topic("copy", list(values(RECORDS[:1])))
    query = (
        "SELECT key, key AS key, key AS `key (2)`, key AS KEY, array(seq) AS many, "
        "DATE '2020-01-02' AS day, 1.50 AS exact, "
        "CAST('NaN' AS DOUBLE) AS ratio, CAST('a' AS BINARY) AS bytes, repeat('x', 900) AS long "
        "FROM copy"
    )

    (finding,) = judged(testbed, query).findings

    key, seq = RECORDS[0].key, RECORDS[0].seq
    assert finding.detail == {
        "key": key,
        "key (2)": key,
        "key (2) (2)": key,
        "KEY": key,
        "many": f"[{seq}]",
        "day": "2020-01-02",
        "exact": "1.50",
        "ratio": "nan",
        "bytes": "YQ==",
        "long": f"{'x' * 500}… (900 characters)",
    }


def test_the_history_is_a_relation_with_values_as_json(testbed: Testbed) -> None:
    history = Story().sent(1, 400).at(2.5, Action.NODE_GIVEN_UP, node="kafka/broker-1").history()
    query = (
        "SELECT index, at_s, process, kind, get_json_object(value, '$.node') AS node "
        "FROM history WHERE action = 'node given up'"
    )

    result = judged(testbed, query, history=history)

    assert [dict(finding.detail) for finding in result.findings] == [
        {"index": 1, "at_s": 2.5, "process": "test", "kind": "info", "node": "kafka/broker-1"}
    ]
    assert judged(testbed, query, history=Story().sent(1, 400).history()).outcome == Outcome.HELD


def test_an_output_without_expected_records_has_columns_of_text(testbed: Testbed) -> None:
    dead = Output(kafka="dead", identity=("key",), compare=("at", "why"), map={"why": "e.why"})
    promise = JobPromise(outputs={"Dead.Letters": dead})
    testbed.topic("Dead.Letters", ['{"key":"a","at":7,"e":{"why":"late"}}', '{"key":"b"}'])

    result = judged(
        testbed, "SELECT key, at, why, _offset FROM `dead.letters` WHERE at > 6", promise=promise
    )

    assert [dict(finding.detail) for finding in result.findings] == [
        {"key": "a", "at": "7", "why": "late", "_offset": 0}
    ]
    assert result.counts["Dead.Letters.rows"] == 2


def test_a_changelog_has_its_retractions(testbed: Testbed) -> None:
    testbed.topic("copy", [*changes(*RECORDS), *changes(RECORDS[3], back=True)])
    promise = JobPromise(outputs={"copy": CHANGELOG}, expected="SELECT * FROM sent")

    result = judged(testbed, "SELECT key, seq FROM copy WHERE _retracts", promise=promise)

    assert [dict(f.detail) for f in result.findings] == [
        {"key": RECORDS[3].key, "seq": RECORDS[3].seq}
    ]


def test_the_input_topic_settles_unknown_sends(testbed: Testbed) -> None:
    testbed.topic("copy", list(values(RECORDS[:395])))
    query = "SELECT s.seq FROM sent s LEFT ANTI JOIN copy c ON s.key = c.key AND s.seq = c.seq"
    assert judged(testbed, query, history=story(390, 10)).outcome == Outcome.UNDECIDED

    testbed.topic(INPUT_FOLDER, list(values(RECORDS[:395])))
    assert judged(testbed, query, history=story(390, 10)).outcome == Outcome.HELD


@pytest.mark.nightly_after(2)
@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("SELECT * FROM text.`/etc/passwd`", "the relation `text./etc/passwd` is not given here"),
        ("DROP VIEW sent", "expected one query"),
        ("SELECT nothing FROM copy", "UNRESOLVED_COLUMN"),
        ("SELECT CAST(key AS INT) FROM copy", "CAST_INVALID_INPUT"),
        ("SELECT 1", "the query reads no relation of the run"),
        (
            "WITH copy AS (SELECT 1 AS a) SELECT * FROM copy WHERE a > 1",
            "`copy` is a relation of the run; rename this common table expression",
        ),
    ],
)
def test_a_query_that_spark_rejects_is_undecided(testbed: Testbed, query: str, text: str) -> None:
    testbed.topic("copy", list(values(RECORDS[:1])))
    result = judged(testbed, query)
    assert result.outcome == Outcome.UNDECIDED
    assert text in result.summary


def test_the_rules_of_the_page_are_queries_over_its_run(spark: SparkSession) -> None:
    page = (Path(__file__).parents[4] / "docs" / "writing-experiments.md").read_text("utf-8")
    (text,) = re.findall(r"```yaml\n(name: own-rules\n.*?)```", page, re.DOTALL)

    plan = experiment_of(parse_document(text, "page"), beside=Path(), spark=lambda: spark)

    assert sum(check.name == "sql" for check in plan.checks) == 3

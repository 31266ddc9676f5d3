from __future__ import annotations

from pathlib import Path

import pytest

import streamquake.topologies
from streamquake.cluster.engines.flink_sql import split_statements

JOBS = Path(streamquake.topologies.__file__).parent / "jobs"


@pytest.mark.parametrize(
    ("script", "statements"),
    [
        ("SELECT 1; SELECT 2", ["SELECT 1", "SELECT 2"]),
        ("SELECT ';' , `a;b`, \"c;d\";", ["SELECT ';' , `a;b`, \"c;d\""]),
        ("SELECT 'it''s; fine'; SELECT 2;", ["SELECT 'it''s; fine'", "SELECT 2"]),
        ("-- a; comment\nSELECT 1 /* b; c */;", ["SELECT 1"]),
        ("SELECT '--no comment'; SELECT 2", ["SELECT '--no comment'", "SELECT 2"]),
        (";;\n ; -- nothing\n", []),
        (
            "EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT 1; INSERT INTO b SELECT 2; END; S",
            [
                "EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT 1; INSERT INTO b SELECT 2; END",
                "S",
            ],
        ),
    ],
)
def test_a_script_is_split_at_the_semicolons_that_end_statements(
    script: str, statements: list[str]
) -> None:
    assert list(split_statements(script)) == statements


@pytest.mark.parametrize("job", sorted(JOBS.glob("*.sql")), ids=lambda path: path.stem)
def test_each_shipped_job_starts_with_one_statement_of_inserts(job: Path) -> None:
    statements = list(split_statements(job.read_text(encoding="utf-8")))
    starting = [s for s in statements if s.split()[0] in ("INSERT", "EXECUTE")]
    assert starting == statements[-1:]
    assert all(s.startswith("CREATE TEMPORARY") for s in statements[:-1])

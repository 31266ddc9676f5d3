from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

import streamquake.topologies
from streamquake.cluster.engines.flink.rest import FlinkRest, FlinkUnreachable
from streamquake.cluster.engines.flink.sql import StatementFailed, run_script, split_statements
from streamquake.cluster.runtime.clock import FakeClock

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
def test_only_the_last_statement_of_a_shipped_job_inserts(job: Path) -> None:
    statements = list(split_statements(job.read_text(encoding="utf-8")))
    starting = [s for s in statements if s.split()[0] in ("INSERT", "EXECUTE")]
    assert starting == statements[-1:]
    assert all(s.startswith("CREATE TEMPORARY") for s in statements[:-1])


class Gateway:
    """Has the result of a statement at the third request."""

    def __init__(self) -> None:
        self.requests = 0

    def post(
        self, path: str, document: Mapping[str, Any], within_s: float | None = None
    ) -> dict[str, str]:
        return {"sessionHandle": "s", "operationHandle": "o"}

    def get(self, path: str, **parameters: str) -> dict[str, str]:
        self.requests += 1
        if self.requests == 1:
            raise FlinkUnreachable(f"GET {path}: ReadTimeout")
        return (
            {"resultType": "NOT_READY"}
            if self.requests == 2
            else {"resultType": "EOS", "jobID": "j"}
        )

    def delete(self, path: str) -> None:
        """The session is closed."""


def test_a_busy_gateway_is_polled_again_for_a_result() -> None:
    gateway = Gateway()
    assert run_script(cast(FlinkRest, gateway), "INSERT INTO a", {}, FakeClock()) == ["j"]
    assert gateway.requests == 3


def test_a_gateway_that_never_answers_is_unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(self: Gateway, path: str, **parameters: str) -> None:
        raise FlinkUnreachable("GET: ReadTimeout")

    monkeypatch.setattr(Gateway, "get", unreachable)
    with pytest.raises(StatementFailed, match="not within 60 s: GET: ReadTimeout"):
        run_script(cast(FlinkRest, Gateway()), "INSERT INTO a", {}, FakeClock())

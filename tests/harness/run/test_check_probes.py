"""Probes are asked while the block lasts, and answers of another result are recorded."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.runtime.clock import FakeClock, SystemClock
from streamquake.cluster.runtime.fake_runtime import FakeRuntime
from streamquake.cluster.runtime.runtime import ExecResult
from streamquake.harness.experiment.check import CheckProbe, CommandQuestion, HttpQuestion
from streamquake.harness.run import probe_answers
from streamquake.harness.run.check_probes import Asked, ask_probes
from streamquake.harness.run.event_loop import EventLoop
from streamquake.harness.run.probe_answers import command_problem, page_problem
from streamquake.harness.verdict.checks.probe import Probe
from streamquake.reports.record.history import HistoryWriter, read_history
from streamquake.reports.record.metrics import Metrics
from streamquake.reports.record.run_events import ProbeAnswered
from tests.event_drafts import undeclared_fields
from tests.fakes import fake_cluster

pytestmark = pytest.mark.slow


class Service:
    """An HTTP interface on this machine whose answers a test sets."""

    def __init__(self) -> None:
        self.status, self.content = 200, b'{"state": "UP", "jobs": [{"n": 1, "ok": true}]}'
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(service.status)
                self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", str(len(service.content)))
                self.end_headers()
                self.wfile.write(service.content)

            def log_message(self, *message: Any) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/health"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def service() -> Iterator[Service]:
    running = Service()
    yield running
    running.close()


@pytest.fixture
def loop(tmp_path: Path) -> EventLoop:
    return EventLoop(
        HistoryWriter(tmp_path / "history.jsonl"),
        Metrics(tmp_path / "metrics.parquet"),
        SystemClock(),
        lambda: None,
    )


def probe(service: Service, **parameters: Any) -> CheckProbe:
    given = {"ask": service.url, "outage_within_s": 5, **parameters}
    return Probe.model_validate(given).probe()


def answer_problem(asked: CheckProbe) -> str | None:
    """Why a page of the service is not the expected one."""
    question = asked.question
    assert isinstance(question, HttpQuestion)
    return page_problem(asked, question, str(question.url))


def answers(loop: EventLoop, folder: Path) -> list[ProbeAnswered]:
    loop.close()
    events = list(read_history(folder / "history.jsonl"))
    assert undeclared_fields(events) == []
    return [event for event in events if isinstance(event, ProbeAnswered)]


def test_only_answers_of_another_result_and_the_last_one_are_recorded(
    service: Service, loop: EventLoop, tmp_path: Path
) -> None:
    mine = probe(service)
    asked = Asked(check="mine", probe=mine, problem=lambda: answer_problem(mine), loop=loop)
    for status in (200, 200, 503, 503, 200, 200):
        service.status = status
        asked.ask()
    asked.ask(is_last=True)
    found = answers(loop, tmp_path)
    assert [(each.met, each.is_last) for each in found] == [
        *((True, False), (False, False), (True, False), (True, True)),
    ]
    assert [(each.nth, each.before_met) for each in found] == [
        *((1, None), (2, True), (3, False), (4, True)),
    ]
    first, failed, again, last = found
    assert (first.before_asked_s, first.before_at_s, first.check) == (None, None, "mine")
    assert failed.reason == "HTTP 503, 200 expected"
    before = (again.before_asked_s or 0, again.before_at_s or 0)
    assert failed.asked_s < before[0] <= before[1] <= again.asked_s <= again.at_s
    assert 0 < last.longest_gap_s < 5


def test_probes_are_asked_before_the_block_begins_and_after_it_ends(
    service: Service, loop: EventLoop, tmp_path: Path
) -> None:
    cluster: Any = None
    with ask_probes({"a": probe(service, every_s=0.01), "b": probe(service)}, cluster, loop):
        service.status = 500
    found = answers(loop, tmp_path)
    assert {(each.check, each.met) for each in found if not each.is_last} >= {
        *(("a", True), ("b", True)),
    }
    assert {(each.check, each.met) for each in found if each.is_last} == {
        *(("a", False), ("b", False)),
    }


def test_a_service_that_is_gone_gives_no_answer(service: Service) -> None:
    service.close()
    reason = answer_problem(probe(service))
    assert reason is not None
    assert reason.startswith("no answer: ConnectionError")


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"state": "UP", "jobs.0.n": 1, "jobs.0.ok": True}, None),
        ({"state": "DOWN"}, 'state is "UP", "DOWN" expected'),
        ({"jobs.0.n": True}, "jobs.0.n is 1, true expected"),
        ({"jobs.0.ok": 1}, "jobs.0.ok is true, 1 expected"),
        ({"jobs.0.n": "1"}, 'jobs.0.n is 1, "1" expected'),
        ({"jobs.1.n": 1}, "the answer has no jobs.1.n"),
        ({"state.more": 1}, "the answer has no state.more"),
    ],
)
def test_values_of_the_answer_are_compared(
    service: Service, values: Any, problem: str | None
) -> None:
    assert answer_problem(probe(service, values=values)) == problem


@pytest.mark.parametrize("content", [b"<html>", b"", b"[" * 100_000, b"\xff"])
def test_an_answer_that_is_no_json_has_no_values(service: Service, content: bytes) -> None:
    service.content = content
    assert answer_problem(probe(service)) is None
    found = answer_problem(probe(service, values={"a": 1}))
    assert found == "the answer is no JSON"


def test_a_huge_answer_is_not_read(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe_answers, "MAX_ANSWER_BYTES", 10)
    found = answer_problem(probe(service, values={"state": "UP"}))
    assert found == "an answer of more than 10 bytes"


def test_a_redirection_is_an_answer(service: Service) -> None:
    service.status = 302
    assert answer_problem(probe(service)) == "HTTP 302, 200 expected"
    assert answer_problem(probe(service, status=302)) is None


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        ("flink/missing-1:8081", "a probe asks flink/missing-1, and the cluster has no such node"),
        ("kafka/broker-1:1", "a probe asks port 1 of kafka/broker-1, which is not published"),
    ],
)
def test_a_node_that_cannot_be_asked_is_an_error(
    service: Service, loop: EventLoop, ask: str, message: str
) -> None:
    cluster: Cluster = fake_cluster()
    with (
        pytest.raises(LookupError, match=message),
        ask_probes({"a": probe(service, ask=ask)}, cluster, loop),
    ):
        pytest.fail("the block began")
    loop.close()


COMMAND: dict[str, Any] = {"ask": "kafka/broker-1", "run": ["count", "rows"], "outage_within_s": 5}


@pytest.mark.parametrize(
    ("expected", "done", "problem"),
    [
        ({}, ExecResult(exit_code=0, output="anything"), None),
        ({"prints": "7"}, ExecResult(exit_code=0, output=" 7\n"), None),
        ({"prints": "7"}, ExecResult(exit_code=0, output="17\n"), 'it prints "17", "7" expected'),
        ({"prints": ""}, ExecResult(exit_code=0, output="\n"), None),
        (
            {"prints": "7"},
            ExecResult(exit_code=2, output="7\nno such table\n"),
            "`count` exits with 2: 7 no such table",
        ),
        ({}, ExecResult(exit_code=137, output=""), "`count` exits with 137: no output"),
        ({"values": {"rows": 7}}, ExecResult(exit_code=0, output='{"rows": 7}'), None),
        (
            {"values": {"rows": 7}},
            ExecResult(exit_code=0, output='{"rows": 8}'),
            "rows is 8, 7 expected",
        ),
        ({"values": {"rows": 7}}, ExecResult(exit_code=0, output="7"), "the answer has no rows"),
    ],
)
def test_the_output_of_a_command_is_compared(
    expected: dict[str, Any], done: ExecResult, problem: str | None
) -> None:
    runtime = FakeRuntime(FakeClock())
    runtime.on_exec.append(lambda _, argv: done if list(argv) == ["count", "rows"] else None)
    cluster = fake_cluster(runtime=runtime)
    asked = Probe.model_validate({**COMMAND, **expected}).probe()
    assert isinstance(asked.question, CommandQuestion)
    assert command_problem(asked, asked.question, cluster) == problem


def test_a_command_in_a_dead_node_gives_no_answer() -> None:
    cluster = fake_cluster()
    cluster.runtime.kill(cluster.node("kafka/broker-1").container)
    asked = Probe.model_validate(COMMAND).probe()
    assert isinstance(asked.question, CommandQuestion)
    reason = command_problem(asked, asked.question, cluster)
    assert reason is not None
    assert reason.startswith("no answer: ")


def test_a_node_that_is_not_there_runs_no_command(loop: EventLoop) -> None:
    asked = Probe.model_validate({**COMMAND, "ask": "kafka/broker-9"}).probe()
    with (
        pytest.raises(LookupError, match="a probe asks kafka/broker-9, and the cluster has no"),
        ask_probes({"a": asked}, fake_cluster(), loop),
    ):
        pytest.fail("the block began")
    loop.close()

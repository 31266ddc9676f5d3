"""SQL through Flink's SQL gateway: submits a script, returns the ids of the jobs it started.

The gateway takes one statement at a time, so a script is split here: at semicolons outside quotes
and comments, and not inside `EXECUTE STATEMENT SET BEGIN … END`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from streamquake.cluster.engines.flink.rest import FlinkError, FlinkRest, FlinkUnreachable
from streamquake.cluster.runtime.clock import Clock
from streamquake.cluster.runtime.waiting import NotReadyInTime, wait_until
from streamquake.topologies.errors import ErrorKind, StreamquakeError

STATEMENT_S = 60.0
"""The deadline of a request too: a request without an answer is not repeated, since its effect is
unknown."""
_TOKEN = re.compile(
    r"""(?P<comment>--[^\n]*|/\*.*?\*/)
      | (?P<quoted>'(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`)
      | (?P<semicolon>;)
      | (?P<word>\w+)
      | (?P<other>.)""",
    re.S | re.X,
)
_SET = ("EXECUTE", "STATEMENT", "SET", "BEGIN")


class StatementFailed(StreamquakeError):
    """The gateway rejected a statement, or did not finish it; the message has statement and
    cause."""

    kind = ErrorKind.CLUSTER_FAILED


def split_statements(script: str) -> Iterator[str]:
    """The statements of a script, without comments and closing semicolons."""
    text: list[str] = []
    words: list[str] = []
    for token in _TOKEN.finditer(script):
        if token.lastgroup == "word":
            words.append(token.group().upper())
        if token.lastgroup == "comment":
            text.append(" ")
        elif token.lastgroup == "semicolon" and not _inside_set(words):
            yield from _whole(text)
            text, words = [], []
        else:
            text.append(token.group())
    yield from _whole(text)


def run_script(
    gateway: FlinkRest, script: str, properties: Mapping[str, str], clock: Clock
) -> list[str]:
    """Run a script in a new session; returns the ids of the jobs it started.

    Raises StatementFailed with the engine's root cause, FlinkUnreachable.
    """
    wanted = {"properties": dict(properties)}
    opened = gateway.post("/v2/sessions", wanted, within_s=STATEMENT_S)
    session = f"/v2/sessions/{opened['sessionHandle']}"
    try:
        started = [_run(gateway, session, text, clock) for text in split_statements(script)]
    finally:
        _close(gateway, session)
    return [job for job in started if job is not None]


def _inside_set(words: list[str]) -> bool:
    return tuple(words[:4]) == _SET and words[-1] != "END"


def _whole(text: list[str]) -> Iterator[str]:
    statement = "".join(text).strip()
    if statement:
        yield statement


def _run(gateway: FlinkRest, session: str, statement: str, clock: Clock) -> str | None:
    """Run one statement to its first result; returns the id of the job it started, if any."""
    head = " ".join(statement.split())[:80]
    try:
        request = {"statement": statement}
        operation = gateway.post(f"{session}/statements", request, within_s=STATEMENT_S)
        result = f"{session}/operations/{operation['operationHandle']}/result/0"
        return _first_result(gateway, result, head, clock).get("jobID")
    except FlinkError as error:
        raise StatementFailed(f'"{head}": {error}') from error
    except NotReadyInTime as error:
        raise StatementFailed(str(error)) from error


def _first_result(gateway: FlinkRest, path: str, head: str, clock: Clock) -> dict[str, Any]:
    answer: dict[str, Any] = {}

    def pending() -> str | None:
        try:
            answer.update(gateway.get(path, rowFormat="JSON"))
        except FlinkUnreachable as silent:
            return str(silent)  # it may only be busy; the next request decides
        return "the gateway has no result yet" if answer["resultType"] == "NOT_READY" else None

    wait_until(pending, what=f'"{head}"', limit_s=STATEMENT_S, clock=clock)
    return answer


def _close(gateway: FlinkRest, session: str) -> None:
    try:
        gateway.delete(session)
    except (FlinkError, FlinkUnreachable):
        # The gateway closes idle sessions itself; the job does not depend on the session.
        return

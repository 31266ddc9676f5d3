"""Whether the answer to a probe is the expected one: a page, or what a command prints."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import requests

from streamquake.cluster.live_cluster import LiveCluster
from streamquake.cluster.runtime.loopback_session import loopback_session
from streamquake.cluster.runtime.runtime import ContainerError
from streamquake.harness.experiment.check import CheckProbe, CommandQuestion, HttpQuestion
from streamquake.topologies.errors import root_cause

MAX_ANSWER_BYTES = 1 << 20
MAX_REASON = 200


def page_problem(probe: CheckProbe, question: HttpQuestion, url: str) -> str | None:
    """Why a page is not the expected one, or None when it is."""
    try:
        with (
            loopback_session() as session,
            session.get(url, timeout=probe.timeout_s, allow_redirects=False, stream=True) as answer,
        ):
            if answer.status_code != question.status:
                return f"HTTP {answer.status_code}, {question.status} expected"
            if not probe.values:
                return None
            content = answer.raw.read(MAX_ANSWER_BYTES + 1, decode_content=True)
    except (requests.RequestException, OSError) as error:
        return f"no answer: {type(error).__name__}: {root_cause(str(error))}"[:MAX_REASON]
    return _value_problem(content, probe.values)


def command_problem(
    probe: CheckProbe, question: CommandQuestion, cluster: LiveCluster
) -> str | None:
    """Why a command did not end as expected, or None when it did."""
    node = cluster.nodes[question.node]
    try:
        done = cluster.runtime.exec(node.container, question.argv, timeout_s=probe.timeout_s)
    except ContainerError as error:
        return f"no answer: {root_cause(str(error))}"[:MAX_REASON]
    if done.exit_code != 0:
        last = " ".join(done.output.split())[-MAX_REASON // 2 :] or "no output"
        return f"`{question.argv[0]}` exits with {done.exit_code}: {last}"[:MAX_REASON]
    if question.output is not None and done.output.strip() != question.output.strip():
        found = json.dumps(done.output.strip()[: MAX_REASON // 2])
        return f"it prints {found}, {json.dumps(question.output)} expected"[:MAX_REASON]
    return _value_problem(done.output.encode(), probe.values)


def _value_problem(content: bytes, values: Mapping[str, Any]) -> str | None:
    """Why a text of JSON does not have the expected values, or None when it does."""
    if not values:
        return None
    if len(content) > MAX_ANSWER_BYTES:
        return f"an answer of more than {MAX_ANSWER_BYTES:,} bytes"
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return "the answer is no JSON"
    wrong = (_wrong_value(document, place, value) for place, value in values.items())
    return next((reason[:MAX_REASON] for reason in wrong if reason is not None), None)


def _wrong_value(document: Any, place: str, expected: Any) -> str | None:
    found = document
    for part in place.split("."):
        if isinstance(found, Mapping) and part in found:
            found = found[part]
        elif isinstance(found, list) and part.isdecimal() and int(part) < len(found):
            found = found[int(part)]
        else:
            return f"the answer has no {place}"
    if isinstance(found, bool) == isinstance(expected, bool) and found == expected:
        return None
    return f"{place} is {json.dumps(found)[:MAX_REASON]}, {json.dumps(expected)} expected"

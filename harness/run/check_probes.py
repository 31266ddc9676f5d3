"""The probes of checks: each is asked over HTTP again and again, while the run is disturbed and
until it is drained. Answers of another result than the one before are events of the history."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import requests

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.runtime.loopback_session import loopback_session
from streamquake.harness.experiment.check import CheckProbe
from streamquake.harness.run.cluster_lease import background_thread
from streamquake.harness.run.event_loop import EventLoop
from streamquake.reports.record.event import Action
from streamquake.topologies.errors import root_cause

MAX_ANSWER_BYTES = 1 << 20
MAX_REASON = 200


@contextmanager
def ask_probes(
    probes: Mapping[str, CheckProbe], cluster: Cluster, loop: EventLoop
) -> Iterator[None]:
    """Ask all probes until the end of the block, each in a thread of its own; every one is answered
    once before the block begins. Raises LookupError for a node or port that cannot be asked."""
    asked = [
        Asked(check=check, probe=probe, url=_url(probe, cluster), loop=loop)
        for check, probe in probes.items()
    ]
    with ExitStack() as stack:
        for each in asked:
            each.ask()
            part = f"probe-{each.check}"
            stack.enter_context(
                background_thread(each.ask_until_stopped, loop, part, each.stop.set)
            )
        yield


def _url(probe: CheckProbe, cluster: Cluster) -> str:
    if probe.url is not None:
        return probe.url
    assert probe.node is not None
    if (node := cluster.nodes.get(probe.node)) is None:
        raise LookupError(f"a probe asks {probe.node}, and the cluster has no such node")
    if probe.port not in node.host_ports:
        known = ", ".join(map(str, node.host_ports)) or "none"
        raise LookupError(
            f"a probe asks port {probe.port} of {probe.node}, which is not published; "
            f"published ports: {known}"
        )
    return f"http://{cluster.address(node, probe.port)}{probe.path}"


@dataclass(kw_only=True)
class Asked:
    """A probe, and what its answers were so far."""

    check: str
    probe: CheckProbe
    url: str
    loop: EventLoop
    stop: threading.Event = field(default_factory=threading.Event)
    _before: tuple[float, float, str | None] | None = None
    """When the answer before was asked and came, and why it was not the expected one."""
    _longest_gap_s: float = 0.0

    def ask_until_stopped(self) -> None:
        """Ask until `stop`, and once more then."""
        while not self.stop.wait(self.probe.every_s):
            self.ask()
        self.ask(is_last=True)

    def ask(self, *, is_last: bool = False) -> None:
        """Ask once, and record the answer if its result is another than before, or it is the
        last."""
        asked_s = self._now_s()
        reason = answer_problem(self.probe, self.url)
        before, self._before = self._before, (asked_s, self._now_s(), reason)
        if before is not None:
            self._longest_gap_s = max(self._longest_gap_s, asked_s - before[0])
        if before is None or is_last or (before[2] is None) != (reason is None):
            self.loop.record(
                Action.PROBE_ANSWERED,
                check=self.check,
                met=reason is None,
                reason=reason,
                asked_s=asked_s,
                before_asked_s=None if before is None else before[0],
                before_at_s=None if before is None else before[1],
                longest_gap_s=self._longest_gap_s,
                is_last=is_last,
            )

    def _now_s(self) -> float:
        return self.loop.clock.now_ns() / 1e9


def answer_problem(probe: CheckProbe, url: str) -> str | None:
    """Why the answer is not the expected one, or None when it is."""
    try:
        with (
            loopback_session() as session,
            session.get(url, timeout=probe.timeout_s, allow_redirects=False, stream=True) as answer,
        ):
            if answer.status_code != probe.status:
                return f"HTTP {answer.status_code}, {probe.status} expected"
            if not probe.values:
                return None
            content = answer.raw.read(MAX_ANSWER_BYTES + 1, decode_content=True)
    except (requests.RequestException, OSError) as error:
        return f"no answer: {type(error).__name__}: {root_cause(str(error))}"[:MAX_REASON]
    if len(content) > MAX_ANSWER_BYTES:
        return f"an answer of more than {MAX_ANSWER_BYTES:,} bytes"
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return "the answer is no JSON"
    wrong = (_wrong_value(document, place, value) for place, value in probe.values.items())
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

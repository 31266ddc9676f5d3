"""The probes of checks: each is asked again and again, while the run is disturbed and until it is
drained. Answers of another result than the one before are events of the history."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.node import Node
from streamquake.harness.experiment.check import CheckProbe, CommandQuestion, HttpQuestion
from streamquake.harness.run.cluster_lease import background_thread
from streamquake.harness.run.event_loop import EventLoop
from streamquake.harness.run.probe_answers import command_problem, page_problem
from streamquake.reports.record.event import Action


@contextmanager
def ask_probes(
    probes: Mapping[str, CheckProbe], cluster: Cluster, loop: EventLoop
) -> Iterator[None]:
    """Ask all probes until the end of the block, each in a thread of its own; every one is answered
    once before the block begins. Raises LookupError for a node or port that cannot be asked."""
    asked = [
        Asked(check=check, probe=probe, problem=_asked_problem(probe, cluster), loop=loop)
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


def _asked_problem(probe: CheckProbe, cluster: Cluster) -> Callable[[], str | None]:
    """A function that asks once and returns why the answer is not the expected one. Raises
    LookupError for a node or port that cannot be asked."""
    question = probe.question
    if isinstance(question, CommandQuestion):
        _node(question.node, cluster)
        return lambda: command_problem(probe, question, cluster)
    url = _url(question, cluster)
    return lambda: page_problem(probe, question, url)


def _url(question: HttpQuestion, cluster: Cluster) -> str:
    if question.url is not None:
        return question.url
    assert question.node is not None
    node = _node(question.node, cluster)
    if question.port not in node.host_ports:
        known = ", ".join(map(str, node.host_ports)) or "none"
        raise LookupError(
            f"a probe asks port {question.port} of {question.node}, which is not published; "
            f"published ports: {known}"
        )
    return f"http://{cluster.address(node, question.port)}{question.path}"


def _node(name: str, cluster: Cluster) -> Node:
    if (node := cluster.nodes.get(name)) is None:
        raise LookupError(f"a probe asks {name}, and the cluster has no such node")
    return node


@dataclass(kw_only=True)
class Asked:
    """A probe, and what its answers were so far."""

    check: str
    probe: CheckProbe
    problem: Callable[[], str | None]
    """Asks once; returns why the answer is not the expected one, or None when it is."""
    loop: EventLoop
    stop: threading.Event = field(default_factory=threading.Event)
    _before: tuple[float, float, str | None] | None = None
    """When the answer before was asked and came, and why it was not the expected one."""
    _longest_gap_s: float = 0.0
    _recorded: int = 0

    def ask_until_stopped(self) -> None:
        """Ask until `stop`, and once more then."""
        while not self.stop.wait(self.probe.every_s):
            self.ask()
        self.ask(is_last=True)

    def ask(self, *, is_last: bool = False) -> None:
        """Ask once, and record the answer if its result is another than before, or it is the
        last."""
        asked_s = self._now_s()
        reason = self.problem()
        before, self._before = self._before, (asked_s, self._now_s(), reason)
        if before is not None:
            self._longest_gap_s = max(self._longest_gap_s, asked_s - before[0])
        if before is None or is_last or (before[2] is None) != (reason is None):
            self._recorded += 1
            self.loop.record(
                Action.PROBE_ANSWERED,
                check=self.check,
                nth=self._recorded,
                met=reason is None,
                reason=reason,
                asked_s=asked_s,
                before_asked_s=None if before is None else before[0],
                before_at_s=None if before is None else before[1],
                before_met=None if before is None else before[2] is None,
                longest_gap_s=self._longest_gap_s,
                is_last=is_last,
            )

    def _now_s(self) -> float:
        return self.loop.clock.now_ns() / 1e9

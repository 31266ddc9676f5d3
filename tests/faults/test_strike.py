"""Striking: the intent comes first, the effect is seen or said to be missing, the undo is sure."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.runtime import AnswerLost, Status
from streamquake.faults.catalogue.kill import Kill
from streamquake.faults.catalogue.slow_link import SlowLink
from streamquake.faults.fault import Evidence, Fault
from streamquake.faults.intents import Intent, IntentLog
from streamquake.faults.strike import strike, undo
from streamquake.faults.target import find_target
from tests.fakes import FakeToxiproxy, fake_cluster, use_proxy

WORKER = "flink/taskmanager-1"


def intended(log: IntentLog, fault: Fault, name: str) -> Intent:
    return log.intend(step=0, fault=fault, target=name, names=[name])


def status(cluster: Cluster, name: str) -> Status:
    return cluster.state(cluster.node(name)).status


def test_a_kill_is_seen_and_undone(tmp_path: Path) -> None:
    cluster, log = fake_cluster(), IntentLog(tmp_path / "intents.jsonl")
    intent = intended(log, Kill(), WORKER)
    struck = strike(intent, cluster, [cluster.node(WORKER)], limit_s=1)
    assert struck.done
    assert struck.seen_ns is not None
    assert struck.called_ns < struck.seen_ns
    assert struck.evidence[WORKER]["exit_code"] == 137
    assert [open_.id for open_ in log.open()] == [intent.id]

    assert undo(intent, cluster, log, limit_s=1).done
    assert status(cluster, WORKER) == Status.RUNNING
    assert log.open() == ()


def test_a_second_undo_is_harmless(tmp_path: Path) -> None:
    cluster, log = fake_cluster(), IntentLog(tmp_path / "intents.jsonl")
    intent = intended(log, Kill(), WORKER)
    strike(intent, cluster, [cluster.node(WORKER)], limit_s=1)
    assert undo(intent, cluster, log, limit_s=1).done
    assert undo(intent, cluster, log, limit_s=1).done
    assert status(cluster, WORKER) == Status.RUNNING


@pytest.mark.parametrize(("losses", "done"), [(5, True), (1_000_000, False)])
def test_a_look_whose_answer_was_lost_is_no_look(
    losses: int, done: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, lost, looked = fake_cluster(), iter(range(losses)), Kill.evidence

    def losing(*look: Any) -> Evidence:
        if next(lost, None) is not None:
            raise AnswerLost("closed before all of it was read")
        return looked(*look)

    monkeypatch.setattr(Kill, "evidence", losing)
    intent = intended(IntentLog(tmp_path / "intents.jsonl"), Kill(), WORKER)
    struck = strike(intent, cluster, [cluster.node(WORKER)], limit_s=1)
    assert struck.done == done
    assert done or "closed before all of it was read" in struck.reason


def test_a_link_without_traffic_is_not_slowed(tmp_path: Path) -> None:
    cluster = fake_cluster()
    use_proxy(cluster, FakeToxiproxy(busy=False))
    intent = intended(IntentLog(tmp_path / "intents.jsonl"), SlowLink(latency_ms=50), "sink")
    struck = strike(intent, cluster, [find_target("sink", cluster)], limit_s=1)
    assert not struck.done
    assert "bytes_while_watched" in struck.reason


def test_a_toxic_that_cannot_be_removed_costs_the_proxy_not_the_heal(tmp_path: Path) -> None:
    cluster, log = fake_cluster(), IntentLog(tmp_path / "intents.jsonl")
    proxy = FakeToxiproxy()
    use_proxy(cluster, proxy)
    fault = SlowLink(latency_ms=50)
    intent = intended(log, fault, "sink")
    assert strike(intent, cluster, [find_target("sink", cluster)], limit_s=1).done
    proxy.hangs = True
    assert undo(intent, cluster, log, limit_s=1).done
    assert set(proxy.created) == {path.name for path in cluster.links.of("sink")}


def test_a_target_that_is_gone_is_healed(tmp_path: Path) -> None:
    cluster, log = fake_cluster(), IntentLog(tmp_path / "intents.jsonl")
    intent = intended(log, Kill(), WORKER)
    del cluster.nodes[WORKER]
    healed = undo(intent, cluster, log, limit_s=1)
    assert healed.done
    assert log.open() == ()


def test_a_fault_that_raises_is_a_reason_not_a_crash(tmp_path: Path) -> None:
    cluster = fake_cluster()
    intent = intended(IntentLog(tmp_path / "intents.jsonl"), Kill(), WORKER)
    cluster.runtime.remove(cluster.node(WORKER).container)
    struck = strike(intent, cluster, [cluster.node(WORKER)], limit_s=1)
    assert not struck.done
    assert "ContainerError" in struck.reason


def test_an_intent_cut_off_by_a_crash_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "intents.jsonl"
    log = IntentLog(path)
    intended(log, SlowLink(latency_ms=50), "sink")
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"schema": 1})[:-3])
    (found,) = IntentLog(path).open()
    assert found.made() == SlowLink(latency_ms=50)


def test_an_injection_on_no_target_is_not_in_effect(tmp_path: Path) -> None:
    cluster, log = fake_cluster(), IntentLog(tmp_path / "intents.jsonl")
    intent = log.intend(step=0, fault=Kill(), target="all but kafka/broker-1", names=[])
    struck = strike(intent, cluster, [], limit_s=1)
    assert not struck.done
    assert "no target" in struck.reason
    assert undo(intent, cluster, log, limit_s=1).done

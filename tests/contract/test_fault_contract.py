"""What every registered fault must do, on the fake runtime; a new fault is covered by itself."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.runtime import Bracket
from streamquake.faults.fault import Fault, Target, faults
from streamquake.faults.intents import IntentLog
from streamquake.faults.strike import strike, undo
from streamquake.faults.target import parse_target, resolve
from tests.fakes import fake_cluster

AIMS = {"nodes": "one of flink/taskmanager", "links": "link sink"}


@pytest.fixture(params=sorted(faults))
def fault(request: pytest.FixtureRequest) -> Fault:
    made = faults[request.param]
    return made(**made.example)


def target_of(fault: Fault, cluster: Cluster) -> Target:
    return resolve(parse_target(AIMS[fault.aims]), cluster, random.Random(0))[0]


def test_it_is_not_in_effect_before_it_is_injected(fault: Fault) -> None:
    cluster = fake_cluster()
    evidence = fault.evidence(cluster, target_of(fault, cluster))
    assert not evidence.in_effect
    assert evidence.gone


def test_it_is_seen_to_bite_and_seen_gone_and_heals_twice(fault: Fault, tmp_path: Path) -> None:
    cluster, log = fake_cluster(), IntentLog(tmp_path / "intents.jsonl")
    target = target_of(fault, cluster)
    intent = log.intend(step=0, fault=fault, target=target.name, names=[target.name])
    struck = strike(fault, cluster, [target], limit_s=2)
    assert struck.done, struck.reason
    assert fault.evidence(cluster, target).in_effect
    for _ in range(2):
        assert undo(intent, cluster, log, limit_s=2).done
        assert fault.evidence(cluster, target).gone
    assert log.open() == ()


def test_its_parameters_survive_the_intent_file(fault: Fault, tmp_path: Path) -> None:
    log = IntentLog(tmp_path / "intents.jsonl")
    log.intend(step=0, fault=fault, target="t", names=["t"])
    (found,) = log.open()
    assert found.made() == fault


def test_it_says_what_it_is_and_writes_plain_evidence(fault: Fault) -> None:
    cluster = fake_cluster()
    evidence = fault.evidence(cluster, target_of(fault, cluster))
    assert type(fault).__doc__
    assert json.loads(json.dumps(dict(evidence.seen)))


def test_an_injection_that_does_nothing_is_said_not_to_bite(
    fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = fake_cluster()
    nothing = Bracket(called_ns=0, seen_ns=0, how="nothing")
    for call in ("kill", "pause", "exec", "in_network_namespace"):
        monkeypatch.setattr(cluster.runtime, call, lambda *args, **kwargs: nothing)
    monkeypatch.setattr(cluster.links, "bytes_passed", lambda paths: 0)
    monkeypatch.setattr(cluster.links.proxy, "add_toxic", lambda *args: None)
    struck = strike(fault, cluster, [target_of(fault, cluster)], limit_s=1)
    assert not struck.done
    assert "not within 1 s" in struck.reason

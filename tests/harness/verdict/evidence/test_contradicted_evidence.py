"""Recorded observations that contradict the effect or the heal that the record concludes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from streamquake.faults.schedule.step import Step
from streamquake.harness.verdict.checks.effect import Effect
from streamquake.harness.verdict.evidence.contradicted_evidence import (
    contradicted_effect,
    contradicted_heal,
)
from streamquake.harness.verdict.evidence.step_attempts import last_attempt
from streamquake.reports.record.event import PROBE_ALONE, SYSTEM, Action
from streamquake.reports.record.fault_events import FaultInEffect
from streamquake.reports.record.outcome import Outcome
from streamquake.topologies.loader import load_topology
from tests.fakes import TOPOLOGY
from tests.harness.histories import KILLED, RESTARTED, Story, case

NODE = "flink/taskmanager-1"
DOWN = {"status": "exited", "exit_code": 137}
UP = {"status": "running"}
NOT_RECORDED = "is not recorded"
"""How a message about a missing observation ends; most cases have only some observations."""
WIDE = {"map": {"parallelism": 2, "running": 2, "wanted": 2}}
SLOW = {"status": "running", "rules": 5, "hits": 3}
MIXED = {"a -> b:1": "timed out", "b -> a:1": "connected"}
OPEN = {"a -> b:1": "connected", "b -> a:1": "refused"}
SILENT = dict.fromkeys(OPEN, "timed out")
COPIES = {"steered": True, "acknowledged": 7, "most_copies": 9, "exploded": 4}
STOPPED = {"packets_stopped": 9, "probes_stopped": 4}
KILLED_EXECUTOR = {"executors_before": [7], "executors": [8], "before": {"executors": [7]}}
EARLIER, LATER = "2026-01-01T10:00:00.5Z", "2026-01-01T10:01:00.123456789Z"
HALF_OPEN = {"a -> b:1": "refused", "b -> a:1": "timed out"}
USUAL = {"bytes_per_record": 200, "largest_bytes": 210}
LARGE = {"steered": True, "acknowledged": 9, "bytes_per_record": 900, "largest_bytes": 5000}


def observed(effect: Any, later: Any = None, healed: Any = None) -> Story:
    """A fault in effect at 1 s, verified again at 2 s, and healed from 3 s to 4 s."""
    evidence: dict[Action, Any] = {
        Action.FAULT_IN_EFFECT: effect,
        Action.FAULT_STILL_IN_EFFECT: effect if later is None else later,
        Action.HEAL_CALLED: None,
        Action.FAULT_HEALED: healed,
    }
    story = Story()
    for at_s, (action, found) in enumerate(evidence.items(), start=1):
        value = {NODE: found, "watched": "docker"}
        story.at(at_s, action, step=0, seen_ns=at_s * 10**9, evidence=value)
    return story


def step(fault: str, params: Mapping[str, Any] | None = None) -> Step:
    given = {"fault": fault, "target": NODE, "when": {"after_s": 1}, "params": params or {}}
    return Step.model_validate(given)


def effect_messages(story: Story, planned: Step) -> list[str]:
    history = story.history()
    began = last_attempt(history, 0)[FaultInEffect]
    found = contradicted_effect(planned, began, history, TOPOLOGY)
    return [message for message in found if not message.endswith(NOT_RECORDED)]


def heal_messages(story: Story, planned: Step) -> list[str]:
    found = contradicted_heal(planned, last_attempt(story.history(), 0), TOPOLOGY)
    return [message for message in found if not message.endswith(NOT_RECORDED)]


@pytest.mark.parametrize(
    ("fault", "params", "effect", "contradiction"),
    [
        ("kill", {}, DOWN, ""),
        ("kill", {}, UP, "status: expected exited, got running"),
        ("kill", {}, {"status": "gone"}, "status: expected exited, got gone"),
        ("kill", {}, "down", ""),
        ("kill", {}, {**DOWN, "exit_code": 143}, "exit_code: expected 137, got 143"),
        ("kill", {"signal": "TERM"}, {**DOWN, "exit_code": 143, "signal": "TERM"}, ""),
        ("kill", {}, {**DOWN, "signal": "TERM"}, "signal: expected KILL, got TERM"),
        ("kill", {}, {**DOWN, "pid": 7}, "pid: expected 0, got 7"),
        ("kill", {}, {**DOWN, "before": {"status": "exited"}}, "before: expected status another"),
        (
            "kill",
            {},
            {**DOWN, "started_at": "2", "before": {"started_at": "1"}},
            "started_at: expected 1, got 2",
        ),
        ("oom_container", {}, {**DOWN, "oom_killed": False}, "oom_killed: expected True"),
        ("slow_operator", {"delay_ms": 5}, SLOW, ""),
        ("slow_operator", {"delay_ms": 5}, {**SLOW, "first_hit": None}, "first_hit: expected"),
        ("slow_operator", {"delay_ms": 5}, {**SLOW, "hits": 0}, "hits: expected more than 0"),
        ("slow_operator", {"delay_ms": 5}, {**SLOW, "status": "exited"}, "status: expected run"),
        ("throw_in_task", {"subtask": 2}, {"at": ["Map[3] subtask 2"]}, ""),
        ("throw_in_task", {"operator": "Map"}, {"at": ["Map[3] subtask 2"]}, ""),
        (
            "throw_in_task",
            {"operator": "Map"},
            {"at": ["Sum[3] subtask 2"]},
            "at: expected a place",
        ),
        ("throw_in_task", {"operator": "Map"}, {"at": None}, "at: expected a place"),
        ("fail_commit", {}, {"at": ["out[6]: Committer subtask 2"]}, ""),
        ("fail_commit", {}, {"at": ["Map[3] subtask 2"]}, "at: expected a place, `Committer` in"),
        (
            "delay_precommit",
            {"delay_ms": 5, "operator": "a", "subtask": 1},
            {"at": ["b: Writer subtask 1"]},
            "at: expected a place, `Writer` in its name, `a` in its name, subtask 1 for each",
        ),
        (
            "rescale",
            {"to": 2},
            {"vertices": WIDE, "before": {"parallelism": {"v": 4, "w": 4}}},
            "vertices: expected 2 of them",
        ),
        ("rescale", {"to": 2}, {"vertices": WIDE, "before": {"parallelism": {"v": 4}}}, ""),
        (
            "rescale",
            {"to": 2},
            {"vertices": WIDE, "before": {"parallelism": {"v": 2}}},
            "before: expected parallelism another than 2 for each",
        ),
        ("cpu_limit", {"cpus": 0.2}, {"cpus": 0.2, "before": {"cpus": None}}, ""),
        ("cpu_limit", {"cpus": 0.2}, {"cpus": 0}, "cpus: expected 0.2, got 0"),
        ("cpu_limit", {"cpus": 0.2}, {"cpus": 0.2, "before": {"cpus": 0.2}}, "before: expected"),
        ("throw_in_task", {"subtask": 2}, {"at": ["Map subtask 2", "Map subtask 12"]}, "at: exp"),
        ("hold_buffers", {"hold_ms": 9, "subtask": 2}, {"at": ["Map[2] (3/4)#0"]}, ""),
        (
            "hold_buffers",
            {"hold_ms": 9, "subtask": 2},
            {"at": ["Map[2] (2/4)#0"]},
            "at: expected a place, subtask 2",
        ),
        ("dns_failure", {}, {"before": {"lookup": "failed"}}, "before: expected lookup found"),
        ("restart_job", {}, {"job": "b", "state": "running", "restored_from": "/1"}, ""),
        ("restart_job", {}, {"job": "b", "before": {"job": "b"}}, "job: expected another than b"),
        ("restart_job", {}, {"state": "canceled"}, "state: expected running or failed"),
        ("restart_job", {}, {"state": "running", "restored_from": ""}, "restored_from: expected"),
        ("restart_job", {"parallelism": 3}, {"state": "running", "parallelism": 4}, "parallelism"),
        ("restart_job", {"parallelism": 3}, {"state": "failed", "parallelism": None}, ""),
        ("restart_job", {}, {"state": "failed", "reason": ""}, "reason: expected at least one"),
        ("isolate", {}, {"rules_laid": "in 1 of 2 namespaces"}, "rules_laid: expected a text"),
        ("isolate", {}, {"answers": MIXED}, "answers: expected timed out for all"),
        ("isolate", {}, {"answers": MIXED, "before": {"answers": HALF_OPEN}}, ""),
        ("ring_partition", {}, {"answers": MIXED}, ""),
        ("ring_partition", {}, {"answers": {"a -> b:1": "connected"}}, "timed out for some"),
        ("isolate", {}, {"answers": {}}, "answers: expected timed out"),
        ("partition", {"how": "reset"}, {"answers": {"a -> b:1": "timed out"}}, ""),
        ("isolate", {"how": "reset"}, {"answers": {"a -> b:1": "timed out"}}, "expected refused"),
        ("isolate", {}, {"answers": {"a -> b:1": "connected"}}, "answers: expected timed out"),
        ("isolate", {"how": "reset"}, {"answers": {"a -> b:1": "refused"}}, ""),
        ("isolate", {"how": "silent"}, {"answers": {"a -> b:1": "refused"}}, "answers: expected"),
        ("clock_skew", {"offset_s": 90}, {"offset_s": 50, "before": {"offset_s": 0}}, ""),
        ("clock_skew", {"offset_s": 90}, {"offset_s": 50, "before": {"offset_s": 9}}, "offset_s"),
        ("clock_skew", {"offset_s": -90}, {"offset_s": -50}, ""),
        (
            "clock_skew",
            {"offset_s": -90},
            {"offset_s": 50, "before": 7},
            "offset_s: expected at mo",
        ),
        ("memory_limit", {"headroom_mb": 1}, {"memory_limit_bytes": 9}, ""),
        (
            "memory_limit",
            {"headroom_mb": 1},
            {"memory_limit_bytes": 9, "before": {"memory_limit_bytes": 9}},
            "memory_limit_bytes: expected less than 9, got 9",
        ),
        ("kill", {}, {**DOWN, "oom_killed": True}, "oom_killed: expected False, got True"),
        ("stop", {}, {"exit_code": 143, "ended_by": "TERM"}, ""),
        ("stop", {}, {"exit_code": 0, "ended_by": "TERM"}, ""),
        ("stop", {}, {"exit_code": 137, "ended_by": "KILL, after the grace"}, ""),
        ("stop", {}, {"exit_code": 137, "ended_by": "TERM"}, "ended_by: expected KILL, after"),
        ("stop", {}, {"exit_code": 143, "ended_by": "KILL, after the grace"}, "expected TERM"),
        ("stop", {}, {"exit_code": None, "ended_by": None}, "expected at least"),
        ("power_off", {}, {**DOWN, "answers": SILENT, "before": {"answers": OPEN}}, ""),
        (
            "power_off",
            {},
            {"answers": {**SILENT, "b -> a:1": "refused"}, "before": {"answers": OPEN}},
            "answers: expected the same 2 names as before, another than connected or refused for",
        ),
        (
            "power_off",
            {},
            {"answers": {"a -> b:1": "timed out"}, "before": {"answers": OPEN}},
            "answers: expected the same 2 names",
        ),
        (
            "power_off",
            {},
            {"answers": SILENT, "before": {"answers": SILENT}},
            "before: expected answers connected or refused for one at least",
        ),
        ("power_off", {}, {"sandbox": "running"}, "sandbox: expected exited"),
        ("crash_loop", {}, {"ends": 1, "started_at": "2", "before": {**UP, "started_at": "1"}}, ""),
        (
            "crash_loop",
            {},
            {"started_at": "1", "before": {**UP, "started_at": "1"}},
            "started_at: expected a text other than 1",
        ),
        (
            "crash_loop",
            {},
            {"before": {"status": "exited"}},
            "before: expected status another than exited",
        ),
        ("kill_executor", {}, KILLED_EXECUTOR, ""),
        ("kill_executor", {}, {**KILLED_EXECUTOR, "executors": [8, 7]}, "executors: expected none"),
        (
            "kill_executor",
            {},
            {**KILLED_EXECUTOR, "executors_before": [9]},
            "executors_before: expected at least one, [7]",
        ),
        (
            "kill_executor",
            {},
            {**KILLED_EXECUTOR, "before": {"executors": []}},
            "before: expected executors at least one",
        ),
        (
            "isolate",
            {},
            {"answers": {"a -> c:1": "timed out"}, "before": {"answers": {"a -> b:1": "refused"}}},
            "answers: expected the same 1 names as before",
        ),
        ("isolate", {}, {**STOPPED, "disturbed": SYSTEM}, ""),
        ("isolate", {}, {**STOPPED, "disturbed": None}, "disturbed: expected the system or"),
        ("isolate", {}, {**STOPPED, "probes_stopped": 9, "disturbed": PROBE_ALONE}, ""),
        (
            "isolate",
            {},
            {**STOPPED, "probes_stopped": 9, "disturbed": SYSTEM},
            "the system was disturbed, and the probe sent all 9 packets stopped",
        ),
        ("cpu_limit", {"cpus": 0.2}, {"throttled_ms": 0}, "throttled_ms: expected more than 0"),
        (
            "cpu_limit",
            {"cpus": 0.2},
            {"cpus": 0.2, "before": {"cpus": 0.1}},
            "before: expected cpus none, or more than 0.2",
        ),
        ("lose_unflushed_log", {}, {"bytes_lost": 9, "segments": {"a": 4, "b": 5}}, ""),
        (
            "lose_unflushed_log",
            {},
            {"bytes_lost": 1, "segments": {"a": 4, "b": 5}},
            "bytes_lost: expected 9, as of its segments, got 1",
        ),
        ("lose_unflushed_log", {}, {"segments": {}}, "segments: expected more than 0 for each"),
        (
            "stall_link",
            {},
            {"bytes_given": {"up": 0}, "before": {"bytes_delivered": {"up": 1}}},
            "",
        ),
        (
            "stall_link",
            {},
            {"bytes_given": {"up": 1}, "before": {"bytes_delivered": {"up": 0}}},
            "",
        ),
        (
            "stall_link",
            {},
            {"bytes_given": {"up": 0}, "before": {"bytes_delivered": {"up": 0}}},
            "an unused link is not stalled: bytes_given {'up': 0}, and {'up': 0} before",
        ),
        (
            "stall_link",
            {},
            {"bytes_given": {"up": 1}, "before": {"bytes_delivered": {}}},
            "before: expected bytes_delivered at least 0 for each",
        ),
        ("savepoint", {}, {"number": 3, "path": "/s", "before": {"newest": 2}}, ""),
        ("savepoint", {}, {"number": 3, "before": {"newest": 3}}, "number: expected more than 3"),
        (
            "savepoint",
            {},
            {"number": 0, "before": {"newest": None}},
            "number: expected more than 0",
        ),
        ("savepoint", {}, {"path": None}, "path: expected at least one"),
        ("fan_out", {"copies": 9}, {**COPIES, "before": {"most_copies": 1, "exploded": 0}}, ""),
        ("fan_out", {"copies": 9}, {**COPIES, "before": {"most_copies": 9}}, ""),  # not all of them
        (
            "fan_out",
            {"copies": 9},
            {**COPIES, "before": {"most_copies": 9, "exploded": 4}},
            "{'most_copies': 9, 'exploded': 4} before the injection show it already",
        ),
        ("large_records", {"payload_bytes": 4000}, {**LARGE, "before": USUAL}, ""),
        ("large_records", {"payload_bytes": 6000}, {**LARGE, "before": USUAL}, "show no effect"),
        ("large_records", {"payload_bytes": 6000}, {"steered": True, "largest_bytes": 1}, ""),
        ("large_records", {"payload_bytes": 4000}, {**LARGE, "steered": False}, "steered: expe"),
        ("a fault of another package", {}, UP, ""),
        ("kill", {"no_such_parameter": 1}, UP, ""),
    ],
)
def test_an_observation_can_show_that_a_recorded_effect_was_none(
    fault: str, params: dict[str, Any], effect: Any, contradiction: str
) -> None:
    found = effect_messages(observed(effect), step(fault, params))
    assert bool(found) == bool(contradiction)
    assert all(contradiction in message for message in found)
    assert all(m.startswith(f"it is recorded as in effect on {NODE}, and ") for m in found)


@pytest.mark.parametrize(
    ("later", "healed", "missing"),
    [
        ({}, {}, []),
        ({"pid": None}, {}, ["in effect", "pid"]),
        ({"signal": None, "pid": None}, {}, ["in effect", "pid, signal"]),
        ({}, {"started_at": None}, ["healed", "started_at"]),
        ({}, {"pid": None}, ["healed", "pid"]),
        ({}, {"status": None, "started_at": None}, ["healed", "status, started_at"]),
    ],
)
def test_every_observation_that_proves_it_must_be_recorded(
    later: Mapping[str, None], healed: Mapping[str, None], missing: list[str]
) -> None:
    """The state before the injection is recorded once, with the first verification."""
    killed = {**DOWN, "pid": 0, "oom_killed": False, "signal": "KILL", "started_at": "1"}
    before = {"before": {"status": "running", "started_at": "1"}}
    again = {**UP, **before, "started_at": LATER, "pid": 8}
    story = observed(
        {**killed, **before},
        later={name: value for name, value in killed.items() if name not in later},
        healed={name: value for name, value in again.items() if name not in healed},
    )
    history = story.history()
    attempt = last_attempt(history, 0)
    found = [
        *contradicted_effect(step("kill"), attempt[FaultInEffect], history, TOPOLOGY),
        *contradicted_heal(step("kill"), attempt, TOPOLOGY),
    ]
    message = "it is recorded as {} on flink/taskmanager-1, and its {} is not recorded"
    assert found == ([message.format(*missing)] if missing else [])


SLOWED = ["slow_link-latency-downstream", "slow_link-latency-upstream"]
PATHS = [f"sink:flink-taskmanager-{n}>kafka-broker-1" for n in (1, 2, 3)]


@pytest.mark.parametrize(
    ("paths", "found"),
    [
        (PATHS, None),
        (PATHS[:2], ", ".join(PATHS[:2])),
        ([*PATHS, "sink:a>b"], ", ".join([*PATHS, "sink:a>b"])),
        ([path.replace("sink", "checkpoints") for path in PATHS[:1]], f"checkpoints{PATHS[0][4:]}"),
        ([], "none"),
    ],
)
def test_a_link_has_toxics_on_each_of_its_paths(paths: list[str], found: str | None) -> None:
    effect = {"toxics": dict.fromkeys(paths, SLOWED), "bytes_while_watched": 9}
    planned = {"fault": "slow_link", "target": "link sink", "params": {"latency_ms": 9}}
    link = Step.model_validate({**planned, "when": {"after_s": 1}})
    story = Story()
    for at_s, (action, toxics) in enumerate(
        [(Action.FAULT_IN_EFFECT, SLOWED), (Action.FAULT_HEALED, [])], 1
    ):
        evidence = {"sink": {**effect, "toxics": dict.fromkeys(paths, toxics)}}
        story.at(at_s, action, step=0, seen_ns=at_s * 10**9, evidence=evidence)
    history = story.history()
    attempt = last_attempt(history, 0)
    topology = load_topology("flink-kafka-hdfs")
    message = f"toxics: expected that of {', '.join(PATHS)}, got that of {found}"
    for messages in (
        contradicted_effect(link, attempt[FaultInEffect], history, topology),
        contradicted_heal(link, attempt, topology),
    ):
        assert message in " ".join(messages) if found else list(messages) == []


@pytest.mark.parametrize("in_heal", [True, False])
@pytest.mark.parametrize(
    ("before", "differs"),
    [({"pid": 7}, False), (None, True), ({"pid": 99}, True), ({"pid": 7, "more": 1}, True)],
)
def test_the_values_before_the_injection_are_measured_once(
    in_heal: bool, before: Any, differs: bool
) -> None:
    first, other = {**DOWN, "before": {"pid": 7}}, {"before": before}
    if in_heal:
        story = observed(first, healed={**UP, "pid": 8, **other})
    else:
        story = observed(first, later={**DOWN, **other}, healed={**UP, "pid": 8})
    messages = (
        heal_messages(story, step("kill")) if in_heal else effect_messages(story, step("kill"))
    )
    assert (
        any("before: expected {'pid': 7}, as of its effect" in one for one in messages) == differs
    )


def test_a_heal_without_the_values_before_the_injection_is_compared_with_those_of_the_effect() -> (
    None
):
    story = observed({**DOWN, "before": {"pid": 7}}, healed={**UP, "pid": 7})
    (message,) = heal_messages(story, step("kill"))
    assert message.endswith("pid: expected another than 7, got 7")


def test_every_verification_is_judged_as_the_first() -> None:
    """The second of three is contradicted; those of another step and before the effect are not of
    this fault."""
    story = Story()
    for number in (0, 1):
        story.at(2, Action.FAULT_STILL_IN_EFFECT, step=number, evidence={NODE: UP})
    story.at(3, Action.FAULT_IN_EFFECT, step=0, seen_ns=3 * 10**9, evidence={NODE: DOWN})
    later: list[tuple[int, Any]] = [(0, DOWN), (0, UP), (1, UP), (0, DOWN)]
    for at_s, (number, seen) in enumerate(later, start=4):
        story.at(at_s, Action.FAULT_STILL_IN_EFFECT, step=number, evidence={NODE: seen})
    (message,) = effect_messages(story, step("kill"))
    assert message.endswith("status: expected exited, got running")


@pytest.mark.parametrize(
    ("fault", "params", "healed", "contradiction"),
    [
        ("kill", {}, UP, ""),
        ("kill", {}, {"status": "gone"}, ""),
        ("kill", {}, DOWN, "status: expected running or gone, got exited"),
        ("kill", {}, {**UP, "started_at": None}, "started_at: expected a text other than"),
        ("pause", {}, UP, ""),
        ("pause", {}, {"status": "exited"}, ""),  # another fault may have ended it
        ("pause", {}, {"status": "paused"}, "status: expected a text other than paused, got pau"),
        ("pause", {}, {"status": None}, "status: expected a text other than paused, got None"),
        ("kill", {}, {**UP, "started_at": LATER, "before": {"started_at": EARLIER}}, ""),
        ("kill", {}, {**UP, "started_at": "other"}, "it runs since 'other', which is no time"),
        ("kill", {}, {**UP, "pid": 0}, "it runs as the process 0"),
        ("kill", {}, {"status": "gone", "pid": 0, "started_at": ""}, ""),
        ("kill", {}, {**UP, "pid": 8, "before": {"pid": 7}}, ""),
        ("kill", {}, {**UP, "pid": 7, "before": {"pid": 7}}, "pid: expected another than 7, got 7"),
        ("power_off", {}, {"sandbox": "running"}, ""),
        ("power_off", {}, {"sandbox": "exited"}, "sandbox: expected running or gone, got exited"),
        ("kill_executor", {}, {"executors": [8], "before": {"executors": [7]}}, ""),
        ("kill_executor", {}, {"executors": [7], "before": {"executors": [7]}}, "executors: exp"),
        ("kill_executor", {}, {"executors": [], "before": {"executors": [7]}}, "executors: exp"),
        ("savepoint", {}, {"state": "completed"}, ""),
        ("savepoint", {}, {"state": None}, ""),
        ("savepoint", {}, {"state": "in progress"}, "state: expected another than in progress"),
        ("lose_unflushed_log", {}, {"bytes_lost": 5}, "bytes_lost: expected 0, got 5"),
        ("surge", {"factor": 2}, {"acknowledged": None}, "acknowledged: expected at least 0"),
        ("slow_operator", {"delay_ms": 5}, {"rules": 0, "status": "paused"}, "status: expected a"),
        ("slow_operator", {"delay_ms": 5}, {"rules": 0, "status": "exited"}, ""),
        (
            "kill",
            {},
            {**UP, "started_at": LATER, "before": {"started_at": LATER}},
            "started_at: exp",
        ),
        ("cpu_limit", {"cpus": 0.2}, {"cpus": 0.2}, "cpus: expected another than 0.2, got 0.2"),
        (
            "cpu_limit",
            {"cpus": 0.2},
            {"cpus": 1.0, "before": {"cpus": None}},
            "cpus: expected None",
        ),
        ("cpu_limit", {"cpus": 0.2}, {"cpus": None, "before": {"cpus": 2.0}}, ""),
        ("rescale", {"to": 4}, {"vertices": WIDE, "before": {"parallelism": {"v": 2}}}, ""),
        (
            "rescale",
            {"to": 4},
            {"vertices": WIDE, "before": {"parallelism": {"v": 2, "w": 2}}},
            "vertices: expected 2 of them",
        ),
        ("rescale", {"to": 4}, {"vertices": None, "before": {"parallelism": {"v": 2}}}, ""),
        (
            "rescale",
            {"to": 4},
            {"vertices": WIDE, "before": {"parallelism": {"v": 3}}},
            "vertices: expected 1 of them, parallelism 3, running 3, wanted 3 for each, got",
        ),
        ("rescale", {"to": 4}, {"vertices": {}, "before": {"parallelism": {"v": 3}}}, "vertices"),
        ("dns_failure", {}, {"lookup": "found"}, ""),
        ("dns_failure", {}, {"lookup": "timed out"}, "lookup: expected found or"),
        ("fan_out", {"copies": 9}, {"steered": False, "most_copies": 1}, ""),
        ("fan_out", {"copies": 9}, {"most_copies": 9}, "most_copies: expected less than 9, got 9"),
        ("fan_out", {"copies": 9}, {"steered": True}, "steered: expected False, got True"),
        (
            "large_records",
            {"payload_bytes": 4000},
            {"largest_bytes": 5000},
            "largest_bytes: expected",
        ),
        ("late_events", {"late_ms": 9}, {"moved_back": 1}, "moved_back: expected 0, got 1"),
        ("poison", {}, {"unreadable": 1}, "unreadable: expected 0, got 1"),
        ("slow_operator", {"delay_ms": 5}, SLOW, "rules: expected 0, got 5"),
        ("isolate", {}, {"rules_laid": "in 0 of 2 namespaces"}, ""),
        ("isolate", {}, {"answers": OPEN, "before": {"answers": OPEN}}, ""),
        ("isolate", {}, {"answers": MIXED, "before": {"answers": OPEN}}, ""),
        ("isolate", {}, {"answers": SILENT, "before": {"answers": SILENT}}, ""),
        (
            "isolate",
            {},
            {"answers": SILENT, "before": {"answers": OPEN}},
            "answers: expected the same 2 names as before, connected or refused for one at least",
        ),
        ("isolate", {}, {"answers": {}, "before": {"answers": OPEN}}, "answers: expected the same"),
        ("isolate", {}, {"rules_laid": "in 1 of 2 namespaces"}, "rules_laid: expected"),
        ("memory_limit", {"headroom_mb": 1}, {"memory_limit_bytes": 5}, ""),
        (
            "memory_limit",
            {"headroom_mb": 1},
            {"memory_limit_bytes": 5, "before": {"memory_limit_bytes": 9}},
            "memory_limit_bytes: expected 9 or None, got 5",
        ),
        ("clock_skew", {"offset_s": 90}, {"offset_s": 50}, "offset_s: expected at most 45, got 50"),
        ("clock_skew", {"offset_s": -90}, {"offset_s": 0}, ""),
        ("a fault of another package", {}, UP, ""),
        ("kill", {}, None, ""),
    ],
)
def test_an_observation_can_show_that_a_recorded_heal_was_none(
    fault: str, params: dict[str, Any], healed: Any, contradiction: str
) -> None:
    found = heal_messages(observed(DOWN, healed=healed), step(fault, params))
    expected = [f"it is recorded as healed on {NODE}, and {contradiction}"] if contradiction else []
    assert [message[: len(line)] for message, line in zip(found, expected, strict=True)] == expected


def test_events_without_evidence_contradict_nothing() -> None:
    story = Story().at(1, Action.FAULT_IN_EFFECT, step=0, seen_ns=1)
    story.at(2, Action.FAULT_HEALED, step=0, seen_ns=2)
    assert effect_messages(story, step("kill")) == heal_messages(story, step("kill")) == []


@pytest.mark.parametrize(
    ("effect", "healed", "findings"),
    [
        (KILLED, RESTARTED, []),
        ({**KILLED, **UP}, RESTARTED, ["contradictory evidence", "contradictory evidence"]),
        (KILLED, {**RESTARTED, **DOWN}, ["contradictory evidence"]),
    ],
)
def test_the_check_of_the_effect_is_undecided(
    effect: Any, healed: Any, findings: list[str], tmp_path: Path
) -> None:
    result = Effect().check(case(observed(effect, healed=healed), tmp_path))
    assert [finding.what for finding in result.findings] == findings
    assert result.outcome == (Outcome.UNDECIDED if findings else Outcome.HELD)


@pytest.mark.parametrize(
    ("later", "message"),
    [
        ({}, ""),
        ({"hits": 9}, ""),
        ({"hits": 2}, "hits: expected at least 3, got 2, unlike at the verification before"),
        ({"first_hit": "2026-01-02T"}, "first_hit: expected 2026-01-01T, got 2026-01-02T, unlike"),
        ({"rules": 4}, "rules: expected 5, got 4, unlike at the verification before"),
        ({"hits": None}, "hits: expected more than 0, got None"),
    ],
)
def test_a_verification_follows_from_the_one_before(later: dict[str, Any], message: str) -> None:
    seen = {**SLOW, "at": ["Map subtask 0"], "first_hit": "2026-01-01T", "before": {"agent": "x"}}
    story = observed(seen, later={**seen, **later})
    found = effect_messages(story, step("slow_operator", {"delay_ms": 5}))
    assert [message in text for text in found][:1] == [True] * bool(message)

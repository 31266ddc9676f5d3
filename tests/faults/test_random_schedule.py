"""Random schedules: functions of their seed, in which only allowed faults overlap."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamquake.faults.fault import faults
from streamquake.faults.schedule.candidates import FaultCandidate, candidates_of, targets
from streamquake.faults.schedule.profiles import PROFILES, Profile, profile_of
from streamquake.faults.schedule.random_schedule import ScheduledCandidate, draw, may_overlap
from streamquake.faults.schedule.step import Step, TriggerSpec
from tests.fakes import WIDE

CANDIDATES = [
    candidate
    for name in ("kill", "pause", "slow_link")
    for candidate in candidates_of(faults[name], WIDE)
]
EVENTS = ("checkpoint triggered",)
seeds = st.integers(0, 10**6)
profiles = st.sampled_from([*PROFILES.values(), profile_of("single:pause")])


def drawn(
    profile: Profile, seed: int, candidates: Sequence[FaultCandidate] = CANDIDATES
) -> list[Step]:
    return list(
        draw(
            profile,
            candidates,
            random.Random(seed),
            steps=None,
            within_s=profile.within_s,
            events=EVENTS,
            allowed=lambda steps: True,
        )
    )


@given(profiles, seeds)
def test_a_draw_is_a_function_of_its_seed(profile: Profile, seed: int) -> None:
    assert drawn(profile, seed) == drawn(profile, seed)


@given(profiles, seeds)
def test_a_draw_respects_its_profile(profile: Profile, seed: int) -> None:
    steps = drawn(profile, seed)
    assert 1 <= len(steps) <= profile.steps[1]
    for step in steps:
        assert step.for_s is not None
        assert profile.for_s[0] - 0.1 <= step.for_s <= profile.for_s[1] + 0.1
        if step.when.after_s is not None:
            assert step.when.after_s + step.for_s <= profile.within_s + 0.2


@given(profiles, seeds)
def test_no_moment_of_a_draw_breaks_a_rule(profile: Profile, seed: int) -> None:
    steps = drawn(profile, seed)
    known = {(c.fault, c.target): c for c in CANDIDATES}
    scheduled = [
        ScheduledCandidate(candidate=known[s.fault, s.target], when=s.when, for_s=s.for_s or 0)
        for s in steps
    ]
    for moment_s in range(int(profile.within_s) + 1):
        now = [p.candidate for p in scheduled if p.span()[0] <= moment_s < p.span()[1]]
        assert len(now) <= profile.at_once
        for number, one in enumerate(now):
            for other in now[:number]:
                assert not (one.touches == other.touches and one.names & other.names)
                assert not (one.roles & other.roles), "two nodes of a role are down"


def at(candidate: FaultCandidate, at_s: float, for_s: float = 5) -> ScheduledCandidate:
    return ScheduledCandidate(candidate=candidate, when=TriggerSpec(after_s=at_s), for_s=for_s)


def test_faults_overlap_only_where_the_profile_allows_it() -> None:
    swarm = replace(PROFILES["swarm"], quiet_s=2.0)
    kill = next(c for c in CANDIDATES if (c.fault, c.target) == ("kill", "flink/taskmanager-1"))
    pause = next(c for c in CANDIDATES if (c.fault, c.target) == ("pause", "flink/taskmanager-2"))
    broker = next(c for c in CANDIDATES if (c.fault, c.target) == ("kill", "kafka/broker-1"))
    sink = next(c for c in CANDIDATES if c.target == "link sink")

    assert may_overlap([at(kill, 0), at(broker, 1), at(sink, 1)], swarm)
    assert not may_overlap([at(kill, 0), at(pause, 6)], swarm)
    assert may_overlap([at(kill, 0), at(pause, 7.5)], swarm)
    assert not may_overlap([at(sink, 0), at(sink, 4)], swarm)
    assert not may_overlap([at(kill, 0), at(broker, 1)], PROFILES["gentle"])
    waiting = ScheduledCandidate(
        candidate=kill, when=TriggerSpec(event="checkpoint triggered"), for_s=1
    )
    assert not may_overlap([waiting, at(pause, 60)], swarm)


def test_a_draw_contains_only_allowed_steps() -> None:
    only_links = draw(
        PROFILES["swarm"],
        CANDIDATES,
        random.Random(1),
        steps=3,
        within_s=60,
        events=(),
        allowed=lambda steps: all(step.fault == "slow_link" for step in steps),
    )
    assert {step.fault for step in only_links} == {"slow_link"}


def test_a_draw_without_candidates_is_empty() -> None:
    assert drawn(PROFILES["swarm"], 1, []) == []


def test_pairs_cover_every_direction_between_linked_nodes() -> None:
    pairs = list(targets("pairs", WIDE))
    for pair in (
        "between flink/taskmanager-1 and kafka/broker-2",
        "from kafka/broker-2 to flink/taskmanager-1",
        "between flink/taskmanager-1 and flink/taskmanager-3",
    ):
        assert pair in pairs
    assert not any("flink/taskmanager-1 and flink/taskmanager-1" in text for text in pairs)


@pytest.mark.parametrize("name", ["swram", "single"])
def test_an_unknown_profile_is_rejected(name: str) -> None:
    with pytest.raises(LookupError, match=f'no profile is called "{name}"'):
        profile_of(name)

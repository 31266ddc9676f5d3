"""Draw a random schedule from a seed and a profile, only of valid faults that may overlap.

A draw is a function of its random numbers, the candidates and the profile. The result is a schedule
like one written manually: nodes by name, every step with its end.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from streamquake.faults.schedule.candidates import FaultCandidate
from streamquake.faults.schedule.profiles import Profile
from streamquake.faults.schedule.step import Step, TriggerSpec
from streamquake.topologies.limits import Limit
from streamquake.topologies.model import Model

TRIES_PER_STEP = 30
MOST_NTH = 3


class Draw(Model):
    """`draw:` of an experiment, in place of `faults`."""

    profile: str
    """The name of the profile that bounds the schedule."""
    steps: Annotated[int, Field(ge=1, le=20)] | None = None
    """Number of steps; by default drawn within the profile's bounds. Fewer where no more fit."""
    within_s: Limit | None = None
    """The schedule ends this many seconds after steady state; by default the profile's bound."""
    without: tuple[str, ...] = ()
    """Faults that are not drawn."""


@dataclass(frozen=True, kw_only=True)
class ScheduledCandidate:
    """A candidate with its time in the schedule. A candidate that waits for an event may be
    injected at any time."""

    candidate: FaultCandidate
    when: TriggerSpec
    for_s: float

    def span(self, quiet_s: float = 0.0) -> tuple[float, float]:
        """The time in which it may be in effect, seconds after steady state."""
        if self.when.after_s is None:
            return 0.0, math.inf
        return self.when.after_s, self.when.after_s + self.for_s + quiet_s

    def step(self) -> Step:
        return Step(
            fault=self.candidate.fault,
            params=self.candidate.params,
            target=self.candidate.target,
            when=self.when,
            for_s=self.for_s,
        )


def draw(
    profile: Profile,
    candidates: Sequence[FaultCandidate],
    rng: random.Random,
    *,
    steps: int | None,
    within_s: float,
    events: Sequence[str],
    allowed: Callable[[Sequence[Step]], bool],
) -> tuple[Step, ...]:
    """A schedule, ordered by time; empty when no step is allowed.

    `events` are the events that a step may wait for; `allowed` checks a schedule against the rules
    of the harness.
    """
    count = rng.randint(*profile.steps) if steps is None else steps
    by_fault: dict[str, list[FaultCandidate]] = {}
    for candidate in candidates:
        by_fault.setdefault(candidate.fault, []).append(candidate)
    scheduled: list[ScheduledCandidate] = []
    for _ in range(count * TRIES_PER_STEP):
        if len(scheduled) == count or not by_fault:
            break
        chosen = rng.choice(by_fault[rng.choice(sorted(by_fault))])
        new = _schedule_at_random(chosen, profile, rng, within_s, () if scheduled else events)
        if may_overlap([*scheduled, new], profile) and allowed(
            [p.step() for p in (*scheduled, new)]
        ):
            scheduled.append(new)
    return tuple(
        candidate.step() for candidate in sorted(scheduled, key=lambda candidate: candidate.span())
    )


def may_overlap(scheduled: Sequence[ScheduledCandidate], profile: Profile) -> bool:
    """Whether a schedule obeys the rules for faults that are in effect at the same time."""
    for number, one in enumerate(scheduled):
        begin, _ = one.span(profile.quiet_s)
        others = [other for other in scheduled[:number] if _overlap(one, other, profile.quiet_s)]
        if any(one.candidate.clashes(other.candidate) for other in others):
            return False
        at_begin = sum(b <= begin < e for b, e in (p.span(profile.quiet_s) for p in scheduled))
        if at_begin > profile.at_once:
            return False
    return True


def _overlap(one: ScheduledCandidate, other: ScheduledCandidate, quiet_s: float) -> bool:
    (begin, end), (other_begin, other_end) = one.span(quiet_s), other.span(quiet_s)
    return begin < other_end and other_begin < end


def _schedule_at_random(
    candidate: FaultCandidate,
    profile: Profile,
    rng: random.Random,
    within_s: float,
    events: Sequence[str],
) -> ScheduledCandidate:
    for_s = round(min(rng.uniform(*profile.for_s), within_s / 2), 1)
    at_s = round(rng.uniform(0, within_s - for_s), 1)
    if events and rng.random() < profile.on_event:
        when = TriggerSpec(event=rng.choice(events), nth=rng.randint(1, MOST_NTH))
    else:
        when = TriggerSpec(after_s=at_s)
    return ScheduledCandidate(candidate=candidate, when=when, for_s=for_s)

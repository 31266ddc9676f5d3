"""Profiles: the size and density of a drawn schedule."""

from __future__ import annotations

from dataclasses import dataclass

from streamquake.topologies.problems import did_you_mean

SINGLE = "single:"


@dataclass(frozen=True, kw_only=True)
class Profile:
    """How many steps a drawn schedule has, how long they last, and how many may overlap."""

    name: str
    steps: tuple[int, int]
    at_once: int
    """How many faults may be in effect at a time."""
    for_s: tuple[float, float]
    within_s: float
    """The whole schedule ends this many seconds after steady state."""
    quiet_s: float
    """Seconds from the end of a fault until the same target may be disturbed in the same way again,
    and until another node of its role may be taken down: an effect and a heal may last so much
    longer."""
    on_event: float = 0.0
    """The probability that the first step is triggered by a protocol event instead of a time."""
    only: str = ""
    """The only fault that is drawn; any fault when empty."""


PROFILES = {
    profile.name: profile
    for profile in (
        Profile(name="gentle", steps=(2, 3), at_once=1, for_s=(2, 5), within_s=60, quiet_s=12),
        Profile(
            name="swarm",
            steps=(3, 6),
            at_once=3,
            for_s=(3, 10),
            within_s=75,
            quiet_s=15,
            on_event=0.4,
        ),
    )
}


def profile_of(name: str) -> Profile:
    """`gentle`, `swarm`, or `single:FAULT`. Raises LookupError, with the existing profiles."""
    if name.startswith(SINGLE):
        return Profile(
            name=name,
            steps=(1, 1),
            at_once=1,
            for_s=(3, 10),
            within_s=40,
            quiet_s=0,
            on_event=0.5,
            only=name.removeprefix(SINGLE),
        )
    if name not in PROFILES:
        known = did_you_mean(name, [*PROFILES, f"{SINGLE}FAULT"])
        raise LookupError(f'no profile is called "{name}"{known}')
    return PROFILES[name]

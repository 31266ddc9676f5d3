"""When the load sent nothing, by its events."""

from __future__ import annotations

from streamquake.harness.verdict.evidence.sent_times import SentRange, sent_ranges_of, silences_of
from tests.harness.histories import Story


def sends(*moments_s: float) -> list[SentRange]:
    recorded = Story()
    for at_s in moments_s:
        recorded.sent(at_s, 10)
    return sent_ranges_of(recorded.history())


def silences(*moments_s: float, usual_until_s: float = 2.0) -> list[tuple[float, float]]:
    found = silences_of(sends(*moments_s), round(usual_until_s * 1e9))
    return [(silence.since_ns / 1e9, silence.at_ns / 1e9) for silence in found]


def test_the_load_is_silent_for_a_second_and_longer_than_usual() -> None:
    assert silences(0.5, 1, 1.25, 2, 4, 4.5) == [(2, 4)]
    assert silences(0.25, 0.5, 1.4, 2.3) == [], "less than a second"
    assert silences(0.25, 0.5, 1.5) == [], "before the fault it is usual"
    assert silences(1, 2, 4) == [], "twice as long as usual"
    assert silences(1, 2, 4.01) == [(2, 4.01)]
    assert silences() == []

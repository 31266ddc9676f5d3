"""The moments of the recorded questions and answers of a probe: the longest time between two
questions, and moments that cannot be true together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from streamquake.reports.record.run_events import ProbeAnswered


def longest_gap_s(answers: Sequence[ProbeAnswered]) -> float:
    """The longest time between two questions, in seconds: the recorded one, or a longer one that
    an answer has to the question before it."""
    gaps_s = (
        answer.asked_s - answer.before_asked_s
        for answer in answers
        if answer.before_asked_s is not None
    )
    return max((*(answer.longest_gap_s for answer in answers), *gaps_s), default=0.0)


def contradicted_moments(answers: Sequence[ProbeAnswered]) -> Iterator[str]:
    """A message for each answer that was not asked after the one before, on the run's clock."""
    for answer in answers:
        moments = (0.0, *_moments_s(answer))
        if answer.longest_gap_s < 0 or any(later < one for one, later in pairwise(moments)):
            yield f"the moments of the answer at {answer.at_s:.1f} s contradict each other"


def _moments_s(answer: ProbeAnswered) -> Iterator[float]:
    """The known moments of an answer, in the order in which they follow each other: when the one
    before was asked and came, and when it was asked and recorded."""
    moments = (answer.before_asked_s, answer.before_at_s, answer.asked_s, answer.at_s)
    yield from (each for each in moments if each is not None)

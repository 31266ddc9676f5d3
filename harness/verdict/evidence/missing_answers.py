"""Whether the record has every answer of a probe that a run records: the first one, each of another
result than the one before, and the last one, from the first fault until the drain."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from streamquake.reports.record.fault_windows import fault_windows
from streamquake.reports.record.history import History
from streamquake.reports.record.run_events import ProbeAnswered, RunDrained


def missing_answer(answers: Sequence[ProbeAnswered], history: History) -> str | None:
    """What shows that an answer of a probe is missing, given its recorded ones, at least one; None
    where nothing does."""
    first, last = answers[0], answers[-1]
    called = [window.called_s for window in fault_windows(history)]
    late = first.asked_s > min(called, default=first.asked_s)
    if late or first.before_asked_s is not None or first.nth not in (None, 1):
        return "the record does not have the first answer"
    for before, answer in pairwise(answers):
        if not _follows(answer, before):
            return (
                f"the answers at {before.at_s:.1f} s and {answer.at_s:.1f} s do not follow from "
                "each other, so one is missing in the record"
            )
    needed_s = max((*called, *(event.at_s for event in history.of(RunDrained))), default=0.0)
    if not last.is_last or last.asked_s < needed_s:
        return "the record does not have the last answer"
    return None


def _follows(answer: ProbeAnswered, before: ProbeAnswered) -> bool:
    """Whether it can be the next recorded answer: only the last one may repeat a result."""
    if before.is_last or answer.before_asked_s is None:
        return False
    if answer.before_met not in (None, before.met):
        return False
    if before.nth is not None and answer.nth is not None and answer.nth != before.nth + 1:
        return False
    return answer.is_last or answer.met != before.met

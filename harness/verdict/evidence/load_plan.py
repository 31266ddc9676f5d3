"""Whether the load followed the plan of the experiment: all records sent, at about their rate."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from streamquake.harness.experiment.workload import Workload
from streamquake.reports.record.event import Kind
from streamquake.reports.record.fault_windows import fault_windows
from streamquake.reports.record.history import History
from streamquake.reports.record.run_events import RecordsSent, WorkloadDone

BEHIND_SHARE = 0.5
"""How late a load may end, as a share of the planned time. A busy machine slows the producer;
beyond this share the system was under another load than the experiment names."""
MAX_PROBLEMS = 3
"""How many problems with the records of the sends are reported."""
BEHIND_S = 10.0
"""A short load may end so many seconds late, whatever the share."""


def load_problems(workload: Workload, history: History) -> Iterator[str]:
    """The deviations of the load from its plan."""
    ends = history.of(WorkloadDone)
    if not ends:
        yield "its end is not recorded"
    for done in ends:
        if done.kind == Kind.FAIL:
            yield done.error or "its sender failed"
    yield from islice(workload.send_problems(history), MAX_PROBLEMS)
    if (late := _sent_after_the_end(history)) is not None:
        yield f"{late.count:,} sends are recorded at {late.at_s:.1f} s, after its end"
    settled = sum(event.count for event in history.of(RecordsSent))
    if workload.planned is not None and settled < workload.planned:
        yield f"{settled:,} of {workload.planned:,} planned records were sent"
    elif (behind_s := _behind_s(history, workload.seconds)) is not None:
        yield (
            f"it ended {behind_s:.0f} s after its plan of {workload.seconds:.0f} s, beyond what "
            "the faults explain; the machine was too busy, or the rate is too high for it"
        )


def _sent_after_the_end(history: History) -> RecordsSent | None:
    """The last event of sends, where it is later than every end of the load. The load records all
    its sends before its end."""
    last = max(history.of(RecordsSent), key=lambda event: event.at_ns, default=None)
    ended_ns = [event.at_ns for event in history.of(WorkloadDone)]
    return last if last is not None and ended_ns and last.at_ns > max(ended_ns) else None


def _behind_s(history: History, planned_s: float) -> float | None:
    """How late the load ended, if that is more than the faults and a busy machine explain: an
    unreachable broker delays the load for as long as it is unreachable. None if explained."""
    sent, done = history.of(RecordsSent), history.first(WorkloadDone)
    if not sent or done is None:
        return None
    behind_s = done.at_s - sent[0].at_s - planned_s
    end_s = done.at_s
    faults_s = sum(
        max(0.0, (end_s if window.healed_s is None else window.healed_s) - window.called_s)
        for window in fault_windows(history)
    )
    allowed_s = max(BEHIND_S, BEHIND_SHARE * planned_s) + 2 * faults_s
    return behind_s if behind_s > allowed_s else None

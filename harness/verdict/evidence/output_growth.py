"""Whether the events of an output's growth follow from each other: each begins where the one before
ended, the first one at 0 or later, and a committed end never goes back."""

from __future__ import annotations

from collections.abc import Iterator

from streamquake.reports.record.history import History
from streamquake.reports.record.run_events import OutputSeen


def contradicted_growth(history: History) -> Iterator[str]:
    """A message for each output, at the first event that does not follow from the one before."""
    ends: dict[str, int] = {}
    wrong = set[str]()
    for event in history.of(OutputSeen):
        if event.end is None or event.grown is None or event.output in wrong:
            continue
        before = ends.get(event.output, event.end - event.grown)
        if before < 0 or event.grown <= 0 or before + event.grown != event.end:
            wrong.add(event.output)
            yield (
                f"the output {event.output} is recorded to grow by {event.grown:,} from "
                f"{before:,} to {event.end:,} at {event.at_s:.1f} s"
            )
        ends[event.output] = event.end

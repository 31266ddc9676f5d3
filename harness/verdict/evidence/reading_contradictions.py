"""What shows that the stored records of a topic are not those that it had, although their number is
that of the reading.

Only topics that the harness created are judged: it knows that these keep all records, and that
their brokers share the clock of the machine, by which the run's clock was anchored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow.compute as pc

from streamquake.harness.experiment.check import JudgedRun
from streamquake.harness.reconcile.reading.stored_output import StoredOutput
from streamquake.harness.verdict.evidence.broker_clock import acts_on_broker, broker_clock_moved
from streamquake.harness.verdict.evidence.phases import READ, TEAR_DOWN, phase_began
from streamquake.reports.record.fault_events import FaultCalled
from streamquake.reports.record.run_events import HostClockSet, OutputSeen

FAR_MS = 5000
"""The clocks of the machine and of its containers differ by far less."""


def contradicted_reading(case: JudgedRun, name: str, stored: StoredOutput) -> str:
    """What of the run contradicts the reading of one output; empty where nothing does."""
    return "; ".join((*incomplete_reading(case, name, stored), *_stamped_outside(case, stored)))


def incomplete_reading(case: JudgedRun, name: str, stored: StoredOutput) -> Iterator[str]:
    """A message where the topic had records that were not read or are not stored."""
    if not _created_by_run(case):
        return
    yield from _seen_behind(case, name, stored.facts())
    if not _may_have_markers(case) and (message := stored.ends_without_records()):
        yield message


def _created_by_run(case: JudgedRun) -> bool:
    topology = case.experiment.topology
    service = topology.service_of("kafka")
    return service is not None and topology.services[service].endpoint is None


def _may_have_markers(case: JudgedRun) -> bool:
    """Whether the end of a transaction may take an offset of a topic: a job writes transactions, or
    it is not known whether it does."""
    jobs = case.experiment.jobs.values()
    return any(job.existing is not None or job.sink == "exactly-once" for job in jobs)


def _seen_behind(case: JudgedRun, name: str, facts: Mapping[str, Any]) -> Iterator[str]:
    """A message where the topic was seen to have more than was read later. A fault on a broker may
    lose records."""
    began = phase_began(case.history, READ)
    stable_ends = facts.get("stable_ends")
    calls = case.history.of(FaultCalled)
    if began is None or stable_ends is None or any(acts_on_broker(case, call) for call in calls):
        return
    seen = [
        event.end or 0
        for event in case.history.of(OutputSeen)
        if event.output == name and event.at_ns <= began.at_ns
    ]
    if seen and seen[-1] > (read := sum(stable_ends.values())):
        yield (
            f"it had been seen to grow to {seen[-1]:,} before it was read, and was read only up "
            f"to {read:,}"
        )


def _stamped_outside(case: JudgedRun, stored: StoredOutput) -> Iterator[str]:
    """A message where brokers appended a record before the run, or after the reading."""
    facts = stored.facts()
    began_ms = facts.get("began_ms")
    if facts.get("stamped") != "append" or began_ms is None or not _created_by_run(case):
        return
    if broker_clock_moved(case) or case.history.of(HostClockSet):
        return
    ended = phase_began(case.history, TEAR_DOWN)
    ended_ms = (case.history.ended_ns if ended is None else ended.at_ns) // 1_000_000
    stamps = pc.min_max(stored.columns("timestamp_ms")["timestamp_ms"]).as_py()
    if stamps["min"] is None:
        return
    early_ms, late_ms = began_ms - stamps["min"], stamps["max"] - began_ms - ended_ms
    if early_ms > FAR_MS:
        yield f"a record is stamped {early_ms / 1000:.1f} s before the run began"
    if late_ms > FAR_MS:
        yield f"a record is stamped {late_ms / 1000:.1f} s after the output had been read"

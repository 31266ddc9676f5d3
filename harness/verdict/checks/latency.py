"""Latency: how long records took from the load to a reader of all records, or of committed ones.

With an exactly-once sink readers of committed records wait for the next checkpoint, about half its
interval on average. Readers of uncommitted records read them at once, including aborted ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isinf
from typing import Any, ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streamquake.harness.experiment.check import Check, JudgedRun, checks
from streamquake.harness.verdict.evidence.append_times import (
    AppendedRecords,
    AppendTimesUnknown,
    append_times_of,
)
from streamquake.harness.verdict.evidence.drain import not_drained
from streamquake.harness.verdict.evidence.latency import (
    IDENTITY,
    Latencies,
    LatencyQuantiles,
    latencies_of,
    trace_records,
    with_read_ms,
)
from streamquake.harness.verdict.evidence.observation_window import injected_ns
from streamquake.harness.verdict.evidence.phases import DISTURB
from streamquake.harness.verdict.evidence.sent_times import SentRange, sent_ranges_of
from streamquake.harness.verdict.evidence.transactions import writes_transactions
from streamquake.harness.verdict.expected_output import (
    STATUS,
    expectations,
    has_status,
    register_sent,
)
from streamquake.reports.record.history import History
from streamquake.reports.record.metrics import Samples, by_series, read_metrics
from streamquake.reports.record.outcome import CheckResult, Finding
from streamquake.reports.record.run_events import PhaseBegan
from streamquake.topologies.limits import Limit

LEAST = 100
"""With fewer records a percentile is not meaningful."""


@checks.register
class Latency(Check):
    """Held when half of the records could be read as committed within the limit of being sent.

    Records count from the steady state on: earlier ones wait for the start of the job. The latency
    of an expected record that never arrived is infinite. `failure_cost_ms` is the longest time from
    send to write, minus the 99th percentile before the first fault was injected. Undecided where
    records cannot be traced to their send, where the stable ends of a transactional output were not
    sampled, or where a hole of their samples leaves the result open.
    """

    name: ClassVar[str] = "latency"
    needs_topic: ClassVar[bool] = True
    needs_keys: ClassVar[bool] = True
    classes: ClassVar[tuple[str, ...]] = ("late",)

    p50_within_s: Limit
    """The allowed median of the seconds from a record's send until a reader of committed records
    could read it."""
    output: str | None = None
    """The output, a topic; the first topic of the job when left out."""

    def check(self, case: JudgedRun) -> CheckResult:
        try:
            output = append_times_of(case, self.output)
        except AppendTimesUnknown as reason:
            return self.undecided(str(reason))
        identity = case.experiment.promise.outputs[output.name].identity
        if not {*IDENTITY} <= {*identity}:
            return self.undecided(
                f"{output.name}: its records are identified by {', '.join(identity)}, and only "
                "with key and seq can one be traced to its send"
            )
        ends = _stable_ends(case, output)
        if not ends and _is_transactional(case, output):
            return self.undecided(
                f"{output.name}: its stable ends were not sampled, so that it is not known when "
                "records could be read as committed"
            )
        if not (sent_ranges := _sends_since_steady(case.history)):
            return self.undecided("nothing was sent once the system was steady")
        return self._of_expected(case, output, sent_ranges, ends)

    def _of_expected(
        self,
        case: JudgedRun,
        output: AppendedRecords,
        sent_ranges: Sequence[SentRange],
        ends: Mapping[int, Samples],
    ) -> CheckResult:
        register_sent(case)
        with expectations(case) as expected:
            if output.name not in expected:
                return self.undecided(
                    f"{output.name}: its expected records are not known; give it `expected`"
                )
            found = _latencies(case, output, expected[output.name], sent_ranges, ends)
        return self._judge(case, output, found)

    def _judge(self, case: JudgedRun, output: AppendedRecords, found: Latencies) -> CheckResult:
        figures = {
            **_quantile_figures("", found.written),
            **_quantile_figures("committed_", found.committed),
            "records": found.written.records,
            "never_came": found.written.never,
            "committed": found.committed.records,
            "failure_cost_ms": _cost_ms(case, found),
        }
        if (expected_records := found.written.records + found.written.never) < LEAST:
            return self.undecided(
                f"{output.name}: {expected_records:,} records were sent once the system was "
                f"steady, and at least {LEAST} are needed",
                **figures,
            )
        message = (
            f"half of the records of {output.name} {_latency_text(found.committed)}, "
            f"{self.p50_within_s:g} s allowed"
        )
        if found.written.never:
            message += f"; {found.written.never:,} of {expected_records:,} never arrived"
        if self._is_late(found.at_best):
            late = Finding(what="late", where=output.name, detail=figures)
            return self.violated(message, (late,), **figures)
        if self._is_late(found.committed):
            return self.undecided(f"{message}; {_uncertainty(found)}", **figures)
        return self.held(message, **figures)

    def _is_late(self, found: LatencyQuantiles) -> bool:
        return (found.p50_ms or 0) > self.p50_within_s * 1000


def _latency_text(found: LatencyQuantiles) -> str:
    p50_s = (found.p50_ms or 0) / 1000
    if isinf(p50_s):
        return "were not seen to become readable as committed"
    return f"could be read as committed {p50_s:.1f} s after they were sent"


def _uncertainty(found: Latencies) -> str:
    """Why the records may have been in time, in spite of the observed latency."""
    if unobserved := found.committed.never - found.at_best.never:
        return f"of {unobserved:,} records it is not known when they could be read"
    best_s = (found.at_best.p50_ms or 0) / 1000
    return f"samples of the stable ends are missing, and at best it was {best_s:.1f} s"


def _sends_since_steady(history: History) -> list[SentRange]:
    """The sends since the steady state; all sends where that is not recorded."""
    phases = {event.phase: event.at_ns for event in history.of(PhaseBegan)}
    steady_ns = phases.get(DISTURB, 0)
    return [sent_range for sent_range in sent_ranges_of(history) if sent_range.at_ns >= steady_ns]


def _latencies(
    case: JudgedRun,
    output: AppendedRecords,
    expected: DataFrame,
    sent_ranges: Sequence[SentRange],
    ends: Mapping[int, Samples],
) -> Latencies:
    """The latencies of the expected records. Without transactions a written record can be read at
    once. Sends of unknown result are not expected."""
    promised = case.experiment.promise.outputs[output.name]
    if has_status(expected, promised.columns):
        expected = expected.where(F.col(STATUS) == "acknowledged")
    records = trace_records(case.spark(), output, expected, sent_ranges)
    if _is_transactional(case, output):
        records = with_read_ms(case.spark(), records, ends, output.began_ms)
    else:
        written_ms = F.col("written_ms")
        records = records.withColumns({"soonest_ms": written_ms, "read_ms": written_ms})
    drained = not_drained(case.history) is None
    ended_ms = None if drained else output.ms(case.history.ended_ns)
    return latencies_of(records, output.ms(injected_ns(case.history) or 0), ended_ms)


def _is_transactional(case: JudgedRun, output: AppendedRecords) -> bool:
    """Whether records may be readable as committed later than they were written. What a job that
    ran before does is only known from its topic."""
    return writes_transactions(case.experiment) or output.has_markers


def _cost_ms(case: JudgedRun, found: Latencies) -> int | None:
    """`failure_cost_ms`; None without a fault, or without enough records before it and any
    since."""
    usual_ms, worst_ms = found.before.p99_ms, found.since.max_ms
    if injected_ns(case.history) is None or found.before.records < LEAST:
        return None
    if usual_ms is None or worst_ms is None or isinf(worst_ms):
        return None
    return round(worst_ms - usual_ms)


def _quantile_figures(prefix: str, found: LatencyQuantiles) -> dict[str, Any]:
    """The figures of the quantiles. An infinite time is None; `never_came` counts those records."""
    times = {"p50_ms": found.p50_ms, "p99_ms": found.p99_ms, "max_ms": found.max_ms}
    return {
        f"{prefix}{name}": None if value is None or isinf(value) else round(value)
        for name, value in times.items()
    }


def _stable_ends(case: JudgedRun, output: AppendedRecords) -> Mapping[int, Samples]:
    """Partition -> the samples of its last stable offset."""
    sampled = by_series(read_metrics(case.metrics)).get("stable_end", {})
    topic = f"{output.name}/"
    return {
        int(where.removeprefix(topic)): samples
        for where, samples in sampled.items()
        if where.startswith(topic)
    }

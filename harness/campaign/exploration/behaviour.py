"""The behaviour of the system in a run: what an exploration looks for more of, where it is new.

As a fuzzer keeps the inputs that reach new code (Zalewski, american fuzzy lop), an exploration
keeps the trials in which the system did what it had not done before.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from pathlib import Path

from streamquake.reports.record.history import read_so_far
from streamquake.reports.record.job_events import (
    JobEnded,
    JobFailing,
    JobRestarting,
    JobRestored,
    JobRunning,
)
from streamquake.reports.record.logged_errors import errors_of_run
from streamquake.reports.record.outcome import Outcome, class_of
from streamquake.reports.record.results import Results
from streamquake.reports.record.run_folder import RunFolder

JOB_EVENTS = (JobRunning, JobFailing, JobRestarting, JobRestored, JobEnded)
MOST_STATES = 12
"""A longer sequence of job states is cut: each loop of restarts would be a new one."""
RECOVERED = "restarted_s"


def behaviour_of(folder: RunFolder, results: Results) -> frozenset[str]:
    """The kinds of logged errors, the sequence of the job's states, the magnitude of each recovery,
    and the findings."""
    return frozenset(
        itertools.chain(
            _errors(folder.logs), _job_states(folder), _recoveries(results), _findings(results)
        )
    )


def _errors(logs: Path) -> Iterator[str]:
    # A node that logged nothing readable showed no error.
    for node, error in errors_of_run(logs, lambda log, reason: None):
        yield f"{node.rpartition('-')[0]} logged {error.signature}"


def _job_states(folder: RunFolder) -> Iterator[str]:
    try:
        history, _ = read_so_far(folder.history)
    except (OSError, ValueError):  # the run ended before its first event
        return
    states = [str(event.action) for event in history if isinstance(event, JOB_EVENTS)]
    distinct = [state for state, _ in itertools.groupby(states)]
    if distinct:
        yield " > ".join(distinct[:MOST_STATES])


def _recoveries(results: Results) -> Iterator[str]:
    for recovery in results.recoveries:
        seconds = recovery.phases.get(RECOVERED)
        if seconds is not None and seconds > 0:
            power = math.ceil(math.log2(seconds))
            yield f"recovery from {recovery.fault} within {2.0**power:g} s"


def _findings(results: Results) -> Iterator[str]:
    for check in results.checks:
        if check.outcome != Outcome.HELD:
            classes = sorted({class_of(finding) for finding in check.findings})
            yield f"{check.check} {check.outcome} {', '.join(classes)}".rstrip()

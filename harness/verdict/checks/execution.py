"""Execution: the run followed its plan, and every part of the harness worked. Always on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from streamquake.harness.experiment.check import Check, JudgedRun, checks
from streamquake.harness.experiment.job_chain import topics_read
from streamquake.harness.verdict.evidence.attempt_contradictions import contradicted_attempts
from streamquake.harness.verdict.evidence.batch_offsets import drained_before_end
from streamquake.harness.verdict.evidence.batch_reports import contradicted_reports
from streamquake.harness.verdict.evidence.batch_sequence import contradicted_batches
from streamquake.harness.verdict.evidence.batch_topics import read_other_topics
from streamquake.harness.verdict.evidence.checkpoint_numbers import contradicted_checkpoints
from streamquake.harness.verdict.evidence.drain import (
    checkpoints_stop_before_drain,
    output_after_drain,
)
from streamquake.harness.verdict.evidence.ended_jobs import contradicted_ends, drained_without_job
from streamquake.harness.verdict.evidence.failed_attempts import contradicted_failures
from streamquake.harness.verdict.evidence.failed_batches import completed_without_tasks
from streamquake.harness.verdict.evidence.future_stamps import stamped_after_its_observation
from streamquake.harness.verdict.evidence.load_plan import load_problems
from streamquake.harness.verdict.evidence.lost_sandboxes import (
    lost_sandboxes,
    revived_without_network,
)
from streamquake.harness.verdict.evidence.other_jobs import drained_without_others
from streamquake.harness.verdict.evidence.output_growth import contradicted_growth
from streamquake.harness.verdict.evidence.recorded_order import out_of_order
from streamquake.harness.verdict.evidence.running_contradictions import seen_to_run_late
from streamquake.harness.verdict.evidence.sample_times import sampled_after_the_end
from streamquake.harness.verdict.evidence.submitted_jobs import (
    event_of_unknown_job,
    replaced_without_end,
)
from streamquake.harness.verdict.evidence.unexplained_ends import (
    ended_from_outside,
    how,
    not_started_again,
)
from streamquake.harness.verdict.evidence.unknown_commits import unknown_commit
from streamquake.harness.verdict.evidence.unobserved_restarts import restarted_without_failure
from streamquake.harness.verdict.evidence.waits import failed_waits
from streamquake.reports.record.outcome import CheckResult, Finding
from streamquake.reports.record.run_events import (
    HarnessError,
    HostClockSet,
    NodeGivenUp,
    OutputSeen,
    PhaseBegan,
    RunDrained,
    SinkCommitted,
    WorkloadDone,
)

LAST_PHASE = "tear down"
"""A run in this phase has read its outputs."""


@checks.register
class Execution(Check):
    """Undecided when the record has evidence against its own verdict: a load that broke or fell far
    behind its plan, a wait that was not met, a failed part of the harness, a node that was given
    up, that ended and was not started again, that a signal ended or that was out of memory without
    a fault, or that lost its network without a fault, a wall clock that was set, a drain that left
    records unread, a job that goes on after its end or that read what was sent after it, a job that
    replaces one that did not end or of which nothing is recorded, a subtask that was seen to run
    long after it took part in checkpoints or that began anew without a failure, a drain without a
    checkpoint that completed after the load, output after the drain, an output that does not grow
    from its former end, micro-batches with a gap, that completed twice, that read other offsets
    than they can have or other topics, or of which one task or all failed, a query that was
    restored from another batch than its last one, a drain before the last batch had read the load,
    or all of a partition, a query that ended over a batch, an event of a job or query that was not
    submitted, a commit of a checkpoint that is not recorded to complete, samples of the metrics
    after its end, events whose times are not in the order of the record, a stamp of the engine that
    is later than the observation of its event, an attempt of a task on two nodes or after a later
    one, a failure of an attempt that its task had not reached or had left, or on another node, a
    checkpoint whose number, acknowledgement or folder contradicts those of the others."""

    name: ClassVar[str] = "execution"

    def check(self, case: JudgedRun) -> CheckResult:
        found = tuple(_problems(case))
        counts = {"problems": len(found)}
        if found:
            reasons = "; ".join(
                f"{problem.what}: {problem.detail['reason']}" for problem in found[:3]
            )
            return self.undecided(reasons, found, **counts)
        return self.held("the run went as planned", **counts)


def _problems(case: JudgedRun) -> Iterator[Finding]:
    history = case.history
    waits = failed_waits(history)
    for wait in waits:
        yield _finding("not met", wait.reason, wait.at_s)
    for failed in history.of(HarnessError):
        reason = f"{failed.part}: {failed.error_text or failed.error}"
        yield _finding("a part of the harness failed", reason, failed.at_s)
    for given_up in history.of(NodeGivenUp):
        reason = f"{given_up.node} ended by itself {given_up.times} times"
        yield _finding("node given up", reason, given_up.at_s)
    for event in not_started_again(history):
        code = event.exit_code
        code_text = "an exit code that is not known" if code is None else f"exit code {code}"
        reason = f"{event.node} ended by itself with {code_text}"
        yield _finding("node not started again", reason, event.at_s)
    for outside in ended_from_outside(history):
        yield _finding("ended from outside", f"{how(outside)}, which no fault did", outside.at_s)
    for lost in lost_sandboxes(history):
        reason = f"the sandbox of {lost.node} ended, which no fault did"
        yield _finding("node without network", reason, lost.at_s)
    for revived in revived_without_network(history):
        reason = f"{revived.node} had lost its network, which no fault did, and was started again"
        yield _finding("node without network", reason, revived.at_s)
    for clock in history.of(HostClockSet):
        reason = f"the clock of the machine was set by {clock.by_s:+.3f} s"
        yield _finding("clock set", reason, clock.at_s)
    for contradiction in _contradictions(case):
        yield Finding(what="contradictory record", detail={"reason": contradiction})
    for problem in load_problems(case.experiment.workload, history):
        yield Finding(what="workload", detail={"reason": problem})
    for missing in _missing_parts(case, drain_expected=not waits):
        yield Finding(what="incomplete", detail={"reason": missing})
    for name in case.experiment.promise.outputs:
        if not (case.data / name / "read.json").is_file():
            reason = f"the output {name} was not read"
            yield Finding(what="incomplete", where=name, detail={"reason": reason})


def _contradictions(case: JudgedRun) -> Iterator[str]:
    """Parts of the record of which one must be wrong, or of which one is missing."""
    history, job = case.history, case.experiment.job
    yield from contradicted_ends(history)
    yield from contradicted_batches(history)
    yield from contradicted_reports(history)
    yield from contradicted_attempts(history)
    yield from contradicted_failures(history)
    yield from contradicted_checkpoints(history)
    if (short := drained_before_end(history, case.experiment.workload.topics())) is not None:
        yield short
    jobs = case.experiment.jobs.values()
    topics = {topic for each in jobs for topic in topics_read(case.experiment, each)}
    if (other := read_other_topics(history, topics)) is not None:
        yield other
    yield from completed_without_tasks(history)
    if (unknown_job := event_of_unknown_job(history)) is not None:
        yield unknown_job
    if (unseen := replaced_without_end(history)) is not None:
        yield unseen
    yield from seen_to_run_late(history)
    yield from restarted_without_failure(history, case.experiment.topology)
    # Without a job the load itself writes the outputs, and its last records may be seen late.
    if job is not None and (output := output_after_drain(history)) is not None:
        yield f"the output {output.output} grew after the drain"
    yield from contradicted_growth(history)
    if (disordered := out_of_order(history)) is not None:
        yield disordered
    grown = {each.output for each in history.of(OutputSeen)}
    committed = {each.output for each in history.of(SinkCommitted)}
    unknown = (grown | committed) - {*case.experiment.promise.outputs}
    if unknown:
        yield f"an output {min(unknown)} grew, which the experiment does not have"
    if (early := stamped_after_its_observation(history)) is not None:
        yield early
    # The history of a run that was cut off may end before its samples.
    whole = any(event.phase == LAST_PHASE for event in history.of(PhaseBegan))
    if whole and (late := sampled_after_the_end(case.metrics, history)) is not None:
        yield late
    if (message := drained_without_others(history, case.experiment.other_jobs)) is not None:
        yield message
    # Only of a job with checkpoints whose engine is asked is it known what it has read.
    if case.experiment.checkpointed and case.experiment.follows_job:
        if (message := drained_without_job(history)) is not None:
            yield message
        if checkpoints_stop_before_drain(history):
            yield "no checkpoint is recorded to complete after the load, and it was drained"
    if (commit := unknown_commit(history)) is not None:
        yield commit


def _missing_parts(case: JudgedRun, *, drain_expected: bool) -> Iterator[str]:
    """What the run did not reach by its record, and the drain where it was not one."""
    history = case.history
    drained, loaded = history.of(RunDrained), history.of(WorkloadDone)
    if drain_expected and not drained:
        yield "no drain is recorded"
    loaded_ns = max((event.at_ns for event in loaded), default=0)
    if any(event.at_ns < loaded_ns for event in drained):
        yield "it was drained before the load had ended"
    if lag := max((event.lag or 0 for event in drained), key=abs, default=0):
        yield f"it was drained while {lag:,} records had not been read"
    phases = [event.phase for event in history.of(PhaseBegan)]
    if LAST_PHASE not in phases:
        yield f"the last phase recorded is {phases[-1] if phases else 'none'}"


def _finding(what: str, reason: str, at_s: float) -> Finding:
    return Finding(what=what, where=f"{at_s:.1f} s", detail={"reason": reason})

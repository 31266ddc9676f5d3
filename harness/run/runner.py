"""One run, phase by phase: prepare, deploy, steady, disturb, heal, recover, drain, read, judge.

The history is on disk before it is judged. However the run ends, its faults are healed, its logs
saved and its containers removed.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pyspark.sql import SparkSession

from streamquake.cluster.cluster import Cluster, NodeDied, all_nodes
from streamquake.cluster.images.maven_jars import fetch_jars
from streamquake.cluster.runtime.clock import Clock
from streamquake.cluster.runtime.runtime import ContainerRuntime
from streamquake.cluster.runtime.sweep import sweep
from streamquake.cluster.runtime.waiting import NotReadyInTime
from streamquake.faults.injection.intents import IntentLog
from streamquake.harness.experiment.check_sql import reject_unsafe_queries
from streamquake.harness.experiment.loader import experiment_document
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.interrupts import Interrupted, interruptible
from streamquake.harness.reconcile.spark_session import SparkInBackground
from streamquake.harness.run.check_commands import reject_missing_programs, run_commands
from streamquake.harness.run.check_probes import ask_probes
from streamquake.harness.run.cluster_lease import (
    ClusterLease,
    ClusterLeases,
    DedicatedClusters,
    follow_job,
)
from streamquake.harness.run.dropped_records import record_dropped
from streamquake.harness.run.event_loop import EventLoop
from streamquake.harness.run.fault_scheduler import FaultScheduler
from streamquake.harness.run.image_preparation import ensure_images
from streamquake.harness.run.job_preparation import (
    PreparedJob,
    RunningJob,
    existing_job,
    prepare_job,
    prepare_other_jobs,
)
from streamquake.harness.run.jobs_drain import JobsDrain
from streamquake.harness.run.load import RunLoad, start_load
from streamquake.harness.run.low_priority import lower_priority, restore_priority
from streamquake.harness.run.output_collector import EarlyReads, collect_outputs
from streamquake.harness.run.output_objects import reject_filled_folders
from streamquake.harness.run.output_tables import has_tables, reject_filled_tables
from streamquake.harness.run.progress import RunStatus, View
from streamquake.harness.run.supervisor import supervise
from streamquake.harness.run.topology_rules import reject_refused_rules, reject_unreadable_rules
from streamquake.harness.run.transaction_record import record_transactions
from streamquake.harness.run.versions import (
    image_ids,
    judge_digest,
    machine_manifest,
    version_manifest,
)
from streamquake.harness.verdict.evidence.batches import longest_s
from streamquake.harness.verdict.evidence.commits import CommitRecorder
from streamquake.harness.verdict.evidence.waits import NOT_MET, Wait
from streamquake.harness.verdict.judge import interrupted_results, judge, unjudged_results
from streamquake.harness.verdict.rehearsal import rehearse
from streamquake.reports.junit import write_junit
from streamquake.reports.record.checkpoint_events import CheckpointCompleted
from streamquake.reports.record.event import Action, Kind
from streamquake.reports.record.history import HistoryWriter
from streamquake.reports.record.metrics import Metrics
from streamquake.reports.record.results import Ended, Results
from streamquake.reports.record.run_events import OutputSeen, RecordsSent, SystemNotRecovered
from streamquake.reports.record.run_folder import RunFolder, new_run_id
from streamquake.reports.render import run_sentences
from streamquake.reports.render.report_files import write_reports
from streamquake.reports.run.html import render_report
from streamquake.reports.store.results_store import FILE, ResultsStore
from streamquake.topologies.errors import StreamquakeError, kind_of
from streamquake.topologies.problems import BadInput


def run(
    experiment: Experiment,
    *,
    out: Path,
    argv: Sequence[str],
    keep: bool,
    view: View,
    runtime: ContainerRuntime,
    clock: Clock,
    master: str = "local[*]",
    cluster_leases: ClusterLeases | None = None,
    shared_spark: SparkInBackground | None = None,
) -> Results:
    """Run one experiment and judge it. A failure of the system under test is a result, never an
    exception.

    The cluster is from `cluster_leases`; without them the run starts its own one, which is removed
    while the run is judged, and `keep` leaves it running. `shared_spark` is a session that outlives
    the run; without it the run starts its own one on `master`.
    """
    run_id = new_run_id()
    folder = RunFolder.create(out, run_id)
    spark = shared_spark or SparkInBackground(master)
    own_clusters = DedicatedClusters(keep=keep)
    ended: Ended = "failed_to_run"
    reason = cause = ""
    with interruptible(view.show_message) as requested:
        in_progress = RunInProgress(
            experiment,
            run_id,
            folder,
            runtime,
            clock,
            view,
            spark,
            cluster_leases or own_clusters,
        )
        try:
            in_progress.write_plan(argv)
            in_progress.execute()
            ended = "completed"
        except Interrupted as interruption:
            ended, reason = "interrupted", f"stopped by {interruption}"
        except StreamquakeError as failure:
            cause, reason = failure.kind, str(failure)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the record must not be lost
            cause = kind_of(error)
            reason = f"{cause}: {type(error).__name__}: {error}"
            in_progress.save_traceback()
        finally:
            in_progress.loop.close()
        view.phase("judge", "")
        try:
            with own_clusters.removed_meanwhile():
                results = judge(
                    experiment,
                    folder,
                    run_id=run_id,
                    ended=ended,
                    cause=cause,
                    reason=reason,
                    spark=spark.get,
                    warnings=tuple(in_progress.warnings),
                    show_message=view.show_message,
                )
                # The removal and the reports take seconds more.
                view.show_message(_verdict_line(results))
        except (Interrupted, Exception) as error:
            if not (requested.signal or isinstance(error, Interrupted)):
                raise
            results = interrupted_results(
                unjudged_results(experiment, folder, run_id=run_id), folder
            )
        else:
            if ended != "interrupted" and (requested.signal or results.ended == "interrupted"):
                results = interrupted_results(results, folder)
        if shared_spark is None:
            spark.stop()
        else:
            spark.reset()
        results = replace(
            results,
            warnings=(*results.warnings, *own_clusters.warnings),
            elapsed_s=round(clock.now_ns() / 1e9, 1),
        )
        return save(results, folder)


def _verdict_line(results: Results) -> str:
    return f"{run_sentences.headline(results)}: {run_sentences.why(results)}"


def save(results: Results, folder: RunFolder, *, stored: bool = True) -> Results:
    """Write results and reports into the run folder, and unless `stored` is False add the run to
    the store beside it; a report or a store that fails adds a warning and changes no verdict."""
    results = replace(results, judge=judge_digest())
    folder.write_results(results)
    writers: dict[str, Callable[[], object]] = {
        "junit.xml": lambda: write_junit(results, folder),
        "report.html": lambda: render_report(folder),
    }
    if stored:
        writers[FILE] = lambda: ResultsStore(folder.path.parent).add(folder, results)
    warnings = write_reports(writers)
    if not warnings:
        return results
    warned = replace(results, warnings=(*results.warnings, *warnings))
    folder.write_results(warned)
    return warned


@dataclass
class RunInProgress:
    """One run in progress: its cluster, load, job and scheduler."""

    experiment: Experiment
    run_id: str
    folder: RunFolder
    runtime: ContainerRuntime
    clock: Clock
    view: View
    spark: SparkInBackground
    cluster_leases: ClusterLeases
    warnings: list[str] = field(default_factory=list)
    cluster: Cluster = field(init=False)
    """Set when the cluster is deployed."""

    def __post_init__(self) -> None:
        self.metrics = Metrics(self.folder.metrics)
        self._status = RunStatus.at_start(self.experiment)
        self.loop = EventLoop(
            HistoryWriter(self.folder.history),
            self.metrics,
            self.clock,
            self._show,
            self._status.on_sample,
        )
        self.scheduler: FaultScheduler | None = None
        self.job: RunningJob | None = None
        self.other_jobs: tuple[RunningJob, ...] = ()
        self.early_reads: EarlyReads | None = None
        self._phase = ""
        self._wrong_promise: BadInput | None = None
        self._manifest: dict[str, Any] = {}
        self.loop.listen(self._status.on_event)
        if self.experiment.job is not None and self.experiment.job.sink == "exactly-once":
            self.loop.listen(CommitRecorder(self.loop.record).observe)

    def execute(self) -> None:
        """Execute the phases of the run up to the removal of the cluster. Raises StreamquakeError
        if a phase fails."""
        limits = self.experiment.limits
        self._enter("prepare")
        reject_missing_programs(self.experiment)
        reject_unsafe_queries(self.experiment, self.experiment.name, self.spark.get)
        self.experiment.workload.store(self.folder.data, self.experiment.seed)
        if all_nodes(self.experiment.topology):  # otherwise every service is external
            self.runtime.check()
            sweep(self.runtime)
            images = self.runtime.images()
            ensure_images(self.experiment.topology, images, self.view.show_message)
            for job in self.experiment.jobs.values():
                fetch_jars(job.jars, self.view.show_message, images)
            self._manifest["image_ids"] = image_ids(self._manifest["images"], images)
            self.folder.write_manifest(self._manifest)
        self._enter("deploy")
        # Early, so that the start of Spark disturbs no measurement.
        self._begin_spark()
        with self.cluster_leases.cluster_for(self._lease()) as self.cluster, ExitStack() as stack:
            stack.enter_context(supervise(self.cluster, self.loop, self._nodes_kept_down))
            reject_unreadable_rules(self.cluster)
            prepared = prepare_job(self.experiment, self.cluster, self.run_id)
            reject_filled_folders(self.experiment, self.cluster)
            if has_tables(self.experiment):
                reject_filled_tables(self.experiment, self.cluster, self.spark.get())
                self._begin_spark()
            self._start_other_jobs()
            self.job = self._start_job(prepared, stack)
            reject_refused_rules(self.cluster)
            self._enter("steady")
            load = stack.enter_context(
                start_load(self.experiment, self.cluster, self.loop, self.run_id)
            )
            self._await(self._steady_pending(load), "steady state", limits.steady_s)
            with ask_probes(self.experiment.probes, self.cluster, self.loop):
                self._disturb()
                self._recover()
                self._record_after("recovery")
                self._drain(load)
            self._record_after("drain")
            reject_refused_rules(self.cluster)
            self._enter("read")
            spark = self.spark.get()
            collect_outputs(self.cluster, self.experiment, spark, self.folder, self.early_reads)
            self._enter("tear down")
        if commands := self.experiment.commands:
            self._enter("commands")
            self.metrics.flush()
            run_commands(commands, self.folder, self.loop)

    def _begin_spark(self) -> None:
        if self.spark.is_warm:
            self.spark.start()
        else:
            self.spark.use(self._rehearse)

    def _rehearse(self, spark: SparkSession) -> None:
        lower_priority(spark)
        try:
            rehearse(self.experiment, spark)
        except BadInput as problem:
            self._wrong_promise = problem
        finally:
            restore_priority(spark)

    def _lease(self) -> ClusterLease:
        return ClusterLease(
            run_id=self.run_id,
            experiment=self.experiment,
            runtime=self.runtime,
            clock=self.clock,
            loop=self.loop,
            folder=self.folder,
            show_message=self.view.show_message,
            warn=self.warnings.append,
        )

    def write_plan(self, argv: Sequence[str]) -> None:
        self._manifest = {
            "run_id": self.run_id,
            "experiment": experiment_document(self.experiment),
            "seed": self.experiment.seed,
            **version_manifest(self.experiment),
            "machine": machine_manifest(),
            "argv": list(argv),
            "started_at": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        self.folder.write_manifest(self._manifest)

    def _start_other_jobs(self) -> None:
        """Submit the other jobs, one after the other, each when those before it run. They are not
        followed."""
        for job in prepare_other_jobs(self.experiment, self.run_id):
            self._enter_submit()
            running = job.submit(self.cluster)
            self.other_jobs = (*self.other_jobs, running)
            what, limit_s = f"job {job.name} running", self.experiment.limits.ready_s
            self._await(running.pending, what, limit_s)

    def _start_job(self, job: PreparedJob | None, stack: ExitStack) -> RunningJob | None:
        """The job that is followed: the prepared one, which is submitted, or one that runs already.
        None where no job can be followed."""
        if job is not None:
            self._enter_submit()
            running = job.submit(self.cluster)
        elif (found := existing_job(self.experiment, self.cluster)) is not None:
            running = found
        else:
            return None
        stack.enter_context(follow_job(self.loop, running))
        self._await(running.pending, "job running", self.experiment.limits.ready_s)
        if self.other_jobs:
            self._await(self._others_pending, "jobs running", self.experiment.limits.ready_s)
        return running

    def _enter_submit(self) -> None:
        """Enter the phase with the first job."""
        if self._phase != "submit":
            self._enter("submit")

    def _others_pending(self) -> str | None:
        """Why one of the other jobs does not run, or None."""
        states = ((job.name, job.pending()) for job in self.other_jobs)
        return next((f"{name}: {reason}" for name, reason in states if reason is not None), None)

    def _record_after(self, phase: Literal["recovery", "drain"]) -> None:
        """Record what only queries show: the transactions of the job, what single-task failover
        dropped, and whether the other jobs run."""
        record_transactions(self.experiment, self.cluster, self.loop, phase)
        if phase == "drain":
            record_dropped(self.cluster, self.loop)
        if not self.other_jobs:
            return
        states = {job.name: job.pending() for job in self.other_jobs}
        kind = Kind.FAIL if any(states.values()) else Kind.OK
        self.loop.record(Action.OTHER_JOBS_SEEN, kind=kind, after=phase, jobs=states)

    def _steady_pending(self, load: RunLoad) -> Callable[[], str | None]:
        """Why the run is not in a steady state, before any fault: records flow in and out, and a
        checkpoint completed. Output files are not watched while they are written."""
        only_files = self.experiment.only_files

        def pending() -> str | None:
            if (failure := load.failure()) is not None:
                raise NotReadyInTime("steady state", self.experiment.limits.steady_s, failure)
            history = self.loop.history()
            if not history.of(RecordsSent):
                return "nothing was acknowledged yet"
            if not only_files and not history.of(OutputSeen):
                return "no output was observed yet"
            if self.experiment.checkpointed and not history.of(CheckpointCompleted):
                return "no checkpoint was completed yet"
            return None

        return pending

    def _disturb(self) -> None:
        self._enter("disturb")
        limits = self.experiment.limits
        scheduler = FaultScheduler(
            self.experiment.faults,
            cluster=self.cluster,
            loop=self.loop,
            intents=IntentLog(self.folder.intents),
            seed=self.experiment.seed,
            effect_s=limits.effect_s,
            trigger_s=limits.trigger_s,
        )
        self.scheduler = scheduler
        try:
            while scheduler.pending() is not None:
                self.loop.tick()
        finally:
            self._enter("heal")
            scheduler.heal_all()
            self.loop.tick()

    def _recover(self) -> None:
        """Wait until cluster and jobs run again; if they do not within the limit, record the
        reason."""
        self._enter("recover")

        def pending() -> str | None:
            reason = self.cluster.pending() or (self.job.pending() if self.job else None)
            return reason or self._others_pending()

        self._await_or_record(pending, Wait.RECOVERY, self.experiment.limits.recover_s)

    def _drain(self, load: RunLoad) -> None:
        """Wait until the load has ended and the job has committed its output."""
        self._enter("drain")
        limit_s = self.experiment.limits.drain_s
        if self.loop.history().of(SystemNotRecovered):
            load.stop()
            return
        drained = self._await_or_record(load.pending, Wait.WORKLOAD, load.seconds + limit_s)
        job = self.experiment.job
        if drained and self.job is not None:
            self.early_reads = EarlyReads(self.cluster, self.experiment, self.folder)
            drained = self._job_drained(load, self.job, limit_s)
        elif drained and job is not None and job.existing is not None:
            limit_s += job.existing.quiet_s
            drained = self._await_or_record(load.quiet_pending(job.existing), Wait.QUIET, limit_s)
        if drained:
            load.sample_last_lag(self.job)
            self.loop.record(Action.DRAINED)
        self.loop.tick()

    def _job_drained(self, load: RunLoad, job: RunningJob, limit_s: float) -> bool:
        """Wait until the job has read all input, and only then until it has committed: a checkpoint
        completed over a backlog does not cover all input.
        """
        # A query in batches may have a long trigger interval: the current batch and the next one
        # are awaited in addition to the limit.
        if (batch_s := longest_s(self.loop.history())) > 0:
            limit_s += 2 * batch_s
            self.view.show_message(
                f"waiting for the batch under way and the next one, {limit_s:.0f} s at most; the "
                f"longest so far took {batch_s:.1f} s"
            )
        declared = self.experiment.job is not None and self.experiment.job.reads is not None
        if self.other_jobs or declared:
            return self._all_drained(job, limit_s)
        read = not self.experiment.checkpointed or self._await_or_record(
            lambda: load.lag_pending(job), Wait.INPUT, limit_s
        )
        return read and self._await_or_record(job.drain_pending(), Wait.OUTPUTS, limit_s)

    def _all_drained(self, job: RunningJob, limit_s: float) -> bool:
        """The same for several jobs, each after those whose outputs it reads, and for one that
        declares what it reads."""
        jobs = JobsDrain(self.experiment, self.cluster, (*self.other_jobs, job))

        def is_drained(each: RunningJob) -> bool:
            read = self._await_or_record(lambda: jobs.read_pending(each), Wait.INPUT, limit_s)
            return read and self._await_or_record(jobs.commit_pending(each), Wait.OUTPUTS, limit_s)

        return all(map(is_drained, jobs.in_order())) and self._await_or_record(
            jobs.end_pending, Wait.OUTPUTS, self.experiment.limits.recover_s
        )

    def _await_or_record(
        self, pending: Callable[[], str | None], wait: Wait, limit_s: float
    ) -> bool:
        try:
            self._await(pending, str(wait), limit_s)
        except (NotReadyInTime, NodeDied) as stuck:
            self.loop.record(NOT_MET[wait], reason=str(stuck))
            self.loop.tick()
            return False
        return True

    def _await(self, pending: Callable[[], str | None], what: str, limit_s: float) -> None:
        def checked() -> str | None:
            if self._wrong_promise is not None:
                raise self._wrong_promise
            return pending()

        self.loop.wait_until(checked, what=what, limit_s=limit_s)

    def _enter(self, phase: str) -> None:
        self._phase = phase
        self.loop.record(Action.PHASE, phase=phase)
        self.loop.tick()
        self.view.phase(phase, "")

    def _nodes_kept_down(self) -> tuple[str, ...]:
        return self.scheduler.nodes_kept_down() if self.scheduler else ()

    def _show(self) -> None:
        active = self.scheduler.active_faults() if self.scheduler else ()
        self.view.update(self._status.now(self._phase, self.clock.now_ns() / 1e9, active))

    def save_traceback(self) -> None:
        """Save the traceback of an error of the harness itself beside the logs."""
        (self.folder.logs / "harness-traceback.txt").write_text(traceback.format_exc())

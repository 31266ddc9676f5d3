"""Judging a recorded run again, from its folder alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pyspark.sql import SparkSession

from streamquake.harness.experiment.check_sql import reject_unsafe_queries
from streamquake.harness.experiment.promise_sql import reject_unsafe_sql
from streamquake.harness.experiment.recorded_plugins import changed_plugins
from streamquake.harness.verdict.judge import judge
from streamquake.harness.verdict.recorded_run import recorded_experiment
from streamquake.reports.record.results import Results
from streamquake.reports.record.run_folder import RunFolder


def judge_again(
    folder: RunFolder, spark: Callable[[], SparkSession], show_message: Callable[[str], None]
) -> Results:
    """The results of a recorded run by the checks of today; nothing is written. Raises BadInput for
    a record that cannot be read, or whose SQL could act on the machine."""
    experiment = recorded_experiment(folder)
    for change in changed_plugins(folder.read_manifest(), experiment):
        show_message(change)
    before, reason = saved_results(folder)
    if before and (before.experiment, before.seed) != (experiment.name, experiment.seed):
        before, reason = None, "the saved results belong to another run"
    elif before and before.ended != "completed":
        # The reason of a completed run is a missing part of the record, which is checked again.
        reason = before.reason
    if experiment.job is not None:  # without a job, Streamquake itself defines the promise
        reject_unsafe_sql(experiment.promise, str(folder.manifest), spark)
    reject_unsafe_queries(experiment, str(folder.manifest), spark, recorded=True)
    results = judge(
        experiment,
        folder,
        run_id=folder.results_id,
        ended=before.ended if before else "interrupted",
        cause=before.cause if before else "",
        reason=reason,
        warnings=before.warnings if before else (),
        spark=spark,
        show_message=show_message,
    )
    return replace(results, elapsed_s=before.elapsed_s if before else None)


def saved_results(folder: RunFolder) -> tuple[Results | None, str]:
    """The saved results, or why there are none."""
    try:
        return folder.read_results(), ""
    except FileNotFoundError:
        return None, "the harness ended before it judged the run"
    except (OSError, ValueError, RecursionError) as error:
        return None, f"the saved results cannot be read ({error})"

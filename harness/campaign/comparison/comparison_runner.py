"""Conducting a comparison: a run on each topology, then their outputs against the first's.

A run that fails costs its column, never the others. An interruption lets the run that is under way
end as a run by itself would; the topologies that are left have no run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from streamquake.cluster.images.build import spark_jars
from streamquake.harness.campaign.comparison.output_diff import case_of, differences
from streamquake.harness.campaign.shared_resources import SharedResources
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.interrupts import Interrupted, interruptible
from streamquake.harness.reconcile.spark_session import spark_session, stop_spark
from streamquake.harness.run import runner
from streamquake.reports.comparison.comparison_html import render_comparison
from streamquake.reports.comparison.comparison_results import (
    ComparedRun,
    ComparisonFolder,
    OutputDifference,
    TopologyComparison,
)
from streamquake.reports.record.run_folder import RunFolder, new_run_id
from streamquake.reports.render import run_sentences
from streamquake.topologies.errors import kind_of


def conduct(
    experiments: Sequence[Experiment], means: SharedResources
) -> tuple[TopologyComparison, ComparisonFolder]:
    """Make every run, compare, and write compare.json and compare.html.

    The experiments are one and the same but for their topologies.
    """
    folder = ComparisonFolder.create(means.out, new_run_id())
    comparison = TopologyComparison(
        comparison_id=folder.path.name.removeprefix("compare-"),
        experiment=experiments[0].name,
        seed=experiments[0].seed,
        runs=(),
        again=means.again,
    )
    with interruptible(means.show_message):
        try:
            for experiment in experiments:
                comparison = replace(comparison, runs=(*comparison.runs, _run(experiment, means)))
                folder.write_results(_unfinished(comparison, len(experiments)))
                if comparison.runs[-1].ended == "interrupted":
                    raise Interrupted(comparison.runs[-1].why)
            comparison = replace(
                comparison, differences=_differences(comparison, experiments, means)
            )
        except Interrupted as interruption:
            comparison = replace(comparison, ended="interrupted", reason=str(interruption))
    return _written(comparison, folder), folder


def _run(experiment: Experiment, means: SharedResources) -> ComparedRun:
    topology = experiment.topology.name
    means.show_message(f"{experiment.name} on {topology}, seed {experiment.seed}")
    means.clock.restart()
    try:
        results = runner.run(
            experiment,
            out=means.out,
            argv=means.argv,
            keep=False,
            view=means.view,
            runtime=means.runtime,
            clock=means.clock,
            master=means.master,
        )
    except Exception as error:  # noqa: BLE001 - one run must not end the others
        why = f"harness error: {type(error).__name__}: {error}"
        return ComparedRun(topology=topology, results=None, why=why, cause=kind_of(error))
    why = run_sentences.why(results)
    run = ComparedRun(topology=topology, results=results, why=why, cause=results.cause)
    means.show_message(f"{topology}: {run_sentences.headline(results)}; {run.why}")
    return run


def _differences(
    comparison: TopologyComparison, experiments: Sequence[Experiment], means: SharedResources
) -> tuple[OutputDifference, ...]:
    """The outputs of each run against those of the first."""
    known = [
        (run, experiment, RunFolder(means.out / run.results.run_id))
        for run, experiment in zip(comparison.runs, experiments, strict=True)
        if run.results is not None
    ]
    if len(known) < 2:
        return ()
    means.show_message("comparing the outputs")
    spark = spark_session(means.master, spark_jars())
    try:
        first, *others = [(run, case_of(plan, folder, spark)) for run, plan, folder in known]
        return tuple(each for other in others for each in differences(first, other))
    finally:
        stop_spark(spark)


def _unfinished(comparison: TopologyComparison, wanted: int) -> TopologyComparison:
    """As it will stand if nothing writes it again."""
    message = f"{wanted - len(comparison.runs)} of {wanted} runs were still to be made"
    return replace(comparison, ended="interrupted", reason=message)


def _written(comparison: TopologyComparison, folder: ComparisonFolder) -> TopologyComparison:
    """On disk, with its page; a picture that fails is a warning."""
    folder.write_results(comparison)
    try:
        render_comparison(comparison, folder)
    except Exception as error:  # noqa: BLE001 - the table is on disk; a picture is not worth it
        message = f"compare.html could not be written: {type(error).__name__}: {error}"
        comparison = replace(comparison, warnings=(*comparison.warnings, message))
        folder.write_results(comparison)
    return comparison

"""Conducting a comparison: a run on each topology, then each output against the first run's.

A failed run leaves only its own column empty. After an interruption the current run still heals,
is judged and removes its cluster; the remaining topologies have no run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from streamquake.harness.campaign.comparison.output_diff import case_of, differences
from streamquake.harness.campaign.shared_resources import SharedResources
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.interrupts import Interrupted, interruptible
from streamquake.reports.comparison.comparison_html import render_comparison
from streamquake.reports.comparison.comparison_results import (
    ComparedRun,
    ComparisonFolder,
    OutputDifference,
    TopologyComparison,
)
from streamquake.reports.record.run_folder import RunFolder, new_run_id
from streamquake.reports.render import run_sentences
from streamquake.reports.render.report_files import write_reports


def conduct(
    experiments: Sequence[Experiment], resources: SharedResources
) -> tuple[TopologyComparison, ComparisonFolder]:
    """Run every experiment, compare the outputs, and write compare.json and compare.html.

    The experiments differ only in their topologies.
    """
    folder = ComparisonFolder.create(resources.out, new_run_id())
    comparison = TopologyComparison(
        comparison_id=folder.path.name.removeprefix("compare-"),
        experiment=experiments[0].name,
        seed=experiments[0].seed,
        runs=(),
        again=resources.again,
    )
    with resources, interruptible(resources.show_message):
        try:
            for experiment in experiments:
                comparison = replace(
                    comparison, runs=(*comparison.runs, _run(experiment, resources))
                )
                folder.write_results(_unfinished(comparison, len(experiments)))
                if comparison.runs[-1].ended == "interrupted":
                    raise Interrupted(comparison.runs[-1].why)
            comparison = replace(
                comparison, differences=_differences(comparison, experiments, resources)
            )
        except Interrupted as interruption:
            comparison = replace(comparison, ended="interrupted", reason=str(interruption))
    return _saved(comparison, folder), folder


def _run(experiment: Experiment, resources: SharedResources) -> ComparedRun:
    topology = experiment.topology.name
    resources.show_message(f"{experiment.name} on {topology}, seed {experiment.seed}")
    attempt = resources.run(experiment)
    results = attempt.results
    if results is None:
        return ComparedRun(
            topology=topology, results=None, why=attempt.error, cause=attempt.error_kind
        )
    why = run_sentences.why(results)
    resources.show_message(f"{topology}: {run_sentences.headline(results)}; {why}")
    return ComparedRun(topology=topology, results=results, why=why, cause=results.cause)


def _differences(
    comparison: TopologyComparison, experiments: Sequence[Experiment], resources: SharedResources
) -> tuple[OutputDifference, ...]:
    """The outputs of each run against those of the first."""
    known = [
        (run, experiment, RunFolder(resources.out / run.results.run_id))
        for run, experiment in zip(comparison.runs, experiments, strict=True)
        if run.results is not None
    ]
    if len(known) < 2:
        return ()
    resources.show_message("comparing the outputs")
    spark = resources.spark.get()
    first, *others = [(run, case_of(plan, folder, spark)) for run, plan, folder in known]
    return tuple(found for other in others for found in differences(first, other))


def _unfinished(comparison: TopologyComparison, wanted: int) -> TopologyComparison:
    """The comparison as interrupted, in case the process ends before the next write."""
    message = f"{wanted - len(comparison.runs)} of {wanted} runs had not ended"
    return replace(comparison, ended="interrupted", reason=message)


def _saved(comparison: TopologyComparison, folder: ComparisonFolder) -> TopologyComparison:
    """The comparison, saved with its page; a page that fails is a warning."""
    folder.write_results(comparison)
    warnings = write_reports({"compare.html": lambda: render_comparison(comparison, folder)})
    if not warnings:
        return comparison
    warned = replace(comparison, warnings=(*comparison.warnings, *warnings))
    folder.write_results(warned)
    return warned

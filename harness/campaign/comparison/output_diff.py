"""Compares the outputs of two runs of one experiment by value: order and partitions may differ.

Two exactly-once runs with the same input records must have equal outputs. A data fault that is
injected at a time affects different records in each run: then nothing is compared. Every output is
read from the run folders, so that no cluster is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from streamquake.harness.experiment.check import JudgedRun
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.experiment.outputs import Output
from streamquake.harness.reconcile.final_state import final_records
from streamquake.harness.reconcile.reading.promised_columns import MALFORMED
from streamquake.harness.reconcile.reading.stored_output import StoredOutput
from streamquake.harness.reconcile.reconcile import reconcile
from streamquake.harness.reconcile.shape import Shape
from streamquake.harness.verdict.expected_output import (
    STATUS,
    actual_of,
    column_names,
    count_sends,
    expectations,
    possible_input,
    register_sent,
)
from streamquake.reports.comparison.comparison_results import ComparedRun, OutputDifference
from streamquake.reports.record.history import read_history
from streamquake.reports.record.outcome import Outcome
from streamquake.reports.record.run_folder import RunFolder

EXACTLY_ONCE = "exactly_once"
OTHER_RECORDS = (
    "the two runs did not have the same input records: a data fault affected different records in "
    "each; let the load itself change at a record (`skew_changes` of the workload)"
)


def case_of(experiment: Experiment, folder: RunFolder, spark: SparkSession) -> JudgedRun:
    """A recorded run in the form that checks read."""
    return JudgedRun(
        experiment=experiment,
        history=read_history(folder.history),
        data=folder.data,
        metrics=folder.metrics,
        spark=lambda: spark,
    )


def differences(
    first: tuple[ComparedRun, JudgedRun], other: tuple[ComparedRun, JudgedRun]
) -> Iterator[OutputDifference]:
    """The difference of every output that the first run's job has."""
    (one, case), (two, other_case) = first, other
    proven = all(_held(run) for run in (one, two))
    same_given = _digest(case) == _digest(other_case)
    register_sent(case)
    with expectations(case) as expected:
        for name, output in case.experiment.promise.outputs.items():
            difference = OutputDifference(output=name, first=one.topology, other=two.topology)
            why = _hindrance(name, case, other_case, expected) if same_given else OTHER_RECORDS
            if why is not None:
                outcome = Outcome.UNDECIDED if proven else None
                yield replace(difference, outcome=outcome, why=why)
                continue
            found = _counted(name, output, case, other_case, expected[name])
            same = not any((found.missing, found.added, found.changed))
            outcome = Outcome.HELD if same else Outcome.VIOLATED
            yield replace(
                difference,
                missing=found.missing,
                added=found.added,
                changed=found.changed,
                outcome=outcome if proven else None,
                why="" if proven else "one of the runs is not proven exactly-once",
            )


def _held(run: ComparedRun) -> bool:
    check = run.check(EXACTLY_ONCE)
    return check is not None and check.outcome == Outcome.HELD


def _digest(case: JudgedRun) -> Row | None:
    """A digest of the job's input: the number of records, and the sum of their hashes."""
    records = possible_input(case)
    values = (name for name in records.columns if name != STATUS)
    return records.agg(F.count("*"), F.sum(F.xxhash64(*values).cast("decimal(38,0)"))).first()


def _hindrance(
    name: str, one: JudgedRun, other: JudgedRun, expected: Mapping[str, DataFrame]
) -> str | None:
    """Why an output cannot be compared, or None."""
    if name not in expected:
        return "the job does not define its expected records (`expected:`)"
    if name not in other.experiment.promise.outputs:
        return "the other run's job has no such output"
    unread = [c for c in (one, other) if not StoredOutput(path=c.data / name).complete]
    if unread:
        return f"it was not read on {' and '.join(c.experiment.topology.name for c in unread)}"
    return None


def _counted(
    name: str, output: Output, one: JudgedRun, other: JudgedRun, expected: DataFrame
) -> OutputDifference:
    """The counts, without sample rows. A malformed record equals no other record."""
    of_other = other.experiment.promise.outputs[name]
    names = column_names(output, of_other)
    shape = Shape(
        identity=tuple(names[column] for column in output.identity),
        compare=tuple(names[column] for column in output.compare),
        malformed=MALFORMED,
    )
    with (
        final_records(*actual_of(one, name, output, expected, names=names)) as first,
        final_records(*actual_of(other, name, of_other, expected, names=names)) as second,
    ):
        readable = first.where(~F.col(MALFORMED))
        counts = reconcile(
            readable, second, shape, record_estimate=count_sends(one, "acknowledged")
        ).counts
        malformed = first.where(MALFORMED).count()
    return OutputDifference(
        output=name,
        first="",
        other="",
        missing=(counts["lost"] or 0) + malformed,
        added=counts["phantom"],
        changed=counts["changed"],
    )

"""The runs of a suite beside those that were recorded before it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from streamquake.harness.campaign.regression import (
    baseline_condition,
    change_lines,
    changes_against,
    rate_sentence,
)
from streamquake.harness.campaign.suite.conditions import conditions_of
from streamquake.reports.record.outcome import Outcome
from streamquake.reports.store.results_store import ResultsStore, StoreUnreadable
from streamquake.reports.store.stored_run import StoredRun
from streamquake.reports.suite.suite_results import RowResult, SuiteResults

NO_FIGURE = ("",)
"""The name of no figure: only the rates are compared."""


@dataclass(frozen=True, kw_only=True)
class EarlierRuns:
    """The runs in the store when a suite began, and those of its baseline among them."""

    store: ResultsStore
    runs: Sequence[StoredRun]
    against: str = ""
    baseline: Sequence[StoredRun] = ()
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(cls, out: Path, against: str) -> EarlierRuns:
        """Without a baseline, a store that cannot be read is a warning. Raises StoreUnreadable with
        one, and BadInput for a baseline of another form."""
        store = ResultsStore(out)
        if against:
            baseline = store.runs(where=baseline_condition(against))
            return cls(store=store, runs=store.runs(), against=against, baseline=baseline)
        try:
            return cls(store=store, runs=store.runs())
        except StoreUnreadable as error:
            return cls(store=store, runs=(), warnings=(f"the earlier runs are not known: {error}",))

    def compare(self, results: SuiteResults, run_ids: Collection[str]) -> SuiteResults:
        """The results with the conditions of the runs, with what changed against the baseline, and
        with the quarantined rows that fail more often than before; `run_ids` are the runs of the
        suite."""
        try:
            now = [run for run in self.store.runs() if run.run_id in run_ids]
        except StoreUnreadable as error:
            message = f"not compared: {error}"
            return replace(results, against=self.against, warnings=(*results.warnings, message))
        rows = tuple(self._with_rise(row, now) for row in results.rows)
        results = replace(results, rows=rows, conditions=conditions_of(now))
        if not self.against:
            return results
        changes = tuple(change_lines(changes_against(self.baseline, now)))
        if not changes:
            message = f"nothing to compare: no experiment has runs in the baseline {self.against}"
            results = replace(results, warnings=(*results.warnings, message))
        return replace(results, against=self.against, changes=changes)

    def _with_rise(self, row: RowResult, now: Sequence[StoredRun]) -> RowResult:
        """A quarantined row counts, and is not as expected, if it fails more often than before."""
        if row.quarantined is None:
            return row
        own = {run.run for run in row.runs}
        changes = changes_against(
            [run for run in self.runs if run.run_id not in own],
            [run for run in now if run.run_id in own],
            NO_FIGURE,
        )
        worse = [
            f"{name} is as expected {rate_sentence(change.rate)}"
            for name, change in changes.items()
            if change.rate.is_worse
        ]
        if not worse:
            return row
        why = "; ".join(worse)
        return replace(row, fails_more=why, verdict=Outcome.VIOLATED, why=why)

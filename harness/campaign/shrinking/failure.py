"""The failure that a shrink keeps: a check, and the class of what it found."""

from __future__ import annotations

from dataclasses import dataclass

from streamquake.harness.campaign.shrinking.trials import Try, TryOutcome
from streamquake.harness.experiment.check import ALWAYS_ON
from streamquake.reports.record.outcome import CheckResult, Outcome, class_of
from streamquake.reports.record.results import Results
from streamquake.reports.render import run_sentences
from streamquake.topologies.problems import BadInput, bad_input, did_you_mean


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A violated check, and the class of one of its findings; empty for a check that reports none,
    such as a limit of time."""

    check: str
    found: str = ""

    def __str__(self) -> str:
        return f"{self.check} finds {self.found}" if self.found else f"{self.check} is violated"

    @classmethod
    def of(cls, results: Results, run: str, check: str = "", found: str = "") -> Failure:
        """The first failure of a run, or the one of this check and class. Raises BadInput where the
        run has no such failure."""
        violated = {each.check: each for each in results.checks if _is_violated(each)}
        if not violated:
            raise _nothing_to_shrink(results, run)
        if check and check not in violated:
            message = f'no violated check is called "{check}"{did_you_mean(check, violated)}'
            raise bad_input("--check", message)
        result = violated[check] if check else next(iter(violated.values()))
        classes = tuple(dict.fromkeys(map(class_of, result.findings)))
        if found and found not in classes:
            message = f'{result.check} found nothing called "{found}"{did_you_mean(found, classes)}'
            raise bad_input("--class", message)
        return cls(check=result.check, found=found or next(iter(classes), ""))

    def try_of(self, results: Results) -> Try:
        """What a run says about the failure. It passes only where the check was decided and the
        run shows that its faults and its load took effect."""
        judged = {each.check: each for each in results.checks}
        result = judged.get(self.check)
        outcome, why = TryOutcome.UNDECIDED, run_sentences.why(results)
        if result is not None and self._is_found(result):
            outcome, why = TryOutcome.FAILS, result.summary
        elif result is not None and results.ended == "completed" and _is_decided(result, results):
            outcome, why = TryOutcome.PASSES, result.summary
        return Try(run=results.run_id, outcome=outcome, why=why)

    def _is_found(self, result: CheckResult) -> bool:
        classes = {class_of(finding) for finding in result.findings}
        return _is_violated(result) and (not self.found or self.found in classes)


def _is_violated(result: CheckResult) -> bool:
    return result.outcome == Outcome.VIOLATED


def _is_decided(result: CheckResult, results: Results) -> bool:
    needed = [result, *(each for each in results.checks if each.check in ALWAYS_ON)]
    return not any(each.outcome == Outcome.UNDECIDED for each in needed)


def _nothing_to_shrink(results: Results, run: str) -> BadInput:
    message = f"the run {results.ended.replace('_', ' ')}"
    if results.ended == "completed":
        message = f"the run is {results.outcome}"
    why = run_sentences.why(results)
    return bad_input(run, f"nothing to shrink: {message}, and no check is violated ({why})")

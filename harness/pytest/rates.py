"""How often each chaos test had the expected outcome, over its repeats and attempts.

A run is a property of its test's report, so that it also comes from the workers of pytest-xdist and
into JUnit files.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

import pytest

from streamquake.harness.campaign.statistics.rates import rate_of
from streamquake.reports.suite.rate import Rate

PROPERTY = "chaos run"
EXPECTED = "as expected"
_REPEAT = re.compile(r"-?repeat \d+(?=[-\]])")


def property_of(node_id: str, run_id: str, *, as_expected: bool, outcome: str) -> tuple[str, str]:
    """The property of one run of a test."""
    return PROPERTY, f"{_test_of(node_id)}: {run_id}: {EXPECTED if as_expected else outcome}"


def _test_of(node_id: str) -> str:
    """The node id without the repeat, which is one of the test's parameters."""
    return _REPEAT.sub("", node_id).replace("[-", "[").replace("[]", "")


def rate_lines(reports: Iterable[pytest.TestReport]) -> Iterator[str]:
    """A line for each test with several runs: its rate, and whether it is flaky."""
    runs: dict[str, dict[str, bool]] = defaultdict(dict)
    for report in reports:
        for name, value in report.user_properties:
            if name == PROPERTY:
                test, run_id, outcome = str(value).rsplit(": ", 2)
                runs[test][run_id] = outcome == EXPECTED
    for test, outcomes in runs.items():
        if len(outcomes) > 1:
            yield _line(test, rate_of(sum(outcomes.values()), len(outcomes)))


def _line(test: str, rate: Rate) -> str:
    return f"{'flaky: ' if 0 < rate.count < rate.n else ''}{test}: {rate} runs as expected"

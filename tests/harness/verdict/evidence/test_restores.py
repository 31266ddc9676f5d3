"""Restores: which reports of an engine count as a failure."""

from __future__ import annotations

from typing import Any

import pytest

from streamquake.harness.verdict.evidence.restores import is_failure
from streamquake.reports.record.event import Action
from tests.harness.histories import Story


@pytest.mark.parametrize(
    ("action", "value", "fails"),
    [
        (Action.JOB_FAILING, {"cause": "lost"}, True),
        (Action.JOB_RESTARTING, {"restart": 1}, True),
        (Action.JOB_ENDED, {"state": "FAILED"}, True),
        (Action.JOB_ENDED, {"state": "LOST"}, True),
        (Action.JOB_ENDED, {"state": "FINISHED"}, False),
        (Action.JOB_ENDED, {"state": "CANCELED"}, False),
        (Action.JOB_ENDED, {}, False),
    ],
)
def test_only_unrequested_ends_are_failures(
    action: Action, value: dict[str, Any], fails: bool
) -> None:
    (recorded,) = Story().at(5, action, **value).history().of(action)
    assert is_failure(recorded) == fails

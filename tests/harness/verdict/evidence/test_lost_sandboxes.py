"""Nodes that lost their network without a fault, each loss once."""

from __future__ import annotations

import pytest

from streamquake.harness.verdict.evidence.lost_sandboxes import losses_of_network
from streamquake.reports.record.event import Action
from tests.harness.histories import Story


@pytest.mark.parametrize(
    ("events", "losses"),
    [
        ("died a, revived a", [1]),
        ("revived a", [1]),
        ("died a, revived b", [1, 2]),
        ("died a, revived a, revived a", [1, 3]),
        ("died a, died a, revived a", [1, 2]),
        ("restarted a", []),
    ],
)
def test_each_loss_of_a_network_is_found_once(events: str, losses: list[int]) -> None:
    story = Story()
    for at_s, event in enumerate(events.split(", "), start=1):
        what, node = event.split()
        if what == "died":
            story.at(at_s, Action.SANDBOX_DIED, node=node)
        else:
            story.at(at_s, Action.NODE_REVIVED, node=node, lost_network=what == "revived")
    assert [round(loss.at_s) for loss in losses_of_network(story.history())] == losses

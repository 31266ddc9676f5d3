"""Whether a fault took effect on the nodes for which it was called."""

from __future__ import annotations

import pytest

from streamquake.harness.verdict.evidence.called_nodes import effect_elsewhere
from streamquake.reports.record.event import Action
from streamquake.reports.record.fault_events import FaultInEffect
from tests.harness.histories import Story


def elsewhere(story: Story) -> tuple[int, float] | None:
    """The step of the fault, and the moment of its call."""
    history = story.history()
    found = effect_elsewhere(history.of(FaultInEffect), history)
    return None if found is None else (found[0].step, found[1].at_s)


def fault(
    story: Story, called_s: float, effect_s: float, called: object, acted: object, step: int = 0
) -> Story:
    story.at(called_s, Action.FAULT_CALLED, step=step, nodes=called)
    return story.at(effect_s, Action.FAULT_IN_EFFECT, step=step, nodes=acted)


@pytest.mark.parametrize(
    ("called", "acted", "found"),
    [
        (["a"], ["a"], None),
        (["a", "b"], ["b", "a"], None),
        (["a"], ["b"], (0, 1.0)),
        (["a", "b"], ["a"], (0, 1.0)),
        (None, ["a"], None),
        (["a"], None, None),
    ],
)
@pytest.mark.parametrize("effect_s", [1.0, 2.0])
def test_the_nodes_of_an_effect_are_those_of_its_call(
    called: object, acted: object, effect_s: float, found: tuple[int, float] | None
) -> None:
    assert elsewhere(fault(Story(), 1.0, effect_s, called, acted)) == found


def test_the_last_call_before_the_effect_counts() -> None:
    """A step that is tried again may choose other nodes."""
    story = fault(Story(), 1.0, 2.0, ["a"], ["a"])
    fault(story, 5.0, 6.0, ["b"], ["b"])
    assert elsewhere(story) is None
    assert elsewhere(fault(story, 9.0, 10.0, ["c"], ["b"])) == (0, 9.0)


def test_a_fault_without_recorded_nodes_hides_no_later_one() -> None:
    story = fault(Story(), 1.0, 2.0, None, ["a"], step=0)
    story.at(3.0, Action.FAULT_IN_EFFECT, step=1, nodes=["a"])
    assert elsewhere(story) is None
    assert elsewhere(fault(story, 5.0, 6.0, ["a"], ["b"], step=2)) == (2, 5.0)

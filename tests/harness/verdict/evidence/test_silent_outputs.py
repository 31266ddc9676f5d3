"""Outputs that stopped with a fault: each limit from both sides."""

from __future__ import annotations

import pytest

from streamquake.harness.verdict.evidence.silent_outputs import silent_outputs
from streamquake.reports.record.event import Action
from tests.harness.histories import Story

CALLED_S, EFFECT_S, BACK_S, SENT_UNTIL_S = 10.0, 10.5, 20.0, 50.0
USUAL = (2.0, 4.0, 6.0, 8.0, 10.0)
"""Seconds at which an output grew before the fault."""


def silent(
    *grew_s: float,
    unchanged_s: float | None = None,
    target: str = "flink/taskmanager-1",
    sent_until_s: float = SENT_UNTIL_S,
    drained: bool = False,
) -> bool:
    """Whether the output `o` is silent, beside another that continues."""
    story = Story().at(CALLED_S, Action.FAULT_CALLED, fault="kill", target=target, step=0)
    for at_s in grew_s:
        story.at(at_s, Action.OUTPUT_SEEN, output="o", end=9, grown=3)
    if unchanged_s is not None:
        story.at(unchanged_s, Action.OUTPUT_SEEN, output="o", end=9, grown=0)
    for at_s in (*USUAL, 30.0):
        story.at(at_s, Action.OUTPUT_SEEN, output="other", end=9)
    story.sent(sent_until_s, 9)
    if drained:
        story.at(60, Action.DRAINED)
    moments_ns = (round(at_s * 1e9) for at_s in (CALLED_S, EFFECT_S, BACK_S))
    found = silent_outputs(story.history(), *moments_ns)
    assert found in ((), ("o",))
    return found == ("o",)


@pytest.mark.parametrize(
    ("grew_s", "expected"),
    [
        (USUAL, True),
        ((*USUAL[:-1], 10.1), False),  # four pauses before the fault are not enough to know
        (USUAL[1:], False),
        ((*USUAL, 15.0), True),  # written by what the fault had not reached yet
        ((*USUAL, 19.9), True),
        ((*USUAL, 20.0), False),
        ((*USUAL, 45.0), False),
        ((0.0, 1.0, 2.0, 4.0, 6.0), True),  # the longest pause is 2 s, so 4 s prove nothing
        ((0.0, 1.0, 2.0, 4.0, 5.9), False),
    ],
)
def test_an_active_output_that_does_not_grow_after_the_return_is_silent(
    grew_s: tuple[float, ...], expected: bool
) -> None:
    assert silent(*grew_s) is expected


def test_an_observation_without_new_records_is_no_growth() -> None:
    assert silent(*USUAL, unchanged_s=30)
    assert not silent(*USUAL[1:], unchanged_s=1), "nor a moment that shows its usual pause"


@pytest.mark.parametrize(("sent_until_s", "expected"), [(29.9, False), (30.0, True)])
def test_without_records_to_write_for_ten_seconds_silence_proves_nothing(
    sent_until_s: float, expected: bool
) -> None:
    assert silent(*USUAL, sent_until_s=sent_until_s) is expected


@pytest.mark.parametrize(("sent_until_s", "expected"), [(31.9, False), (32.0, True)])
def test_a_rare_output_is_silent_after_three_of_its_pauses(
    sent_until_s: float, expected: bool
) -> None:
    grew_s = (0.0, 4.0, 6.0, 8.0, 10.0)
    assert silent(*grew_s, sent_until_s=sent_until_s) is expected


def test_a_fault_of_the_load_may_silence_an_output() -> None:
    assert not silent(*USUAL, target="the workload")


@pytest.mark.parametrize(
    ("grew_s", "sent_until_s", "expected"),
    [
        ((8.0, 10.0), 20.5, True),  # the usual pause of few is not known, and the end shows more
        ((8.0, 10.4), 20.5, True),  # between call and effect
        ((8.0, 10.0), 20.4, False),
        ((6.0, 10.0), 22.5, True),
        ((6.0, 10.0), 22.4, False),
        ((10.0,), 50.0, False),
        ((8.0, 10.0, 10.5), 50.0, False),
        ((8.0, 10.0, 55.0), 50.0, False),  # with the drain
    ],
)
def test_an_output_that_never_grows_again_until_the_run_has_drained_is_silent(
    grew_s: tuple[float, ...], sent_until_s: float, expected: bool
) -> None:
    assert silent(*grew_s, sent_until_s=sent_until_s, drained=True) is expected
    assert not silent(*grew_s, sent_until_s=sent_until_s), "the rest may be in transit"

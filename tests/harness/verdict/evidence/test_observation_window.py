"""The interval of a run in which its output counts: a moved fault changes its end."""

from __future__ import annotations

from typing import Any

import pytest

from streamquake.harness.verdict.evidence.observation_window import (
    FAILED_BY_ITSELF,
    ObservationWindowUnknown,
    injected_ns,
    observation_window_of,
)
from streamquake.reports.record.event import Action
from tests.harness.histories import Story


def seconds(
    reported: Story, within_s: float = 2.0, fault: str | None = None
) -> tuple[float, float]:
    watched = observation_window_of(reported.history(), within_s, fault)
    return watched.start_ns / 1e9, watched.end_ns / 1e9


def rejection(reported: Story, within_s: float = 2.0, fault: str | None = None) -> str:
    with pytest.raises(ObservationWindowUnknown) as rejection:
        observation_window_of(reported.history(), within_s, fault)
    return str(rejection.value)


def injected(
    reported: Story,
    at_s: float,
    *,
    step: int = 0,
    fault: str = "kill",
    healed_s: float | None = None,
) -> Story:
    """Called half a second before it was in effect."""
    about: dict[str, Any] = {"step": step, "fault": fault}
    reported.at(at_s - 0.5, Action.FAULT_CALLED, **about)
    reported.at(at_s, Action.FAULT_IN_EFFECT, **about, seen_ns=int(at_s * 1e9))
    if healed_s is not None:
        reported.at(healed_s, Action.FAULT_HEALED, **about)
    return reported


def ended(reported: Story, sent_s: float = 60, end_s: float = 70) -> Story:
    return reported.at(sent_s, Action.WORKLOAD_DONE).at(end_s, Action.DRAINED)


def test_the_window_begins_with_the_call_and_ends_five_seconds_after_recovery() -> None:
    healed = injected(Story(), 10, healed_s=14)
    assert seconds(ended(healed)) == (9.5, 19)
    later = injected(Story(), 10, healed_s=14).at(16, Action.JOB_RUNNING)
    assert seconds(ended(later)) == (9.5, 21)
    before = injected(Story().at(9.8, Action.JOB_RUNNING), 10, healed_s=14)
    assert seconds(ended(before)) == (9.5, 19)
    soon = injected(Story(), 10, healed_s=10)
    assert seconds(ended(soon)) == (9.5, 16.5), "not before the allowed pause could end"


def test_the_window_lasts_at_least_as_long_as_the_limit() -> None:
    assert seconds(ended(injected(Story(), 10, healed_s=14)), within_s=20) == (9.5, 34.5)


def test_the_window_ends_with_the_load_at_the_latest() -> None:
    recorded = injected(Story(), 10, healed_s=14)
    assert seconds(ended(recorded, sent_s=17)) == (9.5, 17)
    recorded = injected(Story(), 10, healed_s=14).sent(12, 5).sent(18, 5)
    assert seconds(recorded.at(70, Action.DRAINED)) == (9.5, 18), (
        "the last range of sends, where no end is recorded"
    )


def test_the_last_of_several_faults_ends_the_window() -> None:
    recorded = injected(injected(Story(), 10, healed_s=30), 20, step=1, healed_s=24)
    assert seconds(ended(recorded)) == (9.5, 35)
    assert injected_ns(recorded.history()) == 9.5e9


def test_a_fault_without_effect_does_not_count() -> None:
    recorded = Story().at(5, Action.FAULT_CALLED, step=0, fault="kill")
    assert injected_ns(recorded.history()) is None
    assert rejection(ended(recorded)) == "no fault took effect, so nothing failed over"
    assert (
        rejection(ended(recorded), fault="kill") == "kill was not in effect, so nothing failed over"
    )


def test_the_window_of_a_named_fault_ends_before_a_fault_of_another_name() -> None:
    recorded = injected(Story(), 5, step=0, fault="pause", healed_s=6)
    injected(recorded, 10, step=1, healed_s=14)
    injected(recorded, 16.5, step=2, fault="pause", healed_s=18)
    assert seconds(ended(recorded), fault="kill") == (9.5, 16)
    assert seconds(ended(recorded)) == (4.5, 23)
    assert seconds(ended(recorded), fault="pause") == (4.5, 9.5), "pauses of the kill do not count"


def test_a_named_fault_after_one_of_another_name_is_not_held() -> None:
    """Output after the other fault proves nothing about the named one."""
    recorded = injected(injected(Story(), 10, healed_s=12), 50, step=1, fault="pause", healed_s=70)
    twice = injected(recorded, 100, step=2, healed_s=102)
    watched = observation_window_of(ended(twice, 160, 170).history(), 8.0, "kill")
    assert (watched.start_ns, watched.end_ns, watched.cut_ns) == (9.5e9, 22.5e9, 49.5e9)
    assert watched.reason_not_held == (
        "another fault was called at 49.5 s, before kill (faults[2]), and pauses from then on may "
        "be its own"
    )
    assert observation_window_of(twice.history(), 8.0).reason_not_held is None
    assert observation_window_of(twice.history(), 8.0, "pause").reason_not_held is None
    twice.at(15, Action.JOB_FAILING)
    assert "the job failed at 15.0 s" in str(
        observation_window_of(twice.history(), 8.0, "kill").reason_not_held
    )


def test_of_two_faults_that_are_called_at_once_neither_ends_the_other() -> None:
    recorded = injected(injected(Story(), 10, healed_s=14), 10, step=1, fault="pause", healed_s=18)
    assert seconds(ended(recorded), fault="kill") == (9.5, 19)
    assert seconds(recorded, fault="pause") == (9.5, 23)


def test_two_consecutive_faults_of_one_name_share_a_window() -> None:
    recorded = injected(injected(Story(), 10, healed_s=12), 50, step=1, healed_s=52)
    injected(recorded, 100, step=2, fault="pause", healed_s=102)
    watched = observation_window_of(ended(recorded, 160, 170).history(), 8.0, "kill")
    assert (watched.start_ns, watched.end_ns, watched.reason_not_held) == (9.5e9, 62.5e9, None)


def test_without_sends_there_is_no_window() -> None:
    recorded = injected(Story(), 10, healed_s=14).at(70, Action.DRAINED)
    assert rejection(recorded) == "nothing was sent"


@pytest.mark.parametrize(
    ("fault", "named"), [("kill", "kill (faults[1])"), ("", "the fault (faults[1])")]
)
def test_a_fault_that_was_never_over_is_named(fault: str, named: str) -> None:
    recorded = injected(Story(), 5, healed_s=6)
    injected(recorded, 10, step=1, fault=fault).at(12, Action.JOB_RUNNING)
    assert rejection(ended(recorded)) == f"the heal of {named} was not seen"
    early = injected(Story(), 5, healed_s=6)
    injected(early, 10, step=1, fault=fault).at(14, Action.FAULT_ENDED_EARLY, step=1, fault=fault)
    assert seconds(ended(early)) == (4.5, 19)


@pytest.mark.parametrize("sent_s", [11.4, 9.0])
def test_a_load_that_ends_soon_after_the_injection_shows_no_pause(sent_s: float) -> None:
    recorded = ended(injected(Story(), 10, healed_s=11), sent_s=sent_s)
    left = "1.9" if sent_s > 9.5 else "0.0"
    assert rejection(recorded) == (
        f"the load ended {left} s after the fault was injected, and a pause of 2 s could not have "
        "been seen; send longer, or inject it later"
    )


def test_a_load_just_long_enough_is_accepted() -> None:
    assert seconds(ended(injected(Story(), 10, healed_s=11), sent_s=11.5)) == (9.5, 11.5)


def test_another_fault_soon_after_the_injection_shows_no_pause() -> None:
    recorded = injected(injected(Story(), 5, healed_s=6), 10, step=1, healed_s=11)
    injected(recorded, 11.5, step=2, fault="pause", healed_s=12)
    assert rejection(ended(recorded), fault="kill") == (
        "another fault was called 1.5 s after kill (faults[1]) was injected, and a pause of 2 s "
        "could not have been seen; send longer, or inject it later"
    )


@pytest.mark.parametrize(
    ("action", "state"),
    [
        (Action.JOB_FAILING, {}),
        (Action.JOB_RESTARTING, {}),
        (Action.JOB_ENDED, {"state": "LOST"}),
        (Action.JOB_ENDED, {"state": "FAILED"}),
    ],
)
def test_a_job_that_failed_and_did_not_run_again_is_watched_until_the_load_ends(
    action: Action, state: dict[str, str]
) -> None:
    recorded = injected(Story(), 10, healed_s=14).at(12, Action.JOB_RUNNING).at(16, action, **state)
    ended(recorded, sent_s=40)
    assert seconds(recorded) == (9.5, 40)
    watched = observation_window_of(recorded.history(), 2.0)
    assert watched.reason_not_held == "the job failed at 16.0 s and was not seen running again"

    recorded.at(69, Action.JOB_RUNNING)
    assert observation_window_of(recorded.history(), 2.0).reason_not_held is None


def test_a_requested_end_of_a_job_is_no_failure() -> None:
    recorded = injected(Story(), 10, healed_s=14).at(16, Action.JOB_ENDED, state="FINISHED")
    assert seconds(ended(recorded, sent_s=40)) == (9.5, 19)
    assert observation_window_of(recorded.history(), 2.0).reason_not_held is None


def test_a_failure_after_the_load_is_ignored() -> None:
    recorded = ended(injected(Story(), 10, healed_s=14), sent_s=40).at(40.5, Action.JOB_FAILING)
    assert seconds(recorded) == (9.5, 19)
    assert observation_window_of(recorded.history(), 2.0).reason_not_held is None


def test_a_job_that_was_down_before_the_injection_shows_nothing() -> None:
    recorded = injected(Story().at(9, Action.JOB_FAILING), 10, healed_s=14)
    back = injected(Story().at(9, Action.JOB_FAILING), 10, healed_s=14).at(16, Action.JOB_RUNNING)
    assert seconds(ended(back, sent_s=40)) == (9.5, 21)
    assert rejection(ended(recorded, sent_s=40)) == (
        "the job failed at 9.0 s and was not seen running again, so it was down before the fault "
        "was called"
    )


def failed_again(
    at_s: float, *, back_s: float | None = 120, another_s: float | None = None
) -> Story:
    """Killed at 10 s, healed at 14 s, running again at 20 s, and failed again at `at_s`; perhaps
    killed again at `another_s`."""
    recorded = injected(Story(), 10, healed_s=14).at(11, Action.JOB_FAILING)
    recorded.at(20, Action.JOB_RUNNING)
    if another_s is not None:
        injected(recorded, another_s, step=1, healed_s=another_s + 20)
    recorded.at(at_s, Action.JOB_FAILING)
    if back_s is not None:
        recorded.at(back_s, Action.JOB_RUNNING)
    return ended(recorded, 160, 170)


def test_a_failure_long_after_the_recovery_ends_the_window() -> None:
    assert seconds(failed_again(49.9)) == (9.5, 125), "it may be a late effect of the fault"
    watched = observation_window_of(failed_again(50).history(), 2.0)
    assert (watched.end_ns, watched.cut_ns, watched.cut_by) == (25e9, 50e9, FAILED_BY_ITSELF)
    assert watched.reason_not_held is None
    watched = observation_window_of(failed_again(50, back_s=None).history(), 2.0)
    assert watched.end_ns == 25e9
    assert watched.reason_not_held == "the job failed at 50.0 s and was not seen running again"
    assert rejection(failed_again(50), within_s=41) == (
        "the job failed by itself 40.5 s after the fault was injected, and a pause of 41 s could "
        "not have been seen; send longer, or inject it later"
    )


def test_a_failure_before_the_recovery_or_under_another_fault_is_of_the_faults() -> None:
    down = injected(Story(), 10, healed_s=14).at(11, Action.JOB_FAILING)
    down.at(50, Action.JOB_RESTARTING).at(60, Action.JOB_RUNNING)
    assert seconds(ended(down, 160, 170)) == (9.5, 65)
    assert seconds(failed_again(55, another_s=50)) == (9.5, 125)


def test_a_fault_after_a_failure_of_its_own_is_not_observed() -> None:
    recorded = failed_again(50, back_s=55, another_s=100)
    watched = observation_window_of(recorded.history(), 2.0)
    assert (watched.end_ns, watched.reason_not_held) == (
        25e9,
        "the job failed by itself at 50.0 s, before kill (faults[1]), and pauses from then on may "
        "be its own",
    )


def test_a_named_fault_knows_the_first_fault() -> None:
    recorded = injected(injected(Story(), 10, healed_s=12), 50, step=1, fault="pause", healed_s=52)
    ended(recorded)
    for fault, earlier in ((None, False), ("kill", False), ("pause", True)):
        watched = observation_window_of(recorded.history(), 2.0, fault)
        assert (watched.first_ns, watched.had_earlier_faults) == (9.5e9, earlier)


@pytest.mark.parametrize(("again_s", "back"), [(15.9, True), (16.1, False)])
def test_of_a_named_fault_the_job_must_be_back_before_another_is_called(
    again_s: float, back: bool
) -> None:
    recorded = injected(Story(), 10, healed_s=12).at(11, Action.JOB_FAILING)
    recorded.at(min(again_s, 15.9), Action.JOB_RUNNING if back else Action.DRAINED)
    injected(recorded, 16.5, step=1, fault="pause", healed_s=18).at(20, Action.JOB_RUNNING)
    watched = observation_window_of(ended(recorded).history(), 2.0, "kill")
    assert (watched.cut_ns, watched.reason_not_held is None) == (16e9, back)
    if not back:
        assert str(watched.reason_not_held).endswith(
            "running again before another fault was called"
        )
    assert observation_window_of(recorded.history(), 2.0).cut_ns is None


def test_a_job_that_fails_as_the_fault_is_called_was_not_down_before() -> None:
    recorded = injected(Story(), 10, healed_s=14).at(9.5, Action.JOB_FAILING)
    watched = observation_window_of(ended(recorded).history(), 2.0)
    assert watched.not_recovered == "the job failed at 9.5 s and was not seen running again"


@pytest.mark.parametrize(("back_s", "recovered"), [(29.5, True), (29.6, False)])
def test_a_job_that_is_back_as_another_fault_is_called_has_recovered(
    back_s: float, recovered: bool
) -> None:
    recorded = injected(Story(), 10, healed_s=14).at(11, Action.JOB_FAILING)
    injected(recorded.at(back_s, Action.JOB_RUNNING), 30, step=1, fault="pause", healed_s=35)
    watched = observation_window_of(ended(recorded).history(), 2.0, "kill")
    assert (watched.not_recovered == "") == recovered

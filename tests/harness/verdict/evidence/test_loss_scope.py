"""The scope of the possible loss by each restart of a subtask: from the last checkpoint before it
until the subtask ran again."""

from __future__ import annotations

import pytest

from streamquake.harness.verdict.evidence.loss_scope import LossScope, LossScopeUnknown, scopes_of
from streamquake.reports.record.event import Action
from tests.harness.histories import Story

NAMES = {"a": "Source: input", "b": "totals: Writer", "c": "files: Sink"}
CALLED_S, SEEN_S, RAN_S = 10.0, 10.5, 12.0


def task(
    reported: Story, at_s: float, vertex: str, subtask: int, attempt: int, state: str = "RUNNING"
) -> Story:
    return reported.at(
        at_s,
        Action.TASK_CHANGED,
        vertex=vertex,
        vertex_name=NAMES[vertex],
        subtask=subtask,
        attempt=attempt,
        state=state,
        node="tm-1",
    )


def begun(vertices: str = "ab") -> Story:
    """Ten records a second and a checkpoint; every subtask runs."""
    recorded = Story().checkpoint(1, 8.0, 8.2)
    for vertex in vertices:
        for subtask in range(4):
            task(recorded, 0.5, vertex, subtask, 0)
    for second in range(1, 31):
        recorded.at(
            second,
            Action.SENT,
            first=second * 10 - 10,
            last=second * 10 - 1,
            count=10,
            status="acknowledged",
        )
    return recorded


def injected(reported: Story, called_s: float = CALLED_S, *, called: bool = True) -> Story:
    ns = {"seen_ns": int((called_s + 0.5) * 1e9)}
    ns |= {"called_ns": int(called_s * 1e9)} if called else {}
    return reported.at(called_s + 0.5, Action.FAULT_IN_EFFECT, step=0, **ns)


def again(
    reported: Story, subtask: int = 1, ran_s: float = RAN_S, *, vertex: str = "b", attempt: int = 1
) -> Story:
    task(reported, ran_s - 0.5, vertex, subtask, attempt, "DEPLOYING")
    return task(reported, ran_s, vertex, subtask, attempt)


def scopes(
    reported: Story, vertex: str | None = None, slack_s: float = 1.0
) -> tuple[LossScope, ...]:
    return scopes_of(reported.history(), vertex, 4, slack_s)


def rejection(reported: Story, vertex: str | None = None) -> str:
    with pytest.raises(LossScopeUnknown) as rejection:
        scopes(reported, vertex)
    return str(rejection.value)


def test_the_scope_lasts_from_the_checkpoint_to_running_again_plus_the_slack() -> None:
    assert scopes(again(injected(begun()))) == (
        LossScope(
            partitions=frozenset({1}),
            injected_ns=10 * 10**9,
            start_ns=7 * 10**9,
            end_ns=13 * 10**9,
            first=60,
            last=139,
        ),
    )
    exact = scopes(again(injected(begun())), slack_s=0)[0]
    assert (exact.start_ns / 1e9, exact.end_ns / 1e9, exact.seconds) == (8, 12, 4)


def test_subtasks_write_into_the_partitions_in_turn() -> None:
    recorded = again(again(injected(begun()), 3, 11.5), 1, 14)
    first, third = scopes_of(recorded.history(), None, 2, 0)
    assert first.partitions == third.partitions == {1}
    assert (first.end_ns, third.end_ns) == (14 * 10**9, 11.5 * 10**9)


def test_without_an_observed_restart_only_the_injection_counts() -> None:
    (scope,) = scopes(injected(begun()))
    assert scope.partitions == frozenset()
    assert (scope.start_ns / 1e9, scope.end_ns / 1e9) == (7, 11)


def test_without_recorded_sends_the_scope_has_no_record() -> None:
    recorded = Story().checkpoint(1, 8.0, 8.2)
    task(recorded, 0.5, "b", 1, 0)
    (scope,) = scopes(again(injected(again(recorded, ran_s=4)), attempt=2))
    assert (scope.first, scope.last) == (0, -1)


def test_each_fault_has_its_own_scope_until_the_next_one() -> None:
    recorded = again(injected(begun())).checkpoint(2, 15, 15.2).checkpoint(3, 19.9, 20.6)
    recorded = again(injected(recorded, 20), 2, 22, attempt=1)
    first, second = scopes(recorded)
    assert (first.partitions, first.end_ns / 1e9) == (frozenset({1}), 13)
    assert second.partitions == frozenset({2})
    # The third checkpoint completed after the call, before the subtask began anew.
    assert (second.start_ns / 1e9, second.end_ns / 1e9) == (18.9, 23)


def test_without_a_recorded_call_the_verified_effect_counts() -> None:
    (scope,) = scopes(again(injected(begun(), called=False)))
    assert scope.injected_ns == 10.5e9


def test_a_later_restart_of_a_subtask_has_its_own_scope() -> None:
    recorded = again(injected(begun())).checkpoint(2, 14, 14.2)
    recorded = again(again(recorded, ran_s=16, attempt=2), 3, 19)
    found = [(set(s.partitions), s.start_ns, s.end_ns) for s in scopes(recorded, slack_s=0)]
    assert found == [({1}, 8e9, 12e9), ({1}, 14e9, 16e9), ({3}, 14e9, 19e9)]


@pytest.mark.parametrize(
    ("ran_s", "windows"),
    [
        (4.0, [({1}, 2e9, 4e9), ({1}, 8e9, 12e9)]),
        (0.9, [({1}, 8e9, 12e9)]),  # before anything was sent
    ],
)
def test_a_restart_before_the_first_fault_has_its_own_scope(
    ran_s: float, windows: list[tuple[set[int], float, float]]
) -> None:
    recorded = again(begun().checkpoint(0, 2.0, 2.2), ran_s=ran_s)
    found = scopes(again(injected(recorded), attempt=2), slack_s=0)
    assert [(set(s.partitions), s.start_ns, s.end_ns) for s in found] == windows
    assert {s.injected_ns for s in found} == {10 * 10**9}


@pytest.mark.parametrize(("ran_s", "scopes_found"), [(1.0, 1), (1.5, 2)])
def test_a_restart_that_ended_before_the_first_sends_lost_nothing(
    ran_s: float, scopes_found: int
) -> None:
    """The first sends were reported after one second, the next ones after two."""
    recorded = again(begun().checkpoint(0, 0.1, 0.2), ran_s=ran_s)
    recorded._events.sort(key=lambda event: event.at_ns)
    assert len(scopes(again(injected(recorded), attempt=2))) == scopes_found


def test_an_attempt_before_the_first_that_ran_is_no_restart() -> None:
    recorded = begun().checkpoint(0, 2.0, 2.2)
    task(recorded, 0.2, "b", 1, 7, "DEPLOYING")
    recorded._events.sort(key=lambda event: event.at_ns)
    (scope,) = scopes(again(injected(recorded)), slack_s=0)
    assert scope.start_ns == 8e9


def test_a_restart_that_the_first_fault_interrupts_began_by_itself() -> None:
    recorded = task(begun().checkpoint(0, 2.0, 2.2), 7.5, "b", 1, 1, "DEPLOYING")
    found = scopes(again(injected(recorded), attempt=2), slack_s=0)
    assert [(s.start_ns, s.end_ns) for s in found] == [(2e9, 12e9), (8e9, 12e9)]


def test_a_fault_that_restarted_only_others_is_unknown_also_after_an_earlier_restart() -> None:
    recorded = again(begun().checkpoint(0, 2.0, 2.2), ran_s=4)
    assert "only others" in rejection(again(injected(recorded), vertex="a"))


def test_an_attempt_that_never_ran_is_part_of_the_next_restart() -> None:
    recorded = task(injected(begun()), 11, "b", 1, 1, "DEPLOYING").checkpoint(2, 14, 14.2)
    (scope,) = scopes(again(recorded, ran_s=16, attempt=2), slack_s=0)
    assert (scope.start_ns / 1e9, scope.end_ns / 1e9) == (8, 16)


def test_a_subtask_ran_when_it_finished() -> None:
    finished = task(injected(begun()), 11.5, "b", 1, 1, "DEPLOYING")
    assert scopes(task(finished, 12.5, "b", 1, 1, "FINISHED"))[0].end_ns == 13.5e9


def test_the_writing_vertex_is_a_writer_or_a_sink_or_the_named_one() -> None:
    recorded = again(injected(begun("abc")))
    assert scopes(recorded)[0].partitions == scopes(recorded, "totals")[0].partitions == {1}
    sink = again(injected(begun("ac")), vertex="c")
    assert scopes(sink)[0].partitions == {1}


def test_a_vertex_without_a_name_goes_by_its_id() -> None:
    recorded = Story().checkpoint(1, 8.0, 8.2)
    for at_s, attempt in ((0.5, 0), (12.0, 1)):
        recorded.at(
            at_s,
            Action.TASK_CHANGED,
            vertex="b",
            subtask=1,
            attempt=attempt,
            state="RUNNING",
            node="tm-1",
        )
        recorded = injected(recorded) if attempt == 0 else recorded
    assert scopes(recorded, "b")[0].partitions == {1}


@pytest.mark.parametrize(
    ("reported", "vertex", "why"),
    [
        (begun(), None, "no fault took effect, so nothing may be lost"),
        (
            injected(begun("")),
            None,
            "nothing is known of the attempts of the job's subtasks",
        ),
        (
            again(injected(begun("abc"))),
            "s:",
            "`vertex` must name the one that writes the output, among totals: Writer, files: Sink",
        ),
        (
            again(injected(begun())),
            "Map",
            "`vertex` must name the one that writes the output, among Source: input, totals: "
            "Writer",
        ),
        (
            again(injected(begun("a")), vertex="a"),
            None,
            "`vertex` must name the one that writes the output, among Source: input",
        ),
        (
            task(injected(begun()), 11, "b", 1, 1, "DEPLOYING"),
            None,
            "subtask 1 that writes the output never ran again",
        ),
        (
            again(injected(begun()), vertex="a"),
            None,
            "no subtask that writes the output restarted, only others; `vertex` may name one "
            "whose subtasks share their numbers, or with `spread` any other",
        ),
        (
            again(injected(begun(), 7), ran_s=8.1),
            None,
            "no checkpoint was complete before, so all may be lost",
        ),
    ],
)
def test_without_evidence_there_is_no_scope(reported: Story, vertex: str | None, why: str) -> None:
    assert rejection(reported, vertex) == why


def acknowledged(at_s: float, end: Action | None = None, kind: str = "CHECKPOINT") -> Story:
    """The usual run with another checkpoint that every subtask acknowledged; a fault that restarts
    a subtask at 11.5 s."""
    about = {"checkpoint": 2, "type": kind}
    recorded = begun().at(8.6, Action.CHECKPOINT_TRIGGERED, **about)
    recorded.at(at_s, Action.CHECKPOINT_ALL_ACKNOWLEDGED, **about)
    if end is not None:
        recorded.at(30, end, **about)
    return again(injected(recorded))


def test_a_checkpoint_that_may_have_completed_leaves_the_scope_unknown() -> None:
    """Its end is missing, so that the scope may be shorter."""
    assert rejection(acknowledged(9.0)) == (
        "every subtask acknowledged checkpoint 2, the newest before a restart, and its end is not "
        "recorded"
    )


@pytest.mark.parametrize(
    "recorded",
    [
        acknowledged(9.0, Action.CHECKPOINT_FAILED),
        acknowledged(9.0, Action.CHECKPOINT_COMPLETED),  # only at 30 s
        acknowledged(11.6),
        acknowledged(9.0, kind="SAVEPOINT"),
        acknowledged(9.0).checkpoint(3, 9.1, 9.2),
    ],
)
def test_a_checkpoint_that_did_not_complete_before_the_restart_does_not_matter(
    recorded: Story,
) -> None:
    assert scopes(recorded)[0].partitions == {1}


@pytest.mark.parametrize("job", ["j", "another"])
def test_a_checkpoint_of_the_same_number_after_the_fault_is_another(job: str) -> None:
    recorded = Story().at(8.0, Action.CHECKPOINT_TRIGGERED, checkpoint=1, job="j")
    recorded.at(8.2, Action.CHECKPOINT_COMPLETED, checkpoint=1, job="j")
    recorded._events += begun()._events[2:]
    again(injected(recorded)).at(40, Action.CHECKPOINT_TRIGGERED, checkpoint=1, job=job)
    (scope,) = scopes(recorded)
    assert scope.start_ns == 7 * 10**9


@pytest.mark.parametrize("kind", ["SAVEPOINT", "SYNC_SAVEPOINT"])
def test_a_job_is_not_set_back_to_a_savepoint(kind: str) -> None:
    recorded = begun().at(9.0, Action.CHECKPOINT_TRIGGERED, checkpoint=2)
    recorded.at(9.5, Action.CHECKPOINT_COMPLETED, checkpoint=2, type=kind)
    (scope,) = scopes(again(injected(recorded)))
    assert scope.start_ns == 7e9


def test_the_newest_checkpoint_counts_also_if_an_older_one_completed_after_it() -> None:
    recorded = Story().at(8.5, Action.CHECKPOINT_TRIGGERED, checkpoint=2)
    recorded.at(9.0, Action.CHECKPOINT_TRIGGERED, checkpoint=3)
    recorded.at(9.2, Action.CHECKPOINT_COMPLETED, checkpoint=3)
    recorded.at(9.4, Action.CHECKPOINT_COMPLETED, checkpoint=2)
    recorded._events += begun()._events
    (scope,) = scopes(again(injected(recorded)))
    assert scope.start_ns == 8e9


def test_the_stamps_of_the_engine_count_before_the_observation() -> None:
    """The checkpoint and the new attempt are observed late: it was complete at 9.2 s, and the
    attempt was deployed at 11 s."""
    recorded = begun()
    epoch_ms = 1_767_225_600_000
    recorded.at(0.6, Action.CHECKPOINT_TRIGGERED, checkpoint=7, trigger_ms=epoch_ms + 600)
    recorded.at(9.9, Action.CHECKPOINT_TRIGGERED, checkpoint=2, trigger_ms=epoch_ms + 9_000)
    injected(recorded).at(
        11.3, Action.CHECKPOINT_COMPLETED, checkpoint=2, last_ack_ms=epoch_ms + 9_200
    )
    recorded.at(11.4, Action.CHECKPOINT_TRIGGERED, checkpoint=3, trigger_ms=epoch_ms + 11_050)
    recorded.at(11.45, Action.CHECKPOINT_COMPLETED, checkpoint=3, last_ack_ms=epoch_ms + 11_150)
    for at_s, state in ((11.5, "DEPLOYING"), (12.0, "RUNNING")):
        recorded.at(
            at_s,
            Action.TASK_CHANGED,
            vertex="b",
            vertex_name=NAMES["b"],
            subtask=1,
            attempt=1,
            state=state,
            node="tm-1",
            start_ms=epoch_ms + 11_100,
        )
    (scope,) = scopes(recorded, slack_s=0)
    assert (scope.start_ns / 1e9, scope.end_ns / 1e9) == (9, 12)


def test_a_restart_that_ends_after_the_next_fault_belongs_to_the_first() -> None:
    recorded = task(injected(begun()), 11, "b", 1, 1, "DEPLOYING")
    recorded = task(injected(recorded, 11.5), 13, "b", 1, 1)
    restarted, none = scopes(recorded, slack_s=0)
    assert (set(restarted.partitions), restarted.injected_ns) == ({1}, 10 * 10**9)
    assert (restarted.start_ns / 1e9, restarted.end_ns / 1e9) == (8, 13)
    assert none.partitions == frozenset()


def test_faults_count_in_the_order_of_their_calls() -> None:
    recorded = begun()
    for at_s, called_s in ((11.0, 10.5), (11.2, 10.0)):
        stamps = {"called_ns": int(called_s * 1e9), "seen_ns": int(at_s * 1e9)}
        recorded.at(at_s, Action.FAULT_IN_EFFECT, step=0, **stamps)
    assert [scope.injected_ns / 1e9 for scope in scopes(again(recorded))] == [10.0, 10.5]

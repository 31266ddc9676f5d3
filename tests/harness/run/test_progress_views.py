"""The figures of a run from its events, and the two views of them."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from streamquake.cluster.runtime.clock import FakeClock
from streamquake.harness.experiment.loader import load_experiment
from streamquake.harness.run.progress import Figures, RunStatus
from streamquake.harness.run.progress_views import LiveView, PlainView, open_view
from streamquake.reports.record.event import Action, Event, Kind


def event(at_s: float, action: Action, **value: Any) -> Event:
    return Event(
        index=0, at_ns=int(at_s * 1e9), process="test", kind=Kind.INFO, action=action, value=value
    )


@pytest.fixture
def status() -> RunStatus:
    return RunStatus.at_start(load_experiment("quickstart"))


def test_figures_are_computed_from_events(status: RunStatus) -> None:
    for recorded in (
        event(1, Action.SENT, status="acknowledged", count=100, first=0, last=99),
        event(2, Action.SENT, status="unknown", count=5, first=100, last=104),
        event(3, Action.SENT, status="acknowledged", count=50, first=105, last=154),
        event(3, Action.OUTPUT_SEEN, output="a", end=70, grown=70),
        event(3, Action.OUTPUT_SEEN, output="a", end=90, grown=20),
        event(3, Action.OUTPUT_SEEN, output="b", end=10, grown=10),
        event(3, Action.CHECKPOINT_COMPLETED, checkpoint=1),
        event(3, Action.CHECKPOINT_FAILED, checkpoint=2),
        event(3, Action.JOB_RESTARTING, restart=1),
    ):
        status.on_event(recorded)
    status.on_sample("lag", 42)

    now = status.now("disturb", 4.0, ["kill on flink/taskmanager-1"])

    assert now == Figures(
        phase="disturb",
        elapsed_s=4.0,
        wanted=60_000,
        acknowledged=150,
        sent_per_s=25.0,
        output=100,
        lag=42,
        checkpoints_completed=1,
        checkpoints_failed=1,
        restarts=1,
        active=("kill on flink/taskmanager-1",),
    )


def test_a_stalled_load_has_rate_zero(status: RunStatus) -> None:
    status.on_event(event(1, Action.SENT, status="acknowledged", count=100, first=0, last=99))

    assert status.now("steady", 2.0, ()).sent_per_s == 50
    assert status.now("steady", 60.0, ()).sent_per_s == 0


def test_plain_lines_show_each_change_once_and_progress_regularly() -> None:
    lines: list[str] = []
    clock = FakeClock()
    view = PlainView(lines.append, clock)

    view.phase("steady", "")
    for tenth in range(250):
        clock.sleep(tenth / 10 - clock.now_ns() / 1e9)
        active = ("kill on n",) if 50 <= tenth < 120 else ()
        view.update(Figures(elapsed_s=tenth / 10, acknowledged=tenth, wanted=900, active=active))
    view.show_message("done")

    assert lines == [
        "[   0.0 s] steady",
        "[   5.0 s]   in effect: kill on n",
        "[  10.0 s]   acknowledged 100 of 900 (0/s), output 0, in effect kill on n",
        "[  12.0 s]   healed: kill on n",
        "[  20.0 s]   acknowledged 200 of 900 (0/s), output 0",
        "[  24.9 s]   done",
    ]


def test_the_live_panel_shows_the_figures() -> None:
    written = io.StringIO()
    view = LiveView(Console(file=written, force_terminal=True, width=100), FakeClock())
    with view.live:
        view.phase("disturb", "")
        view.update(
            Figures(
                phase="disturb",
                elapsed_s=31,
                acknowledged=1234,
                wanted=60_000,
                lag=7,
                checkpoints_completed=3,
                restarts=1,
                active=("kill on flink/taskmanager-2",),
            )
        )
        view.live.refresh()

    for text in (
        "disturb",
        "1,234 of 60,000",
        "lag 7",
        "3 completed, 0 failed",
        "kill on flink/taskmanager-2",
    ):
        assert text in written.getvalue()


def test_without_a_terminal_lines_are_plain(capsys: pytest.CaptureFixture[str]) -> None:
    with open_view() as view:
        view.phase("deploy", "8 nodes")

    assert capsys.readouterr().out == "[   0.0 s] deploy: 8 nodes\n"

"""Fake time passes when the other threads wait, and not while one of them has work."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from streamquake.cluster.runtime import clock as clock_module
from streamquake.cluster.runtime import runnable_threads
from streamquake.cluster.runtime.clock import FakeClock
from streamquake.cluster.runtime.runnable_threads import others_are_runnable

pytestmark = pytest.mark.slow


@contextmanager
def thread_that_waits() -> Iterator[threading.Event]:
    """A thread that waits for the event, from when it has begun to wait."""
    go_on = threading.Event()
    waiter = threading.Thread(target=go_on.wait, name="a ) b", daemon=True)
    waiter.start()
    try:
        yield go_on
    finally:
        go_on.set()
        waiter.join()


@contextmanager
def thread_that_computes() -> Iterator[None]:
    stop = threading.Event()

    def compute() -> None:
        while not stop.is_set():
            sum(range(100))

    computing = threading.Thread(target=compute, daemon=True)
    computing.start()
    try:
        yield
    finally:
        stop.set()
        computing.join()


def seen(expected: bool) -> bool:
    """Whether some observation, of many, is as expected: a state changes at any moment."""
    return any(others_are_runnable() == expected for _ in range(10_000))


def test_a_thread_that_waits_has_no_work() -> None:
    with thread_that_waits():
        assert seen(False)


def test_a_thread_that_computes_has_work() -> None:
    with thread_that_computes(), thread_that_waits():
        assert seen(True)


def test_a_kernel_that_does_not_say_leaves_it_open(monkeypatch: pytest.MonkeyPatch) -> None:
    with thread_that_waits():
        assert seen(False)
        monkeypatch.setattr(runnable_threads, "TASKS", "/proc/none")
        assert others_are_runnable()


@pytest.mark.parametrize("work", [True, False])
def test_fake_time_waits_longer_for_threads_with_work(
    monkeypatch: pytest.MonkeyPatch, work: bool
) -> None:
    polls: list[float] = []

    class Signal(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            polls.append(timeout or 0.0)
            return super().wait(timeout)

    monkeypatch.setattr(clock_module, "others_are_runnable", lambda: work)
    clock = FakeClock()
    clock.wait(Signal(), 5)
    assert clock.now_ns() == 5 * 10**9
    assert (len(polls) > 1) == work


def test_fake_time_waits_for_threads_with_work_by_their_cpu_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cpu_s = iter([10.0, 10.0, 10.1, 10.1, 10.2])
    monkeypatch.setattr(clock_module, "others_are_runnable", lambda: True)
    monkeypatch.setattr(time, "process_time", lambda: next(cpu_s))
    # Much wall time passes, as on a busy machine.
    monkeypatch.setattr(time, "monotonic", itertools.count(step=60).__next__)
    clock = FakeClock()
    clock.wait(threading.Event(), 5)
    assert clock.now_ns() == 5 * 10**9
    assert list(cpu_s) == []


def test_a_signal_stops_fake_time() -> None:
    clock, signal = FakeClock(), threading.Event()
    signal.set()
    clock.wait(signal, 5)
    assert clock.now_ns() == 0

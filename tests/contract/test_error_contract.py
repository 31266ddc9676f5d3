"""Every error of the product has one root, and says what kind of error it is."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable

import pytest

import streamquake
from streamquake.harness.interrupts import Interrupted
from streamquake.topologies.errors import ErrorKind, StreamquakeError, common_cause, kind_of

FOLDERS = ("topologies", "reports", "cluster", "faults", "harness")
FEWEST = 30
"""Fewer classes than this are not the errors of the whole product."""


def error_classes() -> set[type[BaseException]]:
    """Every class of the five folders that can be raised; a warning is shown, not raised."""
    for name in FOLDERS:
        folder = importlib.import_module(f"{streamquake.__name__}.{name}")
        for module in pkgutil.walk_packages(folder.__path__, f"{folder.__name__}."):
            importlib.import_module(module.name)
    ours = (each for each in _below(BaseException) if each.__module__.startswith("streamquake."))
    return {each for each in ours if not issubclass(each, Warning)}


def _below(root: type[BaseException]) -> set[type[BaseException]]:
    below = set(root.__subclasses__())
    return below.union(*(_below(each) for each in below))


def broken(classes: Iterable[type[BaseException]]) -> list[str]:
    """The classes without the root, and those that do not say what kind they are."""
    others = {each for each in classes if each not in (StreamquakeError, Interrupted)}
    rootless = {each for each in others if not issubclass(each, StreamquakeError)}
    kindless = {each for each in others - rootless if _kind(each) == ErrorKind.INTERNAL}
    return sorted(each.__name__ for each in rootless | kindless)


def _kind(error: type[BaseException]) -> object:
    return getattr(error, "kind", None)


def test_every_error_derives_from_the_root_and_says_its_kind() -> None:
    classes = error_classes()

    assert len(classes) >= FEWEST
    assert broken(classes) == []
    assert {_kind(each) for each in classes} - {None} == set(ErrorKind)


def test_a_class_without_root_or_kind_is_found() -> None:
    class Rootless(ValueError): ...

    class Kindless(StreamquakeError): ...

    class Whole(Kindless):
        kind = ErrorKind.UNDECIDED

    assert broken([Rootless, Kindless, Whole]) == ["Kindless", "Rootless"]


def test_bad_input_exits_with_2_and_every_other_kind_with_3() -> None:
    statuses = {kind: int(kind.exit_status) for kind in ErrorKind}

    assert statuses.pop(ErrorKind.BAD_INPUT) == 2
    assert set(statuses.values()) == {3}


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ZeroDivisionError("oops"), ErrorKind.INTERNAL),
        (KeyError("oops"), ErrorKind.INTERNAL),
        (OSError(28, "No space left on device"), ErrorKind.MACHINE_UNSUITABLE),
        (ConnectionError("hdfs://namenode:8020 does not answer"), ErrorKind.CLUSTER_FAILED),
        (TimeoutError("no answer"), ErrorKind.CLUSTER_FAILED),
        (StreamquakeError("no class of its own"), ErrorKind.INTERNAL),
    ],
)
def test_an_unknown_error_is_a_mistake_of_ours_unless_the_system_raised_it(
    error: Exception, kind: ErrorKind
) -> None:
    assert kind_of(error) == kind


@pytest.mark.parametrize(
    ("causes", "common"),
    [
        ((), "undecided"),
        (("", "undecided"), "undecided"),
        (("undecided", "", "cluster failed", "image failed"), "cluster failed"),
    ],
)
def test_the_first_failure_stands_for_several_attempts(
    causes: tuple[str, ...], common: str
) -> None:
    assert common_cause(causes) == common

"""Every error of the product has the same base class, and a kind."""

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
"""With fewer classes, some errors of the product were not found."""


def error_classes() -> set[type[BaseException]]:
    """Every error class of the five folders; warnings are shown, not raised, and do not count."""
    for name in FOLDERS:
        folder = importlib.import_module(f"{streamquake.__name__}.{name}")
        for module in pkgutil.walk_packages(folder.__path__, f"{folder.__name__}."):
            importlib.import_module(module.name)
    own = (c for c in subclasses(BaseException) if c.__module__.startswith("streamquake."))
    return {c for c in own if not issubclass(c, Warning)}


def subclasses(root: type[BaseException]) -> set[type[BaseException]]:
    direct = set(root.__subclasses__())
    return direct.union(*(subclasses(c) for c in direct))


def violations(classes: Iterable[type[BaseException]]) -> list[str]:
    """The classes without the base class, and those without a kind."""
    others = {c for c in classes if c not in (StreamquakeError, Interrupted)}
    without_base = {c for c in others if not issubclass(c, StreamquakeError)}
    without_kind = {c for c in others - without_base if _kind(c) == ErrorKind.INTERNAL}
    return sorted(c.__name__ for c in without_base | without_kind)


def _kind(error: type[BaseException]) -> object:
    return getattr(error, "kind", None)


def test_every_error_derives_from_the_base_and_has_a_kind() -> None:
    classes = error_classes()

    assert len(classes) >= FEWEST
    assert violations(classes) == []
    assert {_kind(c) for c in classes} - {None} == set(ErrorKind)


def test_a_class_without_base_or_kind_is_detected() -> None:
    class WithoutBase(ValueError): ...

    class WithoutKind(StreamquakeError): ...

    class Complete(WithoutKind):
        kind = ErrorKind.UNDECIDED

    assert violations([WithoutBase, WithoutKind, Complete]) == ["WithoutBase", "WithoutKind"]


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
def test_an_unknown_error_is_internal_unless_the_system_raised_it(
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
def test_the_first_failure_is_the_common_cause_of_several_attempts(
    causes: tuple[str, ...], common: str
) -> None:
    assert common_cause(causes) == common

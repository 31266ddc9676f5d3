"""Which faults may be in place on an idle system without being in effect."""

from __future__ import annotations

import inspect

import pytest

from streamquake.faults.fault import faults


@pytest.mark.parametrize("name", [name for name in faults if faults[name].lasts])
def test_a_fault_declares_whether_its_evidence_shows_that_it_is_in_place(name: str) -> None:
    evidence = inspect.getsource(faults[name].evidence)
    assert faults[name].shows_in_place == ("in_place=" in evidence)

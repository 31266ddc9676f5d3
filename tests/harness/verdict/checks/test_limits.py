"""Limits that could never fail are bad input, in every check."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from streamquake.harness.experiment.check import checks
from streamquake.harness.experiment.model import Limits

NUMERIC = [
    (name, field.alias or key)
    for name, check in checks.items()
    for key, field in check.model_fields.items()
    if "float" in str(field.annotation)
]


def test_there_are_numeric_limits() -> None:
    assert ("recovery", "within_s") in NUMERIC
    assert len(NUMERIC) > 12


@pytest.mark.parametrize("value", [float("inf"), float("nan"), 1e300, -1.0])
@pytest.mark.parametrize(("name", "key"), NUMERIC)
def test_a_limit_that_cannot_fail_is_rejected(name: str, key: str, value: float) -> None:
    with pytest.raises(ValidationError) as rejected:
        checks[name](**{key: value})
    assert any(key in error["loc"] for error in rejected.value.errors())


@pytest.mark.parametrize("value", [float("inf"), float("nan"), 1e300, 0.0])
@pytest.mark.parametrize("key", Limits.model_fields)
def test_the_limits_of_a_run_are_finite(key: str, value: float) -> None:
    with pytest.raises(ValidationError):
        Limits(**{key: value})

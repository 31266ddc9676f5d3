"""Findings by the expressions they were asked with, and by values that JSON can write."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any, cast

from pyspark.sql import DataFrame, Row

from streamquake.harness.reconcile.column_layout import Layout
from streamquake.harness.reconcile.readable import ABSENT, readable_finding
from streamquake.harness.reconcile.shape import Shape
from streamquake.reports.record.outcome import Finding

NO_FRAME = cast("DataFrame", None)
LAYOUT = Layout(
    expected=NO_FRAME,
    actual=NO_FRAME,
    shape=Shape(identity=("k0",)),
    notes=(),
    titles={"k0": "id", "c0": "price", "c1": "user.name"},
    canonical_columns=frozenset({"c1"}),
)


def shown(**detail: Any) -> dict[str, Any]:
    return dict(readable_finding(Finding(what="changed", detail=detail), LAYOUT).detail)


def test_columns_have_the_names_they_were_asked_by() -> None:
    found = shown(k0=1, k0_missing=True, sent=[{"c0": 1.5, "c1": "s:x"}], seen=[{}, {}])

    assert found == {"id": ABSENT, "sent": [{"price": 1.5, "user.name": "x"}], "seen": 2}


def test_what_json_has_no_word_for_is_text() -> None:
    assert json.dumps(shown(k0=float("nan"), sent=[{"c0": float("-inf")}], seen=[]))
    assert shown(k0=float("nan"))["id"] == "nan"


def test_a_rank_is_the_number_the_moment_or_the_text_it_was() -> None:
    def before(**parts: Any) -> Any:
        nothing = {
            "sign": None,
            "size": None,
            "digits": None,
            "number": None,
            "fraction": Decimal(0),
            "moment": None,
            "other": None,
        }
        return shown(before=Row(**{**nothing, **parts}))["before"]

    whole = before(number=Decimal(2**60 + 1))
    assert (whole, type(whole)) == (2**60 + 1, int)
    assert before(number=Decimal(-1), fraction=Decimal("-0.5")) == -1.5
    assert before(sign=1, size=401, digits="15") == "15e399"
    assert before(sign=-1, size=-401, digits="84~") == "-15e399"
    assert before(moment=0) == "1970-01-01T00:00:00+00:00"
    assert before(other="x") == "x"


def test_a_row_that_is_no_rank_stays_what_it_is() -> None:
    assert shown(k0=Row(a=1), before=7) == {"id": Row(a=1), "before": 7}

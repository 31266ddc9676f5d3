"""Findings show the expressions of the request, and values that JSON can represent."""

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


def readable_detail(**detail: Any) -> dict[str, Any]:
    return dict(readable_finding(Finding(what="changed", detail=detail), LAYOUT).detail)


def test_columns_have_the_names_of_the_request() -> None:
    detail = readable_detail(k0=1, k0_missing=True, sent=[{"c0": 1.5, "c1": "s:x"}], seen=[{}, {}])

    assert detail == {"id": ABSENT, "sent": [{"price": 1.5, "user.name": "x"}], "seen": 2}


def test_values_that_json_cannot_represent_are_texts() -> None:
    assert json.dumps(readable_detail(k0=float("nan"), sent=[{"c0": float("-inf")}], seen=[]))
    assert readable_detail(k0=float("nan"))["id"] == "nan"


def test_a_rank_is_shown_as_its_number_timestamp_or_text() -> None:
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
        return readable_detail(before=Row(**{**nothing, **parts}))["before"]

    whole = before(number=Decimal(2**60 + 1))
    assert (whole, type(whole)) == (2**60 + 1, int)
    assert before(number=Decimal(-1), fraction=Decimal("-0.5")) == -1.5
    assert before(sign=1, size=401, digits="15") == "15e399"
    assert before(sign=-1, size=-401, digits="84~") == "-15e399"
    assert before(moment=0) == "1970-01-01T00:00:00+00:00"
    assert before(other="x") == "x"


def test_a_row_that_is_no_rank_is_unchanged() -> None:
    assert readable_detail(k0=Row(a=1), before=7) == {"id": Row(a=1), "before": 7}

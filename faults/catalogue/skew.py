"""Skew: for a while one key, or a few, get most of the records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field, model_validator

from streamquake.faults.fault import faults
from streamquake.faults.mechanisms.data import DataFault
from streamquake.faults.mechanisms.key_shares import Skew
from streamquake.faults.mechanisms.workload_change import LoadUse, WorkloadChange

ENOUGH_RECORDS = 50
"""With fewer records a share is not significant."""


@faults.register
class SkewKeys(DataFault):
    """Send most records to a hot key, or distribute them by Zipf's law; the result stays exact."""

    name: ClassVar[str] = "skew"
    touches: ClassVar[str] = "keys"
    example: ClassVar[Mapping[str, Any]] = {"hot_share": 0.6}
    shows: ClassVar[tuple[str, ...]] = ("keys", "hottest", "hottest_share")

    hot_share: Annotated[float, Field(gt=0, lt=1)] | None = None
    """Share of all records that goes to the first key; the others share the rest evenly."""
    zipf: Annotated[float, Field(gt=0, le=4)] | None = None
    """Exponent s: key k gets a share in proportion to 1 / (k + 1) ** s."""

    @model_validator(mode="after")
    def _one_law(self) -> SkewKeys:
        if (self.hot_share is None) == (self.zipf is None):
            raise ValueError("skew needs `hot_share: SHARE` or `zipf: EXPONENT`, and not both")
        return self

    @property
    def skew(self) -> Skew:
        """The share of each key while the fault is in effect."""
        return Skew(hot_share=self.hot_share, zipf=self.zipf)

    @property
    def change(self) -> WorkloadChange:
        return WorkloadChange(skew=self.skew)

    def unknown_result(self, use: LoadUse) -> str | None:
        if use.keys is not None and use.keys < 2:
            return "skew needs a workload of several keys, got one; raise `keys`"
        return None

    def top_share(self, keys: int) -> float:
        """The share that the hottest of this many keys gets."""
        shares = self.skew.shares(max(1, keys))
        return shares[0] / sum(shares)

    def took_effect(self, figures: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
        """The hottest key's share moved at least half way from its former value to the new one. A
        load that already has this skew cannot be changed."""
        former = before.get("hottest_share", 0.0)
        expected = self.top_share(before.get("keys", figures["keys"]))
        half_way = (former + expected) / 2
        return bool(former < expected and figures["hottest_share"] >= half_way) and (
            figures["records"] >= ENOUGH_RECORDS
        )

"""A planned change of the keys' shares: no fault, but a load that is skewed by itself."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from streamquake.faults.mechanisms.key_shares import Skew


class SkewChange(Skew):
    """Another skew, from this record on."""

    at_record: Annotated[int, Field(ge=1)]

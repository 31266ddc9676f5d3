"""A planned change of the skew of a load, which is not a fault."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from streamquake.faults.mechanisms.key_shares import Skew


class SkewChange(Skew):
    """Another skew, from record `at_record` on."""

    at_record: Annotated[int, Field(ge=1)]

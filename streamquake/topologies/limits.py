"""Limits: numbers that a check may fail, so neither infinite, nor zero, nor beyond any run."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

LONGEST_S = 86_400.0
"""No part of a run is given more than a day; a larger limit would never be exceeded."""

Limit = Annotated[float, Field(gt=0, le=LONGEST_S, strict=False, allow_inf_nan=False)]
"""Seconds, more than none and at most a day."""
AtLeastNone = Annotated[float, Field(ge=0, le=LONGEST_S, strict=False, allow_inf_nan=False)]
"""Seconds, at most a day."""
Share = Annotated[float, Field(gt=0, le=1, strict=False, allow_inf_nan=False)]
"""A part of the whole, more than none of it."""

"""Numbers of documents. A limit is a number that a check may fail, so neither infinite, nor zero,
nor beyond any run."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

LONGEST_S = 86_400.0
"""No part of a run is given more than a day; a larger limit would never be exceeded."""
LONGEST_MS = 86_400_000
LARGEST_MB = 16 * 1024 * 1024
SEED_LIMIT = 2**62
"""A run hashes its seed as 64 bits with a sign; the repeats of a suite count up from theirs."""

Limit = Annotated[float, Field(gt=0, le=LONGEST_S, allow_inf_nan=False)]
"""Seconds, more than none and at most a day."""
AtLeastNone = Annotated[float, Field(ge=0, le=LONGEST_S, allow_inf_nan=False)]
"""Seconds, at most a day."""
Share = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]
"""A part of the whole, more than none of it."""
Finite = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Seed = Annotated[int, Field(ge=0, le=SEED_LIMIT)]
"""What a run draws its records and targets from."""
Milliseconds = Annotated[int, Field(gt=0, le=LONGEST_MS)]
"""More than none and at most a day."""
MillisecondsOrNone = Annotated[int, Field(ge=0, le=LONGEST_MS)]

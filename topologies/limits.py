"""Ranges of the numbers in documents. A run must be able to exceed a limit, so a limit is finite,
above zero and at most a day."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

LONGEST_S = 86_400.0
"""A day, in seconds; no run takes longer, so a larger limit would never be exceeded."""
LONGEST_MS = 86_400_000
LARGEST_MB = 16 * 1024 * 1024
SEED_LIMIT = 2**62
"""A run hashes its seed as a signed 64-bit number; each repetition of a suite adds 1."""

Limit = Annotated[float, Field(gt=0, le=LONGEST_S, allow_inf_nan=False)]
"""Seconds, above 0 and at most a day."""
ZeroOrMore = Annotated[float, Field(ge=0, le=LONGEST_S, allow_inf_nan=False)]
"""Seconds, 0 or more and at most a day."""
Share = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]
"""A share of a whole, above 0 and at most 1."""
Finite = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Seed = Annotated[int, Field(ge=0, le=SEED_LIMIT)]
"""The seed from which a run draws its records and targets."""
Milliseconds = Annotated[int, Field(gt=0, le=LONGEST_MS)]
"""Above 0 and at most a day."""
MillisecondsOrZero = Annotated[int, Field(ge=0, le=LONGEST_MS)]

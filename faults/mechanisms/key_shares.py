"""How the records of a load are distributed over keys: evenly, one hot key, or by Zipf's law."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from streamquake.topologies.model import Model


class Skew(Model):
    """The share of each key. With neither field set all keys have the same share."""

    hot_share: Annotated[float, Field(gt=0, lt=1)] | None = None
    """Share of all records that goes to the first key; the other keys share the rest evenly."""
    zipf: Annotated[float, Field(gt=0, le=4)] | None = None
    """Exponent s: key k gets a share in proportion to 1 / (k + 1) ** s."""

    @model_validator(mode="after")
    def _one_law(self) -> Skew:
        if self.hot_share is not None and self.zipf is not None:
            raise ValueError("a skew is either `hot_share` or `zipf`, not both")
        return self

    def shares(self, keys: int) -> list[float]:
        """The weight of each key, by its number."""
        if self.zipf is not None:
            return [(key + 1) ** -self.zipf for key in range(keys)]
        if self.hot_share is not None and keys > 1:
            return [self.hot_share] + [(1 - self.hot_share) / (keys - 1)] * (keys - 1)
        return [1.0] * keys

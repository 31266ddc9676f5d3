"""Several sends of one identity, each with a value of its own."""

from __future__ import annotations

from streamquake.harness.selftest.data_shape import DataShape, data_shapes


@data_shapes.register
class Resent(DataShape):
    """Every identity is sent three times. What is altered has the value of the next send."""

    name = "resent"
    sends = 3

    def keys(self, units: int) -> int:
        return 16

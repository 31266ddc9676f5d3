"""Many keys with short streams: grouping by key makes nothing small."""

from __future__ import annotations

from streamquake.harness.selftest.data_shape import DataShape, data_shapes

UNITS_PER_KEY = 8


@data_shapes.register
class ManyKeys(DataShape):
    """A key for every eight records."""

    name = "many_keys"

    def keys(self, units: int) -> int:
        return units // UNITS_PER_KEY

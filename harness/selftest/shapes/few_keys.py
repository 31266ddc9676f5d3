"""Few keys with long streams: most of what comes has neighbours of its own key near by."""

from __future__ import annotations

from streamquake.harness.selftest.data_shape import DataShape, data_shapes


@data_shapes.register
class FewKeys(DataShape):
    """Sixteen keys, dense sequence numbers."""

    name = "few_keys"

    def keys(self, units: int) -> int:
        return 16

"""Running totals as a stateful operator: each record becomes one row, with the total of its key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

ROWS = "key STRING, seq BIGINT, total BIGINT, records BIGINT"
STATE = "total BIGINT, records BIGINT"


def running_totals(records: DataFrame) -> DataFrame:
    """Rows of `key`, `seq`, `total` and `records` for records of `key`, `seq` and `amount`."""
    return records.groupBy("key").applyInPandasWithState(
        _totals, ROWS, STATE, "append", GroupStateTimeout.NoTimeout
    )


def _totals(
    key: tuple[str], frames: Iterable[pd.DataFrame], state: GroupState
) -> Iterator[pd.DataFrame]:
    total, records = state.get if state.exists else (0, 0)
    # The exchange mixes the records of a partition; `seq` restores their order.
    batch: Any = pd.concat(list(frames)).sort_values("seq")
    totals = total + batch["amount"].cumsum()
    counts = range(records + 1, records + len(batch) + 1)
    state.update((int(totals.iloc[-1]), records + len(batch)))
    yield pd.DataFrame(
        {"key": key[0], "seq": batch["seq"], "total": totals, "records": list(counts)}
    )

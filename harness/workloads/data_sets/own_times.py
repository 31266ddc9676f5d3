"""The times that the records of a data set have in one of their fields, as a pace to send them."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import Field

from streamquake.harness.experiment.outputs import ColumnName
from streamquake.harness.workloads.data_sets.data_set import DataSet
from streamquake.harness.workloads.data_sets.json_line import shown
from streamquake.topologies.model import Model

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
CALENDAR_MS = range(-62_135_596_800_000, 253_402_300_800_000)
"""The milliseconds of the years 1 to 9999."""
TEXT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?"
    r"(Z|[+-][0-9]{2}:?[0-9]{2})?"
)
"""A time as SQL and ISO 8601 write it. Others that Python reads, such as 1712041500000 as the year
1712, are another's number or a week."""
LONGEST_S = 24 * 3600.0


class OwnTimes(Model):
    """The pace at which the records were first made."""

    by: ColumnName
    """The field with their time: milliseconds, or text such as 2026-01-31 12:00:00.5 or
    2026-01-31T12:00:00Z. A record that is earlier than one before it is sent right after that."""
    speed: Annotated[float, Field(ge=0.000_001, le=1_000_000)] = 1.0
    """How many times as fast as it was."""

    def after_ns(self, found: DataSet) -> list[int]:
        """For each record, the nanoseconds from the first record until it is sent. Raises
        ValueError for a record without a time, and for a load that takes more than a day."""
        times, first, latest = [], None, 0
        for number, record in found.records():
            try:
                at_ns = _nanoseconds(record.get(self.by))
            except ValueError as error:
                raise ValueError(f"record {number}: {self.by} {error}") from error
            first = at_ns if first is None else first
            latest = max(latest, at_ns - first)
            times.append(int(latest / self.speed))
        if (seconds := latest / self.speed / 1e9) > LONGEST_S:
            raise ValueError(
                f"at speed {self.speed:g} the records take {seconds / 3600:,.0f} hours, more than "
                f"{LONGEST_S / 3600:.0f}; raise the speed or send a part of them"
            )
        return times


def _nanoseconds(value: Any) -> int:
    """The time of a record in nanoseconds since 1970; text without a zone is UTC."""
    if isinstance(value, int) and not isinstance(value, bool) and value in CALENDAR_MS:
        return value * 1_000_000
    if isinstance(value, str) and TEXT.fullmatch(value):
        try:
            at = datetime.fromisoformat(value)
        except ValueError as error:
            raise _no_time(value) from error
        since = (at if at.tzinfo is not None else at.replace(tzinfo=UTC)) - EPOCH
        return (since.days * 86_400 + since.seconds) * 1_000_000_000 + since.microseconds * 1_000
    raise _no_time(value)


def _no_time(value: Any) -> ValueError:
    return ValueError(
        f"is {shown(value)}; expected milliseconds or a time such as 2026-01-31 12:00"
    )

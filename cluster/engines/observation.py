"""The result of polling an engine: an event without a time stamp."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from streamquake.reports.record.event import Action, EventDraft, Kind
from streamquake.reports.record.history import usual_kind


@dataclass(frozen=True, kw_only=True)
class Observation:
    """A change that a poll observed for the first time."""

    action: Action
    value: Mapping[str, Any]
    kind: Kind | None = None
    """None for the usual kind of the action."""
    error: str | None = None

    def draft(self, at_ns: int, process: str) -> EventDraft:
        return EventDraft(
            at_ns=at_ns,
            process=process,
            kind=self.kind or usual_kind(self.action),
            action=self.action,
            value=self.value,
            error=self.error,
        )

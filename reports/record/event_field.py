"""A typed field of an event, read from the event's JSON only when it is accessed.

A history has tens of thousands of events, and most of their fields are never read, so nothing is
copied.
"""

from __future__ import annotations

from typing import Generic, TypeVar, overload

from streamquake.reports.record.event import Event
from streamquake.topologies.errors import ErrorKind, StreamquakeError

T = TypeVar("T")


class MissingField(StreamquakeError, KeyError):
    """An event lacks a field that the records of every version have."""

    kind = ErrorKind.BAD_INPUT

    def __init__(self, event: Event, name: str) -> None:
        super().__init__(f"event {event.index}, `{event.action}`, is recorded without its `{name}`")

    def __str__(self) -> str:
        return str(self.args[0])


class EventField(Generic[T]):
    """A field of `Event.value`.

    A field without a default is in the records of every version; reading it from a damaged record
    that lacks it raises MissingField. A field with a default may be missing.
    """

    def __init__(self, *default: T, name: str = "") -> None:
        """`name` is the field's name in the record, where it differs from the attribute's."""
        self.name = name
        self.default = default

    def __set_name__(self, owner: type, attribute: str) -> None:
        self.name = self.name or attribute

    @overload
    def __get__(self, event: None, owner: type) -> EventField[T]: ...
    @overload
    def __get__(self, event: Event, owner: type) -> T: ...
    def __get__(self, event: Event | None, owner: type) -> EventField[T] | T:
        return self if event is None else self.of(event)

    def of(self, event: Event) -> T:
        """The field's value in an event. Raises MissingField where a field without a default is
        missing."""
        value: T
        if self.default:
            value = event.value.get(self.name, self.default[0])
        elif self.name in event.value:
            value = event.value[self.name]
        else:
            raise MissingField(event, self.name)
        return value

"""A typed field of an event, read from the event's JSON when it is asked for.

A history has tens of thousands of events, of which most fields are never read: nothing is copied.
"""

from __future__ import annotations

from typing import Generic, TypeVar, overload

from streamquake.reports.record.event import Event

T = TypeVar("T")


class EventField(Generic[T]):
    """A field of `Event.value`.

    Without a default every version records it, and reading it raises KeyError where a damaged
    record lacks it. With a default, records may lack it.
    """

    def __init__(self, *default: T, name: str = "") -> None:
        """`name` is that in the record, where it differs from the attribute's."""
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
        """The field of an event. Raises KeyError, as above."""
        value: T
        if self.default:
            value = event.value.get(self.name, self.default[0])
        else:
            value = event.value[self.name]
        return value

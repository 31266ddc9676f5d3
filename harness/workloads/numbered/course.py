"""The course of a load: its turns so far, and what was acknowledged on each stretch between."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from streamquake.harness.workloads.numbered.records import Recipe
from streamquake.harness.workloads.numbered.tally import Delivered, Tally, figures
from streamquake.harness.workloads.numbered.turns import Turn, in_force

RATE_OVER_NS = 3 * 10**9
"""The rate is taken over at most this long, so that an old stall does not lower it."""


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """The records between two turns."""

    active: Collection[str]
    began_ns: int
    reads: bool
    tally: Tally = field(default_factory=Tally)


class Course:
    """Owned by the thread that sends; others may ask what was sent."""

    def __init__(self, recipe_of: Callable[[Sequence[Turn]], Recipe], now_ns: int) -> None:
        self._recipe_of = recipe_of
        self._turns: tuple[Turn, ...] = ()
        self._acknowledged = 0
        self._marks: deque[tuple[int, int]] = deque([(now_ns, 0)], maxlen=16)
        self.recipe = recipe_of(())
        self._stretches = [Stretch(active=(), began_ns=now_ns, reads=False)]

    @property
    def stretch(self) -> Stretch:
        """Where records go that are sent now."""
        return self._stretches[-1]

    def turn(self, turn: Turn, now_ns: int) -> bool:
        """Take a turn; False when it changes nothing. Raises ValueError for one that is unknown."""
        if turn.parameters is None and turn.disturbance not in self.stretch.active:
            return False
        turns = (*self._turns, turn)
        self.recipe = self._recipe_of(turns)
        self._turns = turns
        active = in_force(turns, turn.at_record)
        reads = any(begun.change.seen_inside for begun in active.values())
        self._stretches.append(Stretch(active=tuple(active), began_ns=now_ns, reads=reads))
        self.mark(now_ns)
        return True

    def factor(self) -> float:
        """Times the load's own rate, now."""
        active = in_force(self._turns, self.recipe.records)
        return math.prod(turn.change.rate_factor for turn in active.values())

    def acknowledged(self, index: int, stretch: Stretch, record: Delivered) -> None:
        """A record of a stretch was acknowledged."""
        self._acknowledged += 1
        stretch.tally.add(record)
        if stretch.reads:
            stretch.tally.read(record, self.recipe.event_time_ms(index))

    def mark(self, now_ns: int) -> None:
        """Remember how many were acknowledged by now; a few times a second, for the rate."""
        self._marks.append((now_ns, self._acknowledged))

    def sent_under(self, disturbance: str, now_ns: int) -> dict[str, Any]:
        """What was acknowledged since the disturbance was last begun or ended."""
        stretches = self._stretches.copy()
        active = disturbance in stretches[-1].active
        same = list(takewhile(lambda s: (disturbance in s.active) == active, reversed(stretches)))
        began_ns = same[-1].began_ns
        return {
            "active": active,
            "watched_s": round((now_ns - began_ns) / 1e9, 3),
            "records_per_s": round(self._rate_since(began_ns, now_ns), 1),
            **figures(stretch.tally for stretch in same),
        }

    def _rate_since(self, began_ns: int, now_ns: int) -> float:
        since_ns = max(began_ns, now_ns - RATE_OVER_NS)
        at_ns, before = next(
            (mark for mark in self._marks.copy() if mark[0] >= since_ns), (now_ns, 0)
        )
        return (self._acknowledged - before) / ((now_ns - at_ns) / 1e9) if now_ns > at_ns else 0.0

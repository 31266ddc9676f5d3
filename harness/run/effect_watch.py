"""When the evidence of one fault in effect is taken again: every few seconds, and before its heal.

A look runs in a thread of its own, one at a time. One that is not done when the heal is due is
dropped, because it may have seen the heal itself: no heal waits for a look.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future

from streamquake.faults.injection.verification import RepeatedVerification

EVERY_NS = 5 * 10**9
AHEAD_NS = 3 * 10**9
"""How long before a heal the last look begins: a cut is seen by attempts that must time out."""
UNVERIFIED_NS = 15 * 10**9
"""How long before its heal a fault may have been found last in effect or in place: two looks in a
row may fail."""
LAST_LOOK_NS = 10 * 10**9
"""How long the last look of a fault without an end of its own is waited for."""


class EffectWatch:
    """The looks at one step from its effect to its heal; moments on the run's clock."""

    def __init__(
        self,
        poll: Callable[[], RepeatedVerification],
        pool: Executor,
        wake: Callable[[], None],
        *,
        seen_ns: int,
        heal_due_ns: int | None,
    ) -> None:
        self.last_seen_ns = seen_ns
        """When the effect was verified last."""
        self.ended = False
        self._stood_ns = seen_ns
        """When the fault was seen last to be in effect or in place, or to be held up by another
        step of the schedule that kept a target down."""
        self._inspect, self._pool, self._wake = poll, pool, wake
        self._last_due_ns: int | None = None
        if heal_due_ns is not None:
            self._last_due_ns = heal_due_ns - min(AHEAD_NS, (heal_due_ns - seen_ns) // 2)
        self._due_ns = self._next(seen_ns)
        self._looking: Future[RepeatedVerification] | None = None
        self._last_asked_ns: int | None = None

    @property
    def looking(self) -> Future[RepeatedVerification] | None:
        """The look that is under way."""
        return self._looking

    def advance(self, now_ns: int) -> RepeatedVerification | None:
        """Begin a look that is due; what a finished one found."""
        if (found := self.finished()) is not None or self._looking is not None or self.ended:
            return found
        if self._due_ns is not None and now_ns >= self._due_ns:
            self._due_ns = self._next(now_ns)
            self._looking = self._pool.submit(self._inspect)
            self._looking.add_done_callback(lambda _: self._wake())
        return None

    def finished(self) -> RepeatedVerification | None:
        """What a look found that is done and not yet taken."""
        if self._looking is None or not self._looking.done():
            return None
        found, self._looking = self._looking.result(), None
        if found.in_effect:
            self.last_seen_ns = found.seen_ns
        if found.still_holds or found.kept_down:
            self._stood_ns = found.seen_ns
        self.ended = self.ended or bool(found.ended_on)
        return found

    def unverified_ns(self, now_ns: int) -> int:
        """For how long no look found the fault in effect or in place; 0 where that is no longer
        than some failed looks, where its end is known, and where another step kept a target down
        meanwhile."""
        since_ns = now_ns - self._stood_ns
        return 0 if self.ended or since_ns <= UNVERIFIED_NS else since_ns

    def is_through(self, now_ns: int) -> bool:
        """Whether a last look has been taken, where no moment of the heal was known; the first
        call asks for it."""
        if self._last_asked_ns is None:
            self._last_asked_ns = self._last_due_ns = self._due_ns = now_ns
        waited = now_ns - self._last_asked_ns >= LAST_LOOK_NS
        return self.ended or waited or (self._due_ns is None and self._looking is None)

    def _next(self, now_ns: int) -> int | None:
        """The moment of the look after one at `now_ns`; None after the last."""
        if self._last_due_ns is None:
            return now_ns + EVERY_NS
        return min(now_ns + EVERY_NS, self._last_due_ns) if now_ns < self._last_due_ns else None

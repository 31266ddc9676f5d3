"""When a fault in effect is verified again: every few seconds, and shortly before its heal.

Each check runs in a background thread, one at a time. A check that is not done when the heal is due
is dropped, because it may have observed the heal itself. No heal waits for a check.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future

from streamquake.faults.injection.verification import RepeatedVerification
from streamquake.reports.record.fault_events import UNVERIFIED_NS

CHECK_EVERY_NS = 5 * 10**9
FINAL_CHECK_LEAD_NS = 3 * 10**9
"""How long before a heal the final check begins: a cut network shows in connection attempts that
must time out."""
FINAL_CHECK_LIMIT_NS = 10 * 10**9
"""How long the schedule waits at most for the final check of a fault without `for_s`."""


class EffectWatch:
    """The repeated checks of one step, from its effect to its heal; moments on the run's clock."""

    def __init__(
        self,
        verify: Callable[[], RepeatedVerification],
        pool: Executor,
        wake: Callable[[], None],
        *,
        effect_ns: int,
        heal_due_ns: int | None,
    ) -> None:
        self.last_verified_ns = effect_ns
        """When the effect was verified last."""
        self.has_ended = False
        self.last_in_place_ns = effect_ns
        """When a check last found the fault in effect or in place, or found that another step of
        the schedule kept a target down."""
        self._verify, self._pool, self._wake = verify, pool, wake
        self._last_due_ns: int | None = None
        if heal_due_ns is not None:
            self._last_due_ns = heal_due_ns - min(
                FINAL_CHECK_LEAD_NS, (heal_due_ns - effect_ns) // 2
            )
        self._due_ns = self._next(effect_ns)
        self._check: Future[RepeatedVerification] | None = None
        self._final_requested_ns: int | None = None

    @property
    def check_under_way(self) -> Future[RepeatedVerification] | None:
        """The check that is running; None where there is none."""
        return self._check

    def advance(self, now_ns: int) -> RepeatedVerification | None:
        """Start a check that is due; the result of a check that is done, or None."""
        verification = self.take_result()
        if verification is not None or self._check is not None or self.has_ended:
            return verification
        if self._due_ns is not None and now_ns >= self._due_ns:
            self._due_ns = self._next(now_ns)
            self._check = self._pool.submit(self._verify)
            self._check.add_done_callback(lambda _: self._wake())
        return None

    def take_result(self) -> RepeatedVerification | None:
        """The result of a check that is done, once; None where there is none."""
        if self._check is None or not self._check.done():
            return None
        verification, self._check = self._check.result(), None
        if verification.in_effect:
            self.last_verified_ns = verification.seen_ns
        if verification.still_holds or verification.kept_down:
            self.last_in_place_ns = verification.seen_ns
        self.has_ended = self.has_ended or bool(verification.ended_on)
        return verification

    def unverified_ns(self, now_ns: int) -> int:
        """For how long no check found the fault in effect or in place, in ns. It is 0 if two failed
        checks explain it, if the fault is known to have ended, and if another step kept a target
        down in that time."""
        since_ns = now_ns - self.last_in_place_ns
        return 0 if self.has_ended or since_ns <= UNVERIFIED_NS else since_ns

    def final_check_is_done(self, now_ns: int) -> bool:
        """Whether the final check of a fault without `for_s` is done; the first call requests
        it."""
        if self._final_requested_ns is None:
            self._final_requested_ns = self._last_due_ns = self._due_ns = now_ns
        waited = now_ns - self._final_requested_ns >= FINAL_CHECK_LIMIT_NS
        return self.has_ended or waited or (self._due_ns is None and self._check is None)

    def _next(self, now_ns: int) -> int | None:
        """The moment of the check after one at `now_ns`; None after the final check."""
        if self._last_due_ns is None:
            return now_ns + CHECK_EVERY_NS
        return (
            min(now_ns + CHECK_EVERY_NS, self._last_due_ns) if now_ns < self._last_due_ns else None
        )

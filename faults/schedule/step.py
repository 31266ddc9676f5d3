"""A schedule's steps: which fault is injected into which target, when, and for how long."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, model_validator

from streamquake.faults.fault import Fault, faults
from streamquake.topologies.limits import Finite, Limit, ZeroOrMore
from streamquake.topologies.model import Model

Seconds = ZeroOrMore

KINDS = {
    "after_s": "`after_s: SECONDS`",
    "event": "`event: NAME`",
    "between": "`between: [EVENT, EVENT]`",
    "at_record": "`at_record: NUMBER`",
    "metric": "`metric: NAME` with `above` or `below`",
    "effect_of": "`effect_of: STEP`",
}
"""Kind of a trigger -> how it is written."""
GOES_WITH = {
    "nth": ("event", "between"),
    "delay_s": ("event", "between", "at_record", "metric", "effect_of"),
    "tries": ("between",),
    "above": ("metric",),
    "below": ("metric",),
    "for_s": ("metric",),
}
"""Keys that qualify a trigger -> the kinds of trigger they qualify."""


class TriggerSpec(Model):
    """A trigger, which waits from steady state on: exactly one of the first six keys."""

    after_s: Seconds | None = None
    """Seconds after steady state."""
    event: str | None = None
    """An event of the history, by its name."""
    between: tuple[str, str] | None = None
    """Inject after the first event and before the second one of the same checkpoint (or of the same
    restart). Whether the window was met is judged afterwards, by the system's own time stamps. A
    checkpoint may have completed at its last acknowledgement, unless it was seen in progress after
    that; a window that opens with all acknowledgements closes when the completion is seen."""
    at_record: Annotated[int, Field(ge=0)] | None = None
    """The index of a record of the load, from 0: inject when it and all earlier records are
    acknowledged. The load reports them about three times a second."""
    metric: str | None = None
    """A series of the run's samples; the largest value of its places counts."""
    effect_of: Annotated[int, Field(ge=1)] | str | None = None
    """An earlier step of the schedule, by its number, from 1, or by the name of its fault if only
    one step has it. Inject when that step is in effect."""

    nth: Annotated[int, Field(ge=1)] = 1
    """Which occurrence of the event (or of the first of two) counts."""
    delay_s: Seconds = 0.0
    """Seconds to wait after the trigger."""
    tries: Annotated[int, Field(ge=1, le=20)] = 1
    """How many injections to try at most, when the window between two events was missed. Each try
    on `one of` a role chooses another node than the one before: a TaskManager that was killed has
    no task when it runs again."""
    above: Finite | None = None
    """The threshold that the metric must be above."""
    below: Finite | None = None
    """The threshold that the metric must be below."""
    for_s: Seconds = 0.0
    """How long the metric must have been beyond its threshold."""

    @property
    def kind(self) -> str:
        return next(kind for kind in KINDS if getattr(self, kind) is not None)

    @model_validator(mode="after")
    def _one_trigger(self) -> TriggerSpec:
        given = [kind for kind in KINDS if getattr(self, kind) is not None]
        if len(given) != 1:
            received = " and ".join(f"`{kind}`" for kind in given) or "none"
            raise ValueError(f"a trigger is either {', or '.join(KINDS.values())}; got {received}")
        for key, kinds in GOES_WITH.items():
            if (
                getattr(self, key) != TriggerSpec.model_fields[key].default
                and given[0] not in kinds
            ):
                allowed = " or ".join(f"`{kind}`" for kind in kinds)
                raise ValueError(f"`{key}` goes with {allowed}, got `{given[0]}`")
        if self.metric is not None and (self.above is None) == (self.below is None):
            raise ValueError("`metric` needs one threshold: either `above: X` or `below: X`")
        if self.between is not None and self.between[0] == self.between[1]:
            raise ValueError(f'`between` needs two different events, got "{self.between[0]}" twice')
        return self

    def __str__(self) -> str:
        nth = f" no. {self.nth}" if self.nth > 1 else ""
        match self.kind:
            case "after_s":
                return f"{self.after_s:g} s after steady state"
            case "event":
                message = f"at {self.event}{nth}"
            case "between":
                first, second = self.between or ("", "")
                message = f"between {first}{nth} and {second}"
            case "at_record":
                message = f"at record {self.at_record}"
            case "metric":
                limit = f"above {self.above:g}" if self.above is not None else ""
                message = f"when {self.metric} is {limit or f'below {self.below:g}'}"
                message += f" for {self.for_s:g} s" if self.for_s else ""
            case _:
                step = self.effect_of if isinstance(self.effect_of, str) else f"#{self.effect_of}"
                message = f"when {step} is in effect"
        message += f" + {self.delay_s:g} s" if self.delay_s else ""
        return message + (f", {self.tries} tries" if self.tries > 1 else "")


class Step(Model):
    """One fault of a schedule: what, on which target, when, for how long."""

    fault: str
    params: Mapping[str, Any] = {}
    target: str
    when: TriggerSpec
    for_s: Limit | None = None
    """Seconds from effect to heal; None heals at the end of the disturbance phase."""

    def build_fault(self) -> Fault:
        """The fault with its parameters. Raises UnknownName or pydantic's ValidationError."""
        return faults[self.fault](**self.params)

    def document(self) -> dict[str, Any]:
        """The step as an entry of `faults` in YAML."""
        when = self.when.model_dump(mode="json", exclude_defaults=True)
        at = {"at_s": self.when.after_s} if self.when.after_s is not None else {"when": when}
        until = {} if self.for_s is None else {"for_s": self.for_s}
        return {self.fault: dict(self.params), "target": self.target, **at, **until}

"""What a fault is: a disturbance, the proof that it bites, and its undoing.

A fault is one file in `faults/catalogue/`: a frozen model whose fields are its YAML parameters
(units in the names), a `name`, and four methods. Everything else (intents written first, waiting
for the effect, healing on every path) is the harness's and the same for all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from streamquake.cluster.cluster import Cluster, Node
from streamquake.cluster.links import LinkPath
from streamquake.cluster.runtime import Bracket
from streamquake.topologies.model import Model
from streamquake.topologies.registry import Registry

Aim = Literal["nodes", "links"]


@dataclass(frozen=True, kw_only=True)
class LinkTarget:
    """A whole link as a target: every node pair's path of it."""

    name: str
    paths: tuple[LinkPath, ...]


Target = Node | LinkTarget


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What was seen of a disturbance on one target: whether it bites, and by which signs.

    `in_effect` and `gone` may both be False: half laid, half removed, or laid without a bite.
    """

    in_effect: bool
    gone: bool
    seen: Mapping[str, Any] = field(default_factory=dict)


class Fault(Model):
    """The base of every fault."""

    name: ClassVar[str]
    aims: ClassVar[Aim]
    """Whether its targets are nodes or links."""
    touches: ClassVar[str]
    """What it disturbs (`process`, `link`); two faults that touch the same thing of one target
    do not overlap."""

    example: ClassVar[Mapping[str, Any]] = {}
    """Parameters that make a valid fault, shown by `list` and used by the contract suite."""

    def inject(self, cluster: Cluster, target: Target) -> Bracket:
        """Disturb one target."""
        raise NotImplementedError

    def evidence(self, cluster: Cluster, target: Target) -> Evidence:
        """Look whether the disturbance can be seen on the target now."""
        raise NotImplementedError

    def heal(self, cluster: Cluster, target: Target) -> Bracket:
        """Undo it. May run twice; a target that is gone is healed."""
        raise NotImplementedError


faults: Registry[Fault] = Registry("fault", "streamquake.faults.catalogue")


class When(Model):
    """A trigger: seconds after steady state, or the nth event since then, plus a delay."""

    after_s: Annotated[float, Field(ge=0, strict=False)] | None = None
    event: str | None = None
    nth: Annotated[int, Field(ge=1)] = 1
    delay_s: Annotated[float, Field(ge=0, strict=False)] = 0.0

    @model_validator(mode="after")
    def _one_trigger(self) -> When:
        if (self.after_s is None) == (self.event is None):
            raise ValueError("a trigger is either `after_s: SECONDS` or `event: NAME`")
        return self

    def __str__(self) -> str:
        if self.event is None:
            return f"{self.after_s:g} s after steady state"
        nth = f" no. {self.nth}" if self.nth > 1 else ""
        return f"at {self.event}{nth}" + (f" + {self.delay_s:g} s" if self.delay_s else "")


class Step(Model):
    """One fault of a schedule: what, on which target, when, for how long."""

    fault: str
    params: Mapping[str, Any] = {}
    target: str
    when: When
    for_s: Annotated[float, Field(gt=0, strict=False)] | None = None
    """Seconds from effect to heal; None leaves it to the end of the disturbance."""

    def made(self) -> Fault:
        """The fault with its parameters. Raises UnknownName or pydantic's ValidationError."""
        return faults[self.fault](**self.params)


def node_of(target: Target) -> Node:
    """The node a fault strikes; the loader has seen to it that targets fit the fault's aim."""
    if not isinstance(target, Node):
        raise TypeError(f"{target.name} is a link, not a node")
    return target


def link_of(target: Target) -> LinkTarget:
    """The link a fault strikes."""
    if not isinstance(target, LinkTarget):
        raise TypeError(f"{target.name} is a node, not a link")
    return target

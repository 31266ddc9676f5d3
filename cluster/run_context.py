"""What a run gives the cluster it uses, so that faults and engines can reach it there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from streamquake.cluster.job import CurrentJob
from streamquake.cluster.steering import SteerableLoad


@dataclass(kw_only=True)
class RunContext:
    """One run on a cluster. It is filled in as the run comes along, and goes as a whole at its end.

    A cluster that was started by hand has a context of its own id, with nothing else in it.
    """

    run_id: str
    """`${run}` of its job; another id than the cluster's where several runs use that in turn."""
    job: CurrentJob | None = None
    """Its job, while there is one."""
    steering: SteerableLoad | None = None
    """Its load, once it can be steered."""
    begins: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    """Topic -> partition -> where the run's records begin, in topics that may hold others before;
    those that were made for the run are not named."""
    supervised: set[str] = field(default_factory=set)
    """Nodes that its supervisor starts again when they end."""

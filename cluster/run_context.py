"""The context of the run that uses a cluster; faults and engines read it from the cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from streamquake.cluster.job import CurrentJob
from streamquake.cluster.steering import SteerableLoad


@dataclass(kw_only=True)
class RunContext:
    """One run on a cluster.

    It is filled during the run, and discarded as a whole at its end. A cluster that was started
    manually has an empty context with its own id.
    """

    run_id: str
    """`${run}` of its job; differs from the cluster's id where several runs use the cluster one
    after the other."""
    job: CurrentJob | None = None
    """Its job, while there is one."""
    steering: SteerableLoad | None = None
    """Its load, once it can be steered."""
    begins: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    """Topic -> partition -> the offset at which the run's records begin, in topics that may contain
    earlier records; topics created for the run are left out."""
    remembered: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Service -> what it remembered of earlier runs when this one began; see `RemembersRuns`."""
    committed: dict[str, dict[int, int]] = field(default_factory=dict)
    """Topic -> partition -> the next offset that its job is known to have committed; for a job
    whose process is not always reachable."""
    supervised: set[str] = field(default_factory=set)
    """Nodes that the run's supervisor restarts when they end."""

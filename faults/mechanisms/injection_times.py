"""Injection times by the cluster's clock, for faults whose runtime calls give no time stamps."""

from __future__ import annotations

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.runtime.runtime import InjectionTimes


def until_now(cluster: Cluster, called_ns: int, how: str) -> InjectionTimes:
    """From a call, epoch nanoseconds, to this moment, at which its effect was observed by `how`."""
    return InjectionTimes(called_ns=called_ns, seen_ns=cluster.clock.epoch_ns(), how=how)


def nothing_done(cluster: Cluster, why: str = "nothing to do") -> InjectionTimes:
    """The times of a heal that found nothing to undo."""
    now_ns = cluster.clock.epoch_ns()
    return InjectionTimes(called_ns=now_ns, seen_ns=now_ns, how=why)

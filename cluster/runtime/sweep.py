"""Sweep: the resources that dead runs left, found by label and removed.

The resources of a run are labelled with the run and its owner process. They are leftovers only if
that process has ended; resources of live runs, and clusters kept on purpose (`up`, `--keep`), which
have no owner, are removed only on request (`everything`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from streamquake.cluster.runtime import labels
from streamquake.cluster.runtime.runtime import ContainerError, ContainerRuntime, FoundResource


@dataclass(frozen=True, kw_only=True)
class Leftover:
    """The resources of one run, with its reaper among the containers."""

    run_id: str
    containers: tuple[FoundResource, ...]
    networks: tuple[FoundResource, ...]
    kept: bool
    """Whether it has no owner on purpose: a cluster kept by `up` or `--keep`."""


@dataclass(frozen=True, kw_only=True)
class SweepResult:
    """What a sweep removed, and what it could not."""

    removed: tuple[Leftover, ...]
    failures: tuple[str, ...]


def leftovers(runtime: ContainerRuntime, *, everything: bool = False) -> tuple[Leftover, ...]:
    """The runs of which something is left, by run id.

    Those of dead owners; with `everything` also kept clusters and the runs of processes that
    live. Raises ContainerError, RuntimeUnavailable.
    """
    containers = _by_run(
        [*runtime.find({labels.RUN: ""}), *runtime.find({labels.REAPER: ""})], everything
    )
    networks = _by_run(runtime.find_networks({labels.RUN: ""}), everything)
    return tuple(
        Leftover(
            run_id=run_id,
            containers=tuple(containers[run_id]),
            networks=tuple(networks[run_id]),
            kept=_kept([*containers[run_id], *networks[run_id]]),
        )
        for run_id in sorted(containers.keys() | networks.keys())
    )


def sweep(runtime: ContainerRuntime, *, everything: bool = False) -> SweepResult:
    """Remove the leftovers, reapers first; every removal is tried whatever the others do."""
    removed = leftovers(runtime, everything=everything)
    failures: list[str] = []
    for leftover in removed:
        for container in sorted(leftover.containers, key=lambda c: labels.REAPER not in c.labels):
            failures += _tried(runtime.remove, container)
        for network in leftover.networks:
            failures += _tried(runtime.remove_network, network)
    return SweepResult(removed=removed, failures=tuple(failures))


def _tried(remove: Callable[[str], None], thing: FoundResource) -> list[str]:
    try:
        remove(thing.id)
    except ContainerError as error:
        return [f"{thing.name}: {error}"]
    return []


def _by_run(
    found: Iterable[FoundResource], everything: bool
) -> defaultdict[str, list[FoundResource]]:
    runs: defaultdict[str, list[FoundResource]] = defaultdict(list)
    for thing in found:
        if everything or not labels.owner_is_alive(thing.labels):
            runs[thing.labels.get(labels.RUN) or thing.labels[labels.REAPER]].append(thing)
    return runs


def _kept(things: Iterable[FoundResource]) -> bool:
    return all(not thing.labels.get(labels.OWNER) for thing in things)

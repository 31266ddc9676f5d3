"""Sweep: find the resources of dead runs by label and remove them.

The resources of a run are labelled with the run and its owner process. They are leftovers if that
process has ended. Resources of live runs, and clusters without an owner (`up`, `--keep`), are
removed only on request (`everything`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from streamquake.cluster.runtime import labels
from streamquake.cluster.runtime.runtime import ContainerError, ContainerRuntime, FoundResource


@dataclass(frozen=True, kw_only=True)
class Leftover:
    """The resources of one run; the containers include its reaper."""

    run_id: str
    containers: tuple[FoundResource, ...]
    networks: tuple[FoundResource, ...]
    kept: bool
    """Whether it is a cluster kept by `up` or `--keep`, which has no owner."""


@dataclass(frozen=True, kw_only=True)
class SweepResult:
    """The removed leftovers, and the failed removals."""

    removed: tuple[Leftover, ...]
    failures: tuple[str, ...]


def leftovers(runtime: ContainerRuntime, *, everything: bool = False) -> tuple[Leftover, ...]:
    """The leftovers, sorted by run id.

    Those of dead owners; with `everything` also kept clusters and live runs. Raises ContainerError,
    RuntimeUnavailable.
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
            kept=_has_no_owner([*containers[run_id], *networks[run_id]]),
        )
        for run_id in sorted(containers.keys() | networks.keys())
    )


def sweep(runtime: ContainerRuntime, *, everything: bool = False) -> SweepResult:
    """Remove the leftovers, reapers first; a failed removal does not stop the others."""
    removed = leftovers(runtime, everything=everything)
    failures: list[str] = []
    for leftover in removed:
        for container in sorted(leftover.containers, key=lambda c: labels.REAPER not in c.labels):
            failures += _removal_errors(runtime.remove, container)
        for network in leftover.networks:
            failures += _removal_errors(runtime.remove_network, network)
    return SweepResult(removed=removed, failures=tuple(failures))


def _removal_errors(remove: Callable[[str], None], resource: FoundResource) -> list[str]:
    try:
        remove(resource.id)
    except ContainerError as error:
        return [f"{resource.name}: {error}"]
    return []


def _by_run(
    found: Iterable[FoundResource], everything: bool
) -> defaultdict[str, list[FoundResource]]:
    runs: defaultdict[str, list[FoundResource]] = defaultdict(list)
    for resource in found:
        if everything or not labels.owner_is_alive(resource.labels):
            runs[resource.labels.get(labels.RUN) or resource.labels[labels.REAPER]].append(resource)
    return runs


def _has_no_owner(resources: Iterable[FoundResource]) -> bool:
    return all(not resource.labels.get(labels.OWNER) for resource in resources)

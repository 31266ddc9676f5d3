"""One run as the store keeps it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal

from pydantic.dataclasses import dataclass

from streamquake.reports.record.experiment_identity import compared_keys
from streamquake.reports.record.results import Results
from streamquake.reports.render import run_sentences
from streamquake.topologies.limits import Seed

DIGITS = 16
ELAPSED = "run.elapsed_s"
"""The figure with the duration of a run."""


@dataclass(frozen=True, kw_only=True)
class StoredRun:
    """One run. `as_expected` is 1 (yes), 0 (no) or None (not known); `figures` has every figure of
    the checks and of the recovery, by CHECK.COUNT. Raises ValueError for values of other types."""

    run_id: str
    started_at: str
    """In UTC, as YYYY-MM-DDTHH:MM:SS+00:00; empty where the record does not have it."""
    experiment: str
    topology: str
    seed: Seed
    ended: str
    outcome: str
    as_expected: Literal[0, 1] | None
    expected: str
    cause: str
    why: str
    key: str
    """A hash of the experiment, the program, and the versions and images of all systems: runs of
    one key differ only in their seed, the machine and the judge."""
    streamquake: str
    program: str
    judge: str
    """A hash of the modules that judged the run; empty in records of older versions."""
    load_1m: float | None
    """The load average of the machine when the run began."""
    machine: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    images: Mapping[str, str] = field(default_factory=dict)
    """Role -> its image, with the image's id where the record has it."""
    figures: Mapping[str, int | float] = field(default_factory=dict)

    @classmethod
    def of(cls, manifest: Mapping[str, Any], results: Results) -> StoredRun:
        """The run of a manifest and its results. Raises KeyError, ValueError, TypeError or
        AttributeError for a damaged manifest."""
        versions = dict(manifest["versions"])
        images = images_with_ids(manifest)
        machine = dict(manifest.get("machine") or {})
        topology = manifest["experiment"].get("topology")
        return cls(
            run_id=results.run_id,
            started_at=str(manifest.get("started_at") or ""),
            experiment=results.experiment,
            topology=str(topology.get("name") if isinstance(topology, Mapping) else topology),
            seed=results.seed,
            ended=results.ended,
            outcome=str(results.outcome),
            as_expected=AS_EXPECTED[str(results.met)],
            expected=str(results.expected),
            cause=results.cause,
            why=run_sentences.why_met(results),
            key=key_of(manifest),
            streamquake=str(versions.pop("streamquake", "")),
            program=str(versions.pop("program", "")),
            judge=results.judge,
            load_1m=machine.pop("load_1m", None),
            machine=machine,
            versions=versions,
            images=images,
            figures=figures_of(results),
        )


AS_EXPECTED: Mapping[str, Literal[0, 1] | None] = {"held": 1, "violated": 0, "undecided": None}


def images_with_ids(manifest: Mapping[str, Any]) -> dict[str, str]:
    """Role -> image, followed by the id that the container engine gave it: a tag may later name
    another image."""
    ids = manifest.get("image_ids") or {}
    return {
        role: f"{image} {ids[image]}" if image in ids else image
        for role, image in manifest["images"].items()
    }


def key_of(manifest: Mapping[str, Any]) -> str:
    """The key of a run: equal for runs of the same experiment, program, versions and images,
    whatever their seed and description."""
    document = (
        compared_keys(manifest["experiment"]),
        manifest["versions"],
        images_with_ids(manifest),
    )
    text = json.dumps(document, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def figures_of(results: Results) -> dict[str, float]:
    """Every figure of a completed run, by CHECK.COUNT, and `ELAPSED`; empty for any other."""
    if results.ended != "completed":
        return {}
    elapsed = {} if results.elapsed_s is None else {ELAPSED: results.elapsed_s}
    recovery = {f"recovery.{name}": value for name, value in results.recovery.items()}
    checked = {
        f"{check.check}.{name}": value
        for check in results.checks
        for name, value in check.counts.items()
    }
    known = {**elapsed, **recovery, **{name: v for name, v in checked.items() if v is not None}}
    return {name: value for name, value in known.items() if value is not None}

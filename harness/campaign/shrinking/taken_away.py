"""What a smaller candidate no longer has, as lines for readers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from streamquake.harness.campaign.shrinking.candidate import Candidate
from streamquake.harness.experiment.document import StepSource
from streamquake.reports.record.secret_settings import hide_secrets
from streamquake.topologies.parsing import value_text

NOTHING = object()


def taken_away(before: Candidate, after: Candidate) -> Iterator[str]:
    """The steps that are left out, then each value that changed."""
    if dropped := _dropped(before, after):
        steps = dict(zip(before.steps, before.faults, strict=True))
        listed = "; ".join(f"{n} {_name(steps[n])} on {steps[n]['target']}" for n in dropped)
        yield f"{len(dropped)} of {len(before.steps)} steps: {listed}"
    yield from _changed_values(before, after)


def in_short(before: Candidate, after: Candidate) -> str:
    """The same in one line, with the numbers of the steps; empty where nothing is taken away."""
    dropped = ", ".join(map(str, _dropped(before, after)))
    steps = [f"without the steps {dropped}"] if dropped else []
    return "; ".join([*steps, *_changed_values(before, after)])


def _dropped(before: Candidate, after: Candidate) -> list[int]:
    return [number for number in before.steps if number not in after.steps]


def _changed_values(before: Candidate, after: Candidate) -> Iterator[str]:
    old, new = (dict(_values(each, after.steps)) for each in (before, after))
    for place, value in old.items():
        now = new.get(place, NOTHING)
        if now is NOTHING:
            yield f"{place}: {value_text(value)} is left out"
        elif now != value:
            yield f"{place}: {value_text(now)} in place of {value_text(value)}"


def _values(candidate: Candidate, steps: tuple[int, ...]) -> Iterator[tuple[str, Any]]:
    """Place -> value, of the document and of these steps by their numbers in the run."""
    document = hide_secrets(candidate.document)
    faults = document.pop("faults")
    yield from _leaves("", document)
    for number, step in zip(candidate.steps, faults, strict=True):
        if number in steps:
            when = {k: v for k, v in step.get("when", {}).items() if k != "effect_of"}
            yield from _leaves(f"step {number} {_name(step)}", {**step, "when": when})


def _leaves(place: str, value: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, Mapping):
        yield place, value
        return
    for key, part in value.items():
        yield from _leaves(f"{place}.{key}" if place else str(key), part)


def _name(step: Mapping[str, Any]) -> str:
    return next(key for key in step if key not in StepSource.model_fields)

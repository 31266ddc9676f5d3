"""A candidate of a shrink: an experiment as plain data, and which steps of the run it has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from streamquake.faults.schedule.step import Step
from streamquake.faults.schedule.trigger import referenced_step
from streamquake.harness.experiment.loader import experiment_document, experiment_of_plan
from streamquake.harness.experiment.model import Experiment
from streamquake.topologies.model import LONGEST_NAME
from streamquake.topologies.parsing import value_at
from streamquake.topologies.yaml_document import Place, frozen

SUFFIX = "-shrunk"
EFFECT_OF = ("when", "effect_of")


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """An experiment in the shape of YAML, as values."""

    document: Mapping[str, Any]
    steps: tuple[int, ...]
    """The number of each of its steps in the schedule of the run, from 1."""

    @classmethod
    def of(cls, experiment: Experiment) -> Candidate:
        """An experiment as the first candidate. It has a name of its own, so that the figures of
        its runs are not taken for those of the experiment."""
        name = f"{experiment.name[: LONGEST_NAME - len(SUFFIX)]}{SUFFIX}"
        numbered = [
            _by_number(step, experiment.faults[:n]) for n, step in enumerate(experiment.faults)
        ]
        named = experiment.model_copy(update={"name": name, "faults": tuple(numbered)})
        steps = tuple(range(1, len(numbered) + 1))
        return cls(document=frozen(experiment_document(named)), steps=steps)

    @property
    def faults(self) -> tuple[Mapping[str, Any], ...]:
        """The entries of its schedule."""
        return tuple(self.document["faults"])

    @property
    def size(self) -> tuple[float, ...]:
        """Its size; a smaller candidate has a lower one. Steps count most, then given parameters
        and settings, records and keys, and last the seconds of the faults."""
        workload = next(iter(self.document["workload"].values())) or {}
        return (
            len(self.steps),
            _leaves(self.document),
            workload.get("records") or 0,
            workload.get("keys") or 0,
            sum(step.get("for_s", 0) for step in self.faults),
        )

    def experiment(self, file: str) -> Experiment:
        """The experiment, validated as any other; `file` is named in problems. Raises BadInput."""
        return experiment_of_plan(self.document, file)

    def with_steps(self, kept: Sequence[int]) -> Candidate:
        """Only the steps at these positions, from 0, without those that wait for the effect of a
        step that is left out."""
        new_positions: dict[int, int] = {}
        faults: list[Mapping[str, Any]] = []
        steps: list[int] = []
        for position in kept:
            fault = self.faults[position]
            if (awaited := value_at(fault, EFFECT_OF)) is not None:
                if awaited - 1 not in new_positions:
                    continue
                fault = replaced(fault, EFFECT_OF, new_positions[awaited - 1] + 1)
            new_positions[position] = len(faults)
            faults.append(fault)
            steps.append(self.steps[position])
        return Candidate(document={**self.document, "faults": tuple(faults)}, steps=tuple(steps))

    def with_value(self, place: Place, value: Any) -> Candidate:
        """Another value at a place of the document."""
        return replace(self, document=replaced(self.document, place, value))

    def without(self, places: Sequence[Place]) -> Candidate:
        """The document without the keys at these places."""
        document = self.document
        for place in places:
            document = removed(document, place)
        return replace(self, document=document)


def replaced(data: Any, place: Place, value: Any) -> Any:
    """Plain data with another value at an existing place, or at a new key of an existing one."""
    if not place:
        return value
    head, below = place[0], place[1:]
    if isinstance(data, Mapping):
        return {**data, head: replaced(data.get(head), below, value)}
    return tuple(replaced(v, below, value) if n == head else v for n, v in enumerate(data))


def removed(data: Any, place: Place) -> Any:
    """Plain data without the key at a place."""
    above, key = place[:-1], place[-1]
    kept = {name: value for name, value in value_at(data, above).items() if name != key}
    return replaced(data, above, kept)


def _by_number(step: Step, earlier: Sequence[Step]) -> Step:
    """A step that names the step whose effect it awaits by its number."""
    if step.when.effect_of is None:
        return step
    number = referenced_step(step.when, earlier) + 1
    return step.model_copy(update={"when": step.when.model_copy(update={"effect_of": number})})


def _leaves(value: Any) -> int:
    """How many values plain data has."""
    if isinstance(value, Mapping):
        return sum(map(_leaves, value.values()))
    return sum(map(_leaves, value)) if isinstance(value, list | tuple) else 1

"""Guidance: which trial comes next, by what the earlier ones tried and what they showed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from streamquake.harness.campaign.exploration.trial_cells import Cells, injections, planned_cells
from streamquake.harness.campaign.exploration.trial_drawing import STEPS, TrialSpace
from streamquake.harness.experiment.model import Experiment

DRAWS = 60
"""How many trials are drawn, of which the one with the newest cells is run."""
IN_VAIN = 0.5
"""How much a cell counts as tried that a trial planned and did not try."""
CHANGED_SHARE = 0.4
"""The share of these that are changes of trials that showed something new."""


@dataclass
class Guidance:
    """The knowledge of an exploration."""

    space: TrialSpace
    is_guided: bool = True
    """False draws at random, for comparison."""
    tried: dict[str, float] = field(default_factory=dict)
    """Cell -> how many trials tried it, and a share of those that planned it in vain."""
    injected: Counter[str] = field(default_factory=Counter)
    """Fault and target -> how often it was injected."""
    effective: Counter[str] = field(default_factory=Counter)
    """Fault and target -> how often it took effect."""
    seen: set[str] = field(default_factory=set)
    """The behaviour seen so far."""
    interesting: list[Experiment] = field(default_factory=list)
    """The trials that showed something new."""

    def next_trial(self, rng: random.Random) -> Experiment:
        """Of several drawn trials with the same number of steps the one with the rarest cells."""
        if not self.is_guided:
            return self.space.draw(rng, rng.choice(STEPS))
        steps = rng.choice(STEPS)
        drawn = [self._draw(rng, steps) for _ in range(DRAWS)]
        return max(drawn, key=self.value)

    def value(self, trial: Experiment) -> float:
        """How new the cells of a trial are, times the mean chance that its steps take effect."""
        steps = injections(trial)
        chances = [self._chance(step) for step in steps]
        return self.novelty(planned_cells(trial)) * sum(chances) / max(len(steps), 1)

    def novelty(self, cells: Cells) -> float:
        """The mean over the cells of a kind of 1 / (1 + trials that tried it), added up over the
        kinds: 1 for a kind of which all cells are new, near 0 where all were tried often. A mean,
        so that a trial is not newer by the number of its settings."""
        return sum(
            sum(1 / (1 + self.tried.get(cell, 0)) for cell in kind) / len(kind)
            for kind in cells.kinds
            if kind
        )

    def count_injections(self, planned: Iterable[str], effective: Iterable[str]) -> None:
        """Add the injections of a trial."""
        self.injected.update(planned)
        self.effective.update(effective)

    def _chance(self, injection: str) -> float:
        """The share of earlier injections that took effect, with one more that did: 1 for a new
        one."""
        return (self.effective[injection] + 1) / (self.injected[injection] + 1)

    def count(self, planned: Iterable[str], tried: Iterable[str]) -> None:
        """Add the cells of a trial. One that no trial can try, as its target has nothing to do,
        must not stay the rarest for ever."""
        acted = set(tried)
        for cell in acted | set(planned):
            added = 1 if cell in acted else IN_VAIN
            self.tried[cell] = self.tried.get(cell, 0) + added

    def learn(self, trial: Experiment, behaviour: Iterable[str]) -> tuple[str, ...]:
        """The behaviour of a trial that was not seen before."""
        new = tuple(sorted(set(behaviour) - self.seen))
        self.seen.update(new)
        if new:
            self.interesting.append(trial)
        return new

    def _draw(self, rng: random.Random, steps: int) -> Experiment:
        if self.interesting and rng.random() < CHANGED_SHARE:
            return self.space.changed(rng.choice(self.interesting), rng)
        return self.space.draw(rng, steps)

"""A strategy of Hypothesis over schedules, for tests that run an experiment under many of them.

    QUICKSTART = load_experiment("quickstart", seed=7, sets=["checks=[exactly_once]"])

    @settings(max_examples=5, deadline=None, phases=[Phase.generate])
    @given(schedule=schedules(QUICKSTART))
    def test_no_schedule_loses_a_record(chaos_runner, schedule):
        chaos_runner(QUICKSTART, schedule)

Hypothesis draws one number, and that number draws the schedule, with the seed of the experiment. If
Hypothesis drew each number of a schedule, most schedules would occur more than once. A smaller
number gives no simpler schedule: leave `phases` as they are above, and simplify a schedule that
fails by `streamquake shrink`.
"""

from __future__ import annotations

import random

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from streamquake.faults.schedule.random_schedule import Draw
from streamquake.faults.schedule.step import Step
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.experiment.schedule_drawing import drawn_steps
from streamquake.topologies.parsing import parse
from streamquake.topologies.problems import BadInput
from streamquake.topologies.yaml_document import Document

LARGEST_NUMBER = 2**64 - 1


def schedules(
    experiment: Experiment,
    *,
    profile: str = "swarm",
    steps: int | None = None,
    within_s: float | None = None,
    without: tuple[str, ...] = (),
) -> SearchStrategy[tuple[Step, ...]]:
    """Valid schedules of an experiment, each as `draw:` of a document would draw it: `profile`
    bounds it, `steps` is the number of its steps, it ends within `within_s` seconds after steady
    state, and it has none of the faults `without`. Raises BadInput for a value that `draw:` cannot
    have, and LookupError where no schedule is possible."""
    request = {"profile": profile, "steps": steps, "within_s": within_s, "without": without}
    wanted, problems = parse(Draw, Document(file="schedules", data=request))
    if wanted is None or problems:
        raise BadInput(problems)
    drawn_steps(experiment, wanted)  # an impossible request fails where it is written

    def drawn(number: int) -> tuple[Step, ...]:
        # The first number is 0 in every test; the seed makes its schedule another one.
        return drawn_steps(experiment, wanted, random.Random(f"{experiment.seed}:{number}"))

    return st.integers(0, LARGEST_NUMBER).map(drawn)

"""A strategy of Hypothesis over schedules, for tests that run an experiment under many of them.

    QUICKSTART = load_experiment("quickstart", seed=7, sets=["checks=[exactly_once]"])

    @settings(max_examples=5, deadline=None, phases=[Phase.generate])
    @given(schedule=schedules(QUICKSTART))
    def test_no_schedule_loses_a_record(chaos_runner, schedule):
        chaos_runner(QUICKSTART, schedule)

Hypothesis draws every number of a schedule itself. Without `phases` it also tries to simplify a
schedule that fails, which takes hundreds of runs; `streamquake shrink` takes fewer.
"""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from streamquake.faults.schedule.random_schedule import Draw
from streamquake.faults.schedule.step import Step
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.experiment.schedule_drawing import drawn_steps
from streamquake.topologies.parsing import parse
from streamquake.topologies.problems import BadInput
from streamquake.topologies.yaml_document import Document


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
    numbers = st.randoms(use_true_random=False)
    return numbers.map(lambda rng: drawn_steps(experiment, wanted, rng))

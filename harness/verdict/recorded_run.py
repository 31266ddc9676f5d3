"""The experiment of a run that was recorded, from its folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from jinja2 import TemplateError

from streamquake.harness.experiment.loader import experiment_of_plan
from streamquake.harness.experiment.model import Experiment
from streamquake.reports.record.run_folder import RunFolder
from streamquake.topologies.problems import bad_input

DAMAGED = (
    OSError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    RecursionError,
    ArithmeticError,
    TemplateError,
)
"""What reading values of other kinds or sizes than a run writes ends in."""


def recorded_experiment(folder: RunFolder, sets: Sequence[str] = ()) -> Experiment:
    """The experiment that a run recorded, with some of its values set anew. Raises BadInput where
    it cannot be read."""
    with of_record(folder):
        manifest = folder.read_manifest()
        plan, seed = manifest["experiment"], int(manifest["seed"])
        if plan.get("seed", seed) != seed:
            raise ValueError(f"the run has the seed {seed}, and its plan {plan['seed']}")
        return experiment_of_plan(plan, str(folder.manifest), seed, sets)


@contextmanager
def of_record(folder: RunFolder) -> Iterator[None]:
    """Errors over a damaged record, or one that was not made here, as one clear line."""
    try:
        yield
    except DAMAGED as error:
        text = str(error).replace(f"{folder.path}/", "")
        message = f"the record cannot be read: {type(error).__name__}: {text}"
        raise bad_input(str(folder.path), message) from error

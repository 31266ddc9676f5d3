"""The experiment of a recorded run, from the run's folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from jinja2 import TemplateError

from streamquake.harness.experiment.loader import experiment_of_plan
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.experiment.recorded_plugins import reject_missing_plugins
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
"""The errors that reading a damaged record can raise."""


def recorded_experiment(folder: RunFolder, sets: Sequence[str] = ()) -> Experiment:
    """The experiment that a run recorded, with the values in `sets` replaced. Raises BadInput where
    it cannot be read."""
    with damage_as_bad_input(folder):
        manifest = folder.read_manifest()
        plan, seed = manifest["experiment"], int(manifest["seed"])
        if plan.get("seed", seed) != seed:
            raise ValueError(f"the run's seed is {seed}, and its plan's seed is {plan['seed']}")
        reject_missing_plugins(manifest, str(folder.manifest))
        return experiment_of_plan(plan, str(folder.manifest), seed, sets)


@contextmanager
def damage_as_bad_input(folder: RunFolder) -> Iterator[None]:
    """Raise an error over a damaged or foreign record as BadInput with one clear line."""
    try:
        yield
    except DAMAGED as error:
        text = str(error).replace(f"{folder.path}/", "")
        message = f"the record cannot be read: {type(error).__name__}: {text}"
        raise bad_input(str(folder.path), message) from error

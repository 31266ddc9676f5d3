"""The key of an experiment on the software of today: what recorded runs must share to count for
it."""

from __future__ import annotations

from streamquake.cluster.images.store import ImageStore
from streamquake.harness.experiment.loader import experiment_document
from streamquake.harness.experiment.model import Experiment
from streamquake.harness.run.versions import image_ids, version_manifest
from streamquake.reports.store.stored_run import key_of


def todays_key(experiment: Experiment, images: ImageStore) -> str:
    """The key that a run of the experiment would have now (see `key_of`)."""
    versions = version_manifest(experiment)
    ids = image_ids(versions["images"], images)
    return key_of({"experiment": experiment_document(experiment), "image_ids": ids, **versions})

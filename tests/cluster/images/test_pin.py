"""Recording checksums: bad arguments, and a step that fails, end without a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamquake.cluster.images import pin
from streamquake.cluster.images.recipes import ImageRecipe
from streamquake.cluster.images.store import StepFailed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "usage: "),
        (["flink", "1.17.2", "kafka"], "usage: "),
        (["flink", "1.20.9"], "no flink release '1.20.9'"),
        (["flink", "1.17.2", "jdbc=1"], "no connector 'jdbc'"),
    ],
)
def test_bad_arguments_are_rejected(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert pin.main(arguments) == 2
    assert message in capsys.readouterr().err


def test_a_failed_step_is_shown_with_its_log(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(pinned: ImageRecipe) -> Path:
        raise StepFailed("fetching jars with Maven", "could not find the artefact")

    monkeypatch.setattr(pin, "write_checksums", fail)
    assert pin.main(["flink", "1.20.1"]) == 1
    shown = "fetching jars with Maven failed\ncould not find the artefact\n"
    assert capsys.readouterr().err == shown

"""The baseline of earlier runs' errors: a file that a person reads and changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamquake.reports.record.error_baseline import (
    ErrorBaseline,
    KnownError,
    read_baseline,
    write_baseline,
)
from streamquake.reports.record.logged_errors import LoggedError
from streamquake.topologies.problems import BadInput

LONG = f"{' <- '.join(f'a.b.Number{n}Exception' for n in range(40))} at a.b.C.d"


def logged(signature: str, text: str) -> LoggedError:
    return LoggedError(signature=signature, text=text, nodes={"worker": 7})


def test_the_errors_of_most_runs_come_first_with_the_oldest_example(tmp_path: Path) -> None:
    path = tmp_path / "known.yaml"
    runs = [
        [logged("b", "b of the first run"), logged(LONG, "Task: failed\na.b.Number0Exception: x")],
        [logged("a", "a of the second run"), logged("b", "b of the second run")],
        [],
    ]
    written = write_baseline(path, runs)
    assert path.read_text() == (
        "of_runs: 3\n"
        "errors:\n"
        "- error: b\n"
        "  runs: 2\n"
        "  example: b of the first run\n"
        "- error: a\n"
        "  runs: 1\n"
        "  example: a of the second run\n"
        f"- error: {LONG}\n"
        "  runs: 1\n"
        "  example: |-\n"
        "    Task: failed\n"
        "    a.b.Number0Exception: x\n"
    ), "a signature is one line, so that it can be searched for"
    assert read_baseline(path) == written


def test_a_baseline_by_hand_needs_no_counts_or_examples(tmp_path: Path) -> None:
    path = tmp_path / "known.yaml"
    path.write_text("of_runs: 1\nerrors: [{error: 'ERROR A: it failed'}]\n")
    errors = (KnownError(error="ERROR A: it failed", runs=1, example=""),)
    assert read_baseline(path) == ErrorBaseline(of_runs=1, errors=errors)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("of_runs: 1\nerrors: []\nallow: [failed]\n", "known.yaml:3"),
        ("of_runs: 1\nerrors: [{error: a, text: b}]\n", "known.yaml:2"),
        ("of_runs: 0\nerrors: []\n", "known.yaml:1"),
    ],
)
def test_a_baseline_with_a_problem_is_not_read_in_part(
    tmp_path: Path, text: str, place: str
) -> None:
    path = tmp_path / "known.yaml"
    path.write_text(text)
    with pytest.raises(BadInput) as rejected:
        read_baseline(path)
    assert place in str(rejected.value)

"""Reading the JSON of records: a value, or a ValueError."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamquake.reports.record.history import read_history
from streamquake.reports.record.record_json import loads
from streamquake.reports.record.run_folder import RunFolder

DAMAGED = ("[" * 100_000, "[" * 150 + "]" * 150, '{"a":' * 5000, "9" * 5000, '{"a": 1', "")


@pytest.mark.parametrize("text", DAMAGED)
def test_damaged_or_hostile_json_raises_a_value_error(tmp_path: Path, text: str) -> None:
    folder = RunFolder(tmp_path)
    folder.manifest.write_text(text)
    folder.results.write_text(text)
    # A blank line is no event.
    folder.history.write_text(f'{{"schema": 1}}\n{text or 0}\n')

    with pytest.raises(ValueError) as damaged:
        loads(text)
    assert not isinstance(damaged.value, RecursionError)
    with pytest.raises(ValueError, match=r"run\.json: not JSON"):
        folder.read_manifest()
    with pytest.raises(ValueError, match=r"results\.json: not JSON"):
        folder.read_results()
    with pytest.raises(ValueError, match=r"history\.jsonl:2: not an event"):
        read_history(folder.history)


def test_many_brackets_without_nesting_are_accepted() -> None:
    assert loads("[" + ", ".join(["[]"] * 500) + "]") == [[]] * 500

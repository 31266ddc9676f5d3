"""The reports that are written beside the saved results, and the warnings of those that fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping


def write_reports(writers: Mapping[str, Callable[[], object]]) -> tuple[str, ...]:
    """Call the writer of every file; returns a warning for each that failed.

    The results are saved before, so that a failed report costs no verdict.
    """
    warnings = []
    for file, write in writers.items():
        try:
            write()
        except Exception as error:  # noqa: BLE001 - no failure of a report hides a verdict
            warnings.append(f"{file} could not be written: {type(error).__name__}: {error}")
    return tuple(warnings)

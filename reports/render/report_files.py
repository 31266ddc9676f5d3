"""Writes the reports beside the saved results, and collects warnings about failures."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from streamquake.topologies.errors import reason_of


def write_reports(writers: Mapping[str, Callable[[], object]]) -> tuple[str, ...]:
    """Call the writer of every file. Returns a warning for each writer that failed.

    The results were saved before, so a failed report does not affect the verdict.
    """
    warnings = []
    for file, write in writers.items():
        try:
            write()
        except Exception as error:  # noqa: BLE001 - a failed report must not hide the verdict
            warnings.append(f"{file} could not be written: {reason_of(error)}")
    return tuple(warnings)

"""Whether a recorded result of a program can be that of the plan: a run starts each program once,
with the arguments of the plan, when the outputs are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePath

from streamquake.harness.verdict.evidence.phases import AFTER_LOAD
from streamquake.reports.record.history import History
from streamquake.reports.record.run_events import CommandEnded, PhaseBegan
from streamquake.reports.record.secret_settings import HIDDEN, hide_secrets


def contradicted_commands(
    ended: Sequence[CommandEnded], run: Sequence[str], history: History
) -> Iterator[str]:
    """A message for each contradiction between the results of a program and the plan, which gives
    the words of its command line, or the rest of the record."""
    if len(ended) > 1:
        yield f"the record has {len(ended)} results of the program, which a run starts once"
    planned = _recorded_words(run)
    for result in ended:
        words = _recorded_words(result.argv)
        if words[1:] != planned[1:]:
            yield "the recorded result is of other arguments than those of the plan"
        if not words or not _is_program(words[0], run[0]):
            yield "the recorded result is of another program than that of the plan"
        if result.exit_code is not None and result.reason is not None:
            yield (
                f"the program is recorded to have ended with status {result.exit_code}, and to "
                f"have no status: {result.reason}"
            )
        for phase in history.of(PhaseBegan):
            if phase.phase in AFTER_LOAD and phase.index > result.index:
                yield (
                    f"the program ended at {result.at_s:.1f} s, before the phase {phase.phase!r} "
                    f"of the run, which began at {phase.at_s:.1f} s"
                )


def _is_program(recorded: str, planned: str) -> bool:
    """Whether a recorded program can be that of the plan, perhaps in another folder: a path is
    relative to its document. A hidden word may be any program."""
    return HIDDEN in recorded or PurePath(recorded).name == PurePath(planned).name


def _recorded_words(words: Sequence[str]) -> list[str]:
    """The words of a command line as a record has them, without secrets."""
    recorded: list[str] = hide_secrets({"argv": [*words]})["argv"]
    return recorded

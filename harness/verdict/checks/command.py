"""`command`: a program of the user judges the run. Its result is read from the history."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Self

from pydantic import Field

from streamquake.harness.experiment.check import CheckCommand, JudgedRun, UserCheck, checks
from streamquake.harness.reconcile.examples import clip
from streamquake.harness.verdict.evidence.command_record import contradicted_commands
from streamquake.reports.record.outcome import CheckResult, Finding
from streamquake.reports.record.run_events import CommandEnded
from streamquake.topologies.limits import Limit

REPORTED = "reported"
HELD, VIOLATED = 0, 1
"""The exit statuses of a program that judged the run."""
Argument = Annotated[str, Field(pattern=r"^[^\x00]*$", max_length=100_000)]


@checks.register
class Command(UserCheck):
    """Held when a program of the user ends with status 0, violated when it ends with 1.

    The run starts it once, on this machine, when the outputs are read and before anything is
    judged. It runs in the run folder, which STREAMQUAKE_RUN_FOLDER names too. The last lines that
    it prints are the findings; all that it prints is in `logs/check-NAME.out.txt`, and its errors
    are in `logs/check-NAME.err.txt`.

    Undecided where it ends with another status, by a signal or not in time, where it writes more
    than 1 GiB into a file, its output among them, and where the record has no result, as the run
    failed before. Also where it has several results or one of other arguments, gives both a status
    and a reason why there is none, or has the result before the outputs were read. `check` reads
    the recorded result and starts nothing; `replay` starts the program only with `--run-commands`.
    """

    name: ClassVar[str] = "command"
    classes: ClassVar[tuple[str, ...]] = (REPORTED,)

    run: Annotated[tuple[Argument, ...], Field(min_length=1)]
    """The program and its arguments; no shell reads them. The path of a program, such as
    `./judge.py`, is relative to the document; a name without `/` is found as a shell finds it."""
    timeout_s: Limit = 60
    """Seconds until a program that has not ended is killed."""

    def command(self) -> CheckCommand:
        return CheckCommand(argv=self.run, timeout_s=self.timeout_s)

    def beside(self, folder: Path) -> Self:
        program, *arguments = self.run
        if "/" not in program:
            return self
        return self.model_copy(update={"run": (str((folder / program).absolute()), *arguments)})

    def check(self, case: JudgedRun) -> CheckResult:
        ended = [e for e in case.history.of(CommandEnded) if e.check == self.title]
        if not ended:
            return self.undecided(
                "the record has no result of the program, which is run only at the end of a run"
            )
        if problem := next(contradicted_commands(ended, self.run, case.history), None):
            return self.undecided(problem)
        result = ended[-1]
        lines = [str(clip(str(line))) for line in result.last_lines]
        if result.exit_code == HELD:
            return self.held(lines[-1] if lines else "the program ended with status 0")
        if result.exit_code == VIOLATED:
            findings = tuple(Finding(what=REPORTED, detail={"line": line}) for line in lines)
            summary = lines[-1] if lines else "the program ended with status 1"
            return self.violated(summary, findings or (Finding(what=REPORTED),))
        return self.undecided(_why_no_verdict(result))


def _why_no_verdict(result: CommandEnded) -> str:
    if result.exit_code is None:
        return f"the program has no exit status: {result.reason or 'the record does not say why'}"
    if result.exit_code < 0:
        return f"signal {-result.exit_code} ended the program"
    error = str(clip(str(result.last_errors[-1]))) if result.last_errors else "it printed no error"
    return f"the program ended with status {result.exit_code}: {error}"

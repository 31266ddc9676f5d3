"""Commands in a container: truncated output is not returned as the command's output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import docker
import pytest

from streamquake.cluster.runtime.docker import execute
from streamquake.cluster.runtime.runtime import ExecResult, ResponseLost


@dataclass
class Engine:
    """An engine whose command ends with `code`; `output` returns the streams' content, given the
    mark of their end."""

    output: Callable[[str], str]
    code: int = 0

    def exec_create(self, container: str, argv: Sequence[str]) -> dict[str, Any]:
        self._mark = argv[argv.index(execute.REPORTS_ITS_END) + 1]
        return {"Id": container}

    def exec_start(self, command: str) -> bytes:
        return self.output(self._mark).encode()

    def exec_inspect(self, command: str) -> dict[str, Any]:
        return {"ExitCode": self.code}

    def run(self) -> ExecResult:
        return execute.run(cast(docker.APIClient, self), "flink-1", ["echo", "yes"], timeout_s=5)


def test_the_marks_are_removed_from_the_output() -> None:
    found = Engine(lambda mark: f"yes\n{mark}warned{mark}", code=3).run()
    assert found == ExecResult(exit_code=3, output="yes\nwarned")


@pytest.mark.parametrize(
    "output", [lambda mark: "", lambda mark: f"y{mark}", lambda mark: f"yes{mark}{mark[:9]}"]
)
def test_truncated_output_is_an_error(output: Callable[[str], str]) -> None:
    with pytest.raises(ResponseLost, match="`echo yes` ended with status 0, but the engine"):
        Engine(output).run()


def test_a_killed_command_reports_its_output_so_far() -> None:
    assert Engine(lambda mark: "y", code=137).run() == ExecResult(exit_code=137, output="y")

"""Job texts: filling in `${...}` placeholders, and reading the promise at a text's head.

A job's SQL names what it needs (`${input}`, `${sink.bootstrap}`); only the cluster it runs on knows
the values. The names that exist are listed in `jobs/README.md`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from streamquake.topologies.problems import BadInput, Problem, did_you_mean

_PLACEHOLDER = re.compile(r"\$\{([^}\n]*)\}")
_MARK = "-- streamquake:"


def render(text: str, values: Mapping[str, str], file: str = "job") -> str:
    """The text with every placeholder filled in. Raises BadInput with every unknown name."""
    problems = [
        Problem(
            file=file,
            line=text.count("\n", 0, found.start()) + 1,
            message=f"unknown placeholder {found.group()}{did_you_mean(found.group(1), values)}",
        )
        for found in _PLACEHOLDER.finditer(text)
        if found.group(1) not in values
    ]
    if problems:
        raise BadInput(problems)
    return _PLACEHOLDER.sub(lambda found: values[found.group(1)], text)


def promise_text(text: str) -> str | None:
    """The YAML block at the head of a job's SQL, from its line `streamquake:` on, or None.

    The block is a run of `--` comments that begins with `-- streamquake:`; it ends at the first
    line that is no comment.
    """
    lines = iter(text.splitlines())
    block: list[str] = []
    for line in lines:
        if block or line.rstrip() == _MARK:
            if not line.startswith("--"):
                break
            block.append(line.removeprefix("-- ").removeprefix("--").rstrip())
        elif line.strip() and not line.startswith("--"):
            return None
    return "\n".join(block) + "\n" if block else None

"""Job texts: filling in `${...}` placeholders, and reading the promise at a text's head.

A job's SQL contains placeholders (`${input}`, `${sink.bootstrap}`); their values depend on the
cluster that it runs on. `jobs/README.md` lists the names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from streamquake.topologies.problems import BadInput, Problem, did_you_mean

_PLACEHOLDER = re.compile(r"\$\{([^}\n]*)\}")
COMMENT = {"sql": "--", "pyspark": "#"}
"""How a line of comment begins, by the kind of program."""


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


def promise_mark(kind: str) -> str:
    """The line that the promise of a program begins with."""
    return f"{COMMENT[kind]} streamquake:"


def promise_text(text: str, kind: str = "sql") -> str | None:
    """The YAML block at the head of a job's program, from its line `streamquake:` on, or None.

    The block is a run of comments that begins with that line; it ends at the first line that is no
    comment.
    """
    comment = COMMENT[kind]
    lines = iter(text.splitlines())
    block: list[str] = []
    for line in lines:
        if block or line.rstrip() == promise_mark(kind):
            if not line.startswith(comment):
                break
            block.append(line.removeprefix(f"{comment} ").removeprefix(comment).rstrip())
        elif line.strip() and not line.startswith(comment):
            return None
    return "\n".join(block) + "\n" if block else None

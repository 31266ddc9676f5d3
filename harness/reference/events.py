"""The events of a run's history."""

from __future__ import annotations

from streamquake.harness.reference.markdown import MADE, attribute_docs
from streamquake.reports.record.event import Action, Kind

HEAD = f"""# Events of the history

`history.jsonl` of a run's folder holds everything that happened in one order, one event a line:
`index`, `at_ns` (nanoseconds since the run began, when it was seen), `process` (who saw it), `kind`
({", ".join(f"`{kind}`" for kind in Kind)}), `action`, `value` and `error`.
The first line is the schema's version.

The names below are those of `action`. A trigger waits for them too:
`when: {{event: checkpoint triggered, nth: 3}}`. The fields of `value` stand in square brackets.

{MADE}
"""


def page() -> str:
    """The whole page."""
    docs = attribute_docs(Action)
    return HEAD + "".join(f"\n## {action}\n\n{docs[action.name]}\n" for action in Action)

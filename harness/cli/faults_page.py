"""The catalogue of faults as a page of Markdown, read from the classes themselves.

python -m streamquake.harness.cli.faults_page > docs/faults.md
"""

from __future__ import annotations

import inspect

from streamquake.faults.fault import Fault, faults
from streamquake.harness.cli.listing import parameters
from streamquake.topologies.parsing import shown

HEAD = """# The catalogue of faults

Each fault is seen to bite before it counts, and seen gone after it is healed. *Strikes* shows a
target as YAML has it; any other target of the same kind does as well. A parameter without a default
is needed, or one of several is; *not drawn* marks what drawn schedules leave out, because it loses
data by design, bites only under a job of its own, or puts another job in its place.

An effect that lasts until the heal is verified again every 5 s and shortly before the heal. When it
is proven gone on a target before that, the run is undecided, and `effect` gives the moments. *Not
held* marks faults whose effect is an event; they are not verified again.

Made from the classes by `python -m streamquake.harness.cli.faults_page`; a test compares.
"""


def page() -> str:
    """The whole page."""
    return HEAD + "".join(f"\n{_section(faults[name])}" for name in faults)


def _section(fault: type[Fault]) -> str:
    lines = [f"## {fault.name}", "", inspect.getdoc(fault) or "", ""]
    drawn = "" if fault.drawn else "; not drawn"
    held = "" if fault.lasts else "; not held"
    lines.append(f"Strikes `{fault.usual}`; touches: {fault.touches}{drawn}{held}.")
    for parameter in parameters(fault):
        default = parameter["default"]
        said = "" if default is None else f", {shown(default)} unless given"
        lines.append(f"- `{parameter['name']}`: {parameter['type']}{said}")
    if fault.evidence.__doc__:  # its own, not what every fault promises
        lines += ["", f"Evidence: {inspect.cleandoc(fault.evidence.__doc__)}"]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(page(), end="")

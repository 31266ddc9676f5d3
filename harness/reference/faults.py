"""The catalogue of faults."""

from __future__ import annotations

import inspect

from streamquake.faults.fault import Fault, faults
from streamquake.harness.reference.markdown import MADE, section

HEAD = f"""# The catalogue of faults

Each fault is seen in effect before it counts, and seen gone after it is healed. *Usual target*
shows a target as YAML has it; any other target of the same kind does as well. Of parameters without
a default that are not marked as needed, one of several may be; *not drawn* marks what drawn
schedules leave out, because it loses data by design, has an effect only under a job of its own, or
puts another job in its place.

An effect that lasts until the heal is verified again every 5 s and shortly before the heal. When it
is proven gone on a target before that, the run is undecided, and `effect` gives the moments. *Not
held* marks faults whose effect is an event; they are not verified again.

{MADE}
"""


def page() -> str:
    """The whole page."""
    return HEAD + "".join(f"\n{_section(faults[name])}" for name in faults)


def _section(fault: type[Fault]) -> str:
    drawn = "" if fault.drawn else "; not drawn"
    held = "" if fault.lasts else "; not held"
    former = "".join(f"; formerly `{name}`" for name in fault.former_names)
    facts = f"Usual target: `{fault.usual}`; touches: {fault.touches}{drawn}{held}{former}."
    own = fault.evidence.__doc__  # what every fault promises is not repeated
    return section(fault.name, fault, facts, f"Evidence: {inspect.cleandoc(own)}" if own else "")

"""The catalogue of faults."""

from __future__ import annotations

import inspect

from streamquake.faults.fault import Fault, faults
from streamquake.harness.reference.markdown import GENERATED, section

HEAD = f"""# The catalogue of faults

A fault counts only after its effect was verified on every target; its removal is verified too.
*Usual target* shows a target in YAML; any other target of the same kind works too. A
parameter without a default that is not marked as needed is optional; some faults need one of
several such parameters. *Not drawn* marks faults that random schedules leave out, because they lose
data by design, have an effect only on a job written for them, or replace the job.

An effect that lasts until the heal is verified again every 5 s and shortly before the heal. If a
check proves that it ended earlier on a target, the run is undecided, and `effect` reports the
moments; so it is if no check found the fault in effect, or in place on an idle system, in the last
15 s before its heal. *Not held* marks faults whose effect is an event; they are not verified again.

{GENERATED}
"""


def page() -> str:
    """The whole page."""
    return HEAD + "".join(f"\n{_section(faults[name])}" for name in faults)


def _section(fault: type[Fault]) -> str:
    drawn = "" if fault.drawn else "; not drawn"
    held = "" if fault.lasts else "; not held"
    former = "".join(f"; formerly `{name}`" for name in fault.former_names)
    facts = f"Usual target: `{fault.usual}`; touches: {fault.touches}{drawn}{held}{former}."
    own = fault.evidence.__doc__  # the docstring that all faults inherit is not repeated
    return section(fault.name, fault, facts, f"Evidence: {inspect.cleandoc(own)}" if own else "")

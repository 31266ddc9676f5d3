"""The catalogue of faults."""

from __future__ import annotations

import inspect

from streamquake.faults.fault import Fault, faults
from streamquake.harness.reference.markdown import GENERATED, section

HEAD = f"""# The catalogue of faults

A fault counts only after its effect was verified on every target; its removal is verified too.
*Usual target* shows a target in YAML; any other target of the same kind works too. Of parameters
without a default that are not marked as needed, one of several may be needed; *not drawn* marks
faults that drawn schedules leave out, because they lose data by design, have an effect only under a
job of their own, or replace the job.

An effect that lasts until the heal is verified again every 5 s and shortly before the heal. When it
is proven to have ended on a target before that, the run is undecided, and `effect` gives the
moments. *Not held* marks faults whose effect is an event; they are not verified again.

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

"""The checks: what each judges, and its parameters."""

from __future__ import annotations

from streamquake.harness.experiment.check import ALWAYS_ON, Check, checks
from streamquake.harness.reference.markdown import GENERATED, section, wrapped

HEAD = f"""# Checks

A check reads the record of a run and its outcome is *held*, *violated*, or *undecided* with the
missing evidence. {", ".join(f"`{name}`" for name in ALWAYS_ON)} are judged in every run. The others
are named in an experiment, alone or with parameters:

    checks: [exactly_once, {{recovery: {{within_s: 60}}}}]

*Classes* are the possible classes of the findings of a violated check; `expect: {{CHECK: CLASS}}`
in an experiment names one that must be found.

{GENERATED}
"""


def page() -> str:
    """The whole page."""
    return HEAD + "".join(f"\n{_section(checks[name])}" for name in checks)


def _section(check: type[Check]) -> str:
    classes = wrapped(f"Classes: {', '.join(f'`{name}`' for name in check.classes)}.")
    always = "Judged in every run." if check.name in ALWAYS_ON else ""
    return section(check.name, check, classes if check.classes else "", always)

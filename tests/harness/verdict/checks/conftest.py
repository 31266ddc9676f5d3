"""The verdicts of the checks are compared as a whole."""

from tests.harness.verdicts import reviewed_verdicts

__all__ = ["reviewed_verdicts"]

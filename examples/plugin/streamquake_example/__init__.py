"""Our own fault and check. The entry point names this module; its imports register both."""

from streamquake_example import interrupt, rejected_sends

__all__ = ["interrupt", "rejected_sends"]

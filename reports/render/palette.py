"""Colours that the colour-blind can distinguish, on white and on black."""

from __future__ import annotations

from collections.abc import Mapping

LINES = ("#3b82c4", "#d9822b", "#2a9d8f", "#a06cd5", "#c9a227", "#d1495b", "#6c8ead", "#8a9a3b")
"""The colours of lines, repeated in order."""

HELD = "#2a9d8f"
VIOLATED = "#d1495b"
WAITING = "#8a8f98"

NEVER_HIT = "rgba(138,143,152,0.14)"
NOT_PROVEN = "rgba(201,162,39,0.45)"

CHECKPOINTS: Mapping[str, str] = {"completed": HELD, "failed": VIOLATED, "open": WAITING}

PHASES = ("#4f6f8f", "#66829c")
"""The alternating colours of neighbouring phases."""

FAULT_CALLED = "rgba(209,73,91,0.10)"
FAULT_IN_EFFECT = "rgba(209,73,91,0.20)"
FAULT_BAR_CALLED = "rgba(209,73,91,0.45)"
FAULT_BAR = "rgba(209,73,91,0.85)"
PHASE_LINE = "rgba(128,128,128,0.55)"

MARKS: Mapping[str, tuple[str, str]] = {
    "running": (HELD, "▲"),
    "started": (HELD, "▲"),
    "submitted": (LINES[0], "●"),
    "restored": (LINES[0], "◆"),
    "restarting": (LINES[1], "●"),
    "failing": (VIOLATED, "✕"),
    "died": (VIOLATED, "✕"),
    "out of memory": (VIOLATED, "■"),
    "ended": (WAITING, "■"),
}
"""Kind of mark -> colour and sign."""
SYMBOLS = {"▲": "triangle-up", "●": "circle", "◆": "diamond", "✕": "x", "■": "square"}
"""Sign -> its name in the charting library."""

TASK_STATES: Mapping[str, str] = {
    "CREATED": "rgba(138,143,152,0.30)",
    "SCHEDULED": "rgba(138,143,152,0.45)",
    "DEPLOYING": "rgba(138,143,152,0.75)",
    "INITIALIZING": "#c9a227",
    "CANCELING": "rgba(160,108,213,0.55)",
    "CANCELED": "rgba(160,108,213,0.25)",
    "FAILED": VIOLATED,
    "FINISHED": "rgba(42,157,143,0.25)",
}
"""The colour of every state except RUNNING, which has the colour of its attempt."""
ATTEMPTS = tuple(colour for colour in LINES if colour not in TASK_STATES.values())
"""The colours of attempts, repeated in order. None is that of another state."""

SHADES = ((0.0, "rgba(217,130,43,0.06)"), (1.0, "rgba(217,90,20,1.0)"))


def attempt_colour(attempt: int) -> str:
    """The colour of a running task: blue for the first attempt, another after each restart."""
    return ATTEMPTS[attempt % len(ATTEMPTS)]

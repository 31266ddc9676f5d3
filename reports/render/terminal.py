"""Text for the terminal, without terminal escape sequences.

Records and documents may be untrusted. Characters that move the cursor, change colours, set
titles or change the reading direction are written as escapes (`\\x1b`), in lines and in tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

_COMMANDS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 except tab and line feed, delete, C1
    "\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff"  # directions, invisible, separators
    "\ud800-\udfff]"  # surrogates, which no stream can encode
)


def escaped(text: str) -> str:
    """The text with every control character replaced by its escape."""
    return _COMMANDS.sub(lambda found: _written(ord(found.group())), text)


def _written(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


class TerminalConsole(Console):
    """rich's console, without markup in texts, and with control characters escaped."""

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, markup=False, emoji=False, **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render as rich does. Control segments of rich itself, such as those of a live panel, are
        kept."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else escaped(text), style, control)

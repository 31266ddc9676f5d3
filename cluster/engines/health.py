"""Commands that check inside a container whether a node answers.

They need only bash, which every image has. Each sends the node a request that it cannot answer
before it serves: an open port is no answer, since a frozen process has one too. Each waits for the
answer as long as its caller allows.
"""

from __future__ import annotations


def page(host: str, port: int, path: str, expected: str) -> tuple[str, ...]:
    """As `text`, for a page by HTTP."""
    return text(host, port, rf"GET {path} HTTP/1.0\r\n\r\n", expected)


def text(host: str, port: int, request: str, expected: str) -> tuple[str, ...]:
    """A command that exits with 0 when a line of the answer matches `expected`, a regular
    expression of grep. The request is a format of printf."""
    return _asking(host, port, request, f"grep -q '{expected}' <&3")


def message(host: str, port: int, request: str) -> tuple[str, ...]:
    """A command that exits with 0 when the answer begins with a zero byte, as the length of a short
    message does. The request is a format of printf."""
    return _asking(host, port, request, "read -rd '' <&3")


def _asking(host: str, port: int, request: str, judge: str) -> tuple[str, ...]:
    script = f"exec 3<>/dev/tcp/{host}/{port} && printf '{request}' >&3 && {judge}"
    return ("bash", "-c", script)

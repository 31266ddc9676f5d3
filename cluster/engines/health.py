"""Commands that check inside a container whether a node answers.

They need only bash, which every image has. A command sends the node a request that only a serving
node answers; an open port is not enough, since a frozen process has one too. The caller limits how
long the command may wait for the answer.
"""

from __future__ import annotations


def http_check(host: str, port: int, path: str, expected: str) -> tuple[str, ...]:
    """As `line_check`, for a page by HTTP."""
    return line_check(host, port, rf"GET {path} HTTP/1.0\r\n\r\n", expected)


def line_check(host: str, port: int, request: str, expected: str) -> tuple[str, ...]:
    """A command that exits with 0 when a line of the answer matches `expected`, a regular
    expression of grep. The request is a format of printf."""
    return _command(host, port, request, f"grep -q '{expected}' <&3")


def message_check(host: str, port: int, request: str) -> tuple[str, ...]:
    """A command that exits with 0 when the answer begins with a zero byte, as the length of a short
    message does. The request is a format of printf."""
    return _command(host, port, request, "read -rd '' <&3")


def _command(host: str, port: int, request: str, check: str) -> tuple[str, ...]:
    script = f"exec 3<>/dev/tcp/{host}/{port} && printf '{request}' >&3 && {check}"
    return ("bash", "-c", script)

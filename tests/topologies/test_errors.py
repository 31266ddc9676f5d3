"""The texts of errors."""

from __future__ import annotations

import pytest

from streamquake.topologies.errors import StreamquakeError, message_of, reason_of


class MachineUnsuitable(StreamquakeError):
    """An error of our own."""


JAVA = """An error occurred while calling o7074.parquet.
: org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error reading a.
\tat org.apache.spark.sql.Errors$.cannotRead(Errors.scala:904)
\t... 12 more
Caused by: java.io.IOException: it ended
\tat java.base/java.io.FileInputStream.read(Native Method)
Caused by: java.io.EOFException: after 7 bytes
"""


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ValueError("no\n\tat a.b.C(D.java:1)\nnumber "), "ValueError: no\nnumber"),
        (
            RuntimeError(JAVA),
            "org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error reading "
            "a.; caused by java.io.EOFException: after 7 bytes",
        ),
        (
            RuntimeError(JAVA.replace("[FAILED", "Job aborted due to stage failure: [FAILED")),
            "java.io.EOFException: after 7 bytes",
        ),
        (
            RuntimeError("An error occurred while calling z:x.y.\n: java.lang.Error:   at all"),
            "java.lang.Error: at all",
        ),
    ],
)
def test_an_error_has_a_text_without_the_frames_of_java(error: Exception, message: str) -> None:
    assert message_of(error) == message


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ValueError("run.json: not JSON\n\tat a.b.C(D.java:1)\n"), "run.json: not JSON"),
        (FileNotFoundError("metrics.parquet is missing"), "metrics.parquet is missing"),
        (MachineUnsuitable("no Java"), "no Java"),
        (ValueError(" "), "ValueError: "),
        (KeyError("name"), "KeyError: 'name'"),
        (RecursionError("too deep"), "RecursionError: too deep"),
    ],
)
def test_an_error_that_says_what_is_wrong_needs_no_class(error: Exception, reason: str) -> None:
    assert reason_of(error) == reason

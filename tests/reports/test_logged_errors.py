"""The errors in saved logs: what counts as one, and what makes two of them the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamquake.reports.record.logged_errors import LogEntry, entries_of, errors_in, grouped

FLINK = """\
2026-11-28T19:01:17.153Z INFO  TaskManagerRunner -  JVM: OpenJDK 64-Bit Server VM
2026-11-28T19:01:33.505Z WARN  MetricGroup - Name collision: Group already contains a Metric
2026-11-28T19:01:40.000Z INFO  Task - totals (2/4)#7 switched from RUNNING to FAILED with cause:
java.lang.RuntimeException: Exception in operator
\tat org.apache.flink.streaming.Output.push(Output.java:92)
\tat StreamExecCalc$311.processElement(Unknown Source)
Caused by: java.io.IOException: disk 7 is full
\tat java.base/java.io.FileOutputStream.write(Native Method)
\tat org.apache.flink.core.fs.local.LocalOut$3.write(LocalOut.java:41)
\tat org.apache.flink.state.Snapshot.lambda$run$12(Snapshot.java:80)
\t... 12 more
2026-11-28T19:01:41.000Z ERROR KafkaCommitter - Unable to commit transaction 31 of 0x1f
"""


def errors(text: str) -> list[LogEntry]:
    return [entry for entry in entries_of(text.splitlines()) if entry.is_error]


def test_an_error_has_the_level_or_a_stack_trace() -> None:
    trace, commit = errors(FLINK)
    assert (trace.level, trace.logger) == ("INFO", "Task")
    assert trace.text.splitlines() == [
        "Task: totals (2/4)#7 switched from RUNNING to FAILED with cause:",
        "java.lang.RuntimeException: Exception in operator",
        "Caused by: java.io.IOException: disk 7 is full",
    ]
    assert commit.text == "KafkaCommitter: Unable to commit transaction 31 of 0x1f"


def test_the_signature_is_what_two_errors_of_a_kind_have_in_common() -> None:
    trace, commit = errors(FLINK)
    assert trace.signature == (
        "java.lang.RuntimeException <- java.io.IOException at "
        "org.apache.flink.core.fs.local.LocalOut$#.write, "
        "org.apache.flink.state.Snapshot.lambda$run$#"
    )
    assert commit.signature == "ERROR KafkaCommitter: Unable to commit transaction # of #"

    other = FLINK.replace("disk 7", "disk 9").replace("$run$12", "$run$8").replace("#7", "#9")
    assert [error.signature for error in errors(other)] == [trace.signature, commit.signature]


@pytest.mark.parametrize(
    "changed",
    [
        FLINK.replace("java.io.IOException", "java.io.EOFException"),
        FLINK.replace("Snapshot.lambda", "Savepoint.lambda"),
        FLINK.replace("java.lang.RuntimeException:", "java.lang.IllegalStateException:"),
    ],
    ids=["class of the cause", "place", "class"],
)
def test_another_class_or_place_is_another_error(changed: str) -> None:
    assert errors(changed)[0].signature != errors(FLINK)[0].signature


def test_a_cause_that_is_all_of_the_jdk_has_the_frames_of_the_jdk() -> None:
    text = (
        "2026-11-28T19:01:40.000Z WARN  Client - no connection\n"
        "java.net.ConnectException: refused\n"
        "\tat java.base/sun.nio.ch.Net.pollConnect(Native Method)\n"
    )
    (error,) = errors(text)
    assert error.signature == "java.net.ConnectException at sun.nio.ch.Net.pollConnect"


def test_a_suppressed_exception_does_not_hide_where_the_cause_was_thrown() -> None:
    text = (
        "2026-11-28T19:01:40.000Z WARN  Client - closing\n"
        "a.b.FirstException: x\n"
        "\tat a.b.C.one(C.java:1)\n"
        "\tSuppressed: a.b.SecondException: y\n"
    )
    (error,) = errors(text)
    assert error.signature == "a.b.FirstException <- a.b.SecondException at a.b.C.one"


@pytest.mark.parametrize(
    "line",
    [
        "2024-05-01 10:00:00,123 ERROR org.apache.flink.runtime.Task [] - it failed",
        "2024-05-01 10:00:00,123 ERROR org.apache.flink.runtime.Task: it failed",
    ],
    ids=["Flink's own image", "Hadoop"],
)
def test_the_usual_layouts_of_log4j_are_read(line: str) -> None:
    (error,) = errors(line)
    assert (error.logger, error.message) == ("org.apache.flink.runtime.Task", "it failed")


def test_the_layout_of_kafka_has_its_logger_at_the_end() -> None:
    (error,) = errors("[2024-05-01 10:00:00,123] ERROR [Broker 1] it failed (kafka.Server)")
    assert (error.logger, error.message) == ("", "[Broker 1] it failed (kafka.Server)")


@pytest.mark.parametrize(
    "line",
    [
        'Exception in thread "main" java.lang.OutOfMemoryError: Java heap space',
        "Terminating due to java.lang.OutOfMemoryError: Java heap space",
        "# A fatal error has been detected by the Java Runtime Environment:",
    ],
)
def test_what_a_jvm_prints_at_its_end_is_an_error(line: str) -> None:
    healthy = "2026-11-28T19:01:17.153Z INFO  Runner - started\n"
    (error,) = errors(f"{healthy}{line}\n")
    assert (error.level, error.message) == ("FATAL", line)
    assert [error.message for error in errors(f"{line}\n{healthy}")] == [line]


def test_names_of_classes_in_a_message_are_no_stack_trace() -> None:
    text = (
        "2026-11-28T19:01:17.153Z INFO  Runner - retried on:\n"
        "java.io.IOException\n"
        "java.net.ConnectException: and its subclasses\n"
    )
    assert errors(text) == []


def test_errors_of_one_signature_are_counted_by_node() -> None:
    trace, commit = errors(FLINK)
    groups = grouped([("tm-1", commit), ("tm-2", trace), ("tm-2", commit), ("tm-2", commit)])
    assert [(group.signature, group.nodes, group.count) for group in groups] == [
        (commit.signature, {"tm-1": 1, "tm-2": 2}, 3),
        (trace.signature, {"tm-2": 1}, 1),
    ]


def test_a_log_in_which_no_error_could_be_told_is_rejected(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_text("started\nall fine\n")
    with pytest.raises(ValueError, match="no line begins with a time stamp and a level"):
        errors_in(log)

    log.write_text("")
    assert errors_in(log) == []

    log.write_bytes(b"\xff\xfe 7\n" + FLINK.encode())
    assert len(errors_in(log)) == 2


def test_a_long_stack_trace_is_read_in_part() -> None:
    frames = "".join(f"\tat a.B.deep{n}(B.java:{n})\n" for n in range(5_000))
    text = f"2026-11-28T19:01:17.153Z WARN  Task - deep\njava.lang.StackOverflowError\n{frames}"
    (error,) = errors(text)
    assert len(error.more) == 400
    assert error.signature == "java.lang.StackOverflowError at a.B.deep0, a.B.deep1"

"""The errors in saved logs: what counts as one, and what makes two of them the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamquake.reports.record.logged_errors import (
    LogEntry,
    entries_of,
    errors_of_run,
    grouped,
    read_log,
)

STAMP = "2026-11-28T19:01:40.000Z"
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


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("08:01:40.120 [main] ERROR o.e.App - it broke", "o.e.App: it broke"),
        ("2026-11-28 19:01:40,120 ERROR app: it broke", "app: it broke"),
        ("2026-11-28 19:01:40,120 - CRITICAL: it broke", "it broke"),
        ("26/11/28 19:01:40 ERROR Worker: it broke", "Worker: it broke"),
        ("[2026-11-28 19:01:40,120] ERROR [Controller] it broke (kafka.Log)", "it broke"),
        ("CRITICAL:root:it broke", "root:it broke"),
        ("SEVERE: it broke", "it broke"),
        ("\x1b[31m2026-11-28 19:01:40,120 ERROR app: it broke\x1b[0m", "app: it broke"),
        ("2026-11-28 19:01:40,120 \x1b[1;31mERROR\x1b[0;39m app: it broke", "app: it broke"),
        ("\ufeff2026-11-28 19:01:40,120 ERROR app: it broke", "app: it broke"),
        ("\x002026-11-28 19:01:40,120 ERROR\x00 app: it broke", "app: it broke"),
        ("[main] ERROR app - it broke", "app: it broke"),
        ("08:01:40.120 [main] WARN  o.e.App - it broke", ""),
        ("2026-11-28 19:01:40,120 WARNING app: it broke", ""),
        ("ERRORS are counted", ""),
        ("no ERROR: it broke", ""),
        ("[main] WARN app - ERROR: it broke", ""),
    ],
)
def test_other_programs_write_their_levels_otherwise(line: str, error: str) -> None:
    """Also in the middle of a log of Log4j."""
    found = errors("\n".join((FLINK.splitlines()[0], line)))
    assert len(found) == bool(error)
    assert all(error in each.text for each in found)


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


def test_the_address_of_a_generated_class_is_not_in_the_signature() -> None:
    text = (
        "2026-11-28T19:01:40.000Z WARN  Client - failed\n"
        "java.io.IOException: x\n"
        "\tat app//a.b.C$$Lambda/0x00007f300070b628.accept(Unknown Source)\n"
        "\tat app//a.b.C$$Lambda$31/0x00007f300070c000.run(Unknown Source)\n"
    )
    (error,) = errors(text)
    assert error.signature == "java.io.IOException at a.b.C$$Lambda#.accept, a.b.C$$Lambda#.run"


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
        "Aborting due to java.lang.OutOfMemoryError: Java heap space",
        "Exception: java.lang.OutOfMemoryError thrown from the UncaughtExceptionHandler in thread",
        "Error occurred during initialization of VM",
        "Error: Could not find or load main class org.example.Main",
        "Error: Unable to access jarfile job.jar",
    ],
)
def test_what_a_jvm_prints_at_its_end_or_instead_of_its_start_is_an_error(line: str) -> None:
    healthy = "2026-11-28T19:01:17.153Z INFO  Runner - started\n"
    (error,) = errors(f"{healthy}{line}\n")
    assert (error.level, error.message) == ("FATAL", line)
    assert [error.message for error in errors(f"{line}\n{healthy}")] == [line]


PRINTED = "java.lang.IllegalStateException: boom\n\tat a.b.Job.map(Job.java:3)\n"


def test_a_stack_trace_that_is_printed_before_the_first_entry_is_an_error(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_text(f"WARNING: Using incubator modules\n{PRINTED}{FLINK}")
    printed, *logged = read_log(log).errors
    assert printed.signature == "java.lang.IllegalStateException at a.b.Job.map"
    assert printed.text == "java.lang.IllegalStateException: boom"
    assert logged == errors(FLINK)

    log.write_text(PRINTED)
    with pytest.raises(ValueError, match="no line begins with a time stamp and a level"):
        read_log(log)


def test_printed_lines_do_not_hide_a_stack_trace_after_them() -> None:
    rows = "".join(f"row {n}\n" for n in range(1_000))
    (error,) = errors(f"2026-11-28T19:01:17.153Z INFO  Runner - started\n{rows}{PRINTED}")
    assert error.signature == "java.lang.IllegalStateException at a.b.Job.map"


@pytest.mark.parametrize(
    ("first", "text"),
    [
        ("Caused by: java.io.IOException: lost", "Caused by: java.io.IOException: lost"),
        ("com.acme.Problem", "at a.b.Job.map(Job.java:3)"),
    ],
)
def test_printed_lines_do_not_hide_a_trace_that_begins_otherwise(first: str, text: str) -> None:
    rows = "".join(f"row {n}\n" for n in range(1_000))
    trace = f"{first}\n\tat a.b.Job.map(Job.java:3)\n\tat a.b.Job.run(Job.java:9)\n"
    (error,) = errors(f"2026-11-28T19:01:17.153Z INFO  Runner - started\n{rows}{trace}")
    assert error.text == text
    assert error.signature.endswith(" at a.b.Job.map, a.b.Job.run")


def test_the_causes_of_a_long_stack_trace_are_no_further_errors() -> None:
    frames = "".join(f"\tat a.B.deep{n}(B.java:{n})\n" for n in range(1_000))
    trace = f"java.lang.StackOverflowError\n{frames}Caused by: a.b.C: x\n{frames}"
    assert len(errors(f"2026-11-28T19:01:17.153Z WARN  Task - deep\n{trace}")) == 1


PYTHON = """\
2026-11-28T19:01:17.153Z INFO  SparkContext - Running Spark version 4.1.4
Traceback (most recent call last):
  File "/opt/job.py", line 40, in <module>
    main()
  File "/opt/job.py", line 31, in main
    parse(row)
  File "/opt/rows.py", line 7, in parse
    raise ValueError(f"row {row}")
ValueError: row 7
"""


def test_a_trace_without_a_known_exception_has_its_place_in_the_signature() -> None:
    problem = "a.b.Problem: boom\n\tat a.b.C.d(C.java:1)"
    text = f"2026-11-28T19:01:17.153Z INFO  Runner - started\n{problem}"
    (error,) = errors(text)
    assert error.signature == "INFO Runner: started at a.b.C.d"


def test_a_traceback_of_python_is_an_error() -> None:
    (error,) = errors(PYTHON)
    assert error.signature == "ValueError at parse (rows.py), main (job.py)"
    assert error.text.splitlines()[-1] == "ValueError: row 7"

    other = PYTHON.replace("row 7", "row 9").replace("line 31", "line 32")
    assert errors(other)[0].signature == error.signature
    for changed in (PYTHON.replace("ValueError:", "KeyError:"), PYTHON.replace("parse", "read")):
        assert errors(changed)[0].signature != error.signature


GROUP = """\
2026-11-28T19:01:17.153Z WARN  worker - the tasks ended
  + Exception Group Traceback (most recent call last):
  |   File "/opt/job.py", line 31, in main
  |     async with TaskGroup() as group:
  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "/opt/rows.py", line 7, in parse
    |     raise ValueError(row)
    | ValueError: row 7
    +------------------------------------
"""


@pytest.mark.parametrize("rows", [0, 1_000])
def test_a_traceback_of_a_group_of_exceptions_is_an_error(rows: int) -> None:
    head, *group = GROUP.splitlines(keepends=True)
    (error,) = errors("".join((head, *["row\n"] * rows, *group)))
    assert error.signature == "ExceptionGroup <- ValueError at parse (rows.py)"
    assert error.text.splitlines()[-1] == "ValueError: row 7"


def test_a_group_of_exceptions_without_tracebacks_is_an_error() -> None:
    inner = (
        '    | Traceback (most recent call last):\n    |   File "/opt/rows.py", line 7, in parse\n'
    )
    (error,) = errors(GROUP.replace(inner, "").replace("    |     raise ValueError(row)\n", ""))
    assert error.signature.startswith("ExceptionGroup at main (job.py)")


def test_a_traceback_of_python_within_a_trace_of_java_is_one_error() -> None:
    text = (
        "2026-11-28T19:01:17.153Z WARN  TaskSetManager - Lost task 0.0 in stage 3.0 (TID 9)\n"
        "org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
        '  File "/opt/rows.py", line 7, in parse\n'
        "    raise ValueError(row)\n"
        "ValueError: row 7\n"
        "\n"
        "\tat org.apache.spark.api.python.PythonRunner.read(PythonRunner.scala:1)\n"
    )
    (error,) = errors(text)
    assert error.signature == (
        "org.apache.spark.api.python.PythonException <- ValueError at "
        "org.apache.spark.api.python.PythonRunner.read, parse (rows.py)"
    )


def test_an_exception_that_a_jvm_prints_has_its_place() -> None:
    text = (
        'Exception in thread "main" java.lang.OutOfMemoryError: Java heap space\n'
        "\tat java.base/java.util.Arrays.copyOf(Arrays.java:3537)\n"
        "\tat a.b.C.grow(C.java:1)\n"
    )
    (error,) = errors(text)
    assert error.signature == "java.lang.OutOfMemoryError at a.b.C.grow"


def test_lines_keep_all_but_their_ends() -> None:
    (entry,) = entries_of([f"{STAMP} ERROR A - not in [X, \r\n", "\tXX\n", "XX "])
    assert (entry.message, entry.more) == ("not in [X, ", ("\tXX", "XX "))


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
        read_log(log)

    log.write_text("")
    assert read_log(log).errors == ()

    log.write_bytes(b"\xff\xfe 7\n" + FLINK.encode())
    assert len(read_log(log).errors) == 2


STARTED = "2026-11-28T19:01:17.153Z INFO  Runner - started\n"
UNKNOWN = "app: ERROR boom {}\n"


def doubtful(folder: Path, text: str) -> tuple[str, ...]:
    log = folder / "log.txt"
    log.write_text(text)
    return read_log(log).doubtful


@pytest.mark.parametrize("blank", [" ", "\t", "    "])
def test_an_error_behind_white_space_is_doubtful(tmp_path: Path, blank: str) -> None:
    line = f"{blank}{STAMP} ERROR App - boom"
    assert doubtful(tmp_path, f"{STARTED}{line}\n{STARTED}") == (line,)


@pytest.mark.parametrize("before", ["", STARTED, STARTED + "row\n" * 1_000, FLINK])
def test_an_error_of_an_unknown_form_is_doubtful(tmp_path: Path, before: str) -> None:
    text = before + UNKNOWN.format(7) + UNKNOWN.format(8) + STARTED
    assert doubtful(tmp_path, text) == ("app: ERROR boom 7",)


def test_the_lines_of_a_stack_trace_are_not_doubtful(tmp_path: Path) -> None:
    java = (
        f"{STARTED}the job said\nERROR_CODE 7, or ERROR here\n"
        "a.b.FirstException: a worker ended: ERROR 7\n\tat a.b.C.one(C.java:1)\n"
        "Caused by: a.b.SecondException: ERROR 8\n\t... 12 more\n"
    )
    deep = "".join(f"\tat a.B.deep{n}(B.java:{n})\n" for n in range(1_000))
    assert doubtful(tmp_path, java) == ()
    assert doubtful(tmp_path, java + deep + "Caused by: a.b.CException: ERROR 9\n") == ()
    assert doubtful(tmp_path, PYTHON.replace("row 7", "row ERROR: 7")) == ()
    assert doubtful(tmp_path, java + UNKNOWN.format(7)) == ("app: ERROR boom 7",)
    assert doubtful(tmp_path, f"{STARTED}com.acme.App: ERROR boom\n") == (
        "com.acme.App: ERROR boom",
    )


DATABASE = """\
The files belonging to this database system will be owned by user "postgres".
creating subdirectories ... ok
initdb: warning: enabling "trust" authentication for local connections
initdb: hint: You can change this by editing pg_hba.conf or using the option -A
waiting for server to start....2026-11-30 06:00:00.000 UTC [48] LOG:  starting PostgreSQL 17.2
2026-11-30 06:00:00.100 UTC [48] LOG:  database system is ready to accept connections
 done
2026-11-30 06:00:01.000 UTC [77] ERROR:  syntax error at or near "ERROR" at character 8
2026-11-30 06:00:01.000 UTC [77] STATEMENT:  SELECT
\tERROR FROM a
2026-11-30 06:00:02.000 UTC [77] DETAIL:  it is a detail
"""


def test_the_log_of_a_database_is_read(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_text(DATABASE)
    read = read_log(log)
    assert [error.message for error in read.errors] == [
        'syntax error at or near "ERROR" at character 8'
    ]
    assert read.doubtful == ()


def test_the_dumps_of_the_engines_are_not_doubtful(tmp_path: Path) -> None:
    dumps = (
        "[2026-11-30 06:00:00,000] INFO KafkaConfig values: \n"
        "\terrors.tolerance = none\n\tlog.level = ERROR\n\n"
        "2026-11-30T06:00:00.000Z INFO  NameNode - STARTUP_MSG: \n"
        "/************************************************************\n"
        "STARTUP_MSG: Starting NameNode\n"
        "2026-11-30T06:00:00.000Z INFO  FileSourceStrategy - Physical Plan:\n"
        "*(1) Filter (isnotnull(level#1) AND (level#1 = ERROR))\n"
        "+- FileScan json [level#1] PushedFilters: [EqualTo(level,ERROR)]\n"
        '{"level":"warn","error":"reset by peer","message":"Source terminated"}\n'
    )
    assert doubtful(tmp_path, dumps) == ()
    assert errors(dumps) == []


def test_a_log_that_is_read_in_part_is_named_with_its_errors(tmp_path: Path) -> None:
    (tmp_path / "worker").mkdir()
    log = tmp_path / "worker" / "log.txt"
    log.write_text(FLINK + UNKNOWN)
    reasons: list[tuple[Path, str]] = []
    found = list(errors_of_run(tmp_path, lambda log, error: reasons.append((log, str(error)))))
    assert len(found) == 2
    reason = "a line may be an error, but its form is not known: app: ERROR boom {}"
    assert reasons == [(log, reason)]


def test_a_log_that_cannot_be_read_hides_no_other(tmp_path: Path) -> None:
    texts = {"worker-2": FLINK, "worker-1": "it runs\n", "broker": f"{STAMP} ERROR A - é\n"}
    for node, text in texts.items():
        (tmp_path / node).mkdir()
        (tmp_path / node / "log.txt").write_text(text, encoding="utf-8")
    (tmp_path / "worker-3" / "log.txt").mkdir(parents=True)
    (tmp_path / "harness-traceback.txt").write_text(FLINK)

    left_out: list[tuple[Path, Exception]] = []
    found = list(errors_of_run(tmp_path, lambda log, error: left_out.append((log, error))))
    assert [(node, error.level) for node, error in found] == [
        ("broker", "ERROR"),
        ("worker-2", "INFO"),
        ("worker-2", "ERROR"),
    ]
    assert found[0][1].message == "é"
    assert [(log, type(error)) for log, error in left_out] == [
        (tmp_path / "worker-1" / "log.txt", ValueError),
        (tmp_path / "worker-3" / "log.txt", IsADirectoryError),
    ]


def test_a_long_stack_trace_is_read_in_part() -> None:
    frames = "".join(f"\tat a.B.deep{n}(B.java:{n})\n" for n in range(5_000))
    text = f"2026-11-28T19:01:17.153Z WARN  Task - deep\njava.lang.StackOverflowError\n{frames}"
    (error,) = errors(text)
    assert len(error.more) == 400
    assert error.signature == "java.lang.StackOverflowError at a.B.deep0, a.B.deep1"

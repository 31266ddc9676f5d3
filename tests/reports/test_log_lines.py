"""The forms of a log's lines: each level is read where a program writes it, and none elsewhere."""

from __future__ import annotations

import json

import pytest

from streamquake.reports.record.log_lines import ERROR_LEVELS, first_line, is_doubtful

TIME = "2026-11-30 06:00:01,000"


@pytest.mark.parametrize(
    ("line", "level", "logger", "message"),
    [
        (f"{TIME} - app - ERROR - boom", "ERROR", "app", "boom"),
        (f"{TIME} [ERROR] boom", "ERROR", "", "boom"),
        (f"{TIME} [main] [ERROR] boom", "ERROR", "", "boom"),
        (f"{TIME} | ERROR | boom", "ERROR", "", "boom"),
        (f"{TIME} | ERROR    | app:run:7 - boom", "ERROR", "", "app:run:7 - boom"),
        (f"{TIME} error boom", "ERROR", "", "boom"),
        (f"{TIME} fatal: boom", "FATAL", "", "boom"),
        (f"{TIME} [main] INFO app - [ERROR] boom", "INFO", "app", "[ERROR] boom"),
        ("[ERROR] boom", "ERROR", "", "boom"),
        ("[main] [ERROR] app - boom", "ERROR", "app", "boom"),
        ("[2026-11-30T06:00:01,000][ERROR][o.e.Node] boom", "ERROR", "", "[o.e.Node] boom"),
        ("[2026-11-30 06:00:01 +0000] [7] [CRITICAL] boom", "CRITICAL", "", "boom"),
        ("[2026-11-30T06:00:01Z ERROR app::run] boom", "ERROR", "", "app::run] boom"),
        ("2026/11/30 06:00:01 [emerg] 7#7: boom", "EMERG", "", "7#7: boom"),
        ("2026-11-30T06:00:01.000Z 0 [ERROR] [MY-010119] boom", "ERROR", "", "[MY-010119] boom"),
        ("2026-11-30T06:00:01Z ERR boom error=eof", "ERROR", "", "boom error=eof"),
        ("6:00AM FTL boom", "FATAL", "", "boom"),
        ("[06:00:01 ERR] boom", "ERROR", "", "boom"),
        ("[0.005s][error][cds] boom", "ERROR", "", "[cds] boom"),
        ("[0.005s][warning][cds] boom", "WARNING", "", "[cds] boom"),
        ("E1130 06:00:00.000000 123 file.cc:1] boom", "ERROR", "", "file.cc:1] boom"),
        ("I1130 06:00:00.000000 123 file.cc:1] fine", "I", "", "file.cc:1] fine"),
        ('time="2026-11-30 06:00" level=error msg="boom"', "ERROR", "", 'msg="boom"'),
        ('msg="boom" level=error', "ERROR", "", ""),
        ('time=06:00:01Z level=ERROR+4 msg="boom"', "ERROR", "", 'msg="boom"'),
        ('time=06:00:01Z level=WARN+1 msg="boom"', "WARN", "", 'msg="boom"'),
        (f"{TIME}\tDPANIC\tmain/main.go:1\tboom", "PANIC", "", "main/main.go:1\tboom"),
        (f"{TIME}|ERROR|boom", "ERROR", "", "boom"),
        ("2026-11-30 06:00:00.000 UTC [77] ERROR:  boom", "ERROR", "", "boom"),
        ("2026-11-30 06:00:00.000 UTC [77] PANIC:  boom", "PANIC", "", "boom"),
        ("2026-11-30 06:00:00.000 +03 [77] me@shop FATAL:  boom", "FATAL", "", "boom"),
        ("2026-11-30 06:00:00.000 UTC [1] LOG:  it is ready", "LOG", "", "it is ready"),
        ("2026-11-30 06:00:00.000 CET [1] STATEMENT:  SELECT 1", "STATEMENT", "", "SELECT 1"),
        ("2026-11-30 06:00:00.000 UTC [1] NOTICE:  skipping", "NOTICE", "", "skipping"),
    ],
)
def test_the_level_of_a_line(line: str, level: str, logger: str, message: str) -> None:
    first = first_line(line)
    assert first is not None
    assert (first.level, first.logger, first.message) == (level, logger, message)


@pytest.mark.parametrize(
    ("fields", "level"),
    [
        ({"level": "error", "message": "boom"}, "ERROR"),
        ({"@timestamp": "t", "level": "ERROR", "message": "boom"}, "ERROR"),
        ({"severity": "CRITICAL", "message": "boom"}, "CRITICAL"),
        ({"log": {"level": "error"}, "message": "boom"}, "ERROR"),
        ({"log.level": "FATAL", "message": "boom"}, "FATAL"),
        ({"level": 50, "time": 7, "msg": "boom"}, "ERROR"),
        ({"level": 30, "time": 7, "msg": "boom"}, "INFO"),
        ({"level": "info", "error": "eof", "msg": "boom"}, "INFO"),
        ({"level": "warn", "message": "boom"}, "WARN"),
        ({"level": 50, "time": 7, "message": "boom"}, "ERROR"),
        ({"level": "E", "msg": "boom"}, "ERROR"),
        ({"level": "I", "time": "t", "message": "boom"}, "I"),
        ({"severityText": "ERROR", "severityNumber": 17, "body": "boom"}, "ERROR"),
        ({"severityText": "ERROR2", "body": "boom"}, "ERROR"),
        ({"severityNumber": 18, "body": "boom"}, "ERROR"),
        ({"severityNumber": 24, "body": "boom"}, "FATAL"),
        ({"severityNumber": "SEVERITY_NUMBER_FATAL3", "body": "boom"}, "FATAL"),
        ({"@t": "2026", "@m": "boom", "@l": "Error"}, "ERROR"),
        ({"@t": "2026", "@mt": "boom", "@l": "Warning"}, "WARNING"),
        ({"t": {}, "s": "E", "c": "CONTROL", "id": 1, "ctx": "main", "msg": "boom"}, "ERROR"),
        ({"t": {}, "s": "F", "c": "CONTROL", "id": 1, "ctx": "main", "msg": "boom"}, "FATAL"),
        ({"t": {}, "s": "I", "c": "CONTROL", "id": 1, "ctx": "main", "msg": "boom"}, "I"),
        ({"level": "ERROR+4", "msg": "boom"}, "ERROR"),
        ({"level": "dpanic", "msg": "boom"}, "PANIC"),
        ({"levelno": 40, "levelname": "ERROR", "msg": "boom"}, "ERROR"),
        ({"water_level": 50, "level": 30, "msg": "boom"}, "INFO"),
        ({"record": {"level": {"name": "ERROR", "no": 40}, "message": "boom"}}, "ERROR"),
        ({"text": "x", "record": {"level": {"name": "INFO"}, "message": "boom"}}, "INFO"),
    ],
)
def test_the_level_of_json(fields: dict[str, object], level: str) -> None:
    first = first_line(json.dumps(fields))
    assert first is not None
    assert (first.level, first.message, first.more) == (level, "boom", ())


def test_json_may_hold_a_stack_trace() -> None:
    trace = "java.io.IOException: lost\n\tat a.B.c(B:1)"
    first = first_line(json.dumps({"level": "WARN", "logger": "App", "stack_trace": trace}))
    assert first is not None
    assert first.logger == "App"
    assert first.more == ("java.io.IOException: lost", "\tat a.B.c(B:1)")


@pytest.mark.parametrize(
    "line",
    [
        '{"level": 7, "key": "k-1"}',
        '{"level": 50, "time": 7, "key": "k-1"}',
        '{"level": "E", "key": "k-1"}',
        '{"water_level": 50, "msg": "k-1"}',
        '{"record": {"level": "ERROR", "key": "k-1"}}',
        '{"key": "k-1", "status": "error"}',
        '{"s": "E", "msg": "k-1"}',
        '{"level": "error"',
        "{" * 5_000,
        "level=ERROR",
        "error: boom",
        f"{TIME} errors.tolerance = none",
        f"{TIME} error.count=7",
        f"{TIME} it has no level: ERROR",
        "E1130 is no time",
        "STATEMENT:  SELECT 1",
    ],
)
def test_a_line_without_a_level_begins_no_entry(line: str) -> None:
    assert first_line(line) is None


@pytest.mark.parametrize(
    "line",
    [
        "psql:/init.sql:3: ERROR:  relation exists",
        "E, [2026-11-30T06:00:01.000 #1] ERROR -- : boom",
        "app/worker ERROR boom",
        "<nil> ERR boom",
        f"{TIME} main ERROR boom",
        f" {TIME} ERROR boom",
        f"\t[{TIME}] ERROR [Controller] boom",
        "30 Nov 2026 06:00:01 ERROR boom",
        '2026-11-30T06:00:01Z {"level":"error","message":"boom"}',
        "Nov 30 06:00:01 host app[7]: error: boom",
        f"{TIME} host app of mine [error] boom",
        '{"level": "error", "message": "it is cut',
        '  "level" : "ERROR",',
        "waiting for server to start....2026-11-30 06:00:00.000 UTC [48] FATAL:  boom",
        "2026-11-30T06:00:01Z boom level=error",
        '2026-11-30T06:00:01Z boom level="ERROR+4" of="x"',
        '<log4j:event logger="a" timestamp="1" level="ERROR" thread="main">',
        '<Event timeMillis="1" thread="main" level="FATAL" loggerName="a"><Message>boom</Message>',
        '  "severityText": "ERROR",',
        "fail: Acme.Shop.Orders[0]",
        "crit: Acme.Shop.Orders[7]",
        "2026-11-30 06:00:01 fail: Acme.Shop.Orders[0]",
        "Dumping heap to java_pid1.hprof ...",
    ],
)
def test_a_level_of_an_error_in_another_form_is_doubtful(line: str) -> None:
    assert first_line(line) is None
    assert is_doubtful(line)


@pytest.mark.parametrize(
    "line",
    [
        "\terrors.tolerance = ERROR ",
        "\tERROR boom",
        f"\t{TIME} INFO app - ERROR boom",
        f"\tat a.B.c(B.java:1) {TIME} ERROR boom",
        "\t... 12 more",
        "  errors: ERROR boom",
        "not-null-enforcer = ERROR ",
        "table.exec.sink.not-null-enforcer, ERROR",
        "+- Filter (isnotnull(level#1) AND (level#1 = ERROR))",
        "Calc(select=[key], where=[(level = 'ERROR')])",
        "+I[ERROR, 5]",
        '{"key": "k-1", "status": "ERROR"}',
        "\tlevel=error",
        "level=error is counted",
        '10.0.0.1 [30/Nov/2026:06:00:01] "GET /logs?level=error HTTP/1.1" 200',
        '<root level="ERROR">',
        '<logger name="a.Event" level="ERROR"/>',
        '<log4j:event logger="a" timestamp="1" level="WARN" thread="main">',
        "info: Acme.Shop.Orders[0]",
        "fail: it did",
        "  Dumping heap to a file is off",
        "STARTUP_MSG: Starting NameNode",
        "# Internal Error (safepoint.cpp:7), pid=1",
        "[PARSE_SYNTAX_ERROR] Syntax error at or near end of input",
        "the last error: none",
        f"{'word ' * 30} ERROR boom",
        f"{TIME} there were no errors",
        "waiting for server to start....2026-11-30 06:00:00.000 UTC [48] LOG:  starting",
        "initdb: warning: enabling trust authentication for local connections",
        "selecting default time zone ... Etc/UTC",
    ],
)
def test_the_words_of_ordinary_messages_are_not_doubtful(line: str) -> None:
    assert first_line(line) is None
    assert not is_doubtful(line)


@pytest.mark.parametrize(
    "line",
    [
        'a="b" ' * 5_000,
        "a@" * 50_000,
        f"{TIME} {'- ' * 50_000}",
        f"{TIME} {'[' * 100_000}",
        f"{TIME} {'a - ' * 50_000}",
        "[" * 100_000,
        f"{TIME} {' level=' * 50_000}",
        "<event " + "level=" * 50_000,
    ],
    ids=["fields", "names", "separators", "brackets", "words", "only brackets", "levels", "event"],
)
def test_a_long_line_is_read_in_linear_time(line: str) -> None:
    assert first_line(line) is None
    assert not is_doubtful(line)


def test_levels_of_errors_are_those_of_errors() -> None:
    assert {"ERROR", "FATAL", "PANIC"} < set(ERROR_LEVELS)
    assert not {"WARN", "INFO", "LOG", "I", "W"} & set(ERROR_LEVELS)

"""The first lines of the entries of a log: the forms in which programs write time and level.

A level is known after a time stamp (Log4j, Logback, Python, loguru, nginx, PostgreSQL, zerolog), in
JSON (also that of MongoDB, Serilog and OpenTelemetry), in logfmt, in glog, and, for errors only, at
the beginning of a line without a time stamp. A line of another form that seems to have the level of
an error is doubtful: it may be one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

ERROR_LEVELS = ("ERROR", "FATAL", "CRITICAL", "SEVERE", "PANIC", "ALERT", "EMERG")
_ABBREVIATED = {"ERR": "ERROR", "FTL": "FATAL", "CRIT": "CRITICAL", "PNC": "PANIC"}
_LETTERS = {"E": "ERROR", "F": "FATAL", "C": "CRITICAL"}
_OTHERWISE = _ABBREVIATED | _LETTERS | {"DPANIC": "PANIC"}
"""Short words, letters, and a level of zap -> the level."""
_NUMBERS = {50: "ERROR", 60: "FATAL"}
"""The levels of errors in the JSON of pino and bunyan."""
_FAILED = "ERROR|FATAL|CRITICAL|SEVERE|D?PANIC"
_FAILED_IN_SHORT = "ERR|FTL|CRIT|PNC|ALERT|EMERG"
_LONG = rf"TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|{_FAILED}"
_BRIEF = rf"TRC|DBG|INF|WRN|{_FAILED_IN_SHORT}"
_OF_POSTGRES = r"LOG|DEBUG\d|DETAIL|HINT|STATEMENT|CONTEXT|QUERY|LOCATION"
_WORDS = rf"{_LONG}|{_BRIEF}"
_BETWEEN = r"(?:\+\d+)?"
"""Behind a level of Go's slog: one between two levels, such as ERROR+4."""

_TIME = (
    r"(?:\[?(?:\d{2,4}[-/]\d\d[-/]\d\d[T ])?\d\d:\d\d:\d\d[^\s\[|]*"  # date and time, or only time
    r"|\d{1,2}:\d\d[AP]M"  # zerolog
    r"|\[\d+\.\d+s\])"  # a JVM: seconds since its start
    r"(?: (?:[A-Z]{3,5}|[+-]\d\d(?::?\d\d)?)\b\]?)??\s*"  # zone
)
_COLUMN = (
    r"(?:\[[^\]]*\]\s*|\|\s*"  # thread, process; separator
    r"|(?:-|\d+|[^\s@]{1,64}@[^\s@]{1,64}"  # separator, process, user@database
    r"|(?P<name>[\w.$/-]{1,100})(?=\s+[-|]\s))\s+)"  # a name before a separator
)
_LEVEL = (
    rf"(?:[\[<(](?P<enclosed>(?i:{_WORDS}))\s*[\])>]"
    rf"|(?P<plain>(?i:{_LONG})|{_BRIEF}|(?:{_OF_POSTGRES})(?=:))(?![\w.=-]))"
)
_END = r"(?:\s*\])?(?:\s*[:|]|\s+-(?=\s))?\s*(?P<rest>.*)$"
# The columns before the level are few, and as few as possible: the first level is that of the line.
AFTER_TIME = re.compile(rf"^{_TIME}(?:{_COLUMN}){{0,5}}?{_LEVEL}{_END}")
ERROR_WITHOUT_TIME = re.compile(
    rf"^(?:\[(?!(?:{_WORDS})\s*\])[^\]]*\]\s+)?"
    rf"(?:\[(?P<enclosed>{_FAILED})\s*\]|(?P<plain>{_FAILED})(?=[:\s])){_END}"
)
GLOG = re.compile(r"^(?P<plain>[IWEF])\d{4} \d\d:\d\d:\d\d\.\d+\s+\d+ (?P<rest>[^\]\s]+\] .*)$")
_FIELD = r"[\w.]+=(?:\"[^\"]*\"|(?!\")\S*)"
LOGFMT = re.compile(
    rf"^(?={_FIELD} +[\w.]+=)(?:{_FIELD} +)*?"  # several fields: one alone may be a setting
    rf"(?:level|lvl|severity)=\"?(?P<plain>(?i:{_WORDS})){_BETWEEN}\"?(?:\s+(?P<rest>.*))?$"
)
LOGGER = re.compile(r"^(?P<logger>[\w.$-]+)(?: \[[^\]]*\])?(?: - |: |\] )(?P<message>.*)$")
PRINTED_BY_JVM = re.compile(
    r"^(Exception in thread |Terminating due to |# A fatal error |\*\*\* FATAL|Aborting due to "
    r"|Exception: \S+ thrown from the UncaughtExceptionHandler|Error occurred during initialization"
    r"|Error: (Could not (find or load|create) |Unable to |A JNI error |A fatal exception ))"
)
_JSON_LEVEL = re.compile(rf"({_WORDS})(?:\+\d+|[2-4])?", re.IGNORECASE)
_OTEL_NUMBER = re.compile(r"SEVERITY_NUMBER_(ERROR|FATAL)[2-4]?")
_MESSAGES = ("message", "msg", "event")
_OTHER_MESSAGES = ("body", "@m", "@mt")
"""Of OpenTelemetry and Serilog."""
_LEVEL_NAMES = ("level", "severity", "lvl", "severitytext", "@l")
_OF_MONGODB = frozenset({"t", "s", "c", "ctx", "msg"})
"""The fields of each line of MongoDB; `s` is its level."""
_ALONE = r"(?<![^\s\[<|(])"
DOUBTFUL = re.compile(
    # in capitals: near the beginning of a line, and no value of a setting
    rf"^(?=\S).{{0,80}}?{_ALONE}(?<!= )(?:{_FAILED}|{_FAILED_IN_SHORT})(?=[\s\]>|:])"
    # after a time, also in small letters: as a level is written
    rf"|^(?=\S).{{0,40}}?\d:\d\d.{{0,80}}?{_ALONE}(?i:{_FAILED}|{_FAILED_IN_SHORT})(?=\s*[:\]>|])"
    # after a time, as a field
    rf"|^(?=\S).{{0,40}}?\d:\d\d.{{0,400}}?\s(?:level|lvl|severity)=\"?(?i:{_FAILED}|{_FAILED_IN_SHORT})"
    rf"{_BETWEEN}\"?(?:\s|$)"
    # JSON that is cut, or written in several lines
    rf"|^.{{0,400}}?\"(?:level|severity|severityText|@l)\"\s*:\s*\"(?i:{_FAILED})\""
    # an event in the XML of Log4j
    rf"|^\s*<(?:\w+:)?[Ee]vent\s[^>]{{0,400}}?\blevel=\"(?:{_FAILED})\""
    # .NET: the message is in the next line
    r"|^(?:(?=\S).{0,40}?\d:\d\d\S*\s+)?(?:fail|crit): \S{1,200}\[\d+\]$"
    # a JVM without memory
    r"|^Dumping heap to "
)


@dataclass(frozen=True, kw_only=True)
class FirstLine:
    """What the first line of an entry says."""

    level: str
    """The level as Log4j writes it; one of `ERROR_LEVELS` for an error."""
    logger: str = ""
    message: str = ""
    more: tuple[str, ...] = ()
    """Further lines that are written into the same line, as a stack trace in JSON."""


def first_line(line: str) -> FirstLine | None:
    """What a line says that begins an entry; None for a line that belongs to another one, or whose
    form is not known."""
    if line.startswith("{"):
        return _of_json(line)
    for form in (AFTER_TIME, ERROR_WITHOUT_TIME, GLOG, LOGFMT):
        if match := form.match(line):
            return _of_text(match)
    if PRINTED_BY_JVM.match(line):
        return FirstLine(level="FATAL", message=line)
    return None


def is_doubtful(line: str) -> bool:
    """Whether a line that begins no entry seems to have the level of an error."""
    return DOUBTFUL.match(line) is not None or _is_indented_error(line)


def _is_indented_error(line: str) -> bool:
    """Whether a line with white space before it would otherwise begin an error. Without a time it
    is text of another entry, such as a setting."""
    if not line[:1].isspace():
        return False
    match = AFTER_TIME.match(line.lstrip())
    return match is not None and _of_text(match).level in ERROR_LEVELS


def _of_text(match: re.Match[str]) -> FirstLine:
    groups = match.groupdict()
    rest = groups["rest"] or ""
    named = LOGGER.match(rest)
    return FirstLine(
        level=_level(groups["plain"] or groups["enclosed"]),
        logger=named["logger"] if named else groups.get("name") or "",
        message=named["message"] if named else rest,
    )


def _level(word: str) -> str:
    return _OTHERWISE.get(word.upper(), word.upper())


def _of_json(line: str) -> FirstLine | None:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    parts = _parts_of(entry)
    level = next(filter(None, map(_level_of_json, parts)), None)
    if level is None:
        return None
    message = _text_of(parts, *_MESSAGES, *_OTHER_MESSAGES) or line
    others = (text for text in entry.values() if isinstance(text, str) and text != message)
    first, *more = [*message.splitlines(), *(part for text in others for part in _lines_of(text))]
    logger = _text_of(parts, "logger", "loggerName", "logger_name", "log.logger", "component")
    return FirstLine(level=level, logger=logger, message=first, more=tuple(more))


def _parts_of(entry: Mapping[str, object]) -> list[Mapping[str, object]]:
    """The entry, and the object `log` of Elastic's layout or `record` of loguru."""
    log, record = entry.get("log"), entry.get("record")
    parts = [log] if isinstance(log, dict) else []
    parts += [record] if isinstance(record, dict) and "message" in record else []
    return [entry, *parts]


def _level_of_json(part: Mapping[str, object]) -> str | None:
    """The level in a field such as `level`, `severity` or `log.level`, None without one."""
    if part.keys() >= _OF_MONGODB and (level := _level_in(part["s"], of_entry=True)):
        return level
    if level := _level_of_number(part.get("severityNumber")):
        return level
    is_entry = "msg" in part or bool("time" in part and _text_of([part], *_MESSAGES))
    named = sorted(part, key=lambda name: name.lower() not in _LEVEL_NAMES)
    for name in named:
        is_level = name.lower() in _LEVEL_NAMES
        if (is_level or "level" in name.lower()) and (
            level := _level_in(part[name], of_entry=is_level and is_entry)
        ):
            return level
    return None


def _level_of_number(severity: object) -> str | None:
    """The level of an error in OpenTelemetry's `severityNumber`, None for other numbers."""
    if isinstance(severity, int):
        return {4: "ERROR", 5: "FATAL"}.get((severity - 1) // 4)
    found = _OTEL_NUMBER.fullmatch(severity) if isinstance(severity, str) else None
    return found[1] if found else None


def _level_in(value: object, *, of_entry: bool) -> str | None:
    """The level in the value of a field. A number or a letter is one only beside a message:
    elsewhere it may be data."""
    word = value.get("name") if isinstance(value, dict) else value  # loguru
    if isinstance(word, str) and (match := _JSON_LEVEL.fullmatch(word)):
        return _level(match[1])
    if of_entry and isinstance(value, int):
        return _NUMBERS.get(value, "INFO")
    if of_entry and isinstance(value, str) and re.fullmatch("[TVDIWEFC]", value):
        return _level(value)
    return None


def _text_of(parts: Iterable[Mapping[str, object]], *names: str) -> str:
    """The first of these fields that is a text; empty without one."""
    texts = (part.get(name) for part in parts for name in names)
    return next((text for text in texts if isinstance(text, str) and text.strip()), "")


def _lines_of(text: str) -> list[str]:
    """The lines of a text of several lines, such as a stack trace; none of another one."""
    lines = text.splitlines()
    return lines if len(lines) > 1 else []

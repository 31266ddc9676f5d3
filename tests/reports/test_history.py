"""The history file: a file cut off by a crash is readable, a damaged one is rejected."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from streamquake.reports.record.event import Action, Event, EventDraft, Kind
from streamquake.reports.record.history import History, HistoryWriter, read_history, read_so_far


def draft(at_s: float, action: Action, **value: object) -> EventDraft:
    at_ns = round(at_s * 1e9)
    return EventDraft(at_ns=at_ns, process="test", kind=Kind.INFO, action=action, value=value)


@pytest.fixture
def written(tmp_path: Path) -> Path:
    path = tmp_path / "history.jsonl"
    writer = HistoryWriter(path)
    for number, phase in enumerate(("deploy", "steady", "disturb")):
        writer.append(draft(number, Action.PHASE, phase=phase))
    writer.close()
    return path


def test_written_events_are_read_back(written: Path) -> None:
    history = read_history(written)
    assert [event.value["phase"] for event in history] == ["deploy", "steady", "disturb"]
    assert [event.index for event in history] == [0, 1, 2]
    assert history[1].kind is Kind.INFO
    assert history[1].action is Action.PHASE


def test_events_are_on_disk_before_the_writer_is_closed(tmp_path: Path) -> None:
    writer = HistoryWriter(tmp_path / "history.jsonl")
    writer.append(draft(1, Action.DRAINED, lag=0))
    assert len(read_history(tmp_path / "history.jsonl")) == 1
    writer.close()


def test_a_last_line_cut_off_by_a_crash_is_ignored(written: Path) -> None:
    written.write_bytes(written.read_bytes()[:-20])
    assert [event.value["phase"] for event in read_history(written)] == ["deploy", "steady"]


@pytest.mark.parametrize("damage", ["{", "[]", '{"index": 1}', '{"kind": "no", "action": "phase"}'])
def test_a_damaged_line_in_the_middle_is_rejected_with_its_line_number(
    written: Path, damage: str
) -> None:
    lines = written.read_text(encoding="utf-8").splitlines()
    lines[2] = damage
    written.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"history\.jsonl:3: not an event"):
        read_history(written)


def test_blank_lines_are_no_events(written: Path) -> None:
    events = list(read_history(written))
    header, first, *rest = written.read_text().splitlines(keepends=True)
    written.write_text("".join([header, "\n", first, " \r\n", *rest, "\n\n"]))
    assert list(read_history(written)) == events
    written.write_text("".join([header, "\n", first, "{}\n", *rest]))
    with pytest.raises(ValueError, match=f"{written.name}:4: not an event"):
        read_history(written)


def test_a_missing_line_is_rejected(written: Path) -> None:
    lines = written.read_text(encoding="utf-8").splitlines()
    written.write_text("\n".join(lines[:2] + lines[3:]) + "\n", encoding="utf-8")
    with pytest.raises(ValueError, match="expected event 1, found event 2"):
        read_history(written)


@pytest.mark.parametrize("head", ['{"schema": 2}', '{"schema": true}', "{}", "[]", "no json"])
def test_another_schema_is_rejected(written: Path, head: str) -> None:
    lines = written.read_text(encoding="utf-8").splitlines()
    written.write_text("\n".join([head, *lines[1:]]) + "\n", encoding="utf-8")
    with pytest.raises(ValueError, match="not a history of schema 1"):
        read_history(written)


def test_an_empty_file_is_not_a_history(tmp_path: Path) -> None:
    (tmp_path / "history.jsonl").touch()
    with pytest.raises(ValueError, match="not a history"):
        read_history(tmp_path / "history.jsonl")


def test_an_existing_history_is_never_overwritten(written: Path) -> None:
    with pytest.raises(FileExistsError):
        HistoryWriter(written)


def test_first_returns_the_first_event_in_the_file_after_a_time(tmp_path: Path) -> None:
    writer = HistoryWriter(tmp_path / "history.jsonl")
    writer.append(draft(9, Action.JOB_RUNNING))
    writer.append(draft(7, Action.JOB_RUNNING))
    writer.append(draft(3, Action.JOB_RUNNING))
    history = writer.so_far()
    found = history.first(Action.JOB_RUNNING, after_ns=round(5e9))
    assert found is not None
    assert found.at_s == 7
    assert History().first(Action.JOB_RUNNING) is None


RECORDED = Path("harness/selftest/record/run/history.jsonl").resolve()


def test_the_fields_of_a_recorded_history_have_the_right_types() -> None:
    assert len(read_history(RECORDED)) == 278


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"attempt": "1"}, "`attempt` to be a whole number"),
        ({"attempt": None}, "`attempt` to be a whole number"),
        ({"attempt": -1}, "`attempt` to be a whole number of at least 0"),
        ({"count": -1}, "`count` to be a whole number of at least 0"),
        ({"step": True}, "`step` to be a whole number"),
        ({"seen_ns": 1.5}, "`seen_ns` to be a whole number"),
        ({"pauses_ns": None}, "`pauses_ns` to be a list of pairs"),
        ({"pauses_ns": [[1]]}, "`pauses_ns` to be a list of pairs"),
        ({"pauses_ns": [[1, "2"]]}, "`pauses_ns` to be a list of pairs"),
        ({"ranges": [1, 2]}, "`ranges` to be a list of pairs"),
        ({"ranges": [[0, -1]]}, "`ranges` to be a list of pairs"),
        ({"seen_ns": 10**30}, "`seen_ns` to be a whole number"),
        ({"duration_ms": float("nan")}, "`duration_ms` to be a number"),
        ({"duration_ms": float("inf")}, "`duration_ms` to be a number"),
        ({"state": None}, "`state` to be a text"),
        ({"node": 1}, "`node` to be a text"),
        ({"nodes": "kafka/broker-1"}, "`nodes` to be a list"),
        ({"evidence": []}, "`evidence` to be an object"),
        ({"evidence": None}, "`evidence` to be an object"),
        ({"config": None}, "`config` to be an object"),
        ({"called_ns": None}, "`called_ns` to be a whole number"),
        ({"acknowledged": None}, "`acknowledged` to be a whole number"),
    ],
)
def test_a_field_of_the_wrong_type_is_damage(
    written: Path, value: dict[str, object], problem: str
) -> None:
    lines = written.read_text(encoding="utf-8").splitlines()
    lines[2] = json.dumps({**json.loads(lines[2]), "value": value})
    written.write_text("\n".join(lines) + "\n", encoding="utf-8")

    history, damage = read_so_far(written)

    assert len(history) == 1
    assert problem in damage


@pytest.mark.parametrize(
    "value", [{"seen_ns": None}, {"duration_ms": 1.5}, {"node": None}, {"evidence": {}}, {"x": 1}]
)
def test_unknown_and_empty_fields_are_not_damage(written: Path, value: dict[str, object]) -> None:
    lines = written.read_text(encoding="utf-8").splitlines()
    lines[2] = json.dumps({**json.loads(lines[2]), "value": value})
    written.write_text("\n".join(lines) + "\n", encoding="utf-8")

    assert len(read_history(written)) == 3


@pytest.mark.parametrize(
    "envelope", [{"at_ns": -1}, {"at_ns": 10**30}, {"process": 1}, {"error": ["x"]}, {"x": 1}]
)
def test_an_event_without_a_valid_time_or_process_is_damage(
    written: Path, envelope: dict[str, object]
) -> None:
    lines = written.read_text(encoding="utf-8").splitlines()
    lines[2] = json.dumps({**json.loads(lines[2]), **envelope})
    written.write_text("\n".join(lines) + "\n", encoding="utf-8")

    with pytest.raises(ValueError, match=r"history\.jsonl:3: not an event"):
        read_history(written)


def test_an_event_may_lack_its_value_and_its_error(written: Path) -> None:
    lines = written.read_text(encoding="utf-8").splitlines()
    event = json.loads(lines[2])
    lines[2] = json.dumps({key: event[key] for key in event if key not in ("value", "error")})
    written.write_text("\n".join(lines) + "\n", encoding="utf-8")

    assert (read_history(written)[1].value, read_history(written)[1].error) == ({}, None)


def test_events_of_several_classes_are_in_the_order_of_the_history(tmp_path: Path) -> None:
    writer = HistoryWriter(tmp_path / "history.jsonl")
    actions = (Action.PHASE, Action.DRAINED, Action.PHASE, Action.CLUSTER_REUSED, Action.DRAINED)
    for number, action in enumerate(actions):
        writer.append(draft(5 - number, action))
    history = writer.so_far()
    writer.close()

    found = history.of(Action.DRAINED, Action.PHASE)

    assert [event.index for event in found] == [0, 1, 2, 4]
    assert [event.index for event in history.of(Event)] == [0, 1, 2, 3, 4]
    assert history.of(Action.DRAINED, Action.DRAINED) == (history[1], history[4])
    assert history.of(Action.JOB_FAILING) == history.of() == ()
    assert history.first(Action.PHASE, Action.DRAINED, after_ns=2_000_000_000) == history[2]
    assert history.first(Action.JOB_FAILING) is None

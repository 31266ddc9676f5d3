"""Intents: what was injected is on disk before it is tried, and another process heals it."""

from __future__ import annotations

import fcntl
import getpass
import json
import os
import socket
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

import pytest

from streamquake.faults.catalogue.kill import Kill
from streamquake.faults.catalogue.slow_link import SlowLink
from streamquake.faults.fault import faults
from streamquake.faults.injection.intents import Intent, IntentLog, whoami

WORKER = "flink/taskmanager-1"


def write(log: IntentLog, step: int = 0) -> Intent:
    return log.write_intent(step=step, fault=Kill(), target=WORKER, names=[WORKER])


def test_another_process_reads_the_whole_intent(tmp_path: Path) -> None:
    path = tmp_path / "intents.jsonl"
    began = datetime.now(UTC).replace(microsecond=0)
    baselines = {"sink": {"round_trip_ms": 0.4}}
    written = IntentLog(path).write_intent(
        step=3,
        fault=SlowLink(latency_ms=50),
        target="link sink",
        names=["sink"],
        baselines=baselines,
    )
    assert IntentLog(path).open_intents() == (written,)
    assert (written.step, written.fault) == (3, "slow_link")
    assert written.params == {"stream": "both", "latency_ms": 50, "jitter_ms": 0}
    assert (written.target, written.names) == ("link sink", ("sink",))
    assert written.baselines == baselines
    assert written.build_fault() == SlowLink(latency_ms=50)
    assert written.by == f"{getpass.getuser()}@{socket.gethostname()}:{os.getpid()}"
    assert began <= datetime.fromisoformat(written.at) <= datetime.now(UTC)
    assert "." not in written.at, "to the second, as a person reads it"


def test_another_process_builds_a_fault_with_lists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Several(Kill):
        name: ClassVar[str] = "several"
        ports: tuple[int, ...] = ()
        by_name: Mapping[str, tuple[str, ...]] = {}

    monkeypatch.setitem(faults._members, Several.name, Several)
    fault = Several(ports=(1, 2), by_name={"a": ("b",)})
    log = IntentLog(tmp_path / "intents.jsonl")
    written = log.write_intent(step=0, fault=fault, target=WORKER, names=[WORKER])
    (found,) = IntentLog(tmp_path / "intents.jsonl").open_intents()
    assert found.build_fault() == written.build_fault() == fault


def test_intents_without_a_verified_heal_are_open_in_their_order(tmp_path: Path) -> None:
    log = IntentLog(tmp_path / "intents.jsonl")
    assert log.open_intents() == (), "there is no file before the first injection"
    first, second, third = (write(log, step) for step in range(3))
    assert len({first.id, second.id, third.id}) == 3
    assert {len(each.id) for each in (first, second, third)} == {12}
    log.record_heal(second)
    assert log.open_intents() == (first, third)
    log.record_heal(second)
    assert log.open_intents() == (first, third), "a heal may be repeated"


def test_the_lines_of_schema_1_stay_readable(tmp_path: Path) -> None:
    path = tmp_path / "intents.jsonl"
    fields = {"step": 1, "fault": "kill", "params": {}, "target": WORKER, "names": [WORKER]}
    lines: list[dict[str, Any]] = [{"intent": {"id": each, **fields}} for each in ("a", "b")]
    lines = [{"schema": 1, **line} for line in (*lines, {"healed": "a"})]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (found,) = IntentLog(path).open_intents()
    assert (found.id, found.names, found.baselines) == ("b", (WORKER,), {})
    assert (found.by, found.at) == ("", ""), "unknown"

    IntentLog(path).record_heal(found)
    added = [json.loads(line) for line in path.read_text().splitlines()[3:]]
    assert added == [{"schema": 1, "healed": "b"}]
    written = write(IntentLog(path))
    line = json.loads(path.read_text().splitlines()[4])
    assert (line["schema"], line["intent"]["id"]) == (1, written.id)


def test_an_intent_is_on_disk_before_its_injection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, flushed = tmp_path / "intents.jsonl", []

    def flush(file: int) -> None:
        assert os.path.samestat(os.fstat(file), path.stat())
        flushed.append(path.read_text())

    monkeypatch.setattr(os, "fsync", flush)
    write(IntentLog(path))
    assert flushed == [path.read_text()]
    assert flushed[0].endswith("}\n")


def test_threads_write_whole_lines(tmp_path: Path) -> None:
    log = IntentLog(tmp_path / "intents.jsonl")
    with ThreadPoolExecutor(8) as pool:
        written = list(pool.map(lambda step: write(log, step), range(64)))
    assert {each.id for each in log.open_intents()} == {each.id for each in written}


def test_no_other_process_reads_or_writes_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "intents.jsonl"
    with path.open("a") as other:
        with IntentLog(path).exclusive(), pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    intent = write(IntentLog(path))
    with IntentLog(path).exclusive():
        assert IntentLog(path).open_intents() == (intent,)


def test_a_user_without_a_name_is_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> str:
        raise KeyError("getpwuid(): uid not found")

    monkeypatch.setattr(getpass, "getuser", fail)
    assert whoami() == f"{os.getuid()}@{socket.gethostname()}:{os.getpid()}"

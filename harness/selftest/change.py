"""What a change is: one thing of a recorded run made wrong, and what the judge must say to it.

A change is one file in `harness/selftest/changes/`. It is made in a copy of the record of a real
run (`harness/selftest/record/`), which is then judged as `streamquake check` judges any record: the
checks, the evidence, and how they are put together.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq

from streamquake.reports.record.event import Action
from streamquake.reports.record.expected_outcome import Written
from streamquake.reports.record.run_folder import RunFolder
from streamquake.topologies.registry import Registry

OF_FAULT = ("step", "fault", "target")
EventRecord = dict[str, Any]
"""An event as its line has it."""


class RecordedRunCopy:
    """A copy of the recorded run that may be changed."""

    def __init__(self, path: Path) -> None:
        self.folder = RunFolder(path)

    def events(self, change: Callable[[EventRecord], Iterable[EventRecord]]) -> None:
        """Each event of the history becomes these, in its place; what names one by its place names
        its new one."""
        header, *lines = self.folder.history.read_text("utf-8").splitlines()
        recorded = [each for line in lines for each in change(json.loads(line))]
        places: dict[int, int] = {}
        for place, each in enumerate(recorded):
            places.setdefault(each["index"], place)
        for each in recorded:
            if (trigger := each["value"].get("trigger_index")) is not None:
                each["value"] = {**each["value"], "trigger_index": places.get(trigger)}
        written = (json.dumps({**each, "index": place}) for place, each in enumerate(recorded))
        self.folder.history.write_text("\n".join([header, *written]) + "\n", "utf-8")

    def without(self, action: Action, *, after: Action | None = None) -> None:
        """Leave out every such event; with `after`, those behind the first one of that."""
        started = after is None

        def change(event: EventRecord) -> Iterable[EventRecord]:
            nonlocal started
            started = started or event["action"] == after
            return () if started and event["action"] == action else (event,)

        self.events(change)

    def recorded_after(self, action: Action, message: Action, **value: Any) -> None:
        """Say something else right behind each such event; `value` is added to what that one has
        of the fault."""

        def change(event: EventRecord) -> Iterable[EventRecord]:
            yield event
            if event["action"] == action:
                fault = {key: event["value"][key] for key in OF_FAULT if key in event["value"]}
                yield {**event, "action": str(message), "value": {**fault, **value}}

        self.events(change)

    def changed(self, action: Action, change: Callable[[EventRecord], EventRecord]) -> None:
        """Each such event with another value, made of its own."""

        def changing(event: EventRecord) -> Iterable[EventRecord]:
            is_meant = event["action"] == action
            yield {**event, "value": change(event["value"])} if is_meant else event

        self.events(changing)

    def plan(self, change: Callable[[EventRecord], EventRecord]) -> None:
        """The experiment that the run recorded becomes this."""
        manifest = self.folder.read_manifest()
        self.folder.write_manifest({**manifest, "experiment": change(manifest["experiment"])})

    def rows(self, output: str, change: Callable[[list[EventRecord]], list[EventRecord]]) -> None:
        """The committed records of an output, in the order of one of its files, become these."""
        files = (self.folder.data / output / "records" / "committed").glob("*.parquet")
        path = max(files, key=lambda path: path.stat().st_size)
        table = pq.read_table(path)
        changed = pa.Table.from_pylist(change(table.to_pylist()), schema=table.schema)
        pq.write_table(changed, path)
        # Spark would hold the file against the sum of what it wrote.
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
        self.facts(
            output,
            lambda recorded: {
                **recorded,
                "records": recorded["records"] + changed.num_rows - table.num_rows,
            },
        )

    def facts(self, output: str, change: Callable[[EventRecord], EventRecord]) -> None:
        """What is known of the reading of an output becomes this."""
        path = self.folder.data / output / "read.json"
        path.write_text(json.dumps(change(json.loads(path.read_text("utf-8")))), "utf-8")

    def samples(self, kept: Callable[[EventRecord], bool]) -> None:
        """Leave out all other samples of the metrics."""
        table = pq.read_table(self.folder.metrics)
        rows = [row for row in table.to_pylist() if kept(row)]
        pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), self.folder.metrics)


class Change:
    """The base of every change."""

    name: ClassVar[str]
    clean: ClassVar[bool] = False
    """Whether it changes nothing."""
    expect: ClassVar[Written]
    """What the judge must find, and nothing else (`reports/record/expected_outcome.py`)."""

    def make(self, record: RecordedRunCopy) -> None:
        raise NotImplementedError


RECORDED_RUN = "recorded_run"
"""What stands in the place of a data shape where a recorded run is changed."""
changes: Registry[Change] = Registry("change", "streamquake.harness.selftest.changes")

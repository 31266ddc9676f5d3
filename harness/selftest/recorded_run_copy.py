"""A copy of a recorded run in which events, outputs and samples can be changed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from streamquake.reports.record.event import Action
from streamquake.reports.record.run_folder import RunFolder

OF_FAULT = ("step", "fault", "target")
EventRecord = dict[str, Any]
"""An event as a line of the history has it."""


class RecordedRunCopy:
    """A copy of the recorded run that may be changed."""

    def __init__(self, path: Path) -> None:
        self.folder = RunFolder(path)

    def events(self, change: Callable[[EventRecord], Iterable[EventRecord]]) -> None:
        """Replace each event of the history by these. Indexes are renumbered, also in events that
        name another one."""
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
        """Remove every event of this action; with `after`, only those behind its first event."""
        started = after is None

        def change(event: EventRecord) -> Iterable[EventRecord]:
            nonlocal started
            started = started or event["action"] == after
            return () if started and event["action"] == action else (event,)

        self.events(change)

    def recorded_after(self, action: Action, more: Action, **value: Any) -> None:
        """Add an event behind each event of an action: its fault, and `value`."""

        def change(event: EventRecord) -> Iterable[EventRecord]:
            yield event
            if event["action"] == action:
                fault = {key: event["value"][key] for key in OF_FAULT if key in event["value"]}
                yield {**event, "action": str(more), "value": {**fault, **value}}

        self.events(change)

    def changed(self, action: Action, change: Callable[[EventRecord], EventRecord]) -> None:
        """Change the value of every event of this action."""

        def changing(event: EventRecord) -> Iterable[EventRecord]:
            is_meant = event["action"] == action
            yield {**event, "value": change(event["value"])} if is_meant else event

        self.events(changing)

    def plan(self, change: Callable[[EventRecord], EventRecord]) -> None:
        """Change the recorded experiment."""
        manifest = self.folder.read_manifest()
        self.folder.write_manifest({**manifest, "experiment": change(manifest["experiment"])})

    def committed(self, output: str) -> list[Path]:
        """The files of the committed records of an output."""
        return list((self.folder.data / output / "records" / "committed").glob("*.parquet"))

    def rows(self, output: str, change: Callable[[list[EventRecord]], list[EventRecord]]) -> None:
        """Change the committed records in the largest file of an output."""
        path = max(self.committed(output), key=lambda path: path.stat().st_size)
        table = pq.read_table(path)
        changed = pa.Table.from_pylist(change(table.to_pylist()), schema=table.schema)
        pq.write_table(changed, path)
        # Spark would compare the file with the checksum of what it wrote.
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
        read = self.folder.data / output / "read.json"
        facts = json.loads(read.read_text("utf-8"))
        facts["records"] += changed.num_rows - table.num_rows
        read.write_text(json.dumps(facts), "utf-8")

    def samples(self, kept: Callable[[EventRecord], bool]) -> None:
        """Keep only these samples of the metrics."""
        table = pq.read_table(self.folder.metrics)
        rows = [row for row in table.to_pylist() if kept(row)]
        pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), self.folder.metrics)

"""A copy of a recorded run in which events, outputs and samples can be changed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from streamquake.reports.record.event import Action
from streamquake.reports.record.history import usual_kind
from streamquake.reports.record.run_folder import RunFolder

OF_FAULT = ("step", "fault", "target")
EventRecord = dict[str, Any]
"""An event in the form of a line of the history."""


class RecordedRunCopy:
    """A copy of the recorded run that may be changed."""

    def __init__(self, path: Path) -> None:
        self.folder = RunFolder(path)

    def replace_events(self, change: Callable[[EventRecord], Iterable[EventRecord]]) -> None:
        """Replace each event of the history by those that `change` returns. Indexes are renumbered,
        also those in `trigger_index`."""
        header, *lines = self.folder.history.read_text("utf-8").splitlines()
        events = [event for line in lines for event in change(json.loads(line))]
        new_indexes: dict[int, int] = {}
        for index, event in enumerate(events):
            new_indexes.setdefault(event["index"], index)
        for event in events:
            if (trigger := event["value"].get("trigger_index")) is not None:
                event["value"] = {**event["value"], "trigger_index": new_indexes.get(trigger)}
        changed = (json.dumps({**event, "index": index}) for index, event in enumerate(events))
        self.folder.history.write_text("\n".join([header, *changed]) + "\n", "utf-8")

    def remove_events(self, action: Action, *, after: Action | None = None) -> None:
        """Remove every event of this action; with `after`, only those after the first event of that
        action."""
        started = after is None

        def change(event: EventRecord) -> Iterable[EventRecord]:
            nonlocal started
            started = started or event["action"] == after
            return () if started and event["action"] == action else (event,)

        self.replace_events(change)

    def add_after(self, action: Action, added: Action, **value: Any) -> None:
        """Add an event after each event of an action, with the same fault, and with `value`."""

        def change(event: EventRecord) -> Iterable[EventRecord]:
            yield event
            if event["action"] == action:
                fault = {key: event["value"][key] for key in OF_FAULT if key in event["value"]}
                kind = str(usual_kind(added))
                yield {**event, "action": str(added), "kind": kind, "value": {**fault, **value}}

        self.replace_events(change)

    def change_values(self, action: Action, change: Callable[[EventRecord], EventRecord]) -> None:
        """Change the value of every event of this action."""

        def change_event(event: EventRecord) -> Iterable[EventRecord]:
            matches = event["action"] == action
            yield {**event, "value": change(event["value"])} if matches else event

        self.replace_events(change_event)

    def change_experiment(self, change: Callable[[EventRecord], EventRecord]) -> None:
        """Change the recorded experiment."""
        manifest = self.folder.read_manifest()
        self.folder.write_manifest({**manifest, "experiment": change(manifest["experiment"])})

    def committed_files(self, output: str) -> list[Path]:
        """The Parquet files of the committed records of an output."""
        return list((self.folder.data / output / "records" / "committed").glob("*.parquet"))

    def change_rows(
        self, output: str, change: Callable[[list[EventRecord]], list[EventRecord]]
    ) -> None:
        """Change the committed records in the largest file of an output."""
        path = max(self.committed_files(output), key=lambda path: path.stat().st_size)
        table = pq.read_table(path)
        changed = pa.Table.from_pylist(change(table.to_pylist()), schema=table.schema)
        pq.write_table(changed, path)
        # Spark would compare the file with the checksum of the original.
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
        read = self.folder.data / output / "read.json"
        facts = json.loads(read.read_text("utf-8"))
        facts["records"] += changed.num_rows - table.num_rows
        read.write_text(json.dumps(facts), "utf-8")

    def keep_samples(self, is_kept: Callable[[EventRecord], bool]) -> None:
        """Remove all samples of the metrics but those for which `is_kept` is true."""
        table = pq.read_table(self.folder.metrics)
        rows = [row for row in table.to_pylist() if is_kept(row)]
        pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), self.folder.metrics)

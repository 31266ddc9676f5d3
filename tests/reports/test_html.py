"""The page of a run: complete, offline, escaped, and in the right order."""

from __future__ import annotations

import base64
import dataclasses
import gzip
import html
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from streamquake.reports.record.event import Action, EventDraft
from streamquake.reports.record.history import (
    History,
    HistoryWriter,
    read_history,
    usual_kind,
)
from streamquake.reports.record.metrics import Metrics, read_metrics
from streamquake.reports.record.outcome import CheckResult, Finding, Outcome
from streamquake.reports.record.record_parts import RecordParts
from streamquake.reports.record.results import FaultRecovery
from streamquake.reports.record.run_folder import RunFolder
from streamquake.reports.run import timeline_charts
from streamquake.reports.run.html import render_report
from streamquake.reports.run.timeline_charts import panels
from tests.reports.sample_run import LARGE, sample_results, write_failed_run, write_sample_run

pytestmark = pytest.mark.slow

HOSTILE = "</script><script>alert('x')</script><img src=https://evil.example/x onerror=alert(1)>"


class Page(HTMLParser):
    """The tags of a page, and its text outside of scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.scripts: list[str] = []
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = tag
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.scripts[-1] += data
        elif self._inside != "style":
            self.text += data

    def figures(self) -> list[dict[str, object]]:
        return [json.loads(script) for script in self.scripts if script.startswith('{"data"')]


def page_of(folder: RunFolder) -> Page:
    return Page(render_report(folder).read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def violated(tmp_path_factory: pytest.TempPathFactory) -> Page:
    return page_of(write_sample_run(tmp_path_factory.mktemp("runs"), Outcome.VIOLATED))


def test_the_page_has_the_most_important_parts_first(violated: Page) -> None:
    words = (
        "violated",
        "exactly_once: 9,214 records are twice in totals",
        "records acknowledged",
        "Timeline",
        "Recovery",
        "Checks",
        "Faults",
        "streamquake replay runs/20261121-031500-violated",
    )
    body = violated.text[violated.text.index("kill-taskmanager-mid-checkpoint\n") :]
    places = [body.index(word) for word in words]
    assert places == sorted(places)


@pytest.mark.parametrize("outcome", [Outcome.HELD, Outcome.VIOLATED])
def test_the_banner_has_the_colour_of_the_outcome(tmp_path: Path, outcome: Outcome) -> None:
    page = page_of(write_sample_run(tmp_path, outcome))
    banners = [a["class"] for tag, a in page.tags if (a.get("class") or "").startswith("banner")]
    assert banners == [f"banner {outcome}"]


def test_the_page_makes_no_request(violated: Page) -> None:
    for tag, attributes in violated.tags:
        assert tag not in {"link", "iframe", "img", "object", "embed", "base", "form"}
        assert not attributes.get("src")
        assert not re.match(r"\w+:|//", attributes.get("href") or "")
    (policy,) = [
        attributes["content"] or ""
        for tag, attributes in violated.tags
        if attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy.startswith("default-src 'none'")
    assert "http" not in policy
    assert "connect-src" not in policy


def test_the_charting_library_is_embedded(violated: Page) -> None:
    (packed,) = [script for script in violated.scripts if script.startswith("H4sI")]
    assert b"plotly.js" in gzip.decompress(base64.b64decode(packed))[:200]


def test_every_chart_has_the_same_time_range_and_the_fault_shaded(violated: Page) -> None:
    layouts = [figure["layout"] for figure in violated.figures()]
    assert len(layouts) == 9
    assert len({json.dumps(layout["xaxis"]["range"]) for layout in layouts}) == 1  # type: ignore[index]
    for layout in layouts:
        shades = [shape for shape in layout["shapes"] if shape["type"] == "rect"]  # type: ignore[index]
        assert [(shade["x0"], shade["x1"]) for shade in shades] == [
            (31.48, 31.482),
            (31.482, 36.882),
        ]


def test_logs_are_linked_relative_to_the_page(violated: Page) -> None:
    links = [attributes["href"] for tag, attributes in violated.tags if tag == "a"]
    assert "logs/flink-taskmanager-2/log.txt" in links
    assert len(links) == 3


def test_the_page_has_the_plan_as_yaml(violated: Page) -> None:
    assert "target: one of flink/taskmanager" in violated.text
    assert "  sql: |\n    -- running totals\n    INSERT INTO totals\n" in violated.text


def test_long_lists_of_findings_are_collapsed(violated: Page) -> None:
    assert "5 more" in violated.text
    assert "offset 50119" in violated.text


def test_hostile_names_are_shown_as_text(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "run-1")
    folder.write_manifest(
        {
            "experiment": {"name": HOSTILE},
            "versions": {HOSTILE: HOSTILE},
            "argv": [HOSTILE],
            "machine": {"system": HOSTILE, "load_1m": 28.49},
        }
    )
    writer = HistoryWriter(folder.history)
    node = {"node": HOSTILE, "exit_code": 1}
    task = {"vertex": HOSTILE, "subtask": 0, "attempt": 0, "state": HOSTILE, "node": HOSTILE}
    for action, value in (
        (Action.PHASE, {"phase": HOSTILE}),
        (Action.FAULT_CALLED, {"step": 0, "fault": HOSTILE, "target": HOSTILE, "nodes": [HOSTILE]}),
        (Action.CONTAINER_DIED, node),
        (Action.TASK_CHANGED, task),
        (Action.CHECKPOINT_FAILED, {"checkpoint": 1, "type": HOSTILE, "reason": HOSTILE}),
    ):
        writer.append(
            EventDraft(
                at_ns=10**9,
                process="t",
                kind=usual_kind(action),
                action=action,
                value=value,
            )
        )
    writer.close()
    metrics = Metrics(folder.metrics)
    for series in ("lag", "busy_ratio", HOSTILE):
        metrics.add(10**9, series, HOSTILE, 0.5)
    metrics.flush()
    check = CheckResult(
        check=HOSTILE,
        outcome=Outcome.VIOLATED,
        summary=HOSTILE,
        counts={HOSTILE: 1},
        findings=(Finding(what=HOSTILE, where=HOSTILE, detail={HOSTILE: {HOSTILE: [HOSTILE]}}),),
    )
    (folder.logs / "<b>&").mkdir()
    (folder.logs / "<b>&" / "log #1.txt").touch()
    results = sample_results("run-1", Outcome.HELD)
    folder.write_results(
        dataclasses.replace(
            results, experiment=HOSTILE, checks=(check,), replay=HOSTILE, warnings=(HOSTILE,)
        )
    )
    page = page_of(folder)
    assert [tag for tag, _ in page.tags if tag in {"img", "b"}] == []
    assert sum(tag == "script" for tag, _ in page.tags) == len(page.figures()) + 2
    assert HOSTILE in page.text
    assert [attributes["href"] for tag, attributes in page.tags if tag == "a"] == [
        "logs/%3Cb%3E%26/log%20%231.txt"
    ]
    # The charting library interprets chart texts as markup, so they are escaped within the data.
    assert len(page.figures()) == 6
    assert html.escape("<img") in json.dumps(page.figures())
    assert "<img" not in json.dumps(page.figures())


def test_a_run_that_failed_to_run_has_a_page(tmp_path: Path) -> None:
    page = page_of(write_failed_run(tmp_path))
    assert "failed to run: flink/jobmanager-1 ended with exit code 1" in page.text
    assert "Nothing was judged." in page.text
    assert "No fault was injected." in page.text


def test_a_run_whose_harness_was_killed_has_a_page(tmp_path: Path) -> None:
    folder = write_sample_run(tmp_path)
    folder.results.unlink()
    folder.metrics.unlink()
    page = page_of(folder)
    assert "the harness ended before anything was judged" in page.text
    assert len(page.figures()) == 3


def test_a_folder_with_only_a_manifest_has_a_page(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "run-1")
    folder.write_manifest({"run_id": "run-1"})
    assert "Nothing was recorded that could be drawn." in page_of(folder).text


def damage(folder: RunFolder, action: Action, field: str, value: object) -> None:
    """Change a field of the first event of an action."""
    header, *lines = folder.history.read_text().splitlines()
    events = [json.loads(line) for line in lines]
    next(event for event in events if event["action"] == action)["value"][field] = value
    folder.history.write_text("".join(f"{line}\n" for line in [header, *map(json.dumps, events)]))


REUSED = {
    "deployed_by": "20261126-101010-aaaa",
    "runs_before": 2,
    "restarted": ["flink/taskmanager-1"],
    "equal": {"processes": 8, "topics": 0},
    "seconds": 1.27,
}


def test_the_page_has_the_machine_with_its_load(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "run-1")
    folder.write_manifest({"machine": {"cpus": 2, "load_1m": 28.49}})
    assert "2 processors, load average 28.5 at the start" in page_of(folder).text


def test_the_page_says_whose_cluster_the_run_used(tmp_path: Path) -> None:
    folder = write_sample_run(tmp_path)
    assert "deployed for this run" in page_of(folder).text
    event = {
        "index": len(read_history(folder.history)),
        "at_ns": 10**15,
        "process": "harness",
        "kind": "info",
        "action": "cluster reused",
        "value": REUSED,
    }
    with folder.history.open("a", encoding="utf-8") as history:
        history.write(f"{json.dumps(event)}\n")
    text = page_of(folder).text
    assert "deployed by 20261126-101010-aaaa and used by 2 runs before; cleaned up in 1.3 s" in text
    assert (
        "equal to its state after the deployment: 8 processes, 0 topics; started anew: fl" in text
    )


def test_a_damaged_job_graph_affects_only_the_charts_that_read_it(tmp_path: Path) -> None:
    folder = write_sample_run(tmp_path)
    complete = page_of(folder)
    damage(folder, Action.JOB_SUBMITTED, "vertices", [{"id": "v0"}])
    page = page_of(folder)
    assert "Damage of the record" not in complete.text
    assert "the task attempts cannot be read: KeyError: 'name'" in page.text
    assert len(page.figures()) == len(complete.figures()) - 1


def test_the_page_shows_where_the_history_is_damaged(tmp_path: Path) -> None:
    folder = write_sample_run(tmp_path)
    damage(folder, Action.PHASE, "phase", 7)
    page = page_of(folder)
    assert "history.jsonl:2: not an event: expected `phase` to be a text" in page.text
    assert "kill-taskmanager-mid-checkpoint" in page.text


@pytest.mark.parametrize(
    ("part", "problem"),
    [
        ("run_events", "the events of the run"),
        ("checkpoints", "the checkpoints"),
        ("vertex_names", "the vertices"),
        ("tasks", "the task attempts"),
        ("fault_windows", "the faults and phases"),
    ],
)
def test_a_chart_that_cannot_be_drawn_does_not_affect_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str, problem: str
) -> None:
    def fail(history: History) -> None:
        raise KeyError("damaged")

    folder = write_sample_run(tmp_path)
    monkeypatch.setattr(timeline_charts, part, fail)
    parts = RecordParts()
    found = panels(read_history(folder.history), read_metrics(folder.metrics), parts)
    assert parts.problems == [f"{problem} cannot be read: KeyError: 'damaged'"]
    assert "throughput" in {panel.name for panel in found}


def test_recovery_phases_follow_each_other_and_a_missing_one_is_shown_as_such(
    tmp_path: Path,
) -> None:
    folder = write_sample_run(tmp_path)
    recovery = {"effect_at_s": 31.5, "detected_s": 1.0, "restored_s": 4.0, "lag_normal_s": None}
    results = dataclasses.replace(folder.read_results(), recovery=recovery)
    folder.write_results(results)
    page = page_of(folder)
    bars = [a["style"] for tag, a in page.tags if tag == "i" and "left" in (a.get("style") or "")]
    assert bars == ["left:0.00%;width:25.00%", "left:25.00%;width:75.00%"]
    assert "not reached" in page.text


def test_the_recovery_from_each_fault_is_shown(tmp_path: Path) -> None:
    folder = write_sample_run(tmp_path)
    recoveries = (
        FaultRecovery(fault="slow_link", step=0, phases={"first_output_s": None}),
        FaultRecovery(fault="kill", step=1, phases={"first_output_s": 99.5}),
    )
    results = folder.read_results()
    folder.write_results(dataclasses.replace(results, recoveries=recoveries))
    page = page_of(folder)
    assert "slow_link (faults[0])" in page.text
    assert "kill (faults[1])" in page.text
    assert "99.50 s" in page.text


def test_panels_of_known_series_are_open_and_those_of_unknown_ones_collapsed(
    tmp_path: Path,
) -> None:
    folder = write_sample_run(tmp_path)
    found = panels(read_history(folder.history), read_metrics(folder.metrics), RecordParts())
    assert [(panel.name, panel.collapsed) for panel in found] == [
        ("happened", False),
        ("throughput", False),
        ("lag", False),
        ("checkpoints", False),
        ("backpressure_ratio", False),
        ("busy_ratio", False),
        ("tasks", False),
        ("cpu", True),
        ("records_in_per_s", True),
    ]


def test_shares_of_time_are_the_same_for_every_unit_of_the_engines(
    tmp_path: Path,
) -> None:
    metrics = Metrics(tmp_path / "m")
    for number in range(3):
        metrics.add(number * 10**9, "busy_ms_per_s", "second", 250)
        metrics.add(number * 10**9, "backpressure_ratio", "first", 0.25)
    found = panels(History(), metrics.table(), RecordParts())
    assert [panel.title for panel in found] == ["Back-pressure", "Busy"]
    assert {panel.figure.data[0].z[0][0] for panel in found} == {0.25}


def test_vertices_are_in_the_order_of_the_job(tmp_path: Path) -> None:
    folder = write_sample_run(tmp_path, Outcome.HELD, LARGE)
    found = panels(read_history(folder.history), read_metrics(folder.metrics), RecordParts())
    rows = {
        panel.name: [text[0] for text in panel.figure.data[0].text]
        for panel in found
        if panel.name in ("busy_ratio", "backpressure_ratio")
    }
    in_order = [html.escape(name) for name in LARGE.vertices]
    assert rows == {"backpressure_ratio": in_order, "busy_ratio": in_order}


def test_the_width_and_height_of_a_checkpoint_are_its_duration(tmp_path: Path) -> None:
    folder = write_sample_run(tmp_path)
    history = read_history(folder.history)
    (panel,) = [
        p
        for p in panels(history, read_metrics(folder.metrics), RecordParts())
        if p.name == "checkpoints"
    ]
    completed, failed = panel.figure.data
    assert list(completed.width) == list(completed.y)
    assert len(completed.x) == len(history.of(Action.CHECKPOINT_COMPLETED))
    assert len(failed.x) == 1
    assert "TaskManager lost before it acknowledged" in failed.hovertext[0]
    assert [key.means for key in panel.keys] == [f"completed ({len(completed.x)})", "failed (1)"]


def test_the_page_of_a_long_run_is_small(tmp_path: Path) -> None:
    page = render_report(write_sample_run(tmp_path, Outcome.HELD, LARGE))
    assert page.stat().st_size < 3_000_000


def test_nothing_at_all_draws_nothing(tmp_path: Path) -> None:
    assert panels(History(), read_metrics(tmp_path / "none"), RecordParts()) == ()

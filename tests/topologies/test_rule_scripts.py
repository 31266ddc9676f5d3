"""Rule scripts: found by name or beside the document, stored as text, and rejected with the
place."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from streamquake.topologies.loader import load_topology, topology_of
from streamquake.topologies.model import Topology
from streamquake.topologies.named_files import RULES, shipped_files, shipped_names
from streamquake.topologies.problems import BadInput
from streamquake.topologies.rule_scripts import RULE
from streamquake.topologies.yaml_document import parse_document

SCRIPT = "RULE one\nCLASS a.B\nMETHOD c\nAT ENTRY\nIF TRUE\nDO RETURN\nENDRULE\n"


def document_with(folder: Path, rules: str) -> Path:
    path = folder / "t.yaml"
    path.write_text(
        "name: mine\n"
        "services:\n"
        "  flink:\n"
        "    engine: flink\n"
        "    nodes:\n"
        f"      jobmanager: {{rules: {rules}}}\n"
        "      taskmanager: 2\n"
    )
    return path


def rules_of(topology: Topology) -> dict[str, tuple[str, ...] | None]:
    return {role: group.rules for role, group in topology.services["flink"].nodes.items()}


def test_a_topology_contains_the_text_of_a_script_beside_it(tmp_path: Path) -> None:
    (tmp_path / "own.btm").write_text(SCRIPT)

    loaded = load_topology(str(document_with(tmp_path, "own.btm")))

    assert rules_of(loaded) == {"jobmanager": (SCRIPT,), "taskmanager": None}


@pytest.mark.parametrize("name", ["single-task", "single-task.btm"])
def test_a_shipped_script_is_found_by_its_name(name: str, tmp_path: Path) -> None:
    loaded = load_topology(str(document_with(tmp_path, name)))

    assert rules_of(loaded)["jobmanager"] == ((RULES / "single-task.btm").read_text(),)


def test_several_scripts_are_stored_in_their_order(tmp_path: Path) -> None:
    (tmp_path / "own.btm").write_text(SCRIPT)

    loaded = load_topology(str(document_with(tmp_path, "[own.btm, single-task]")))

    shipped = (RULES / "single-task.btm").read_text()
    assert rules_of(loaded)["jobmanager"] == (SCRIPT, shipped)


def test_a_topology_recorded_with_the_text_of_one_script_is_read() -> None:
    recorded = {
        "name": "old",
        "services": {
            "flink": {
                "engine": "flink",
                "nodes": {"jobmanager": {"rules": SCRIPT}, "taskmanager": 2},
            }
        },
    }

    read, problems = topology_of(parse_document(yaml.safe_dump(recorded), "elsewhere.yaml"))

    assert (read and rules_of(read)["jobmanager"], problems) == ((SCRIPT,), [])


def test_a_recorded_topology_needs_no_file(tmp_path: Path) -> None:
    (tmp_path / "own.btm").write_text(SCRIPT)
    loaded = load_topology(str(document_with(tmp_path, "own.btm")))
    (tmp_path / "own.btm").unlink()

    recorded = yaml.safe_dump(loaded.model_dump(mode="json", by_alias=True, exclude_none=True))
    again, problems = topology_of(parse_document(recorded, "elsewhere.yaml"))

    assert (again, problems) == (loaded, [])


def test_the_problem_of_a_missing_script_lists_the_known_ones(tmp_path: Path) -> None:
    path = document_with(tmp_path, "single-tsak.btm")

    with pytest.raises(BadInput) as rejected:
        load_topology(str(path))

    (problem,) = rejected.value.problems
    assert problem.line == 6
    assert problem.path == "services.flink.nodes.jobmanager.rules"
    assert 'no rule script is called "single-tsak.btm"' in problem.message
    assert 'did you mean "single-task"? known: approximate-local' in problem.message


@pytest.mark.parametrize("text", ["", "# nothing\n", "RULE one\nCLASS a.B\n", "ENDRULE\nRULE a\n"])
def test_a_script_without_a_complete_rule_is_rejected(text: str, tmp_path: Path) -> None:
    (tmp_path / "own.btm").write_text(text)

    with pytest.raises(BadInput, match="expected rules, from a line `RULE NAME`"):
        load_topology(str(document_with(tmp_path, "own.btm")))


@pytest.mark.parametrize("name", shipped_names(RULES, ".btm"))
def test_the_rules_of_a_shipped_script_have_different_names(name: str) -> None:
    lines = shipped_files(RULES, ".btm")[name].read_text().splitlines()
    names = [line for line in lines if line.startswith("RULE ")]

    assert len(names) == len(set(names)) == lines.count("ENDRULE") > 0
    assert len(RULE.findall("\n".join(lines))) == len(names)

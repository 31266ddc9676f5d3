"""Plugins: files and installed packages that register members, and their errors."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamquake.faults.fault import faults
from streamquake.harness.experiment.check import checks
from streamquake.topologies.plugins import Plugins
from streamquake.topologies.problems import BadInput
from streamquake.topologies.registry import members_of
from tests.plugin_files import write, write_check, write_metadata


@pytest.fixture
def installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, without_plugins: Plugins
) -> Iterator[Path]:
    """A folder of installed packages; the modules of `acme` are forgotten after the test."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    yield folder
    for name in [name for name in sys.modules if name.partition(".")[0] == "acme"]:
        del sys.modules[name]


def refusal(plugins: Plugins, file: Path) -> str:
    with pytest.raises(BadInput) as caught:
        plugins.load_file(file)
    return str(caught.value)


def test_the_members_of_a_file_are_registered(tmp_path: Path, without_plugins: Plugins) -> None:
    without_plugins.load_file(write_check(tmp_path / "own.py"))
    without_plugins.load_file(write(tmp_path / "not.a-name.py", ""))

    plugin, _ = without_plugins.loaded()
    assert "few_events" in checks
    assert without_plugins.plugin_of(checks["few_events"]) == plugin
    assert without_plugins.plugin_of(checks["progress"]) is None
    assert members_of(plugin) == ("check few_events",)
    assert re.fullmatch(r"own\.py \(digest [0-9a-f]{16}\)", str(plugin))


def test_a_file_is_imported_once_and_again_when_it_changed(
    tmp_path: Path, without_plugins: Plugins
) -> None:
    file = write_check(tmp_path / "own.py")
    without_plugins.load_file(file)
    first = checks["few_events"]
    without_plugins.load_file(file)
    assert checks["few_events"] is first

    file.write_text(file.read_text("utf-8") + "\n# changed\n", "utf-8")
    without_plugins.load_file(file)

    assert checks["few_events"] is not first
    assert len(without_plugins.loaded()) == 1


def test_two_files_of_one_name_are_two_plugins(tmp_path: Path, without_plugins: Plugins) -> None:
    without_plugins.load_file(write_check(tmp_path / "a" / "own.py", "one"))
    without_plugins.load_file(write_check(tmp_path / "b" / "own.py", "two"))

    found = [members_of(plugin) for plugin in without_plugins.loaded()]
    assert found == [("check one",), ("check two",)]


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("import no_such_module\n", 1, "ModuleNotFoundError: No module named 'no_such_module'"),
        ("x = 1\ny = = 2\n", 2, "SyntaxError: invalid syntax"),
        ("x = 1\n\nraise SystemExit(3)\n", 3, "it ends the program"),
        ("import pytest\npytest.skip('later', allow_module_level=True)\n", 2, "Skipped: later"),
    ],
)
def test_a_file_that_cannot_be_imported_is_reported_with_line_and_reason(
    text: str, line: int, reason: str, tmp_path: Path, without_plugins: Plugins
) -> None:
    file = write(tmp_path / "broken.py", text)

    message = refusal(without_plugins, file)

    assert message.startswith(f"plugin {file}: cannot be imported ({file}:{line}): {reason}")
    assert without_plugins.loaded() == ()
    assert not [name for name in sys.modules if name.startswith("streamquake_plugin_broken_")]


def test_a_missing_file_and_another_kind_of_file_are_refused(
    tmp_path: Path, without_plugins: Plugins
) -> None:
    missing, text = tmp_path / "none.py", write(tmp_path / "own.txt", "")

    assert refusal(without_plugins, missing) == f"{missing}: no such plugin file"
    assert refusal(without_plugins, tmp_path).endswith("no such plugin file")
    assert "expected a Python file (.py)" in refusal(without_plugins, text)


@pytest.mark.parametrize("title", ["FewEvents", "Progress"])
def test_the_name_of_a_shipped_member_is_taken(
    title: str, tmp_path: Path, without_plugins: Plugins
) -> None:
    shipped = checks["progress"]

    message = refusal(without_plugins, write_check(tmp_path / "own.py", "progress", title))

    assert f'the name "progress" of the check {title} is taken by streamquake.harness' in message
    assert message.endswith("choose another name")
    assert checks["progress"] is shipped


def write_fault(file: Path, body: str, base: str = "NodeFault") -> Path:
    """A plugin that registers one fault, whose class has this body."""
    imports = "from streamquake.faults.fault import NodeFault, faults"
    return write(file, f"{imports}\nclass Own({base}): {body}\nfaults.register(Own)\n")


@pytest.mark.parametrize("name", ["5", "''", "'a b'", "'../a'"])
def test_a_name_that_no_document_can_have_is_refused(
    name: str, tmp_path: Path, without_plugins: Plugins
) -> None:
    message = refusal(without_plugins, write_fault(tmp_path / "own.py", f"name = {name}"))

    assert f"expected a name of letters, digits, - and _ for the fault Own, got {name}" in message


def test_a_member_is_a_subclass_of_what_its_kind_is(
    tmp_path: Path, without_plugins: Plugins
) -> None:
    file = write_fault(tmp_path / "own.py", 'name = "own"', base="object")

    message = refusal(without_plugins, file)

    assert "expected the fault Own to be a subclass of streamquake.faults.fault.Fault" in message
    assert "own" not in faults


@pytest.mark.parametrize("names", ['name = "fan"; former_names = ("kill",)', 'name = "explosion"'])
def test_former_names_are_taken_too(names: str, tmp_path: Path, without_plugins: Plugins) -> None:
    """`explosion` is a former name of a shipped fault."""
    message = refusal(without_plugins, write_fault(tmp_path / "own.py", names))

    assert "is taken by streamquake.faults" in message
    assert faults["kill"].__module__.startswith("streamquake.")


def test_the_name_of_another_plugin_is_taken(tmp_path: Path, without_plugins: Plugins) -> None:
    without_plugins.load_file(write_check(tmp_path / "one.py"))

    message = refusal(without_plugins, write_check(tmp_path / "two.py"))

    assert "is taken by streamquake_plugin_one_" in message


def test_an_installed_package_is_found_at_the_first_use_of_a_registry(
    installed: Path, without_plugins: Plugins
) -> None:
    write(installed / "acme" / "__init__.py", "from acme import own\n")
    write_check(installed / "acme" / "own.py")
    write_metadata(installed, "acme")

    assert "few_events" in checks

    (plugin,) = without_plugins.loaded()
    assert (str(plugin), members_of(plugin)) == ("acme 1.2", ("check few_events",))


def test_a_module_of_a_package_stands_for_the_package(
    installed: Path, without_plugins: Plugins
) -> None:
    write(installed / "acme" / "__init__.py", "")
    write(installed / "acme" / "plugin.py", "from acme import own\n")
    write_check(installed / "acme" / "own.py")
    write_metadata(installed, "acme.plugin")
    (before,) = without_plugins.loaded()
    assert members_of(before) == ("check few_events",)

    write(installed / "acme" / "helper.py", "x = 1\n")
    again = Plugins()
    again.load_installed()

    assert before.digest != again.loaded()[0].digest


def test_a_module_in_a_shared_folder_stands_for_itself(
    installed: Path, without_plugins: Plugins
) -> None:
    write(installed / "acme" / "other.py", "x = 1\n")
    write_check(installed / "acme" / "own.py")
    write_metadata(installed, "acme.own")

    (plugin,) = without_plugins.loaded()

    assert plugin.module == "acme.own"
    assert members_of(plugin) == ("check few_events",)


def test_every_broken_installed_plugin_is_reported_at_each_use(
    installed: Path, without_plugins: Plugins
) -> None:
    write(installed / "acme" / "__init__.py", "from acme import own\n")
    write(installed / "acme" / "own.py", "x = 1\nimport no_such_module\n")
    write_metadata(installed, "acme")
    write_metadata(installed, "not_there", name="other", version="3")

    for _ in range(2):
        with pytest.raises(BadInput) as caught:
            list(faults)
        first, second = sorted(str(caught.value).splitlines())
        assert first.startswith('plugin acme 1.2 (entry point "own"): cannot be imported (')
        assert f"{installed / 'acme' / 'own.py'}:2): ModuleNotFoundError" in first
        assert second == (
            'plugin other 3 (entry point "own"): cannot be imported (no such module): '
            "ModuleNotFoundError: No module named 'not_there'"
        )


def test_a_plugin_may_use_the_registries_while_it_is_imported(
    installed: Path, without_plugins: Plugins
) -> None:
    write(
        installed / "acme.py",
        "from streamquake.harness.experiment.check import checks\nassert 'progress' in checks\n",
    )
    write_metadata(installed, "acme")

    assert "progress" in checks
    assert [str(plugin) for plugin in without_plugins.loaded()] == ["acme 1.2"]

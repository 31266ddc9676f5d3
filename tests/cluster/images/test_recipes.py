"""Tags depend on all inputs of an image, and an unknown version is rejected with the reason."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from streamquake.cluster.images.pin import HOST_SETS
from streamquake.cluster.images.recipes import (
    HERE,
    ImageRecipe,
    all_recipes,
    jar_set,
    recipe,
    recipe_named,
)
from streamquake.cluster.images.versions import UnknownImage, lines, releases


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "Dockerfile").write_text("FROM scratch\n")
    (tmp_path / "pom.xml").write_text("<project/>")
    (tmp_path / "2.0.sha256").write_text("")
    return tmp_path


def recipe_of(folder: Path) -> ImageRecipe:
    return ImageRecipe("acme", "1", {"release": "1.0"}, folder)


def test_the_tag_names_kind_release_and_content(folder: Path) -> None:
    assert re.fullmatch(r"streamquake/acme:1\.0-[0-9a-f]{12}", recipe_of(folder).tag)
    assert recipe_of(folder).tag == recipe_of(folder).tag


def test_a_changed_file_changes_the_tag(folder: Path) -> None:
    before = recipe_of(folder).tag
    (folder / "Dockerfile").write_text("FROM other\n")
    assert recipe_of(folder).tag != before


def test_a_changed_pin_or_parent_changes_the_tag(folder: Path) -> None:
    plain = recipe_of(folder)
    assert replace(plain, pins={"release": "1.0", "x": "1"}).tag != plain.tag
    assert replace(plain, parent=replace(plain, kind="base")).tag != plain.tag


def test_checksums_of_another_release_do_not_change_the_tag(folder: Path) -> None:
    before = recipe_of(folder).tag
    (folder / "2.0.sha256").write_text("changed")
    assert recipe_of(folder).tag == before


def test_edits_of_scripts_do_not_change_the_cache_key_of_jars(folder: Path) -> None:
    before = recipe_of(folder).key("pom.xml")
    (folder / "Dockerfile").write_text("FROM other\n")
    assert recipe_of(folder).key("pom.xml") == before
    (folder / "pom.xml").write_text("<project><other/></project>")
    assert recipe_of(folder).key("pom.xml") != before


def test_a_version_is_a_release_line_or_an_exact_release() -> None:
    assert recipe("flink").release == recipe("flink", "2.2").release
    other = recipe("flink", "2.2.0")
    assert other.release == "2.2.0"
    assert other.pins["connector.version"] == recipe("flink", "2.2").pins["connector.version"]
    assert other.pins["sha256"] != recipe("flink", "2.2").pins["sha256"]


def test_a_topology_names_an_image_that_is_built_here_without_its_hash() -> None:
    assert recipe_named("streamquake/postgres") == recipe("postgres")
    assert recipe_named("streamquake/flink:1.20") == recipe("flink", "1.20")
    assert recipe_named(recipe("postgres").tag) is None, "the tag itself is taken as it is"
    assert recipe_named("postgres:17") is None
    with pytest.raises(UnknownImage, match=r"no image kind 'postgras' .did you mean 'postgres'"):
        recipe_named("streamquake/postgras")


def test_an_image_that_few_need_is_built_by_the_run_that_needs_it() -> None:
    assert not {"postgres", "versitygw"} & {built.kind for built in all_recipes()}


def test_without_a_table_of_releases_the_checksum_of_another_release_is_not_expected() -> None:
    assert releases("spark", "4.1") == ()
    other = recipe("spark", "4.1.0")
    assert (other.release, other.pins["sha256"]) == ("4.1.0", "")


def test_every_listed_release_is_pinned() -> None:
    listed = [(line, release) for line in lines("flink") for release in releases("flink", line)]
    assert len(listed) > 20
    for line, release in listed:
        found = recipe("flink", release)
        assert (found.version, found.release) == (line, release)
        assert re.fullmatch(r"[0-9a-f]{64}", found.pins["sha256"]), release
        command = f"python -m streamquake.cluster.images.pin flink {release}"
        assert found.checksums.exists(), f"run: {command}"


def test_an_unknown_release_is_rejected_with_those_of_its_line() -> None:
    message = r"no flink release '1\.20\.9'; known of this line: 1\.20\.5.*1\.20\.0\. .*versions"
    with pytest.raises(UnknownImage, match=message):
        recipe("flink", "1.20.9")


def test_a_connector_is_set_apart_from_its_release() -> None:
    found = recipe("flink", "1.17.2", {"kafka": "3.0.0-1.17"})
    assert found.release == "1.17.2"
    assert found.pins["connector.version"] == "3.0.0-1.17"
    assert found.checksums.name == "1.17.2+kafka-3.0.0-1.17.sha256"
    assert found.tag != recipe("flink", "1.17.2").tag


def test_the_own_connector_of_a_line_gives_the_same_image() -> None:
    own = recipe("flink", "1.17.2").pins["connector.version"]
    assert recipe("flink", "1.17.2", {"kafka": own}).tag == recipe("flink", "1.17.2").tag


def test_an_unknown_connector_is_rejected_with_the_known_ones() -> None:
    with pytest.raises(UnknownImage, match=r"flink image has no connector 'jdbc'; known: kafka"):
        recipe("flink", "2.2", {"jdbc": "1"})
    with pytest.raises(UnknownImage, match=r"kafka image has no connector 'kafka'; known: none"):
        recipe("kafka", None, {"kafka": "1"})


PLUGIN = "org.apache.flink:flink-s3-fs-hadoop:2.2.0"


def test_plugins_are_an_image_on_top_of_that_of_their_flink() -> None:
    plain, found = recipe("flink", "2.2"), recipe("flink", "2.2", plugins=[PLUGIN])
    assert found.parent == plain
    assert (found.kind, found.release, found.verified) == ("flink", plain.release, True)
    assert found.tag not in (plain.tag, recipe("flink", "1.20", plugins=[PLUGIN]).tag)
    assert found.tag == recipe("flink", "2.2", plugins=[PLUGIN, PLUGIN]).tag
    assert found.tag != recipe("flink", "2.2", plugins=["a:b:1"]).tag


@pytest.mark.parametrize(
    ("kind", "plugin", "message"),
    [
        ("flink", "flink-s3-fs-hadoop", "GROUP:ARTIFACT:VERSION, got flink-s3-fs-hadoop"),
        ("flink", "a:b:LATEST", "a:b:LATEST may change between runs; name a release"),
        ("kafka", PLUGIN, "the kafka image takes no plugins; Flink does"),
    ],
)
def test_a_plugin_that_no_image_can_have_is_rejected(kind: str, plugin: str, message: str) -> None:
    with pytest.raises(UnknownImage, match=message):
        recipe(kind, plugins=[plugin])


def test_only_some_lines_are_built_before_a_run_needs_them() -> None:
    built = {found.version for found in all_recipes() if found.kind == "flink"}
    assert built == {"2.2", "1.20"}
    assert built < set(lines("flink"))


def test_the_pinned_release_has_the_tag_of_its_line() -> None:
    line = recipe("flink", "1.20")
    assert recipe("flink", line.release).tag == line.tag


def test_an_unknown_version_is_rejected_with_the_known_ones() -> None:
    with pytest.raises(UnknownImage, match=r"no flink version '9\.9'.*2\.2, .*1\.20.*versions"):
        recipe("flink", "9.9")


def test_an_unknown_kind_gets_a_suggestion() -> None:
    with pytest.raises(UnknownImage, match="did you mean 'kafka'"):
        recipe("kafak")


def test_parents_come_before_children() -> None:
    recipes = all_recipes()
    for child in recipes:
        assert child.parent is None or recipes.index(child.parent) < recipes.index(child)


def test_every_jar_of_every_pinned_release_has_its_checksum() -> None:
    with_jars = [found for found in all_recipes() if (found.folder / "pom.xml").exists()]
    for pinned in [*with_jars, *map(jar_set, HOST_SETS)]:
        command = f"python -m streamquake.cluster.images.pin {pinned.kind}"
        assert pinned.checksums.exists(), f"run: {command}"


@pytest.mark.parametrize(
    ("kind", "module"), [("toolbox", "toxiproxy/v2"), ("versitygw", "versity/versitygw")]
)
def test_a_program_in_go_has_the_same_version_in_recipe_and_go_module(
    kind: str, module: str
) -> None:
    pinned = recipe(kind).release
    assert f"{module} v{pinned}" in (HERE / kind / "go.mod").read_text()


def test_no_recipe_names_the_host_of_a_registry() -> None:
    hosts = re.compile(r"https?://(?!maven\.apache\.org/POM|engine)")
    for path in HERE.rglob("*"):
        if path.suffix in {".xml", ".yaml", ".sh", ".py", ".mod"} or path.name == "Dockerfile":
            assert not hosts.search(path.read_text()), path

"""The wheel and the source archive have every file of the source, and the wheel works without the
source tree."""

from __future__ import annotations

import inspect
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from collections.abc import Iterable
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[1]
PACKAGE = "streamquake"
FOLDERS = ("topologies", "reports", "cluster", "faults", "harness")
LIMIT_S = 300
BUILD = (
    "import sys; from setuptools import build_meta; getattr(build_meta, sys.argv[1])(sys.argv[2])"
)
CHECK_CONTEXTS = """
from streamquake.cluster.images.build import ensure
from streamquake.cluster.images.recipes import all_recipes

class Contexts:
    def __init__(self): self.checked = set()
    def exists(self, tag): return tag in self.checked
    def pull(self, ref, timeout_s): return True
    def build(self, build, log):
        missing = missing_from_context(build.context)
        assert not missing, (build.tag, missing)
        self.checked.add(build.tag)

store = Contexts()
ensure(all_recipes(), store, lambda line: None)
print(*sorted(store.checked))
"""
"""Checks the build context of each image and builds none; needs `missing_from_context`."""


def missing_from_context(context: Path) -> list[str]:
    """The files that a Dockerfile copies and its build context lacks; an empty folder counts as
    missing."""
    dockerfile = (context / "Dockerfile").read_text(encoding="utf-8").splitlines()
    copies = [line.split()[1:-1] for line in dockerfile if line.startswith("COPY ")]
    return [
        name
        for names in copies
        for name in names
        if not any((context / name).rglob("*")) and not (context / name).is_file()
    ]


def source_files() -> list[str]:
    """The files of the source tree, including untracked ones."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [name for name in listed.splitlines() if os.path.lexists(ROOT / name)]


def expected_files() -> set[str]:
    """Exactly the files that the installed package must have."""
    in_folders = {f"{PACKAGE}/{name}" for name in source_files() if name.split("/")[0] in FOLDERS}
    own = {path for path in (ROOT / PACKAGE).iterdir() if path.is_file()}
    return in_folders | {path.relative_to(ROOT).as_posix() for path in own}


def below_package(names: Iterable[str]) -> set[str]:
    return {name for name in names if name.startswith(f"{PACKAGE}/") and not name.endswith("/")}


def copy_of_the_source(folder: Path) -> Path:
    """A copy of the source for one build: a build leaves files behind, which the next build would
    include."""
    for name in source_files():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)
    return folder


def build_archive(kind: str, source: Path) -> Path:
    """The archive that the build backend of `pyproject.toml` creates."""
    command = [sys.executable, "-c", BUILD, f"build_{kind}", "dist"]
    done = subprocess.run(
        command, cwd=source, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    assert done.returncode == 0, done.stderr
    (archive,) = (source / "dist").iterdir()
    return archive


def files_of_wheel(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return below_package(archive.namelist())


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_archive("wheel", copy_of_the_source(tmp_path_factory.mktemp("wheel")))


class InstalledPackage:
    """A separate environment with the wheel. It uses the dependencies of this environment."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self.elsewhere = folder / "elsewhere"
        self.elsewhere.mkdir()
        self.programs = folder / "environment" / "bin"
        venv.create(folder / "environment")
        # Python does not read .pth files in a folder that a .pth file adds. So the one that points
        # to the source tree has no effect.
        (site,) = (folder / "environment" / "lib").glob("python*/site-packages")
        (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
        command = [sys.executable, "-m", "pip", "--python", str(self.programs / "python")]
        options = ["-q", "--no-deps", "--no-index", "--ignore-installed", "--no-compile"]
        self._run(*command, "install", *options, str(wheel))

    def streamquake(self, *arguments: str) -> str:
        return self._run(str(self.programs / "streamquake"), *arguments)

    def python(self, program: str) -> str:
        return self._run(str(self.programs / "python"), "-c", program)

    def _run(self, *command: str) -> str:
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        done = subprocess.run(
            command,
            cwd=self.elsewhere,
            env=environment,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> InstalledPackage:
    found = InstalledPackage(tmp_path_factory.mktemp("installed"), wheel)
    where = Path(found.python(f"import {PACKAGE}; print({PACKAGE}.__file__)").strip())
    assert where.is_relative_to(found.programs.parent)
    return found


def test_the_wheel_has_every_file_of_the_folders(wheel: Path) -> None:
    assert files_of_wheel(wheel) == expected_files()


def test_the_source_archive_has_every_file_of_the_folders(tmp_path: Path) -> None:
    with tarfile.open(build_archive("sdist", copy_of_the_source(tmp_path))) as archive:
        names = {
            name.partition("/")[2]
            for name in archive.getnames()
            if archive.getmember(name).isfile()
        }

    assert below_package(names) == expected_files()


def test_a_file_that_no_packaging_rule_includes_is_found(tmp_path: Path) -> None:
    source = copy_of_the_source(tmp_path)
    project = source / "pyproject.toml"
    rules = project.read_text(encoding="utf-8").replace(
        f'{PACKAGE} = ["**/*"]', f'{PACKAGE} = ["**/*.yaml"]'
    )
    project.write_text(rules, encoding="utf-8")

    missing = expected_files() - files_of_wheel(build_archive("wheel", source))

    assert f"{PACKAGE}/cluster/images/zookeeper/conf/zoo.cfg" in missing
    assert f"{PACKAGE}/topologies/clusters/kafka-only.yaml" not in missing


# The tests of the installed package are in one tier, so that it is installed once.
@pytest.mark.container
def test_the_installed_package_lists_checks_and_plans(installed: InstalledPackage) -> None:
    assert "flink-kafka-hdfs" in installed.streamquake("list")
    assert "kill" in installed.streamquake("run", "quickstart", "--seed", "7", "--dry-run")


@pytest.mark.container
def test_the_installed_package_writes_the_committed_compose_file(
    installed: InstalledPackage,
) -> None:
    """The tags in the file are hashes over all files of the images' recipes."""
    installed.streamquake("compose")

    written = installed.elsewhere / "docker-compose.yml"
    assert written.read_bytes() == (ROOT / "docker-compose.yml").read_bytes()


@pytest.mark.nightly
@pytest.mark.container
def test_the_installed_package_has_the_build_context_of_every_image(
    installed: InstalledPackage,
) -> None:
    """It uses the files of the images on this machine, or else downloads them."""
    program = (
        f"from pathlib import Path\n{inspect.getsource(missing_from_context)}\n{CHECK_CONTEXTS}"
    )
    tags = installed.python(program).split()

    assert {tag.split(":")[0].removeprefix("streamquake/") for tag in tags} == {
        "base",
        "toolbox",
        "kafka",
        "hdfs",
        "zookeeper",
        "flink",
        "spark",
    }


def test_a_file_missing_from_a_build_context_is_found(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM x\nCOPY lib/ conf/ /opt/\nCOPY a.sh b.sh /\n")
    (tmp_path / "lib").mkdir()
    (tmp_path / "a.sh").touch()
    assert missing_from_context(tmp_path) == ["lib/", "conf/", "b.sh"]

    (tmp_path / "lib" / "x.jar").touch()
    assert missing_from_context(tmp_path) == ["conf/", "b.sh"]

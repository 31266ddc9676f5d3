"""What is installed is what stands in the source: the wheel and the source archive hold every file,
and the wheel works where no source tree is."""

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

ROOT = Path(__file__).parents[1]
PACKAGE = "streamquake"
FOLDERS = ("topologies", "reports", "cluster", "faults", "harness")
LIMIT_S = 300
BUILD = (
    "import sys; from setuptools import build_meta; getattr(build_meta, sys.argv[1])(sys.argv[2])"
)
LAY_OUT = """
from streamquake.cluster.images.build import ensure
from streamquake.cluster.images.recipes import all_recipes

class Contexts:
    def __init__(self): self.laid = set()
    def exists(self, tag): return tag in self.laid
    def pull(self, ref, timeout_s): return True
    def build(self, build, log):
        assert not uncopied(build.context), (build.tag, uncopied(build.context))
        self.laid.add(build.tag)

store = Contexts()
ensure(all_recipes(), store, lambda line: None)
print(*sorted(store.laid))
"""
"""Builds no image, and looks at the context of each; needs `uncopied`."""


def uncopied(context: Path) -> list[str]:
    """What a build context lacks of what its Dockerfile copies; an empty folder is lacking too."""
    dockerfile = (context / "Dockerfile").read_text(encoding="utf-8").splitlines()
    copies = [line.split()[1:-1] for line in dockerfile if line.startswith("COPY ")]
    return [
        name
        for names in copies
        for name in names
        if not any((context / name).rglob("*")) and not (context / name).is_file()
    ]


def sources() -> list[str]:
    """The files of the source tree, those included that are new."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [name for name in listed.splitlines() if os.path.lexists(ROOT / name)]


def expected() -> set[str]:
    """The files that the installed package must have, no more and no fewer."""
    of_folders = {f"{PACKAGE}/{name}" for name in sources() if name.split("/")[0] in FOLDERS}
    own = {path for path in (ROOT / PACKAGE).iterdir() if path.is_file()}
    return of_folders | {path.relative_to(ROOT).as_posix() for path in own}


def below_package(names: Iterable[str]) -> set[str]:
    return {name for name in names if name.startswith(f"{PACKAGE}/") and not name.endswith("/")}


def copy_of_the_source(folder: Path) -> Path:
    """A copy to build in: a build leaves files behind, which the next one would pack."""
    for name in sources():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)
    return folder


def built(kind: str, source: Path) -> Path:
    """The one archive that the backend of `pyproject.toml` makes."""
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
    return built("wheel", copy_of_the_source(tmp_path_factory.mktemp("wheel")))


class Installed:
    """An environment of its own with the wheel; its dependencies are those of this one."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self.elsewhere = folder / "elsewhere"
        self.elsewhere.mkdir()
        self.programs = folder / "environment" / "bin"
        venv.create(folder / "environment")
        # A path that a .pth file adds is searched as it is: the .pth file in it that leads to the
        # source tree is not read.
        (site,) = (folder / "environment" / "lib").glob("python*/site-packages")
        (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
        command = [sys.executable, "-m", "pip", "--python", str(self.programs / "python")]
        self._run(
            *command, "install", "-q", "--no-deps", "--no-index", "--ignore-installed", str(wheel)
        )

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
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    found = Installed(tmp_path_factory.mktemp("installed"), wheel)
    where = Path(found.python(f"import {PACKAGE}; print({PACKAGE}.__file__)").strip())
    assert where.is_relative_to(found.programs.parent)
    return found


def test_the_wheel_holds_every_file_of_the_folders(wheel: Path) -> None:
    assert files_of_wheel(wheel) == expected()


def test_the_source_archive_holds_every_file_of_the_folders(tmp_path: Path) -> None:
    with tarfile.open(built("sdist", copy_of_the_source(tmp_path))) as archive:
        names = {
            name.partition("/")[2]
            for name in archive.getnames()
            if archive.getmember(name).isfile()
        }

    assert below_package(names) == expected()


def test_a_file_that_no_rule_takes_into_the_wheel_is_found(tmp_path: Path) -> None:
    source = copy_of_the_source(tmp_path)
    project = source / "pyproject.toml"
    rules = project.read_text(encoding="utf-8").replace(
        f'{PACKAGE} = ["**/*"]', f'{PACKAGE} = ["**/*.yaml"]'
    )
    project.write_text(rules, encoding="utf-8")

    missing = expected() - files_of_wheel(built("wheel", source))

    assert f"{PACKAGE}/cluster/images/zookeeper/conf/zoo.cfg" in missing
    assert f"{PACKAGE}/topologies/clusters/kafka-only.yaml" not in missing


def test_the_installed_package_lists_checks_and_plans(installed: Installed) -> None:
    assert "flink-kafka-hdfs" in installed.streamquake("list")
    assert "claims: valid" in installed.streamquake("validate", "quickstart", "claims")
    assert "kill" in installed.streamquake("run", "quickstart", "--seed", "7", "--dry-run")


def test_the_installed_package_writes_the_committed_compose_file(installed: Installed) -> None:
    """The tags in it are hashes over all files of the images' recipes."""
    installed.streamquake("compose")

    written = installed.elsewhere / "docker-compose.yml"
    assert written.read_bytes() == (ROOT / "docker-compose.yml").read_bytes()


@pytest.mark.container
def test_the_installed_package_lays_out_the_context_of_every_image(installed: Installed) -> None:
    """It takes what the images on this machine were made from; without these it is fetched."""
    program = f"from pathlib import Path\n{inspect.getsource(uncopied)}\n{LAY_OUT}"
    applied = installed.python(program).split()

    assert {tag.split(":")[0].removeprefix("streamquake/") for tag in applied} == {
        "base",
        "toolbox",
        "kafka",
        "hdfs",
        "zookeeper",
        "flink",
        "spark",
    }


def test_what_a_context_lacks_is_found(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM x\nCOPY lib/ conf/ /opt/\nCOPY a.sh b.sh /\n")
    (tmp_path / "lib").mkdir()
    (tmp_path / "a.sh").touch()
    assert uncopied(tmp_path) == ["lib/", "conf/", "b.sh"]

    (tmp_path / "lib" / "x.jar").touch()
    assert uncopied(tmp_path) == ["conf/", "b.sh"]

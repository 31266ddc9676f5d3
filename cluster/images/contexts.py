"""Fill build contexts, one function per kind: with the recipe's folder and the fetched files."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from streamquake.cluster.images import fetch
from streamquake.cluster.images.clients import Clients
from streamquake.cluster.images.flink_lines import write_lines
from streamquake.cluster.images.launcher import compile_jar, zip_folder
from streamquake.cluster.images.maven_jars import fetch_jar
from streamquake.cluster.images.recipes import ImageRecipe, jar_set

NOT_IN_IMAGE = (
    "java",
    "rule-classes",
    "pom.xml",
    "webapps",
    "reaper",
    "go.mod",
    "go.sum",
    "tools.go",
    "requirements.txt",
)
GO_PACKAGES = {
    "toolbox": {
        "toxiproxy-server": "github.com/Shopify/toxiproxy/v2/cmd/server",
        "reaper": "./reaper",
    },
    "versitygw": {"versitygw": "github.com/versity/versitygw/cmd/versitygw"},
}
"""Kind -> the binaries in its image, and their packages."""
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
"""A processor architecture in Go's notation -> in that of Python wheels."""
WEB_APPS = ("hdfs", "datanode", "secondary", "journal", "static")
"""Hadoop's HTTP servers start only if these folders exist on the class path."""


def lay_out(recipe: ImageRecipe, context: Path, arch: str, clients: Clients) -> None:
    """Fill an empty folder with all files that the recipe's Dockerfile copies."""
    for path in recipe.folder.iterdir():
        if path.name in NOT_IN_IMAGE or path.suffix == ".sha256":
            continue
        if path.is_dir():
            shutil.copytree(path, context / path.name)
        else:
            shutil.copy2(path, context)
    fills = {
        "base": _base,
        "toolbox": _go,
        "kafka": _kafka,
        "hdfs": _hdfs,
        "zookeeper": _zookeeper,
        "flink": _flink,
        "spark": _spark,
        "versitygw": _go,
    }
    if recipe.plugins:
        _plugins(recipe, context, clients)
    elif (fill := fills.get(recipe.kind)) is not None:
        fill(recipe, context, arch, clients)


def jars(recipe: ImageRecipe, clients: Clients) -> Path:
    """The recipe's jars in the cache, checked against their pins."""
    if not jars_folder(recipe).is_dir():
        clients.show_message(f"fetching the jars of {recipe.kind} {recipe.release}")

    def check(folder: Path) -> None:
        fetch.verify(folder, recipe.checksums, clients.show_message)

    key = recipe.key("pom.xml")
    return fetch.maven_jars(clients, recipe.folder / "pom.xml", recipe.pins, key, check)


def jars_folder(recipe: ImageRecipe) -> Path:
    """The cache's folder of the recipe's jars; it exists when all of them are there."""
    return fetch.cache_root() / "sets" / recipe.key("pom.xml")


def compiler(clients: Clients) -> Path:
    """The Java compiler, a jar that runs on any Java 17 runtime."""
    return next(jars(jar_set("tools"), clients).glob("ecj-*.jar"))


def _base(recipe: ImageRecipe, context: Path, arch: str, clients: Clients) -> None:
    _link_all(jars(recipe, clients), context)


def _go(recipe: ImageRecipe, context: Path, arch: str, clients: Clients) -> None:
    packages = GO_PACKAGES[recipe.kind]
    clients.show_message(f"building {' and '.join(packages)} with Go")
    key = f"{recipe.key('go.mod', 'go.sum', 'reaper')}-{arch}"
    _link_all(fetch.go_binaries(clients, recipe.folder, packages, arch, key), context)


def _kafka(recipe: ImageRecipe, context: Path, arch: str, clients: Clients) -> None:
    libs = _linked(jars(recipe, clients), context / "libs")
    sources = recipe.folder / "java"
    compile_jar(compiler(clients), sources, libs.glob("*.jar"), libs / "streamquake-node.jar")


def _hdfs(recipe: ImageRecipe, context: Path, arch: str, clients: Clients) -> None:
    _kafka(recipe, context, arch, clients)
    web = context / "webapps.tmp"
    for name in WEB_APPS:
        (web / "webapps" / name).mkdir(parents=True)
    zip_folder(web, context / "libs" / "streamquake-webapps.jar")
    shutil.rmtree(web)


def _zookeeper(recipe: ImageRecipe, context: Path, arch: str, clients: Clients) -> None:
    _linked(jars(recipe, clients), context / "libs")


def _flink(recipe: ImageRecipe, context: Path, arch: str, clients: Clients) -> None:
    lib = _linked(jars(recipe, clients), context / "lib")
    parts = flink_distribution(recipe, clients.show_message)
    _link_all(parts / "lib", lib)
    _link_all(parts / "bin", context / "tool")
    if (older := recipe.pins.get("configuration")) is not None:
        write_lines(context / "conf" / "config.yaml", context / "conf" / older)
    class_path = [*lib.glob("flink-dist-*.jar"), *(context / "tool").glob("*.jar")]
    target = context / "tool" / "options.jar"
    compile_jar(compiler(clients), recipe.folder / "java", class_path, target)
    _rule_classes(recipe, lib, context / "rule-classes.jar", clients)


def _rule_classes(recipe: ImageRecipe, lib: Path, jar: Path, clients: Clients) -> None:
    """The classes that agent rules may call. They use the internals of one release line; the jar of
    the others is empty."""
    sources = recipe.folder / "rule-classes" / recipe.version
    if sources.is_dir():
        compile_jar(compiler(clients), sources, lib.glob("*.jar"), jar)
    else:
        with tempfile.TemporaryDirectory() as empty:
            zip_folder(Path(empty), jar)


def _plugins(recipe: ImageRecipe, context: Path, clients: Clients) -> None:
    """One folder for each plugin: Flink gives each folder a class loader of its own."""
    for plugin in recipe.plugins:
        folder = context / "plugins" / plugin.replace(":", "+")
        folder.mkdir(parents=True)
        jar = fetch_jar(plugin, clients)
        _link(jar, folder / jar.name)


def flink_distribution(recipe: ImageRecipe, show_message: Callable[[str], None]) -> Path:
    """Flink's binary distribution, from its Python package."""
    return _distribution(recipe, "apache-flink-libraries", ("/deps/lib", "/deps/bin"), show_message)


def _distribution(
    recipe: ImageRecipe, package: str, parts: tuple[str, ...], show_message: Callable[[str], None]
) -> Path:
    """Parts of a system's binary distribution, from the Python package that contains it."""
    sha256, release = recipe.pins["sha256"], recipe.release
    key = f"{recipe.kind}-dist-{release}-{sha256[:12] or 'unpinned'}"
    if not (fetch.cache_root() / "sets" / key).is_dir():
        show_message(f"fetching {recipe.kind.capitalize()} {release}")
    return fetch.python_archive(f"{package}=={release}", sha256, parts, key)


def _spark(recipe: ImageRecipe, context: Path, arch: str, clients: Clients) -> None:
    parts = _spark_distribution(recipe, clients.show_message)
    own = _linked(parts / "jars", context / "jars")
    _link_all(jars(jar_set("spark-jars"), clients), own)
    sources = recipe.folder / "java"
    compile_jar(compiler(clients), sources, own.glob("*.jar"), own / "streamquake-spark.jar")
    clients.show_message("fetching the Python packages of Spark programs")
    requirements = recipe.folder / "requirements.txt"
    key = f"{recipe.key('requirements.txt')}-{arch}"
    packages = fetch.python_packages(requirements, recipe.pins["python"], MACHINES[arch], key)
    shutil.copytree(packages, context / "python", copy_function=_link)
    for archive in (parts / "lib").glob("*.zip"):
        shutil.unpack_archive(archive, context / "python")


def _spark_distribution(recipe: ImageRecipe, show_message: Callable[[str], None]) -> Path:
    """Spark's binary distribution, from its Python package."""
    return _distribution(recipe, "pyspark", ("/deps/jars", "/lib"), show_message)


def _linked(source: Path, target: Path) -> Path:
    target.mkdir()
    _link_all(source, target)
    return target


def _link_all(source: Path, target: Path) -> None:
    for path in source.iterdir():
        _link(path, target / path.name)


def _link(path: str | Path, target: str | Path) -> None:
    try:
        os.link(path, target)
    except OSError:
        shutil.copy2(path, target)

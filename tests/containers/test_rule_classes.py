"""The classes that agent rules call, in a Java program with Flink's own network classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from streamquake.cluster.images.clients import Clients, run_here
from streamquake.cluster.images.contexts import compiler, jars, lay_out
from streamquake.cluster.images.launcher import compile_jar
from streamquake.cluster.images.recipes import recipe
from streamquake.topologies.named_files import RULES, shipped_files

pytestmark = pytest.mark.container

PROGRAM = "org.apache.flink.runtime.io.network.partition.DroppedRecords"
SOURCES = Path(__file__).parent / "java"


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The build context of Flink's image: Flink's jars, and the jar of the rules' classes."""
    folder = tmp_path_factory.mktemp("flink")
    lay_out(recipe("flink"), folder, "amd64", Clients(print))
    class_path = [*(folder / "lib").glob("*.jar"), folder / "rule-classes.jar"]
    compile_jar(compiler(Clients(print)), SOURCES, class_path, folder / "program.jar")
    return folder


def printed(context: Path, flags: Sequence[str] = ()) -> Mapping[str, str]:
    """What the program prints, by the first word of each line."""
    entries = [*(context / "lib").glob("*.jar"), context / "program.jar"]
    entries.append(context / "rule-classes.jar")
    class_path = ":".join(str(entry) for entry in entries)
    out = run_here("running Java", ["java", *flags, "-cp", class_path, PROGRAM], context)
    lines = (line.partition(" ") for line in out.splitlines())
    return {word: rest.strip() for word, _, rest in lines}


def numbers(first: int, end: int) -> str:
    return " ".join(str(number) for number in range(first, end))


@pytest.fixture(scope="module")
def with_rules(context: Path) -> Mapping[str, str]:
    agent = next(jars(recipe("base"), Clients(print)).glob("byteman.jar"))
    return printed(context, [f"-javaagent:{agent}=script:{RULES / 'single-task.btm'}"])


def test_records_without_a_consumer_are_dropped_and_the_next_begins_at_a_record(
    with_rules: Mapping[str, str],
) -> None:
    assert with_rules["lost.first"] == "0 1 half"
    assert with_rules["lost.waiting"] == "1"
    assert with_rules["lost.next"] == numbers(25, 30)
    assert with_rules["lost.dropped"] == "22"


def test_a_producer_that_restarted_alone_drops_records_until_its_first_consumer(
    with_rules: Mapping[str, str],
) -> None:
    assert with_rules["alone.waiting"] == "1"
    assert with_rules["alone.next"] == numbers(20, 25)
    assert with_rules["alone.dropped"] == str(22 + 20)


def test_a_producer_that_restarted_with_its_job_waits_for_its_consumer(
    with_rules: Mapping[str, str],
) -> None:
    assert with_rules["whole.waiting"] == "9"
    assert with_rules["whole.next"] == numbers(0, 25)
    assert with_rules["whole.dropped"] == with_rules["alone.dropped"]


def test_without_rules_all_records_wait_for_the_next_consumer(context: Path) -> None:
    found = printed(context)

    assert found["lost.first"] == "0 1 half"
    assert found["lost.waiting"] == "10"
    assert found["lost.next"] == numbers(3, 30)
    assert found["alone.waiting"] == found["whole.waiting"] == "9"
    assert found["alone.next"] == found["whole.next"] == numbers(0, 25)
    assert found["whole.dropped"] == "null"


def checked(context: Path, script: Path) -> str:
    """What Byteman's own checker says of a script: it parses the rules, finds their methods and
    checks the types of what they call, without running them."""
    agent = next(jars(recipe("base"), Clients(print)).glob("byteman.jar"))
    entries = [agent, context / "rule-classes.jar", *(context / "lib").glob("*.jar")]
    class_path = ":".join(str(entry) for entry in entries)
    program = ["java", "-cp", class_path, "org.jboss.byteman.check.TestScript", str(script)]
    return run_here("checking rules", program, context)


@pytest.mark.parametrize("name", shipped_files(RULES, ".btm"))
def test_every_shipped_rule_fits_the_methods_of_flink(context: Path, name: str) -> None:
    assert "TestScript: no errors" in checked(context, shipped_files(RULES, ".btm")[name])


@pytest.mark.parametrize(
    ("known", "unknown"),
    [("METHOD isLocalTo", "METHOD isFarFrom"), (".noBuffer()", ".aBuffer()")],
)
def test_a_rule_that_does_not_fit_is_found(
    context: Path, tmp_path: Path, known: str, unknown: str
) -> None:
    text = (RULES / "single-task.btm").read_text(encoding="utf-8")
    assert text.count(known) == 1
    (tmp_path / "bent.btm").write_text(text.replace(known, unknown), encoding="utf-8")

    assert "TestScript: no errors" not in checked(context, tmp_path / "bent.btm")

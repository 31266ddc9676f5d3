"""`streamquake reconcile`: exit statuses, streams, the file of --json, and every error."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from rich.console import Console

from streamquake.cluster.engines.kafka import admin as kafka_admin
from streamquake.harness.reconcile import report, two_sources
from streamquake.harness.reconcile.spark_session import JavaMissing
from tests.harness.conftest import RunCommand

SAME = '{"id": 1, "ack": "ok"}\n{"id": 2, "ack": "lost?"}\n'


@pytest.fixture
def run_command(
    run_command: RunCommand, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> RunCommand:
    """Run `reconcile` with the tests' own session: (status, stdout, stderr)."""
    monkeypatch.setattr(two_sources, "spark_session", lambda *args, **named: spark)
    monkeypatch.setattr(two_sources, "stop_spark", lambda session: None)
    (tmp_path / "e.json").write_text(SAME)

    def run(*argv: str) -> tuple[int, str, str]:
        return run_command("reconcile", *argv)

    return run


def test_a_held_comparison_exits_with_0(run_command: RunCommand) -> None:
    status, out, err = run_command("--expected", "e.json", "--actual", "e.json", "--key", "id")

    assert status == 0
    assert out.startswith("HELD")
    assert "not judged: give --compare" in out
    assert "starting Spark" in err
    assert "2 records" in err


def test_a_violated_comparison_exits_with_1_and_stores_its_findings(
    run_command: RunCommand, tmp_path: Path
) -> None:
    (tmp_path / "a.json").write_text('{"id": 1}\n')

    status, out, _ = run_command(
        "--expected",
        "e.json",
        "--actual",
        "file://" + str(tmp_path / "a.json"),
        "--key",
        "id",
        "--json",
        "found.json",
    )

    assert status == 1
    assert out.startswith("VIOLATED  1 lost")
    assert "lost (id 2" in out
    document = json.loads((tmp_path / "found.json").read_text())
    assert list(document)[:4] == ["schema", "outcome", "counts", "findings"]
    assert document["outcome"] == "violated"
    assert document["counts"]["lost"] == 1
    assert document["counts"]["changed"] is None
    assert document["findings"][0]["detail"]["id"] == 2


def test_an_undecided_comparison_exits_with_3(run_command: RunCommand, tmp_path: Path) -> None:
    (tmp_path / "none.json").write_text("")

    status, out, err = run_command(
        "--expected", "none.json", "--actual", "none.json", "--key", "id"
    )

    assert (status, err.splitlines()[-1]) == (3, "exit status 3: undecided")
    assert out.startswith("UNDECIDED")


@pytest.mark.parametrize("uri", ["", "~unknown-user/x", "file://"])
def test_an_expected_side_without_a_path_is_rejected(run_command: RunCommand, uri: str) -> None:
    status, out, err = run_command("--expected", uri, "--actual", "e.json", "--key", "id")

    assert (status, out) == (2, "")
    assert err.startswith(uri or "--expected: expected a file, a folder or a URI")


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (("--actual", "nowhere.json", "--key", "id"), "nowhere.json: no such file or folder"),
        (("--actual", "", "--key", "id"), "--actual: expected a file, a folder or a URI, got an"),
        (("--actual", "file://", "--key", "id"), "file://: expected a path, got none"),
        (("--actual", "~unknown-user/x", "--key", "id"), "~unknown-user/x: it is no path"),
        (("--actual", "file://[x", "--key", "id"), "file://[x: it is no URI: Invalid IPv6 URL"),
        (("--actual", "kafka://[x/t", "--key", "id"), "kafka://[x/t: it is no URI"),
        (("--actual", "x" * 300, "--key", "id"), "x: no such file or folder"),
        (("--actual", "e.json", "--key", " "), "--key: expected an expression, got an empty text"),
        (("--actual", "e.json", "--key", "id", "--compare", ""), "--compare: expected an"),
        (("--actual", "e.json", "--key", "id", "--order", ""), "--order: expected an"),
        (("--actual", "e.json", "--key", "id", "--also", ""), 'no class for `--also` is called ""'),
        (("--actual", "empty", "--key", "id"), "empty: expected files with records, found none"),
        (("--actual", "kafak://b/t", "--key", "id"), 'reads "kafak://"; did you mean "kafka"'),
        (("--actual", "kafka://b", "--key", "id"), "expected kafka://broker[:port]/topic"),
        (("--actual", "hdfs:///x", "--key", "id"), "expected hdfs://host:port/path"),
        (("--actual", "e.json", "--key", "id +"), "--key: `id +` is no expression"),
        (("--actual", "e.json", "--key", "idd"), 'did you mean "id"?'),
        (("--actual", "e.json", "--key", "ID"), 'did you mean "id"?'),
        (("--actual", "e.json", "--key", "count(id)"), "--key: `count(id)` cannot be used"),
        (("--actual", "e.json", "--key", "explode(array(id))"), "cannot be used"),
        (("--actual", "e.json", "--key", "id + rand()"), "its value differs between"),
        (
            ("--actual", "e.json", "--key", "id, current_timestamp()"),
            "its value differs between evaluations",
        ),
        (("--actual", "e.json", "--key", "id, now()"), "its value differs between"),
        (("--actual", "e.json", "--key", "id", "--ack", "ack"), "got 'lost?' (1 records)"),
        (("--actual", "e.json", "--key", "id", "--ack", "id"), "text or a boolean, got bigint"),
        (("--actual", "e.json", "--key", "id", "--sequence", "id,ack"), "expected one expression"),
        (("--actual", "e.json", "--key", "id", "--actual-key", "id,ack"), "as many expressions"),
        (
            ("--actual", "e.json", "--key", "id", "--actual-compare", "id"),
            "replaces --compare on the actual side",
        ),
        (("--actual", "e.json", "--key", "CAST(ack AS INT)"), "failed on a record"),
        (("--actual", "e.json", "--key", "id", "--also", "gpa"), '"gpa"; did you mean "gap"?'),
        (("--actual", "notes", "--key", "id"), "set it with"),
        (("--actual", "e.json", "--key", "id", "--json", "no/where.json"), "no such folder: no"),
    ],
)
def test_bad_input_is_reported_with_its_place(
    run_command: RunCommand, tmp_path: Path, argv: tuple[str, ...], expected: str
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes").write_text("some text\n")

    status, _, err = run_command("--expected", "e.json", *argv)

    assert (status, "Traceback" in err) == (2, False)
    assert expected in err


COMPRESSED = gzip.compress(SAME.encode(), mtime=0)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (COMPRESSED[:20], "Unexpected end of input stream"),
        (SAME.encode(), "not a gzip file"),
        (COMPRESSED[:-8] + bytes(8), "gzip stream CRC failure"),
    ],
    ids=["cut", "not compressed", "another checksum"],
)
def test_a_compressed_file_that_is_damaged_is_bad_input(
    run_command: RunCommand, tmp_path: Path, content: bytes, reason: str
) -> None:
    (tmp_path / "a.json.gz").write_bytes(content)

    status, _, err = run_command("--expected", "e.json", "--actual", "a.json.gz", "--key", "id")

    assert (status, "Traceback" in err) == (2, False)
    assert f"{tmp_path}/a.json.gz: it cannot be read ({reason})" in err


@pytest.mark.nightly
def test_sends_of_unknown_result_alone_prove_nothing(
    run_command: RunCommand, tmp_path: Path
) -> None:
    (tmp_path / "a.json").write_text('{"id": 1}\n')
    unknown = ("--expected", "e.json", "--actual", "a.json", "--key", "id", "--ack", "'unknown'")

    status, out, _ = run_command(*unknown)

    assert status == 3
    assert out.startswith("UNDECIDED  no acknowledged record was expected, which proves nothing")


@pytest.mark.nightly
def test_requested_classes_are_judged(run_command: RunCommand, tmp_path: Path) -> None:
    (tmp_path / "n.json").write_text("".join(f'{{"id": "a", "n": {n}}}\n' for n in (1, 2, 5)))

    status, out, _ = run_command(
        "--expected",
        "n.json",
        "--actual",
        "n.json",
        "--key",
        "id",
        "--sequence",
        "n",
        "--also",
        "gap,wrong_partition",
        "--json",
        "f.json",
    )

    assert (status, out.splitlines()[0].rstrip()) == (1, "VIOLATED  2 gap")
    assert "not judged: it needs a topic as the actual side" in out
    document = json.loads((tmp_path / "f.json").read_text())
    counts = document["counts"]
    assert (counts["gap"], counts["regression"], counts["wrong_partition"]) == (2, None, None)
    (finding,) = document["findings"]
    assert finding["what"] == "gap"
    assert finding["detail"] == {"id": "a", "n": 5, "after": 2, "absent": 2}
    assert "n.json" in finding["where"]


@pytest.mark.nightly
def test_a_requested_class_that_cannot_be_judged_is_undecided(run_command: RunCommand) -> None:
    status, out, _ = run_command(
        "--expected", "e.json", "--actual", "e.json", "--key", "id", "--also", "regression"
    )

    assert status == 3
    assert "regression was requested and could not be judged: it needs a sequence, and an" in out


MAP = """\
key: [payload.user]
sequence: CAST(payload.turn AS INT)
value: [payload.amount / 100]
"""


def test_a_mapping_file_replaces_the_options_of_a_side(
    run_command: RunCommand, tmp_path: Path
) -> None:
    (tmp_path / "s.csv").write_text("user,n,euro\na,1,2.5\na,2,3\n")
    payloads = [{"user": "a", "turn": str(n), "amount": 250} for n in (1, 2)]
    lines = [json.dumps({"payload": payload}) + "\n" for payload in payloads]
    (tmp_path / "a.json").write_text("".join(lines))
    (tmp_path / "m.yaml").write_text(MAP)

    status, out, err = run_command(
        "--expected",
        "s.csv",
        "--actual",
        "a.json",
        "--actual-map",
        "m.yaml",
        "--key",
        "user",
        "--sequence",
        "n",
        "--compare",
        "euro",
        "--json",
        "f.json",
    )

    assert (status, out.splitlines()[0].rstrip()) == (1, "VIOLATED  1 changed"), err
    (finding,) = json.loads((tmp_path / "f.json").read_text())["findings"]
    assert (finding["what"], finding["detail"]["n"]) == ("changed", 2)


@pytest.mark.parametrize(
    ("text", "argv", "expected"),
    [
        ("key: id\nsequnce: n\n", ("--key", "id"), 'm.yaml:2: sequnce: unknown key "sequnce"; did'),
        ("key: [id, 7]\n", ("--key", "id"), 'm.yaml:1: key: expected text, got ["id", 7]'),
        (
            "key: id\nack: ack\n",
            ("--key", "id"),
            "m.yaml:2: ack: only the expected side can have this",
        ),
        (
            "retracts: ack\n",
            ("--key", "id"),
            "m.yaml:1: retracts: expected a condition, got string",
        ),
        (
            "upsert: true\n",
            ("--key", "id"),
            "m.yaml:1: upsert: it is for topics: files have no key",
        ),
        (
            "\nupsert: true\nretracts: ack\n",
            ("--key", "id"),
            "m.yaml:2: upsert: it leaves one record of a key, so m.yaml:3: retracts has no meaning",
        ),
        (
            "upsert: true\n",
            ("--key", "id", "--upsert"),
            "m.yaml:1: upsert: --upsert gives that too",
        ),
        (
            "upsert: true\n",
            ("--key", "id", "--sequence", "id"),
            "m.yaml:1: upsert: it leaves one record of a key, so --sequence has no meaning",
        ),
        ("\nformat: jsno\n", ("--key", "id"), 'm.yaml:2: format: no format is called "jsno"; did'),
        (
            "key: id\n",
            ("--key", "id", "--actual-key", "id"),
            "m.yaml:1: key: --actual-key gives that too",
        ),
        (
            "key: id\n",
            (),
            "m.yaml:1: key: it replaces --key on the actual side; give",
        ),
        (
            "value: id\n",
            ("--key", "id"),
            "m.yaml:1: value: it replaces",
        ),
        (
            "key: [id, ack]\n",
            ("--key", "id"),
            "m.yaml:1: key: expected as many expressions as --key",
        ),
        ("# 1\nkey: id +\n", ("--key", "id"), "m.yaml:2: key: `id +` is no expression"),
        (
            "order: [ack,\n idd]\n",
            ("--key", "id"),
            "m.yaml:1: order: `idd` is not a column of the act",
        ),
    ],
)
def test_a_problem_of_a_mapping_is_reported_with_its_line(
    run_command: RunCommand, tmp_path: Path, text: str, argv: tuple[str, ...], expected: str
) -> None:
    (tmp_path / "m.yaml").write_text(text)

    status, _, err = run_command(
        "--expected", "e.json", "--actual", "e.json", "--actual-map", "m.yaml", *argv
    )

    assert (status, "Traceback" in err) == (2, False)
    assert expected in err


def test_an_unknown_column_is_reported_with_the_known_ones(run_command: RunCommand) -> None:
    _, _, err = run_command("--expected", "e.json", "--actual", "e.json", "--key", "nothing")

    assert "`nothing` is not a column of the expected side; known: _file, _position, ack, id" in err


@pytest.mark.nightly
def test_texts_differ_from_numbers_and_nulls(run_command: RunCommand, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"id": 1, "ack": null}\n{"id": 2, "ack": ""}\n')

    _, out, _ = run_command(
        "--expected",
        "e.json",
        "--actual",
        "a.json",
        "--key",
        "id",
        "--compare",
        "ack",
        "--json",
        "f.json",
    )

    assert '(id 1, sent ack "ok", seen ack null)' in out
    assert '(id 2, sent ack "lost?", seen ack "")' in out
    findings = json.loads((tmp_path / "f.json").read_text())["findings"]
    assert findings[0]["detail"] == {"id": 1, "sent": [{"ack": "ok"}], "seen": [{"ack": None}]}


def test_an_unreadable_side_is_reported(run_command: RunCommand, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('[{"id": 1}]\n')

    _, out, _ = run_command("--expected", "e.json", "--actual", "a.json", "--key", "id")

    assert "no record of the actual side could be read: is its format right? --actual-f" in out


@pytest.mark.nightly
def test_a_note_is_yellow_on_a_terminal(
    run_command: RunCommand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        report,
        "make_console",
        lambda: Console(force_terminal=True, color_system="standard", no_color=False),
    )
    (tmp_path / "a.json").write_text('[{"id": 1}]\n')

    _, out, _ = run_command("--expected", "e.json", "--actual", "a.json", "--key", "id")

    assert "\x1b[33mnote: no record of the actual side could be read" in out


def test_unreachable_brokers_fail_to_run_within_a_limit(
    run_command: RunCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_admin, "DEADLINE_S", 0.5)

    status, _, err = run_command(
        "--expected", "e.json", "--actual", "kafka://127.0.0.1:1/t", "--key", "id"
    )

    assert status == 3
    assert "kafka://127.0.0.1:1/t" in err


def test_an_unreachable_name_node_fails_to_run(run_command: RunCommand) -> None:
    status, _, err = run_command(
        "--expected", "e.json", "--actual", "hdfs://127.0.0.1:1/t", "--key", "id"
    )

    assert status == 3
    assert "hdfs://127.0.0.1:1/t could not be listed" in err


def test_missing_java_fails_to_run(
    run_command: RunCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*args: object, **named: object) -> None:
        raise JavaMissing("Spark needs Java 17")

    monkeypatch.setattr(two_sources, "spark_session", missing)

    status, _, err = run_command("--expected", "e.json", "--actual", "e.json", "--key", "id")

    assert (status, "Spark needs Java 17" in err) == (3, True)


def test_settings_of_spark_are_passed_to_the_session(
    run_command: RunCommand, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[tuple[str, object]] = []

    def start(master: str, *args: object, settings: object, **named: object) -> SparkSession:
        started.append((master, settings))
        return spark

    monkeypatch.setattr(two_sources, "spark_session", start)
    sides = ("--expected", "e.json", "--actual", "e.json", "--key", "id")
    conf = ("--conf", "spark.executor.memory=512m", "--conf", "spark.x=a=b")
    status, _, _ = run_command(*sides, "--master", "spark://m:7077", *conf)
    assert status == 0
    settings = {"spark.executor.memory": "512m", "spark.x": "a=b"}
    assert started == [("spark://m:7077", settings)]
    status, _, err = run_command(*sides, "--conf", "executor.memory=512m")
    assert status == 2
    assert 'expected spark.NAME=VALUE, got "executor.memory=512m"' in err

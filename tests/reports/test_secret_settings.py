"""Secrets of settings are in no record."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from streamquake.reports.record.event import Action, EventDraft, Kind
from streamquake.reports.record.history import HistoryWriter
from streamquake.reports.record.run_folder import RunFolder
from streamquake.reports.record.secret_settings import HIDDEN, hide_secrets, keys_of_hidden_secrets

SECRET = "hunter2 and more"
NAMES = (
    "ssl.keystore.password",
    "PASSWORD",
    "DB_PASSWD",
    "passphrase",
    "client_secret",
    "AUTH_TOKEN",
    "sasl.jaas.config",
    "s3.access-key",
    "fs.s3a.secret.key",
    "api_key",
    "PRIVATE_KEY",
    "fs.azure.account.key.mine.blob.core.windows.net",
    "AZURE_STORAGE_KEY",
    "ssl.keystore.key",
    "PGPASS",
    "DB_PASS",
    "RABBITMQ_DEFAULT_PASS",
    "MYSQL_PWD",
    "DBPASS",
    "dbPass",
    "MYSQLPWD",
    "pwd",
    "tokens",
    "refresh_tokens",
    "refreshTokens",
)
PLAIN = (
    *("parallelism.default", "kafka.key", "security.delegation.tokens.enabled", "PATH"),
    *(
        "keys",
        "key_field",
        "compass",
        "passes",
        "bypass",
        "BYPASS",
        "passthrough",
        "pass-through",
        "max_tokens",
        "maxTokens",
        "tokens_per_s",
        "security.kerberos.tokens.renewal.time-ratio",
        "hotkey",
        "PWD",
        "OLDPWD",
        "keystore.type",
    ),
)
VALUES = (
    "-Xmx1g -Djavax.net.ssl.keyStorePassword=hunter2",
    "s3.secret-key: hunter2",
    "{'s3.secret-key': 'hunter2'}",
    "jdbc:mysql://h/t?user=u&password=hunter2",
    "Server=h;Uid=u;Pwd=hunter2",
    "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=hunter2",
    "Bearer hunter2",
    "Authorization: Basic aHVudGVyMjpodW50ZXIy",
    "https://u:p/hunter2@h",
    "https://u:p@hunter2@h",
    "postgresql:/u:hunter2@h",
)
PLAIN_VALUES = (
    "-Xmx1g -XX:+UseG1GC",
    "key=a, keys: b",
    "https://example.org:8080/a@b",
    "b1:9092,b2:9092",
    "jdbc:postgresql://app@h:5432/shop",
    "Basic settings",
    "key.fields: a; passes: 3",
)


@pytest.mark.parametrize("name", NAMES)
def test_a_secret_is_in_no_file_of_a_run(tmp_path: Path, name: str) -> None:
    folder = RunFolder.create(tmp_path, "run")
    job = {"config": {name: SECRET, "plain": "kept"}}
    service = {"config": {name: SECRET}, "nodes": {"broker": {"env": {name: SECRET}}}}
    folder.write_manifest(
        {
            "experiment": {"job": job, "topology": {"services": {"kafka": service}}},
            "argv": ["streamquake", "run", "x", "--set", f"job.config.{name}={SECRET}"],
        }
    )
    history = HistoryWriter(folder.history)
    history.append(
        EventDraft(at_ns=0, process="p", kind=Kind.INFO, action=Action.JOB_SUBMITTED, value=job)
    )
    history.close()

    for file in (folder.manifest, folder.history):
        assert "hunter2" not in file.read_text()
        assert "kept" in file.read_text()
    plan = folder.read_manifest()["experiment"]
    assert set(keys_of_hidden_secrets(plan)) == {
        f"job.config.{name}",
        f"topology.services.kafka.config.{name}",
        f"topology.services.kafka.nodes.broker.env.{name}",
    }


def test_a_repeat_command_has_no_secret() -> None:
    again = "streamquake suite x --set 'job.config.ssl.password=a b' --set job.parallelism=2"
    found = hide_secrets(
        {"again": again, "replay": "x --set 'a.secret=b", "argv": ["a.token=b c", "d"]}
    )

    assert found["again"] == (
        f"streamquake suite x --set 'job.config.ssl.password={HIDDEN}' --set job.parallelism=2"
    )
    assert found["replay"] == HIDDEN
    assert found["argv"] == [f"a.token={HIDDEN}", "d"]
    plain = {"replay": "streamquake replay 'a  b'"}
    assert hide_secrets(plain) == plain


def test_a_secret_within_a_mapping_of_a_command_is_hidden() -> None:
    command = f"topology.services.flink.nodes.taskmanager.env={{DB_PASSWORD: {SECRET}, A: b}}"
    found = hide_secrets({"argv": ["run", "--set", command], "again": f"suite x --set '{command}'"})

    assert "hunter2" not in str(found)
    assert found["argv"][2] == f"topology.services.flink.nodes.taskmanager.env={HIDDEN}"


def test_an_address_with_a_password_is_hidden() -> None:
    login = "https://me:hunter2@example.org/x"
    found = hide_secrets(
        {
            "config": {"registry": login, "plain": "https://example.org:8080/a@b"},
            "argv": ["--set", f"job.config.registry={login}"],
            "again": f"a --set b={login}",
        }
    )

    assert "hunter2" not in str(found)
    assert found["config"] == {"registry": HIDDEN, "plain": "https://example.org:8080/a@b"}


@pytest.mark.parametrize(
    "word",
    [
        "https://u:hunter2@h/",
        "https://u:hunter2@h/?page=1",
        "Authorization: Bearer hunter2",
        "Authorization: Basic dXNlcjpodW50ZXI=",
        "{password: hunter2}",
    ],
)
def test_a_word_of_a_command_that_is_no_setting_may_be_a_secret(word: str) -> None:
    found = hide_secrets({"argv": ["x", "--header", word, "a=b"], "again": f"x '{word}' a=b"})

    assert found == {"argv": ["x", "--header", HIDDEN, "a=b"], "again": f"x '{HIDDEN}' a=b"}


def test_other_words_of_a_command_are_unchanged() -> None:
    words = ["my-token-run", "runs/token", "kafka://h:9092/tokens", "a b=c", "PASSES=3"]

    assert hide_secrets({"argv": words}) == {"argv": words}


@pytest.mark.parametrize("value", VALUES)
def test_a_secret_in_a_value_is_hidden(value: str) -> None:
    found = hide_secrets(
        {"env": {"A": value, "B": ["kept", value], "C": {"d": value, "e": "kept"}}}
        | {"argv": ["--set", f"topology.services.s.nodes.n.env.A={value}"]}
    )

    assert found["env"] == {"A": HIDDEN, "B": ["kept", HIDDEN], "C": {"d": HIDDEN, "e": "kept"}}
    assert found["argv"][1] == f"topology.services.s.nodes.n.env.A={HIDDEN}"


@pytest.mark.parametrize("value", PLAIN_VALUES)
def test_other_values_are_unchanged(value: str) -> None:
    document = {"env": {"A": value}, "argv": [f"a={value}"]}

    assert hide_secrets(document) == document


def test_lists_and_mappings_below_the_name_of_a_secret_are_hidden_whole() -> None:
    found = hide_secrets({"config": {"secrets": ["a", "b"], "credentials": {"x": 1}, "token": []}})

    assert found == {"config": {"secrets": HIDDEN, "credentials": HIDDEN, "token": []}}


def test_a_command_has_no_secret_setting() -> None:
    word = "topology.services.flink.nodes.taskmanager.env.DB_PASS="

    found = hide_secrets({"argv": [f"{word}x"], "again": f"suite a --set {word}x"})

    assert found == {"argv": [f"{word}{HIDDEN}"], "again": f"suite a --set '{word}{HIDDEN}'"}


@pytest.mark.parametrize("name", PLAIN)
def test_other_settings_and_records_are_unchanged(name: str) -> None:
    document = {
        "config": {name: "value", "password": "", "token": True},
        "sql": "SELECT 'password=x'",
        "findings": [{"secret": "s", "password": "a value of a record"}],
    }

    assert hide_secrets(document) == document


def test_an_interactive_cluster_keeps_its_secrets_readable_by_its_owner_only(
    tmp_path: Path,
) -> None:
    folder = RunFolder.create(tmp_path, "run")
    folder.write_manifest({"by_hand": True, "experiment": {"env": {"PASSWORD": SECRET}}})

    assert folder.read_manifest()["experiment"]["env"]["PASSWORD"] == SECRET
    assert stat.S_IMODE(folder.manifest.stat().st_mode) == 0o600

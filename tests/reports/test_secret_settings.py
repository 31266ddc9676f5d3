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
)
PLAIN = ("parallelism.default", "kafka.key", "security.delegation.tokens.enabled", "PATH")


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

"""Addresses of tables: each part is read, and what is none is rejected with the form of one."""

from __future__ import annotations

import pytest

from streamquake.harness.reconcile.reading.database_address import FORM, shown, table_address


def test_each_part_of_an_address_is_read() -> None:
    found = table_address("postgresql://app@db.example.com:5433/shop/sales.totals")

    assert (found.server, found.database, found.user) == ("db.example.com:5433", "shop", "app")
    assert (found.name, found.quoted) == ("sales.totals", '"sales"."totals"')


def test_no_user_no_port_and_an_address_of_numbers_are_possible() -> None:
    for server in ("host", "10.0.0.1:65535", "[::1]:2"):
        found = table_address(f"postgresql://{server}/shop/totals")
        assert (found.server, found.user, found.schema) == (server, None, None)


def test_names_are_decoded_and_quoted_as_identifiers() -> None:
    found = table_address("postgresql://host/my%20shop/a%2Eb.c%22%2Fd")

    assert found.database == "my shop"
    assert table_address("postgresql://my%20app@host/shop/t").user == "my app"
    assert found.quoted == '"a.b"."c""/d"'


def test_a_port_of_a_service_stands_for_the_server_where_there_are_services() -> None:
    uri = "postgresql://app@${db.sql}/shop/totals"

    assert table_address(uri, services=True).server == "${db.sql}"
    with pytest.raises(ValueError, match="expected postgresql://"):
        table_address(uri)


@pytest.mark.parametrize(
    "uri",
    [
        "totals",
        "postgresql://host/totals",
        "postgresql://host/shop/",
        "postgresql://host//totals",
        "postgresql://host/shop/a.b.c",
        "postgresql://host/shop/.c",
        "postgresql://host/shop/totals/more",
        "postgresql:///shop/totals",
        "postgresql://host:x/shop/totals",
        "postgresql://a:1,b:2/shop/totals",
        "postgresql://host:0/shop/totals",
        "postgresql://host:65536/shop/totals",
        "postgresql://host/shop/a%00b",
        "postgresql://host/shop/a%ffb",
        "postgresql://host/shop/a\nb",
        "postgresql://${run}@host/shop/totals",
        "postgresql://host/shop/${run}",
        "postgresql://ho&a=b/shop/totals",
        "postgresql://[::1/shop/totals",
        "mysql://host/shop/totals",
        "jdbc:postgresql://host/shop/totals",
    ],
)
def test_other_texts_are_rejected_with_the_form(uri: str) -> None:
    with pytest.raises(ValueError, match="expected") as error:
        table_address(uri)
    assert str(error.value) == f'expected {FORM}, got "{uri}"'


@pytest.mark.parametrize("end", ["?password=geheim", "#geheim", "?geheim=a/shop/totals"])
def test_what_follows_the_path_is_rejected_and_not_shown(end: str) -> None:
    with pytest.raises(ValueError, match="expected postgresql://") as error:
        table_address(f"postgresql://host/shop/totals{end}")
    assert "geheim" not in str(error.value)


def test_a_password_is_taken_from_the_environment_only() -> None:
    with pytest.raises(ValueError, match="it takes no password; set PGPASSWORD") as error:
        table_address("postgresql://app:secret@host/shop/totals")
    assert "secret" not in str(error.value)
    assert "secret" not in shown("postgresql://app:secret@host/shop/totals")


@pytest.mark.parametrize(
    "uri",
    [
        "postgresql://app:secret@host/shop/totals",
        "postgresql://app:a/secret@host/shop/totals",
        "postgresql://app:a@secret@host/shop/totals",
        "postgresql:/app:secret@host/shop/totals",
        "postgresql://app@corp:secret@host/shop/totals",
        "app:secret@host/shop/totals",
    ],
)
def test_no_message_has_a_password(uri: str) -> None:
    assert "secret" not in shown(uri)
    with pytest.raises(ValueError, match=r"password|expected") as error:
        table_address(uri)
    assert "secret" not in str(error.value)


def test_a_user_without_a_password_is_shown() -> None:
    uri = "postgresql://app@host:5433/shop/totals"

    assert shown(uri) == uri

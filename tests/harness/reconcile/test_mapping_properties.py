"""The properties of a mapping file are those of a topology, with the same problems."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamquake.harness.reconcile.mapping import read_mapping
from streamquake.topologies.problems import BadInput, Problem

PROPERTIES = "properties: {security.protocol: SSL, ssl.ca.location: ca.pem}"


def problems_of(folder: Path, text: str) -> tuple[Problem, ...]:
    (folder / "side.yaml").write_text(text)
    with pytest.raises(BadInput) as error:
        read_mapping(folder / "side.yaml", "actual")
    return error.value.problems


def test_a_file_that_is_missing_is_a_problem_at_its_place(tmp_path: Path) -> None:
    (problem,) = problems_of(tmp_path, PROPERTIES)

    assert problem.path == "properties.ssl.ca.location"
    assert problem.message.startswith(f"expected a file in PEM, and {tmp_path / 'ca.pem'} cannot")


def test_files_are_beside_the_mapping_file(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("-----BEGIN CERTIFICATE-----\n")
    (tmp_path / "side.yaml").write_text(PROPERTIES)

    found = read_mapping(tmp_path / "side.yaml", "actual")

    assert found.properties["ssl.ca.location"] == str(tmp_path / "ca.pem")


def test_a_secret_that_is_a_number_is_one_problem_and_not_shown(tmp_path: Path) -> None:
    login = "security.protocol: SASL_PLAINTEXT, sasl.mechanism: PLAIN, sasl.username: a"

    (problem,) = problems_of(tmp_path, f"properties: {{{login}, sasl.password: 12345}}")

    assert problem.path == "properties.sasl.password"
    assert problem.message == "expected text, got a value that is not shown; write it in quotes"

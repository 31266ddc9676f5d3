"""The contract of every registered source before it reads; a new source is covered
automatically."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

from streamquake.harness.reconcile.reading.source import Source, source_of, sources
from streamquake.topologies.problems import BadInput
from tests.contract.member_rules import without_docstring


def wrong_scheme(kind: type[Source]) -> Iterator[str]:
    """The name of a source is the scheme of its URIs."""
    if not re.fullmatch(r"[a-z][a-z0-9+.-]*", kind.name):
        yield f"{kind.name} is no scheme of a URI"


def accepts_missing_place(kind: type[Source]) -> Iterator[str]:
    """A URI of a missing place is rejected at once, before Spark is started."""
    try:
        kind([f"{kind.name}:///no/such/place/of/all"]).inspect()
    except BadInput:
        return
    yield "it accepts the URI of a missing place"


def violations(kind: type[Source]) -> list[str]:
    return [*without_docstring(kind), *wrong_scheme(kind), *accepts_missing_place(kind)]


@pytest.mark.parametrize("name", sorted(sources))
def test_a_source_fulfils_the_contract(name: str) -> None:
    assert violations(sources[name]) == []


@pytest.mark.parametrize("name", sorted(sources))
def test_a_source_is_not_mixed_with_another(name: str) -> None:
    other = next(source for source in sources if source != name)

    with pytest.raises(BadInput, match="one kind of source"):
        source_of([f"{name}://host/a", f"{other}://host/b"], "--expected")


class IncompleteSource(Source):
    name: ClassVar[str] = "Any Where"

    def inspect(self) -> int:
        return 0

    def read(self, spark: Any, names: Any) -> Any:
        raise NotImplementedError


def test_every_violation_of_the_contract_is_detected() -> None:
    assert violations(IncompleteSource) == [
        "IncompleteSource has no docstring of its own, so `list` shows nothing",
        "Any Where is no scheme of a URI",
        "it accepts the URI of a missing place",
    ]

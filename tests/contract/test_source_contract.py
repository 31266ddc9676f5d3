"""What every registered source must do before it reads; a new one is covered by itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

from streamquake.harness.reconcile.reading.source import Source, source_of, sources
from streamquake.topologies.problems import BadInput
from tests.contract.member_rules import undescribed


def wrong_scheme(kind: type[Source]) -> Iterator[str]:
    """`NAME://` names it, and a side is of one source."""
    if not re.fullmatch(r"[a-z][a-z0-9+.-]*", kind.name):
        yield f"{kind.name} is no scheme of a URI"


def takes_nowhere(kind: type[Source]) -> Iterator[str]:
    """A URI without a place is refused at once, before Spark is started."""
    try:
        kind([f"{kind.name}:///no/such/place/of/all"]).inspect()
    except BadInput:
        return
    yield "it takes a URI that leads nowhere"


def broken(kind: type[Source]) -> list[str]:
    return [*undescribed(kind), *wrong_scheme(kind), *takes_nowhere(kind)]


@pytest.mark.parametrize("name", sorted(sources))
def test_a_source_keeps_the_contract(name: str) -> None:
    assert broken(sources[name]) == []


@pytest.mark.parametrize("name", sorted(sources))
def test_a_source_is_not_mixed_with_another(name: str) -> None:
    other = next(each for each in sources if each != name)

    with pytest.raises(BadInput, match="one kind of source"):
        source_of([f"{name}://host/a", f"{other}://host/b"], "--expected")


class Anywhere(Source):
    name: ClassVar[str] = "Any Where"

    def inspect(self) -> int:
        return 0

    def read(self, spark: Any, asked: Any) -> Any:
        raise NotImplementedError


def test_a_source_that_keeps_nothing_of_it_is_found_out() -> None:
    assert broken(Anywhere) == [
        "Anywhere has no docstring of its own, so `list` shows nothing",
        "Any Where is no scheme of a URI",
        "it takes a URI that leads nowhere",
    ]

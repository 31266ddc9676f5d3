"""Documents that build on another one: `base: NAME`, and only the changed keys.

    base: uc-slow-operator
    name: ac-slow-operator
    job: {config: {execution.checkpointing.unaligned.enabled: false}}

Mappings are merged with the base's, key by key; any other value, also a list, replaces the base's
value. A base may have a base of its own. A name is resolved from the folder of the document.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from streamquake.topologies.parsing import value_text
from streamquake.topologies.problems import BadInput
from streamquake.topologies.yaml_document import Document, Place

KEY = "base"
MOST_BASES = 50
"""How many documents may build on each other."""
Find = Callable[[str], Document]
"""The document of a name. Raises BadInput."""


def merge_with_base(document: Document, find: Find, below: tuple[str, ...] = ()) -> Document:
    """The complete document, merged with its base; a problem in a part of the base is reported with
    the base's file and line. Raises BadInput for a base that is missing, or that builds on
    itself."""
    if KEY not in document.data:
        return document
    name = document.data[KEY]
    if not isinstance(name, str):
        text = f"expected the name of the document to build on, got {value_text(name)}"
        raise BadInput([document.problem((KEY,), text)])
    if name in below:
        chain = " -> ".join((*below, name))
        raise BadInput([document.problem((KEY,), f"the bases form a cycle: {chain}")])
    if len(below) >= MOST_BASES:
        message = f"more than {MOST_BASES} documents build on each other"
        raise BadInput([document.problem((KEY,), message)])
    try:
        found = find(name)
    except BadInput as error:
        raise BadInput(
            [document.problem((KEY,), p.message) if p.file == name else p for p in error.problems]
        ) from error
    base = merge_with_base(found, find, (*below, name))
    own = {key: value for key, value in document.data.items() if key != KEY}
    return replace(
        document,
        data=_merge(base.data, own),
        lines={**base.lines, **document.lines},
        origins={**_origins(base, document), **document.origins},
    )


def _merge(base: Any, own: Any) -> Any:
    if not (isinstance(base, Mapping) and isinstance(own, Mapping)):
        return own
    shared = {key: _merge(base[key], value) for key, value in own.items() if key in base}
    return {**base, **own, **shared}


def _origins(base: Document, own: Document) -> dict[Place, str]:
    """Place -> file and line, of the values that only the base has."""
    inherited = {
        place: f"{base.file}:{line}"
        for place, line in base.lines.items()
        if place and place not in own.lines
    }
    return {**inherited, **{p: source for p, source in base.origins.items() if p not in own.lines}}

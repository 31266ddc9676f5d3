"""Models of the parts of a document as a user writes them, for schemas.

The loaders parse a document part by part, so that one problem hides no other; their models leave
the parts open. The models here have the types of all parts.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import ConfigDict, create_model, model_validator

from streamquake.topologies.model import Model

M = TypeVar("M", bound=Model)
FieldDefinition = tuple[Any, Any]
"""The type of a field, and its default or its `Field`."""


def written_model(
    name: str,
    base: type[M],
    fields: Mapping[str, FieldDefinition],
    *,
    description: str | None = None,
    groups: Sequence[Collection[str]] = (),
) -> type[M]:
    """A model with the fields of its base, some of them with other types, and further fields.

    A document must have exactly one key of each group, such as one fault. Pydantic does not
    describe validators, so the schema gets these rules too.
    """
    rules: list[Any] = [{"oneOf": [{"required": [key]} for key in group]} for group in groups]
    create: Any = create_model
    found: type[M] = create(
        name,
        __base__=base,
        __doc__=inspect.getdoc(base) if description is None else description,
        __config__=ConfigDict(json_schema_extra={"allOf": rules} if rules else None),
        __validators__={"_has_one_of_each": model_validator(mode="after")(_one_of_each(groups))},
        **fields,
    )
    return found


def _one_of_each(groups: Sequence[Collection[str]]) -> Any:
    def has_one_of_each(self: Model) -> Model:
        for group in groups:
            if len(self.model_fields_set & {*group}) != 1:
                raise ValueError(f"expected exactly one of {', '.join(group)}")
        return self

    return has_one_of_each

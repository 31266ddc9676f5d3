"""The parameters of a model in the terms of YAML: names, types, defaults."""

from __future__ import annotations

from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from streamquake.topologies.parsing import choices


def parameters(model: type[BaseModel]) -> list[dict[str, Any]]:
    """The fields of a model in their order: name, type, default, whether it is needed."""
    return [
        {
            "name": field.alias or name,
            "type": _type_text(field.annotation),
            "required": field.is_required(),
            "default": None if field.is_required() else _default(field),
        }
        for name, field in model.model_fields.items()
    ]


def _default(field: FieldInfo) -> Any:
    default = field.get_default(call_default_factory=True)
    return default.model_dump(exclude_none=True) if isinstance(default, BaseModel) else default


def _type_text(annotation: Any) -> str:
    """A parameter's type in the terms of YAML."""
    names = [_one_type(kind) for kind in choices(annotation) if kind is not type(None)]
    return " or ".join(dict.fromkeys(names))


def _one_type(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return " | ".join(map(str, get_args(kind)))
    if get_origin(kind) is tuple:
        return f"list of {_type_text(get_args(kind)[0])}"
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return "{" + ", ".join(kind.model_fields) + "}"
    return kind.__name__ if isinstance(kind, type) else "mapping"

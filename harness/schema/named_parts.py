"""What a document names: shipped documents, and members of a registry with their parameters."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypeAliasType

from streamquake.harness.schema.composed_types import either, one_of
from streamquake.harness.schema.written_model import FieldDefinition
from streamquake.topologies.docstrings import summary
from streamquake.topologies.model import Model
from streamquake.topologies.registry import Registry
from streamquake.topologies.shipped_documents import shipped_descriptions


def described_names(descriptions: Mapping[str, str]) -> Any:
    """The type of a text that is one of these names, which an editor shows with its description."""
    return either(
        *(
            Annotated[one_of([name]), Field(description=text or None)]
            for name, text in descriptions.items()
        )
    )


def shipped_or_path(kind: str, folder: Path) -> Any:
    """The type of a text that names a shipped document of a folder, or any file."""
    names: Any = either(described_names(shipped_descriptions(folder)), str)
    return TypeAliasType(f"{kind.capitalize()}Name", names)


def needs_parameters(member: type[Model]) -> bool:
    """Whether a member has a parameter without a default, so that its name alone is not enough."""
    return any(field.is_required() for field in member.model_fields.values())


def fields_by_name(members: Registry[Any]) -> dict[str, FieldDefinition]:
    """A field for each member of a registry, with its parameters; for each former name too. A name
    without a value has no parameters."""
    fields: dict[str, FieldDefinition] = {}
    for name, member in members.items():
        given = member if needs_parameters(member) else either(member, None)
        fields[name] = given, Field(None, description=summary(member))
        for former in getattr(member, "former_names", ()):
            text = f"Now called `{name}`."
            fields[former] = given, Field(None, description=text, deprecated=True)
    return fields

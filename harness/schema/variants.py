"""Documents that build on another one (`base: NAME`): any part may be left out of them."""

from __future__ import annotations

from typing import Any

from streamquake.harness.schema.generator import REFERENCE
from streamquake.topologies.base_documents import KEY

REQUIREMENTS = ("required", "allOf")
"""The rules of a mapping that name keys which it must have."""


def with_variants(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema in which each document with the key `base` may leave out what its base has.

    A base is merged mapping by mapping, so keys may be missing in every mapping of the document;
    the entries of a list are complete, because a list replaces the base's.
    """
    whole: dict[str, Any] = schema["$defs"]
    variants = _Variants(whole)
    chosen = {
        name: {
            "if": {"required": [KEY]},
            "then": {"$ref": variants.of(f"{REFERENCE}{name}")},
            "else": {"$ref": f"{REFERENCE}Whole{name}"},
        }
        for name, definition in whole.items()
        if KEY in definition.get("properties", {})
    }
    kept = {f"Whole{name}" if name in chosen else name: d for name, d in whole.items()}
    return {**schema, "$defs": dict(sorted({**kept, **variants.made, **chosen}.items()))}


class _Variants:
    """The definitions in which no key is required, made from those in which some are."""

    def __init__(self, whole: dict[str, Any]) -> None:
        self._whole = whole
        self.made: dict[str, Any] = {}

    def of(self, reference: str) -> str:
        """A reference to the variant of a definition; the same reference if both are equal."""
        name = reference.removeprefix(REFERENCE)
        variant = f"{name}Variant"
        if variant not in self.made:
            self.made[variant] = {}  # a definition may refer to itself
            definition = self._without_requirements(self._whole[name])
            if definition == self._whole[name]:
                del self.made[variant]
                return reference
            self.made[variant] = definition
        return f"{REFERENCE}{variant}"

    def _without_requirements(self, schema: Any) -> Any:
        """A schema as for a mapping that is merged with the base's."""
        if not isinstance(schema, dict):
            return schema
        found = {key: value for key, value in schema.items() if key not in REQUIREMENTS}
        if "$ref" in found:
            found["$ref"] = self.of(found["$ref"])
        if "properties" in found:
            found["properties"] = {
                key: self._without_requirements(value) for key, value in found["properties"].items()
            }
        if "additionalProperties" in found:
            found["additionalProperties"] = self._without_requirements(
                found["additionalProperties"]
            )
        if "anyOf" in found:
            found["anyOf"] = [self._without_requirements(choice) for choice in found["anyOf"]]
        return found

"""Shared parts of the pages: descriptions of models and of their fields, in Markdown."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import BaseModel

from streamquake.topologies.parameters import parameters
from streamquake.topologies.parsing import value_text

COMMAND = "python -m streamquake.harness.reference"
GENERATED = f"Generated from the code by `{COMMAND}`; a test compares."
WIDTH = 100


def section(title: str, model: type[BaseModel], *more: str) -> str:
    """A section on a model: its docstring, its fields, and further paragraphs."""
    parts = [f"## {title}", inspect.getdoc(model) or "", field_list(model), *more]
    return "\n\n".join(part for part in parts if part) + "\n"


def field_list(model: type[BaseModel]) -> str:
    """A list of the fields of a model: name, type, default, and docstring."""
    docs = attribute_docs(model)
    attributes = {field.alias: name for name, field in model.model_fields.items() if field.alias}
    return "\n".join(
        _field(field, docs.get(attributes.get(field["name"], field["name"]), ""))
        for field in parameters(model)
    )


def _field(parameter: Mapping[str, Any], doc: str) -> str:
    default = parameter["default"]
    # A part with keys has a section, which shows their defaults.
    has_default = default not in (None, "", (), {}) and not isinstance(default, dict)
    needed = ", needed" if parameter["required"] else ""
    unless = f", {value_text(default)} unless given" if has_default else ""
    entry = f"- `{parameter['name']}`: {parameter['type']}{needed}{unless}"
    return wrapped(f"{entry}. {doc}" if doc else entry, "  ")


def wrapped(text: str, indent: str = "") -> str:
    """A paragraph wrapped at the width of a page; `indent` applies to all lines but the first."""
    return textwrap.fill(
        text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def attribute_docs(owner: type) -> dict[str, str]:
    """The docstrings of a class's attributes, including inherited ones. They are the text below
    each attribute in the source; Python itself discards them."""
    package = owner.__module__.partition(".")[0]  # attributes of libraries are left out
    docs: dict[str, str] = {}
    for base in reversed(owner.__mro__):
        if base.__module__.partition(".")[0] == package:
            docs.update(_attribute_docs_of(base))
    return docs


@cache  # a base class has many subclasses
def _attribute_docs_of(owner: type) -> Mapping[str, str]:
    try:
        source = inspect.getsource(owner)
    except OSError:  # a class that pydantic created has no source, such as `Fault[Node]`
        return {}
    (tree,) = ast.parse(textwrap.dedent(source)).body
    assert isinstance(tree, ast.ClassDef)
    docs = {}
    for statement, following in zip(tree.body, tree.body[1:], strict=False):
        match statement, following:
            case (
                ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                docs[name] = inspect.cleandoc(text)
    return docs

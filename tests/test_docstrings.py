"""Docstrings name exceptions that exist: a class that was renamed is renamed where they name it."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Iterator

from tests.test_architecture import ROOT, sources

FEWEST_NAMES = 100
"""Fewer exceptions than this in all docstrings mean that they were not found."""
RAISES = re.compile(r"\bRaises?\b(.*?)(?:\.(?:\s|$)|;|$)", re.DOTALL)
CLASS = re.compile(r"(?<![\w.`])[A-Z][a-z]\w*[A-Z]\w*\b")
"""A class of two words or more, as all exceptions of the project and of Python are."""

COMPONENTS = {"JobManager", "TaskManager", "NameNode", "DataNode"}
"""Parts of engines that such a sentence may name too."""


def _docstrings(module: ast.Module) -> Iterator[str]:
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(module):
        if isinstance(node, documented) and (text := ast.get_docstring(node)):
            yield text


def _named(text: str) -> Iterator[str]:
    """The exceptions that a docstring says are raised."""
    for sentence in RAISES.findall(text):
        yield from CLASS.findall(sentence)


def _known(module: ast.Module) -> Iterator[str]:
    """The classes that a module defines, and the names that it imports."""
    for node in ast.walk(module):
        if isinstance(node, ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name for alias in node.names)


def _unknown(text: str, known: Iterable[str]) -> list[str]:
    return [name for name in _named(text) if name not in known]


def test_every_exception_that_a_docstring_names_exists() -> None:
    modules = sources(ROOT)
    known = {
        *dir(builtins),
        *COMPONENTS,
        *(name for module in modules for name in _known(module.tree)),
    }
    texts = [(module.path, text) for module in modules for text in _docstrings(module.tree)]
    assert sum(1 for _, text in texts for _ in _named(text)) > FEWEST_NAMES
    assert [(path, name) for path, text in texts for name in _unknown(text, known)] == []


def test_an_exception_that_does_not_exist_is_found() -> None:
    text = "The end. Raises LookupError, NotReady\nand OSError; no NodeDied. Raises JobGone."
    assert _unknown(text, ["LookupError"]) == ["NotReady", "JobGone"]

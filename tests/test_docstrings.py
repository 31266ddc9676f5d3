"""Every exception that a docstring names exists, also after a class was renamed."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Iterator

from tests.test_architecture import ROOT, Source, sources

MIN_NAMES = 100
"""If all docstrings have fewer exceptions than this, the search is broken."""
RAISES = re.compile(r"\bRaises?\b(.*?)(?:\.(?:\s|$)|;|$)", re.DOTALL)
CLASS = re.compile(r"(?<![\w.`])[A-Z][a-z]\w*[A-Z]\w*\b")
"""A class name of two words or more; all exceptions of the project and of Python have such
names."""

COMPONENTS = {"JobManager", "TaskManager", "NameNode", "DataNode"}
"""Parts of engines, which such a sentence may name too."""


def _docstrings(module: Source) -> Iterator[str]:
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in module.nodes:
        if isinstance(node, documented) and (text := ast.get_docstring(node)):
            yield text


def _exceptions(text: str) -> Iterator[str]:
    """The exceptions that a docstring lists as raised."""
    for sentence in RAISES.findall(text):
        yield from CLASS.findall(sentence)


def _known_names(module: Source) -> Iterator[str]:
    """The classes that a module defines, and the names that it imports."""
    for node in module.nodes:
        if isinstance(node, ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name for alias in node.names)


def _unknown_exceptions(text: str, known: Iterable[str]) -> list[str]:
    return [name for name in _exceptions(text) if name not in known]


def test_every_exception_that_a_docstring_names_exists() -> None:
    modules = sources(ROOT)
    known = {
        *dir(builtins),
        *COMPONENTS,
        *(name for module in modules for name in _known_names(module)),
    }
    texts = [(module.path, text) for module in modules for text in _docstrings(module)]
    assert sum(1 for _, text in texts for _ in _exceptions(text)) > MIN_NAMES
    assert [(path, name) for path, text in texts for name in _unknown_exceptions(text, known)] == []


def test_an_exception_that_does_not_exist_is_found() -> None:
    text = "The end. Raises LookupError, NotReady\nand OSError; no NodeDied. Raises JobGone."
    assert _unknown_exceptions(text, ["LookupError"]) == ["NotReady", "JobGone"]
